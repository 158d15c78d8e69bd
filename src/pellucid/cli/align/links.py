"""Word links, written as they are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from pellucid.cli.align.remarks import Remarks
from pellucid.cli.ending import warn
from pellucid.cli.lines.streams import to_json_line
from pellucid.evaluate.links import Link, Symmetrization, symmetrize, write_links
from pellucid.inside.align.choice import FEW_PAIRS
from pellucid.inside.align.direction import SAMPLE_PAIRS, Direction

__all__ = ["links_of_pairs", "write_all_links", "write_links_of_pairs"]


def write_all_links(
    windows: Iterator[tuple[list[str], ...]],
    directions: Sequence[Direction],
    method: Symmetrization,
    output: TextIO,
    *,
    is_json: bool,
) -> int:
    """Choose views by the first window, and write the links of all windows.

    Returns:
        The exit code: 2 if a pair could not be aligned.
    """
    chosen: list[Direction] = []
    remarks = Remarks(directions)
    number, has_errors = 0, False
    for sources, targets in windows:
        if not chosen:
            chosen = [_choose_view(direction, sources, targets) for direction in directions]
        for error in write_links_of_pairs(
            chosen, method, sources, targets, number, output, remarks, is_json=is_json
        ):
            has_errors = True
            warn(error)
        number += len(sources)
        output.flush()
    remarks.tell()
    return 2 if has_errors else 0


def _choose_view(direction: Direction, sources: Sequence[str], targets: Sequence[str]) -> Direction:
    """Keep the recommended view of a direction, and name it on standard error."""
    if len(direction.views) == 1:
        return direction
    num_pairs = min(len(sources), SAMPLE_PAIRS)
    best = direction.recommend(sources, targets)[0]
    whose = "of --reverse " if direction.is_backward else ""
    warn(
        f"Links {whose}are read from {best.view}, whose links are the most consistent of "
        f"{len(direction.views)} views ({best.consistency:.2f} of 1, by {num_pairs} pairs). "
        f"{100 * best.end_share:.0f} % of its rows point to </s>, which is not a word."
    )
    if num_pairs < FEW_PAIRS:
        warn(
            f"So few pairs say little about a view. Give {FEW_PAIRS} or more, or name a view with "
            "--layer, --head, --map and --convention."
        )
    return direction.only(best.view)


def write_links_of_pairs(
    directions: Sequence[Direction],
    method: Symmetrization,
    sources: Sequence[str],
    targets: Sequence[str],
    first: int,
    output: TextIO,
    remarks: Remarks,
    *,
    is_json: bool,
) -> list[str]:
    """Write the links of some pairs.

    Args:
        directions: one or two, each with one view.
        method: how to join the links of two directions.
        sources: source lines.
        targets: their translations.
        first: number of the first line, from 0.
        output: where to write.
        remarks: receives every line.
        is_json: True to write JSON.

    Returns:
        A sentence for each pair that could not be aligned.
    """
    errors = []
    found = links_of_pairs(directions, method, sources, targets)
    for index, (links, error, pieces) in enumerate(found):
        remarks.add(first + index, sources[index], targets[index])
        remarks.add_unknown(first + index, pieces)
        if error is not None:
            errors.append(f"line {first + index + 1}: {error}")
        if is_json:
            record = {
                "line": first + index,
                "source": sources[index],
                "target": targets[index],
                "error": error,
                "links": sorted(links),
                "unknown": pieces,
            }
            output.write(to_json_line(record))
        else:
            output.write(write_links(links) + "\n")
    return errors


def links_of_pairs(
    directions: Sequence[Direction],
    method: Symmetrization,
    sources: Sequence[str],
    targets: Sequence[str],
) -> Iterator[tuple[frozenset[Link], str | None, list[str]]]:
    """Yield the links of each pair, with two directions joined, its error, and unknown pieces."""
    for pairs in zip(*(one.align(sources, targets) for one in directions), strict=True):
        errors = [pair.error for pair in pairs if pair.error is not None]
        each = [pair.links[0] for pair in pairs]
        unknown = list(dict.fromkeys(piece for pair in pairs for piece in pair.unknown))
        if errors:
            yield frozenset(), errors[0], unknown
        else:
            links = each[0] if len(each) == 1 else symmetrize(each[0], each[1], method)
            yield links, None, unknown
