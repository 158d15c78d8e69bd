"""What a head does in most of its rows: it looks at all words alike, or at one word only.

The page has the same rule, in ``web/src/trace/figures.ts``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

EVEN = 0.95
"""A row is even if its entropy is more than this share of the most possible."""
SINGLE = 0.99
"""A row is a look-up if one word has more than this weight."""

_COPIES = {0: ", mostly the word just read", 1: ", mostly the word before that"}
"""What a row of the decoder's self-attention takes, by how far back it is."""


class Habit(NamedTuple):
    """A head's habit.

    Attributes:
        name: ``even``, ``look-up``, or empty if most rows are neither.
        sentence: the same with the number of rows; empty if there is no habit.
    """

    name: str
    sentence: str


def find_habit(weights_LM: np.ndarray, *, is_causal: bool) -> Habit:
    """Find what most of the rows do that have a choice, from the weights of a head.

    Args:
        weights_LM: the weights, rows by columns.
        is_causal: True for the decoder's self-attention, whose rows see no later word.
    """
    num_even = 0
    num_rows = 0
    back: list[int] = []
    for row, weights_M in enumerate(weights_LM.astype(np.float64)):
        seen = row + 1 if is_causal else len(weights_M)
        # A row that sees one word has no choice.
        if seen < 2:
            continue
        num_rows += 1
        some = weights_M[weights_M > 0]
        num_even += bool(-(some * np.log(some)).sum() > EVEN * math.log(seen))
        if weights_M.max() > SINGLE:
            back.append(row - int(weights_M.argmax()))
    # One row would be a habit at once.
    if num_rows < 2:
        return Habit("", "")
    if 2 * num_even > num_rows:
        said = f"Even in {num_even} of {num_rows} rows: there it looks at all words alike"
        return Habit("even", f"{said}, and is idle.")
    if 2 * len(back) > num_rows:
        copies = (said for far, said in _COPIES.items() if 2 * back.count(far) > len(back))
        what = next(copies, "") if is_causal else ""
        said = f"A look-up in {len(back)} of {num_rows} rows: there it takes one word only"
        return Habit("look-up", f"{said}{what}.")
    return Habit("", "")
