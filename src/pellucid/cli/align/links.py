"""Word links, written as they are found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TextIO

from pellucid.cli.align.lines import Lines
from pellucid.cli.align.remarks import Remarks
from pellucid.cli.ending import warn
from pellucid.cli.lines.streams import to_json_line
from pellucid.evaluate.links import Link, Symmetrization, symmetrize, write_links
from pellucid.inside.align.choice import FEW_PAIRS
from pellucid.inside.align.direction import SAMPLE_PAIRS, Direction


def write_all_links(
    windows: Iterator[Lines],
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
    for lines in windows:
        if not chosen:
            chosen = [_choose_view(direction, lines) for direction in directions]
        for error in write_links_of_pairs(
            chosen, method, lines, number, output, remarks, is_json=is_json
        ):
            has_errors = True
            warn(error)
        number += len(lines.sources)
        output.flush()
    remarks.tell()
    return 2 if has_errors else 0


def _choose_view(direction: Direction, lines: Lines) -> Direction:
    """Keep the recommended view of a direction, and name it on standard error."""
    if len(direction.views) == 1:
        return direction
    whose = "of --reverse " if direction.is_backward else ""
    if direction.taught is not None:
        warn(f"Links {whose}are read from {direction.taught}, which was taught word links.")
        return replace(direction.only(direction.taught), rule=direction.taught_rule)
    num_pairs = min(len(lines.sources), SAMPLE_PAIRS)
    best = direction.recommend(lines.sources, lines.targets, lines.given)[0]
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
    lines: Lines,
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
        lines: the pairs.
        first: number of the first line, from 0.
        output: where to write.
        remarks: receives every line.
        is_json: True to write JSON.

    Returns:
        A sentence for each pair that could not be aligned.
    """
    errors = []
    remarks.add(first, lines)
    for index, found in enumerate(links_of_pairs(directions, method, lines)):
        remarks.add_unknown(first + index, found.unknown)
        if found.error is not None:
            errors.append(f"line {first + index + 1}: {found.error}")
        if is_json:
            record = {
                "line": first + index,
                "source": lines.sources[index],
                "target": lines.targets[index],
                "error": found.error,
                "links": sorted(found.links),
                "source_words": found.source_words,
                "target_words": found.target_words,
                "unknown": found.unknown,
            }
            output.write(to_json_line(record))
        else:
            output.write(write_links(found.links) + "\n")
    return errors


@dataclass(frozen=True)
class Joined:
    """The links of a pair, of two directions joined.

    Attributes:
        links: the links.
        error: the reason why the pair has no links.
        source_words: the words of the source that links count.
        target_words: those of the target.
        unknown: the pieces that a vocabulary cannot write.
    """

    links: frozenset[Link]
    error: str | None
    source_words: tuple[str, ...]
    target_words: tuple[str, ...]
    unknown: list[str]


def links_of_pairs(
    directions: Sequence[Direction], method: Symmetrization, lines: Lines
) -> Iterator[Joined]:
    """Yield the links of each pair, with two directions joined."""
    each = (one.align(lines.sources, lines.targets, lines.given) for one in directions)
    for pairs in zip(*each, strict=True):
        errors = [pair.error for pair in pairs if pair.error is not None]
        links = pairs[0].links[0]
        if errors:
            links = frozenset()
        elif len(pairs) == 2:
            links = symmetrize(links, pairs[1].links[0], method)
        unknown = list(dict.fromkeys(piece for pair in pairs for piece in pair.unknown))
        words = pairs[0].source_words, pairs[0].target_words
        yield Joined(links, errors[0] if errors else None, *words, unknown)
