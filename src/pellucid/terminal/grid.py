"""A grid of numbers in a terminal: words cut to a width, blocks of columns, one minus sign."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from rich.cells import cell_len, set_cell_size


def fit(word: str, width: int) -> str:
    """Fit a word into a number of cells, with an ellipsis if it is cut."""
    if cell_len(word) > width:
        return set_cell_size(word, width - 1) + "…"
    return set_cell_size(word, width)


def least_width(words: Sequence[str], most: int) -> int:
    """Return the cells that words may have: ``most``, or more to tell cut words apart."""
    longest = max(map(cell_len, words))
    for width in range(most, longest):
        if len({fit(word, width).rstrip() for word in words}) == len(set(words)):
            return width
    return max(most, longest)


def blocks_of_columns(widths: Sequence[int], available: int) -> Iterator[list[int]]:
    """Divide columns into blocks that fit next to each other, each of at least one column."""
    block: list[int] = []
    used = 0
    for column, width in enumerate(widths):
        if block and used + width > available:
            yield block
            block = []
            used = 0
        block.append(column)
        used += width
    yield block


def write_fixed(value: float, digits: int) -> str:
    """Write a number with fixed decimals, a minus sign as wide as a plus, and no minus before 0."""
    if math.isinf(value):
        return "−∞" if value < 0 else "∞"
    text = f"{value:.{digits}f}"
    if not float(text):
        return text.removeprefix("-")
    return text.replace("-", "−")


def decimals_of(values: Iterable[float], usual: int) -> int:
    """Choose one number of decimals for a column or a matrix, so that its numbers compare.

    Counts, and numbers of which one reaches a thousand, have none; if all are small, the largest
    has two digits.

    Args:
        values: the numbers; those that are not finite do not matter.
        usual: the decimals of most tables.
    """
    sizes = [abs(value) for value in values if math.isfinite(value)]
    largest = max(sizes, default=0.0)
    if largest >= 1000 or all(size == int(size) for size in sizes):
        return 0
    return max(usual, 1 - math.floor(math.log10(largest)))


def speakable(text: str) -> str:
    """Replace the signs that a screen reader would skip."""
    return text.replace("−∞", "minus infinity").replace("−", "-")
