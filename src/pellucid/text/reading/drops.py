"""Pairs that training cannot use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

DropReason = Literal[
    "empty source", "empty target", "source too long", "target too long", "length ratio"
]


def reason_to_drop(
    source: str,
    target: str,
    source_ids: Sequence[int],
    target_ids: Sequence[int],
    *,
    max_length: int,
    max_length_ratio: float,
) -> DropReason | None:
    """Tell why a training pair cannot be used, if so.

    Args:
        source: the source text.
        target: the target text.
        source_ids: its tokens, ending in ``</s>``.
        target_ids: the target's tokens, ending in ``</s>``.
        max_length: the most tokens on either side, with ``</s>``, which the model sees too.
        max_length_ratio: the most times that the longer side may have the tokens of the shorter,
            without ``</s>``.

    Returns:
        The first reason that holds, or None for a good pair.
    """
    # One token is `</s>`: a line that is not blank may still be cut into nothing.
    if not source.strip() or len(source_ids) <= 1:
        return "empty source"
    if not target.strip() or len(target_ids) <= 1:
        return "empty target"
    if len(source_ids) > max_length:
        return "source too long"
    if len(target_ids) > max_length:
        return "target too long"
    # Without `</s>`, which would make short sides look more equal than they are.
    shorter, longer = sorted((len(source_ids) - 1, len(target_ids) - 1))
    if longer > max_length_ratio * shorter:
        return "length ratio"
    return None
