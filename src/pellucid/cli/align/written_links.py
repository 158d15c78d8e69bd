"""Word links, written as they are found, and with gold links the error of every view."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, TextIO

from pellucid.cli.align.unusual_pairs import Lines, Remarks
from pellucid.cli.ending import LINES_FAILED, note, say_error, warn
from pellucid.cli.lines.streams import to_json_line
from pellucid.evaluation.word_links import (
    GoldLinks,
    LinkScore,
    score_links,
    write_links,
)
from pellucid.inside.align.choice import FEW_PAIRS, SAMPLE_PAIRS
from pellucid.inside.align.direction import Direction, Judged
from pellucid.terminal.text import percent
from pellucid.text.link_choices import Symmetrization
from pellucid.translate.links.pair_links import link_pairs


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
        The exit code: 3 if a pair could not be aligned.
    """
    chosen: list[Direction] = []
    remarks = Remarks(directions)
    number = 0
    has_errors = False
    for lines in windows:
        if not chosen:
            chosen = [_choose_view(direction, lines) for direction in directions]
        for error in write_links_of_pairs(
            chosen, method, lines, number, output, remarks, is_json=is_json
        ):
            has_errors = True
            say_error(error)
        number += len(lines.sources)
        # So that a program that reads the links gets them window by window.
        output.flush()
    remarks.tell()
    return LINES_FAILED if has_errors else 0


def _choose_view(direction: Direction, lines: Lines) -> Direction:
    """Keep the recommended view of a direction, and name it on standard error."""
    if len(direction.views) == 1:
        return direction
    whose = "of --reverse " if direction.is_backward else ""
    # A head that was taught links needs no choice.
    if direction.taught is not None:
        note(f"Links {whose}are read from {direction.taught}, which was taught word links.")
        return replace(direction.only(direction.taught), rule=direction.taught_rule)
    # Chosen by the first window, so that a stream need not be read to its end.
    num_pairs = min(len(lines.sources), SAMPLE_PAIRS)
    best = direction.recommend(lines.sources, lines.targets, lines.given)[0]
    note(
        f"Links {whose}are read from {best.view}, whose links are the most consistent of "
        f"{len(direction.views)} views ({best.consistency:.2f} of 1, by {num_pairs} pairs). "
        f"{percent(best.end_share)} of its rows point to </s>, which is not a word."
    )
    # Consistency needs words that repeat.
    if num_pairs < FEW_PAIRS:
        warn(
            f"So few pairs say little about a view. Give {FEW_PAIRS} or more, or name a view with "
            "--head, --map and --convention."
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
    pairs = link_pairs(directions, method, lines.sources, lines.targets, lines.given)
    for index, found in enumerate(pairs):
        remarks.add_unknown(first + index, found.unknown)
        if found.error is not None:
            errors.append(f"line {first + index + 1}: {found.error}")
        if is_json:
            output.write(to_json_line({"line": first + index, **vars(found)}))
        else:
            output.write(write_links(frozenset(found.alignment)) + "\n")
    return errors


def report_errors(
    directions: Sequence[Direction],
    lines: Lines,
    golds: Sequence[GoldLinks],
    method: Symmetrization,
    *,
    is_json: bool,
) -> tuple[list[Direction], bool]:
    """Write the error of every view.

    Returns:
        Each direction with its best view only, and True if a pair could not be aligned.
    """
    failed: set[int] = set()

    def warn_once(index: int, error: str) -> None:
        # Both directions may fail on one pair.
        if index not in failed:
            failed.add(index)
            say_error(f"line {index + 1}: {error}")

    remarks = Remarks(directions)
    remarks.add(0, lines)
    judged = [
        one.judge(
            lines.sources,
            lines.targets,
            golds,
            lines.given,
            tell=warn_once,
            tell_unknown=remarks.add_unknown,
        )
        for one in directions
    ]
    remarks.tell()
    bests = [min(views, key=lambda one: one.score.error) for views in judged]
    chosen = [one.only(best.view) for one, best in zip(directions, bests, strict=True)]
    joined = None
    if len(chosen) == 2:
        pairs = link_pairs(chosen, method, lines.sources, lines.targets, lines.given)
        joined = score_links([frozenset(one.alignment) for one in pairs], golds)
    if is_json:
        sys.stdout.write(to_json_line(_report_record(judged, bests, joined, method)))
    else:
        # One name is left over without a second model.
        for name, views, best in zip(("", "--reverse "), judged, bests, strict=False):
            sys.stdout.write(_report_table(name, views, best))
        if joined is not None:
            sys.stdout.write(f"{method}: {_score_text(joined)}\n")
    return chosen, bool(failed)


def _report_record(
    judged: Sequence[Sequence[Judged]],
    bests: Sequence[Judged],
    joined: LinkScore | None,
    method: str,
) -> dict[str, Any]:
    def flat(one: Judged) -> dict[str, Any]:
        view = dataclasses.asdict(one.view)
        score = dataclasses.asdict(one.score)
        return {**view, **score, "end_share": one.end_share}

    record: dict[str, Any] = {}
    for name, views, best in zip(("", "reverse_"), judged, bests, strict=False):
        record |= {f"{name}best": flat(best), f"{name}views": [flat(one) for one in views]}
    if joined is not None:
        record["symmetrized"] = {"method": method, **dataclasses.asdict(joined)}
    return record


def _report_table(name: str, judged: Sequence[Judged], best: Judged) -> str:
    """Write alignment error in percent: a row for each map, a column for each convention."""
    conventions = list(dict.fromkeys(one.view.convention for one in judged))
    rows: dict[str, dict[str, Judged]] = {}
    for one in judged:
        rows.setdefault(one.view.place, {})[one.view.convention] = one
    width = max(map(len, rows))
    heading = "".join(f"{convention:>10}" for convention in conventions)
    lines = [f"{name + 'alignment error in %':<{width}}{heading}"]
    for place, row in rows.items():
        errors = "".join(f"{100 * one.score.error:10.1f}" for one in row.values())
        lines.append(f"{place:<{width}}{errors}")
    lines.append(f"{name}best: {best.view}: {_score_text(best.score)}")
    lines.append(f"{percent(best.end_share)} of its rows point to </s>, which is not a word.")
    if len(judged) > 1:
        lines.append(
            f"It was chosen by the gold links of these {best.score.num_sentences} pairs. Expect "
            "more errors in others."
        )
    return "".join(f"{line}\n" for line in lines)


def _score_text(score: LinkScore) -> str:
    error, low, high = (100 * value for value in (score.error, score.low, score.high))
    return (
        f"error {error:.1f} % [{low:.1f}, {high:.1f}], precision {100 * score.precision:.1f} %, "
        f"recall {100 * score.recall:.1f} %"
    )
