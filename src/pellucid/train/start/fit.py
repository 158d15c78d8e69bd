"""Whether a model fits a text: its lengths and its vocabulary, in the check and before training."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pellucid.check.findings import NAMES, Finding
from pellucid.config import DataConfig, ModelConfig, Recipe
from pellucid.errors import DataError, InputFileNotFoundError
from pellucid.text.outside import Outside, count_outside
from pellucid.text.reading.corpus import BadLines, Pair, Split, read_pairs
from pellucid.text.tokenizers.tokenizer import Tokenizer


class ModelLimits(NamedTuple):
    """The longest texts that a model reads and writes, in tokens, and its tokenizer if known."""

    source: int
    target: int
    tokenizer: Tokenizer | None = None

    @classmethod
    def read(cls, model: Mapping[str, Any], start: str | None) -> ModelLimits:
        """Read them from the model to start from, or from a recipe, which leaves the rest open.

        Args:
            model: the recipe's model section.
            start: the model that training starts from, if any.

        Raises:
            InputFileNotFoundError: that model does not exist.
            BundleError: it is damaged.
        """
        if start is not None:
            # Without a model to start from, the check does without PyTorch.
            from pellucid.bundle import load_bundle, resolve_model

            bundle = load_bundle(resolve_model(start))
            sizes = bundle.config.model
            return cls(sizes.max_source_length, sizes.max_target_length, bundle.tokenizer)
        return cls(
            _limit_of(model, "max_source_length"),
            _limit_of(model, "max_target_length"),
        )


def _limit_of(model: Mapping[str, Any], name: str) -> int:
    given = model.get(name)
    default: int = ModelConfig.model_fields[name].default
    return given if isinstance(given, int) else default


def check_fit(data: DataConfig, base: Path, limits: ModelLimits) -> list[Finding]:
    """Find validation pairs that are too long for the model, and text outside its vocabulary.

    Without a tokenizer a word counts as one token, the fewest that it can have.

    Args:
        data: the recipe's data section.
        base: the recipe's folder.
        limits: of the model.
    """
    findings: list[Finding] = []
    readable = data.model_copy(update={"on_bad_line": "skip"})
    splits: tuple[Split, ...] = ("train", "validation")
    # What cannot be read at all is a finding of the rest of the check.
    with suppress(DataError, InputFileNotFoundError):
        findings += _too_long(readable, base, limits)
        for split in splits if limits.tokenizer is not None else ():
            pairs = read_pairs(readable, split, base, bad=BadLines())
            assert limits.tokenizer is not None
            outside = count_outside(
                limits.tokenizer, ((pair.source, pair.target) for pair in pairs)
            )
            findings.append(_describe_outside(outside, split))
    return findings


def _too_long(data: DataConfig, base: Path, limits: ModelLimits) -> Iterator[Finding]:
    total = count = 0
    for pair in read_pairs(data, "validation", base, bad=BadLines()):
        if pair.source.strip() and pair.target.strip():
            source, target = _lengths(pair, limits.tokenizer)
            total += 1
            count += source > limits.source or target > limits.target
    if not count:
        return
    is_all = count == total
    which = f"all {total:,}" if is_all else f"{count:,} of {total:,}"
    advice = (
        "No model could be chosen: split them into sentences, or raise these limits."
        if is_all
        else "They do not count for the loss."
    )
    yield Finding(
        "error" if is_all else "warning",
        "too long for the model",
        "validation",
        count,
        count / total,
        f"{which} validation pairs are longer than the model can read or write "
        f"(model.max_source_length = {limits.source:,}, model.max_target_length = "
        f"{limits.target:,} tokens). {advice}",
    )


def _lengths(pair: Pair, tokenizer: Tokenizer | None) -> tuple[int, int]:
    if tokenizer is None:
        return len(pair.source.split()) + 1, len(pair.target.split()) + 1
    return len(tokenizer.encode_source(pair.source)), len(tokenizer.encode_target(pair.target))


def _describe_outside(outside: Outside, split: Split) -> Finding:
    advice = ""
    if outside.is_loud:
        advice = (
            " Such text is hardly translated right: give the model tokens for it with "
            "start.new_tokens, or train a new model."
        )
    count = outside.source_outside + outside.target_outside
    return Finding(
        "warning" if outside.is_loud else "note",
        "outside the vocabulary",
        split,
        count,
        count / max(1, outside.source_tokens + outside.target_tokens),
        f"{outside.describe()} of the {NAMES[split]} text are unknown to the model to start from, "
        f"or single bytes.{advice}",
    )


def check_lengths(recipe: Recipe, tokenizer: Tokenizer, validation: Sequence[Pair]) -> str | None:
    """Say how many validation pairs are too long for the model to read or write.

    Args:
        recipe: its model's limits count.
        tokenizer: cuts the pairs.
        validation: the pairs.

    Raises:
        DataError: all of them are, so that no model could be chosen.
    """
    model = recipe.model
    lengths = [_lengths(pair, tokenizer) for pair in validation]
    num_too_long = sum(
        source > model.max_source_length or target > model.max_target_length
        for source, target in lengths
    )
    if not num_too_long:
        return None
    limits = (
        f"model.max_source_length = {model.max_source_length} or model.max_target_length = "
        f"{model.max_target_length} tokens"
    )
    if num_too_long < len(validation):
        return (
            f"{num_too_long:,} of {len(validation):,} validation pairs are longer than {limits}: "
            "they do not count for the loss, and a source that is too long counts as translated "
            "by nothing."
        )
    shortest = min(max(pair) for pair in lengths)
    which = "its only one is" if len(validation) == 1 else f"all {len(validation):,} are"
    raise DataError(
        f"The validation text must have pairs that the model can read, but {which} longer than "
        f"{limits} (the shortest has {shortest:,}). Split them into sentences, or raise these "
        "limits."
    )
