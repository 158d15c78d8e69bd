"""Messages about text outside the vocabulary: unknown tokens and single bytes."""

from __future__ import annotations

from collections.abc import Iterator

from pellucid.config import Recipe
from pellucid.text.outside import Outside
from pellucid.text.tokenizers.tokenizer import Tokenizer
from pellucid.train.start.prepare import PreparedData

BEGINNING = "Outside the vocabulary"
"""The beginning of the sentences; a report shows lines of the log that begin so."""


def describe_outside(recipe: Recipe, prepared: PreparedData) -> Iterator[str]:
    """Describe texts of which more than a twentieth is outside the vocabulary: a sentence each.

    Args:
        recipe: of the run.
        prepared: its data.
    """
    training, validation = prepared.outside, prepared.validation_outside
    is_loud = training is not None and training.is_loud
    if training is not None and is_loud:
        advice = _advice(recipe, prepared.tokenizer)
        yield f"{describe_loud(training, 'the training text')} {advice}"
    if validation is not None and validation.is_loud:
        advice = " It is unlike the training text: check both." if not is_loud else ""
        yield f"{describe_loud(validation, 'the validation text')}{advice}"


def describe_loud(outside: Outside, text: str) -> str:
    """Describe a text that a model can hardly learn or translate."""
    return (
        f"{BEGINNING}: {outside.describe()} of {text} are unknown or single bytes. "
        "Such text is hardly translated right."
    )


def describe_shares(outside: Outside | None) -> str:
    """Describe the shares of both sides for the screen; empty if they are not known."""
    if outside is None:
        return ""
    return f"unknown or byte tokens {outside.source:.1%} and {outside.target:.1%}"


def _advice(recipe: Recipe, tokenizer: Tokenizer) -> str:
    if recipe.start.new_tokens:
        return "Raise start.new_tokens, in another --out."
    if recipe.start.model:
        return (
            "Give the model tokens for it, in another --out (--set start.new_tokens=1000), or "
            "train a new model, without --from."
        )
    if tokenizer.config.kind == "words":
        return "Raise tokenizer.vocabulary_size, or set tokenizer.kind = 'sentencepiece'."
    return "Raise tokenizer.vocabulary_size or tokenizer.character_coverage."
