"""Validation pairs that are too long for the model, known before training starts."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.config import Recipe
from pellucid.errors import DataError
from pellucid.text.reading.corpus import Pair
from pellucid.text.tokenizers.tokenizer import Tokenizer


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
    lengths = [
        (len(tokenizer.encode_source(pair.source)), len(tokenizer.encode_target(pair.target)))
        for pair in validation
    ]
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
