"""Starting from a trained model instead of from random weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import nn

from pellucid.bundle import Bundle, load_bundle, resolve_model
from pellucid.config import NAMED_SIZES, StartConfig, load_recipe
from pellucid.errors import ConfigurationError, InputFileNotFoundError, suggestion

__all__ = ["freeze", "load_start", "with_start"]


def load_start(start: StartConfig, run: Path) -> Bundle | None:
    """The bundle that a recipe's ``start.model`` names; None where it names none.

    Args:
        start: the recipe's section.
        run: the run folder; where the model is gone, a run that has begun stands in for it.

    Raises:
        ConfigurationError: it is another model than the recipe was made for.
        InputFileNotFoundError: there is no such model.
        BundleError: it is damaged.
    """
    if not start.model:
        return None
    bundle, model_hash = _find_start(start.model, run)
    if start.model_hash not in ("", model_hash):
        raise ConfigurationError(
            f"start.model must be the model whose hash is {start.model_hash}, but the hash of "
            f"{start.model} is {model_hash}. Name the former model, or leave "
            "start.model_hash out."
        )
    return bundle


def _find_start(model: str, run: Path) -> tuple[Bundle, str]:
    """A model to start from and its hash, or what a run that began with it keeps of both."""
    try:
        bundle = load_bundle(resolve_model(model))
    except InputFileNotFoundError:
        recipe, untrained = run / "recipe.toml", run / "untrained"
        if not (recipe.is_file() and untrained.is_dir()):
            raise
        model_hash = load_recipe(recipe).start.model_hash
        if not model_hash:
            raise
        return load_bundle(untrained), model_hash
    return bundle, bundle.model_hash


def with_start(values: Mapping[str, Any], model: str, run: Path) -> dict[str, Any]:
    """A recipe's values for training that starts from a model.

    Sizes and tokenizer are the model's: the recipe may leave them out or say the same sizes. A
    section that is none comes back as it is, for the recipe's own check to refuse.

    Args:
        values: the recipe as its file has it, with all changes.
        model: a bundle folder, a run folder, or ``demo``.
        run: the run folder; where the model is gone, a run that has begun stands in for it.

    Raises:
        ConfigurationError: the recipe asks for another model or tokenizer.
        InputFileNotFoundError: there is no such model.
        BundleError: it is damaged.
    """
    bundle, model_hash = _find_start(model, run)
    sizes = bundle.config.model.model_dump(mode="json")
    asked = values.get("model", {})
    if not isinstance(asked, Mapping):
        return dict(values)
    size = asked.get("size")
    if isinstance(size, str) and size in NAMED_SIZES:
        asked = NAMED_SIZES[size] | {key: value for key, value in asked.items() if key != "size"}
    differing = sorted(key for key, value in asked.items() if sizes.get(key) != value)
    if differing:
        key = differing[0]
        raise ConfigurationError(
            f"model.{key} must be that of the model to start from, {sizes.get(key)!r}, but is "
            f"{asked[key]!r}. Leave the section [model] out: it is taken from {model}."
        )
    tokenizer, text = values.get("tokenizer", {}), values.get("data", {})
    if not isinstance(tokenizer, Mapping) or not isinstance(text, Mapping):
        return dict(values)
    if tokenizer:
        raise ConfigurationError(
            "The section [tokenizer] must be left out when training starts from a model, whose "
            f"tokenizer is taken, but it holds {', '.join(sorted(tokenizer))} ({model})."
        )
    # A tokenizer's own vocabulary stands; the recipe's section only has to fit the model's tying.
    sharing = bundle.config.tokenizer.sharing
    languages = bundle.config.languages
    data = {
        "source_language": languages.source,
        "target_language": languages.target,
        "max_length": min(256, sizes["max_source_length"], sizes["max_target_length"]),
        **text,
    }
    return {
        **values,
        "data": data,
        "model": sizes,
        "tokenizer": {"sharing": sharing},
        "start": {"model": str(Path(model)), "model_hash": model_hash},
    }


def freeze(model: nn.Module, beginnings: Sequence[str]) -> None:
    """Keep the weights as they are whose names begin so.

    Raises:
        ConfigurationError: nothing begins so, or nothing would be left to train.
    """
    named = dict(model.named_parameters())
    for beginning in beginnings:
        chosen = [name for name in named if f"{name}.".startswith(f"{beginning}.")]
        if not chosen:
            parts = {".".join(name.split(".")[:n]) for name in named for n in (1, 2, 3)}
            raise ConfigurationError(
                f"training.freeze must name parts of the model, but {beginning!r} is none. "
                + suggestion(beginning, sorted(parts))
            )
        for name in chosen:
            named[name].requires_grad_(False)
    if not any(parameter.requires_grad for parameter in named.values()):
        raise ConfigurationError(
            f"training.freeze must leave something to train, but {', '.join(beginnings)} is the "
            "whole model."
        )
