"""The links of every line, written as they are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from pellucid.cli.ending import warn
from pellucid.cli.lines.streams import (
    to_json_line,
)

if TYPE_CHECKING:
    from pellucid.evaluate.links import Link, Symmetrization
    from pellucid.inside.align.direction import Direction
__all__ = [
    "links_of_pairs",
    "write_all_links",
    "write_window",
]


def write_all_links(
    windows: Iterator[tuple[list[str], ...]],
    directions: Sequence[Direction],
    method: Symmetrization,
    output: TextIO,
    *,
    is_json: bool,
) -> int:
    """Choose views by the first lines, and write the links of all."""
    chosen: list[Direction] = []
    number, has_errors = 0, False
    for sources, targets in windows:
        if not chosen:
            chosen = [_choose(direction, sources, targets) for direction in directions]
        has_errors |= write_window(
            chosen, method, sources, targets, number, output, is_json=is_json, is_told=True
        )
        number += len(sources)
        output.flush()
    return 2 if has_errors else 0


def _choose(direction: Direction, sources: Sequence[str], targets: Sequence[str]) -> Direction:
    """The direction with the view that is recommended, which standard error names."""
    from pellucid.inside.align.choice import FEW_PAIRS
    from pellucid.inside.align.direction import SAMPLE_PAIRS

    if len(direction.views) == 1:
        return direction
    num_pairs = min(len(sources), SAMPLE_PAIRS)
    best = direction.recommend(sources, targets)[0]
    whose = "of --reverse " if direction.is_backward else ""
    warn(
        f"Links {whose}are read from {best.view}: of {len(direction.views)} views the one whose "
        f"links are most consistent ({best.consistency:.2f} of 1, by {num_pairs} pairs). "
        f"{100 * best.end_share:.0f} % of its rows is on </s>, which is no word."
    )
    if num_pairs < FEW_PAIRS:
        warn(
            f"So few pairs say little of a view: give {FEW_PAIRS} or more, or name one with "
            "--layer, --head, --map and --convention."
        )
    return direction.only(best.view)


def write_window(
    chosen: Sequence[Direction],
    method: Symmetrization,
    sources: Sequence[str],
    targets: Sequence[str],
    first: int,
    output: TextIO,
    *,
    is_json: bool,
    is_told: bool = False,
) -> bool:
    """Write the links of some pairs; says whether one could not be aligned."""
    from pellucid.evaluate.links import write_links

    has_errors = False
    for number, (links, error) in enumerate(
        links_of_pairs(chosen, method, sources, targets), first
    ):
        if error is not None:
            has_errors = True
            if is_told:
                warn(f"line {number + 1}: {error}")
        if is_json:
            record = {
                "line": number,
                "source": sources[number - first],
                "target": targets[number - first],
                "error": error,
                "links": sorted(links),
            }
            output.write(to_json_line(record))
        else:
            output.write(write_links(links) + "\n")
    return has_errors


def links_of_pairs(
    chosen: Sequence[Direction],
    method: Symmetrization,
    sources: Sequence[str],
    targets: Sequence[str],
) -> Iterator[tuple[frozenset[Link], str | None]]:
    """The links of each pair, of two directions joined, and why there are none if so."""
    from pellucid.evaluate.links import symmetrize

    for pairs in zip(*(one.align(sources, targets) for one in chosen), strict=True):
        errors = [pair.error for pair in pairs if pair.error is not None]
        each = [pair.links[0] for pair in pairs]
        if errors:
            yield frozenset(), errors[0]
        else:
            yield each[0] if len(each) == 1 else symmetrize(each[0], each[1], method), None
