"""Links of parallel files: read, taken from a map, written, and judged by gold links."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO

from pellucid.bundle import load_bundle, resolve_model
from pellucid.cli.align.align_options import MAY_BE_DAMAGED, read_place, unit_rule
from pellucid.cli.align.unusual_pairs import Lines, Remarks, take_lines
from pellucid.cli.ending import LINES_FAILED, note, say_error, warn
from pellucid.cli.lines.streams import (
    STANDARD,
    open_output,
    parallel_windows,
    read_parallel,
    to_json_line,
)
from pellucid.evaluation.word_links import (
    GoldLinks,
    LinkScore,
    parse_gold,
    score_links,
    write_links,
)
from pellucid.inside.align.choice import FEW_PAIRS, SAMPLE_PAIRS
from pellucid.inside.align.direction import Direction, Judged, make_direction
from pellucid.inside.align.link_views import guided_view
from pellucid.inside.align.linked_units import SIDES, count_linkable_words
from pellucid.machine.devices import device_in_use
from pellucid.terminal.text import percent
from pellucid.text.link_choices import CONVENTIONS, MAPS, LinkRule, Symmetrization
from pellucid.translate.links.pair_links import link_pairs


def align_files(
    model: str,
    files: Mapping[str, str],
    options: Mapping[str, Any],
    output_file: str,
    *,
    may_overwrite: bool,
    is_json: bool,
) -> int:
    """Write the links of parallel files, or with gold links the errors of the views.

    Args:
        model: the name of a model.
        files: path of ``--source`` and ``--target`` or of ``PAIRS``, and perhaps of
            ``--source-words``, ``--target-words`` and ``--gold``.
        options: those of `pellucid.cli.align.align_options.VIEWS` and ``WORDS``.
        output_file: path for the links.
        may_overwrite: True if an existing output may be replaced.
        is_json: True to write JSON.

    Returns:
        The exit code: 3 if a pair could not be aligned.
    """
    method: Symmetrization = options["symmetrize"] or "grow-diag-final"
    if "--gold" not in files:
        # Files are opened before the model is loaded, which takes longer.
        windows = (
            take_lines(dict(zip(files, window, strict=True)))
            for window in parallel_windows(files, damaged_in=MAY_BE_DAMAGED)
        )
        directions = _make_directions(model, options)
        with open_output(output_file, may_overwrite=may_overwrite) as output:
            return write_all_links(windows, directions, method, output, is_json=is_json)

    # Gold links need all lines at once: every view is judged by all of them.
    columns = dict(zip(files, read_parallel(files, damaged_in=MAY_BE_DAMAGED), strict=True))
    lines = take_lines(columns)
    directions = _make_directions(model, options)
    golds = _parse_gold(columns["--gold"], lines, files["--gold"], directions)
    best, has_errors = report_errors(directions, lines, golds, method, is_json=is_json)
    if output_file != STANDARD:  # standard output has the report
        with open_output(output_file, may_overwrite=may_overwrite) as output:
            told = Remarks(best)  # the report has told already
            write_links_of_pairs(best, method, lines, 0, output, told, is_json=is_json)
    return LINES_FAILED if has_errors else 0


def _make_directions(model: str, options: Mapping[str, Any]) -> list[Direction]:
    """Load the model, and the one that translates back if there is one."""
    reverse, one_map, convention = (options[name] for name in ("reverse", "map", "convention"))
    names = [(model, "")] if reverse is None else [(model, ""), (reverse, "reverse_")]
    directions = []
    for name, prefix in names:
        bundle = load_bundle(resolve_model(name), device_in_use())
        layer, head = read_place(options, f"{prefix}head")
        direction = make_direction(
            bundle,
            # Two directions are joined later, so that each gives its own best links.
            rule=options["link_rule"] or ("both" if reverse is None else "best"),
            maps=MAPS if one_map is None else (one_map,),
            conventions=CONVENTIONS if convention is None else (convention,),
            layer=layer,
            head=head,
            is_backward=bool(prefix),
            units=unit_rule(options),
            language=options["language"],
            # The model that translates back stays as it is.
            changes=None if prefix else options["change"],
        )
        view = guided_view(bundle)
        if view is not None and view in direction.views:
            # The head was taught all links of a word, not only the best one.
            rule: LinkRule = options["link_rule"] or ("all" if reverse is None else "best")
            direction = replace(direction, taught=view, taught_rule=rule)
        directions.append(direction)
    return directions


def _parse_gold(
    links: Sequence[str], lines: Lines, path: str, directions: Sequence[Direction]
) -> list[GoldLinks]:
    """Parse gold links, checking that they join words of the lines; codes do not count as words."""
    lengths = []
    for number, pair in enumerate(zip(lines.sources, lines.targets, strict=True)):
        sizes = []
        for side, line in zip(SIDES, pair, strict=True):
            # A model that translates back reads the target, and decides what its words are.
            one = directions[-1] if side == "target" else directions[0]
            read_as = "source" if one.is_backward else side
            words = lines.given.words(side, number)
            sizes.append(
                count_linkable_words(one.tokenizer, read_as, line, rule=one.units, words=words)
            )
        # A line without a pair is reported as such, not for its links.
        is_pair = number not in lines.given.faults
        lengths.append((sizes[0], sizes[1]) if is_pair else (sys.maxsize, sys.maxsize))
    return parse_gold(links, lengths, path)


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
