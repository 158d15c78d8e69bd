"""The difference of two heads, on one line or two, in one model or two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid.cli.look.trace import choose_array
from pellucid.cli.look.writer import Writer
from pellucid.errors import InputError
from pellucid.inside.changes.place import Place, parse_place
from pellucid.inside.heads.compare import Difference, compare_heads
from pellucid.inside.show.figures.draw import draw_difference_figure
from pellucid.inside.show.view import View
from pellucid.inside.traces import Trace


@dataclass(frozen=True)
class Side:
    """One head on one line.

    Attributes:
        trace: trace of the line.
        head: the head.
        name: name for a reader.
    """

    trace: Trace
    head: Place
    name: str

    @property
    def view(self) -> View:
        """The head's weights as a map to draw."""
        head = self.head
        return View(self.trace, head.part, head.layer or 0, head.kind, head.head or 0)


def choose_side(trace: Trace, head: str | None, name: str) -> Side:
    """Choose the head to compare: the given one, or else the one that would be shown.

    Args:
        trace: trace of a line.
        head: such as ``decoder.1.cross.3``.
        name: name of the line and the model.

    Raises:
        InputError: the head does not exist.
    """
    if head is None:
        found, number, _ = choose_array(trace)
        head = f"{found.rpartition('.')[0]}.{number}"
    place = parse_place(head)
    if not place.is_one_head or place.is_edge:
        raise InputError(
            f"--compare-head must be one head, but is {head}. Write it as in decoder.1.cross.0."
        )
    return Side(trace, place, f"{place}, {name}")


def show_difference(first: Side, second: Side, writer: Writer) -> None:
    """Show one head's weights minus another's.

    Raises:
        InputError: the heads are of different parts or kinds.
    """
    difference = compare_heads(first.trace, first.head, second.trace, second.head)
    writer.lines(_describe(first, second, difference))
    if difference.values.size:
        rows, columns = difference.row_tokens, difference.column_tokens
        writer.matrix(difference.values, rows, columns, is_share=False)


def draw_difference(first: Side, second: Side, files: Mapping[str, Path]) -> None:
    """Draw one head's weights minus another's into files.

    Raises:
        InputError: the heads are of different parts or kinds, or share no word.
        OutputError: a file cannot be written.
    """
    for path in files.values():
        names = (first.name, second.name)
        draw_difference_figure(first.view, second.view, path, names=names)


def _describe(first: Side, second: Side, difference: Difference) -> Iterator[str]:
    yield f"Weights of     {first.name}"
    yield f"minus those of {second.name}"
    yield (
        f"Half the sum of a row's absolute differences, on average: {difference.distance:.3f}; it "
        "is 0 for two equal rows, and 1 for two that share no word."
    )
    sides: Any = (
        ("first", first, difference.only_first),
        ("second", second, difference.only_second),
    )
    for which, side, rows in sides:
        tokens = side.trace.query_tokens(side.head.part)
        if rows:
            yield f"Rows that only the {which} has: {' '.join(tokens[row] for row in rows)}"
    left = difference.left_out
    if left.size and left.max() > 0.005:
        yield (
            "Weight on columns that only one of them has, on average over the rows: "
            f"{left[:, 0].mean():.2f} of the first, {left[:, 1].mean():.2f} of the second."
        )
    yield "Columns are attended to. Blue: the first has less weight; orange: it has more."
