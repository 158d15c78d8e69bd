"""Start from a trained model instead of random weights."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pellucid.bundle import Bundle, load_bundle, resolve_model
from pellucid.config import NAMED_SIZES, StartConfig, load_recipe, named_size
from pellucid.errors import BundleError, ConfigurationError, InputFileNotFoundError

UNTRAINED = "untrained"


def load_start(start: StartConfig, run: Path) -> Bundle | None:
    """Load the bundle that a recipe's ``start.model`` names; None if it names none.

    Args:
        start: the recipe's section.
        run: the run folder. A run that started from this model has kept a copy of it.

    Raises:
        ConfigurationError: it is not the model that the recipe was made for.
        InputFileNotFoundError: the model does not exist.
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
    """Load a model to start from, and its hash; a run that started from it has kept both."""
    kept = _kept_start(run)
    if kept is not None and kept.model == str(Path(model)):
        with suppress(BundleError):
            return load_bundle(run / UNTRAINED), kept.model_hash
    try:
        bundle = load_bundle(resolve_model(model))
    except InputFileNotFoundError:
        if kept is None:
            raise
        raise InputFileNotFoundError(
            f"MODEL must be a bundle folder or a run folder, but {model} does not exist. The run "
            f"in {run} started from {kept.model}, and has kept a copy: name that, or choose "
            "another --out."
        ) from None
    return bundle, bundle.model_hash


def _kept_start(run: Path) -> StartConfig | None:
    """Read what a run records of the model it started from, if its copy is there."""
    if (run / UNTRAINED).is_dir():
        with suppress(ConfigurationError, InputFileNotFoundError):
            start = load_recipe(run / "recipe.toml").start
            if start.model_hash:
                return start
    return None


def with_start(values: Mapping[str, Any], model: str, run: Path) -> dict[str, Any]:
    """Fill a recipe's values in for training that starts from a model.

    Sizes and tokenizer are the model's: the recipe may leave them out, or repeat the sizes. A
    section that is not a table comes back as it is: the recipe's own check refuses it.

    Args:
        values: the recipe as its file has it, with all changes.
        model: a bundle folder, a run folder, or ``demo``.
        run: the run folder. A run that started from this model has kept a copy of it.

    Raises:
        ConfigurationError: the recipe asks for another model or tokenizer.
        InputFileNotFoundError: the model does not exist.
        BundleError: it is damaged.
    """
    bundle, model_hash = _find_start(model, run)
    sizes = bundle.config.model.model_dump(mode="json")
    asked = values.get("model", {})
    if not isinstance(asked, Mapping):
        return dict(values)
    size = asked.get("size")
    if isinstance(size, str) and size in NAMED_SIZES:
        given = {key: value for key, value in asked.items() if key != "size"}
        asked = named_size(size, sizes["architecture"]) | given
    differing = sorted(key for key in asked.keys() & sizes.keys() if asked[key] != sizes[key])
    if differing:
        key = differing[0]
        raise ConfigurationError(
            f"model.{key} must be that of the model to start from, {sizes[key]!r}, but is "
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
    # The vocabulary comes with the tokenizer; this section only has to fit the model's tying.
    sharing = bundle.config.tokenizer.sharing
    languages = bundle.config.languages
    data = {
        "source_language": languages.source,
        "target_language": languages.target,
        "max_length": min(256, sizes["max_source_length"], sizes["max_target_length"]),
        **text,
    }
    given = values.get("start", {})
    if not isinstance(given, Mapping):
        return dict(values)
    if given.get("new_tokens"):
        # The extended sizes follow from the text, as those of a new vocabulary do.
        sizes |= {"source_vocabulary_size": 0, "target_vocabulary_size": 0}
    return {
        **values,
        "data": data,
        "model": {**asked, **sizes},
        "tokenizer": {"sharing": sharing},
        "start": {**given, "model": str(Path(model)), "model_hash": model_hash},
    }
