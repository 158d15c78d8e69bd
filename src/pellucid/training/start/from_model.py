"""Start from a trained model instead of random weights, maybe with more tokens than it had."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pellucid.bundle import Bundle, load_bundle, resolve_model
from pellucid.config import NAMED_SIZES, StartConfig, load_recipe, named_size
from pellucid.config.config_json import MASKS
from pellucid.errors import BundleError, ConfigurationError, InputFileNotFoundError
from pellucid.model import make_model
from pellucid.model.unowned import NEVER
from pellucid.text.outside import Side
from pellucid.text.tokenizers.tokenizer import Tokenizer

UNTRAINED = "untrained"

SHARE = 1e-3
"""The most that all new tokens together can take of a softmax before training."""

_TABLES: dict[str, Side] = {
    "embedding.weight": "target",
    "source_embedding.weight": "source",
    "target_embedding.weight": "target",
    "output.weight": "target",
}

_MOST_SHOWN = 12


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
            f"The model must be a bundle or run folder, but {model} does not exist. The run "
            f"in {run} started from {kept.model}, and has kept a copy: name that, or choose "
            "another folder (-o)."
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
    if (kind := bundle.config.tokenizer.first_token) != "none":
        raise ConfigurationError(
            "A model to start from must have texts without a first token of their own, but the "
            f"tokenizer.first_token of {model} is {kind!r}. Start from another model."
        )
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
    tokenizer = values.get("tokenizer", {})
    text = values.get("data", {})
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
    placeholders = "masks" if bundle.tokenizer.has_masks else "text"
    if text.get("placeholders", placeholders) != placeholders:
        raise ConfigurationError(
            "data.placeholders must be that of the model to start from, "
            f"{placeholders!r}, but is {text['placeholders']!r}. Leave it out."
        )
    data = {
        "source_language": languages.source,
        "target_language": languages.target,
        "max_pair_length": min(256, sizes["max_source_length"], sizes["max_target_length"]),
        **text,
    }
    if bundle.tokenizer.has_masks:
        data["placeholders"] = placeholders
    if text.get("split") and knows_set_aside(bundle.manifest):
        data.setdefault("set_aside_as", str(bundle.folder.resolve()))
    # Its own symbols, such as tags, are no placeholders (docs/decisions/0027).
    own = [one for one in bundle.config.tokenizer.symbols if one not in MASKS]
    symbols = {"symbols": own} if own and bundle.tokenizer.has_masks else {}
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
        "tokenizer": {"sharing": sharing, **symbols},
        "start": {**given, "model": str(Path(model)), "model_hash": model_hash},
    }


def knows_set_aside(manifest: Mapping[str, Any]) -> bool:
    """Tell whether a model's manifest says what its training had set aside."""
    data = manifest.get("data")
    return isinstance(data, Mapping) and bool(data.get("set_aside"))


def extend_bundle(start: Bundle, tokenizer: Tokenizer) -> Bundle:
    """Give a model the rows that its extended vocabulary needs; old rows stay as they are.

    A new token's vector is the mean of the vectors of the tokens that spelled it before. Its logit
    is then the mean of their logits, and with a bias of log(ε / M) for M new tokens it is at most
    max(old logits) + log(ε / M). All new tokens together have a probability of at most ε, whatever
    the text: the log-probability of an old text falls by no more than ε per token, and a greedy
    search never prefers a new token before training.

    Args:
        start: the model.
        tokenizer: its tokenizer, or one that `Tokenizer.extended` made of it.

    Returns:
        The same bundle if nothing was added.
    """
    spelled: dict[Side, list[list[int]]] = {
        "source": _spell_new(start.tokenizer, tokenizer, "source"),
        "target": _spell_new(start.tokenizer, tokenizer, "target"),
    }
    if not any(spelled.values()):
        return start
    sizes = {
        "source_vocabulary_size": tokenizer.source_vocabulary_size,
        "target_vocabulary_size": tokenizer.target_vocabulary_size,
    }
    config = start.config.model_copy(update={"model": start.config.model.model_copy(update=sizes)})
    weights = start.model.state_dict()
    for name, side in _TABLES.items():
        if name in weights and spelled[side]:
            rows_XD = [weights[name][ids].mean(0) for ids in spelled[side]]
            weights[name] = torch.cat([weights[name], torch.stack(rows_XD)])
    if new := spelled["target"]:
        bias_V = weights.get("output.bias")
        if bias_V is None:
            bias_V = torch.zeros(start.config.model.target_vocabulary_size)
        weights["output.bias"] = torch.cat([bias_V, _new_biases(bias_V, new)])
    model = make_model(config.model, has_output_bias="output.bias" in weights)
    model.load_state_dict(weights)
    model.train(start.model.training)
    return replace(start, config=config, given=model, tokenizer=tokenizer)


def describe_extension(before: Tokenizer, after: Tokenizer) -> str:
    """Describe in a sentence the tokens that were added."""
    is_joint = before.config.sharing == "joint"
    sides: tuple[Side, ...] = ("target",) if is_joint else ("source", "target")
    added = {side: after.vocabulary(side)[len(before.vocabulary(side)) :] for side in sides}
    num_added = sum(map(len, added.values()))
    if not num_added:
        return (
            "No tokens were added (start.new_tokens): the model's vocabulary lacks nothing of the "
            "new text."
        )
    parts = []
    for side, tokens in added.items():
        more = ", …" if len(tokens) > _MOST_SHOWN else ""
        of_side = "" if is_joint else f" to the {side} side"
        shown = ", ".join(tokens[:_MOST_SHOWN])
        parts.append(f"{len(tokens):,}{of_side}" + (f" ({shown}{more})" if tokens else ""))
    return f"Added tokens that the model's vocabulary lacks: {' and '.join(parts)}."


def _spell_new(before: Tokenizer, after: Tokenizer, side: Side) -> list[list[int]]:
    new = after.vocabulary(side)[len(before.vocabulary(side)) :]
    return [before.spell(token, side) or [before.config.unk_id] for token in new]


def _new_biases(bias_V: Tensor, spelled: Sequence[Sequence[int]]) -> Tensor:
    """Compute the biases of new logits, which make all of them improbable together."""
    means = []
    for ids in spelled:
        # A logit that the model never owned says nothing about the text.
        owned = bias_V[list(ids)]
        owned = owned[owned > NEVER / 2]
        means.append(owned.mean() if len(owned) else bias_V.new_zeros(()))
    return torch.stack(means) + math.log(SHARE / len(spelled))
