"""The signed difference of two maps, with their rows and columns matched by word.

Two heads of one sentence have the same words. Two sentences, such as a pronoun's minimal pair,
share most words: those that both have, in the same order, are compared. Words that only one has
are left out and named, with the weight on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

import numpy as np

from pellucid.arguments import checked
from pellucid.config.head_address import parse_head
from pellucid.errors import InputError
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.show.view import HeadView
from pellucid.shapes import Brief


@dataclass(frozen=True, eq=False, repr=False)
class MapDifference(Brief):
    """The first map minus the second, in the rows and columns that both have.

    Attributes:
        first: the name of the first map.
        second: the name of the second.
        rows: for each row, its place in the first map and in the second.
        columns: the same for columns.
        row_tokens: the words of the rows.
        column_tokens: the words of the columns.
        values: (rows, columns); from −1 to 1 if the maps are weights.
        left_out: (rows, 2): the weight of the first and of the second map on columns that only it
            has.
        only_first: rows of the first map that the second does not have.
        only_second: rows of the second map that the first does not have.
    """

    first: str
    second: str
    rows: tuple[tuple[int, int], ...]
    columns: tuple[tuple[int, int], ...]
    row_tokens: tuple[str, ...]
    column_tokens: tuple[str, ...]
    values: np.ndarray
    left_out: np.ndarray
    only_first: tuple[int, ...]
    only_second: tuple[int, ...]

    @property
    def distance(self) -> float:
        """Half the sum of absolute differences of a row, averaged over the rows.

        0 for equal maps; 1 if no two rows of weights share a word.
        """
        if not len(self.rows):
            return 0.0
        # What is left out differs from 0, the weight that the other map has there.
        sums = np.abs(self.values).sum(axis=1) + self.left_out.sum(axis=1)
        return float(sums.mean() / 2)


@checked
def compare_heads(
    first: TraceData, first_head: str, second: TraceData, second_head: str
) -> MapDifference:
    """Subtract one head's weights from another's.

    Give one trace twice to compare two heads; one head twice to compare two sentences, two
    checkpoints or two models.

    Args:
        first: a trace that holds the weights of the first head.
        first_head: the address of the first head, such as ``decoder.1.cross.0``.
        second: a trace that holds the weights of the second head.
        second_head: the second head, of the same part and kind.

    Raises:
        InputError: the heads are of different parts or kinds, or a trace does not hold them.
    """
    heads = parse_head(first_head), parse_head(second_head)
    kinds = [(head.part, head.kind) for head in heads]
    if kinds[0] != kinds[1]:
        raise InputError(
            f"Two heads to compare must be of one part and kind, but are {first_head} and "
            f"{second_head}. Name two whose rows and columns are the same words."
        )
    ours, other = (
        HeadView.of(trace, f"{head.site}.weights", head.head or 0)
        for trace, head in zip((first, second), heads, strict=True)
    )
    return compare_maps(
        ours.cells,
        other.cells,
        (ours.rows, other.rows),
        (ours.columns, other.columns),
        names=(first_head, second_head),
    )


def compare_maps(
    first: np.ndarray,
    second: np.ndarray,
    row_tokens: tuple[Sequence[str], Sequence[str]],
    column_tokens: tuple[Sequence[str], Sequence[str]],
    *,
    names: tuple[str, str] = ("first", "second"),
) -> MapDifference:
    """Subtract one map from another; see `MapDifference`.

    Args:
        first: (queries, keys).
        second: (queries, keys), of any size.
        row_tokens: the words of both maps' rows.
        column_tokens: the words of both maps' columns.
        names: of the two maps, for captions.

    Raises:
        InputError: a map does not have a row and a column for each word.
    """
    for index, map_ in enumerate((first, second)):
        sizes = (len(row_tokens[index]), len(column_tokens[index]))
        if map_.shape != sizes:
            raise InputError(
                f"A map must have a row and a column for each word, {sizes[0]} and {sizes[1]}, "
                f"but has the shape {map_.shape} ({names[index]}). Give the words of its rows and "
                "columns."
            )
    rows = _shared(row_tokens[0], row_tokens[1])
    columns = _shared(column_tokens[0], column_tokens[1])
    sides = []
    left_out = []
    for index, map_ in enumerate((first, second)):
        ours = map_.astype(np.float64)[[row[index] for row in rows]]
        # What is left of a row is on words that the other sentence does not have.
        shared = ours[:, [column[index] for column in columns]]
        sides.append(shared)
        left_out.append(ours.sum(axis=1) - shared.sum(axis=1))
    return MapDifference(
        first=names[0],
        second=names[1],
        rows=rows,
        columns=columns,
        row_tokens=tuple(row_tokens[0][row] for row, _ in rows),
        column_tokens=tuple(column_tokens[0][column] for column, _ in columns),
        values=sides[0] - sides[1],
        left_out=np.stack(left_out, axis=1),
        only_first=_others(len(row_tokens[0]), [row for row, _ in rows]),
        only_second=_others(len(row_tokens[1]), [row for _, row in rows]),
    )


def _shared(first: Sequence[str], second: Sequence[str]) -> tuple[tuple[int, int], ...]:
    """Pair the places of the words that both have, in the same order."""
    # Without the heuristic for long texts, which ignores frequent words such as articles.
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return tuple(
        (block.a + offset, block.b + offset) for block in blocks for offset in range(block.size)
    )


def _others(count: int, taken: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(set(range(count)) - set(taken)))
