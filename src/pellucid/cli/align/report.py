"""The alignment error of every view, as a table or as JSON."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence
from typing import Any

from pellucid.cli.align.lines import Lines
from pellucid.cli.align.links import links_of_pairs
from pellucid.cli.align.remarks import Remarks
from pellucid.cli.ending import warn
from pellucid.cli.lines.streams import to_json_line
from pellucid.evaluate.links import GoldLinks, LinkScore, Symmetrization, score_links
from pellucid.inside.align.direction import Direction, Judged


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
        if index not in failed:
            failed.add(index)
            warn(f"line {index + 1}: {error}")

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
        found = [one.links for one in links_of_pairs(chosen, method, lines)]
        joined = score_links(found, golds)
    if is_json:
        sys.stdout.write(to_json_line(_to_record(judged, bests, joined, method)))
    else:
        for name, views, best in zip(("", "--reverse "), judged, bests, strict=False):
            sys.stdout.write(_to_table(name, views, best))
        if joined is not None:
            sys.stdout.write(f"{method}: {_to_text(joined)}\n")
    return chosen, bool(failed)


def _to_record(
    judged: Sequence[Sequence[Judged]],
    bests: Sequence[Judged],
    joined: LinkScore | None,
    method: str,
) -> dict[str, Any]:
    def flat(one: Judged) -> dict[str, Any]:
        view, score = dataclasses.asdict(one.view), dataclasses.asdict(one.score)
        return {**view, **score, "end_share": one.end_share}

    record: dict[str, Any] = {}
    for name, views, best in zip(("", "reverse_"), judged, bests, strict=False):
        record |= {f"{name}best": flat(best), f"{name}views": [flat(one) for one in views]}
    if joined is not None:
        record["symmetrized"] = {"method": method, **dataclasses.asdict(joined)}
    return record


def _to_table(name: str, judged: Sequence[Judged], best: Judged) -> str:
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
    lines.append(f"{name}best: {best.view}: {_to_text(best.score)}")
    lines.append(f"{100 * best.end_share:.0f} % of its rows point to </s>, which is not a word.")
    if len(judged) > 1:
        lines.append(
            f"It was chosen by the gold links of these {best.score.num_sentences} pairs. Expect "
            "more errors in others."
        )
    return "".join(f"{line}\n" for line in lines)


def _to_text(score: LinkScore) -> str:
    error, low, high = (100 * value for value in (score.error, score.low, score.high))
    return (
        f"error {error:.1f} % [{low:.1f}, {high:.1f}], precision {100 * score.precision:.1f} %, "
        f"recall {100 * score.recall:.1f} %"
    )
