"""Arrays of a trace in a terminal: always numbers, and colors if the terminal has them.

A map that is wider than the window continues below, a block of columns at a time. In plain text
each row is a sentence, for screen readers and pipes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from pellucid.inside.show.colors import ground_and_ink, scale_end

MOST_LABEL, LEAST_COLUMN, MOST_COLUMN = 28, 6, 12


def draw_matrix(
    values_LM: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    is_share: bool,
    width: int,
) -> Iterator[Text]:
    """Draw a matrix, a cell for each number.

    Args:
        values_LM: the numbers; −∞ for a cell that the mask forbids.
        rows: the label of each row.
        columns: the label of each column.
        is_share: True for shares from 0 to 1, on the color scale of weights; other numbers go from
            blue through white to orange, with the largest magnitude at the ends.
        width: of the terminal, in cells.

    Yields:
        Lines.
    """
    label_width = min(MOST_LABEL, max(map(cell_len, rows)))
    texts = [[_number(value, is_share=is_share) for value in row] for row in values_LM.tolist()]
    longest = max(len(text) for row in texts for text in row)
    widths = [min(MOST_COLUMN, max(LEAST_COLUMN, longest + 1, cell_len(c) + 1)) for c in columns]
    limit = None if is_share else scale_end(values_LM)
    for block in _blocks(widths, max(widths[0], width - label_width - 1)):
        head = Text(" " * (label_width + 1))
        for column in block:
            head.append(_fit(columns[column], widths[column]))
        yield head
        for row, label in enumerate(rows):
            line = Text(_fit(label, label_width) + " ")
            for column in block:
                value = float(values_LM[row, column])
                text = texts[row][column].rjust(widths[column] - 1) + " "
                line.append(text, _style(value, limit))
            yield line
        yield Text()


def say_matrix(
    values_LM: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    is_share: bool,
    most: int = 5,
) -> Iterator[str]:
    """Describe a matrix, a sentence for each row: its largest numbers and the sum of the others.

    Args:
        values_LM: the numbers.
        rows: the label of each row.
        columns: the label of each column.
        is_share: True if a row's numbers are shares of 1.
        most: the most numbers in a sentence.

    Yields:
        Lines.
    """
    for index, (label, values) in enumerate(zip(rows, values_LM, strict=True)):
        order = np.argsort(-values, kind="stable")[:most]
        said = [
            f"{columns[column]} {_number(float(values[column]), is_share=is_share)}"
            for column in order
            if values[column] != -math.inf
        ]
        left = len(columns) - len(said)
        if left:
            rest = float(values.sum() - values[order].sum()) if is_share else 0.0
            said.append(f"the other {left} together {rest:.2f}" if is_share else f"{left} more")
        yield f"row {index}, {label}: {', '.join(said)}"


def _number(value: float, *, is_share: bool) -> str:
    if value == -math.inf:
        return "-inf"
    if is_share:
        return f"{value:.2f}"
    return f"{value:.2f}" if abs(value) < 1000 else f"{value:.3g}"


def _style(value: float, limit: float | None) -> str:
    if value == -math.inf:
        return "dim"
    ground, ink = ground_and_ink(value, limit)
    return f"{ink} on {ground}"


def _fit(word: str, width: int) -> str:
    """Fit a word into a number of cells, with an ellipsis if it is cut."""
    if cell_len(word) > width:
        return set_cell_size(word, width - 1) + "…"
    return set_cell_size(word, width)


def _blocks(widths: Sequence[int], available: int) -> Iterator[list[int]]:
    block: list[int] = []
    used = 0
    for column, width in enumerate(widths):
        if block and used + width > available:
            yield block
            block, used = [], 0
        block.append(column)
        used += width
    yield block
