"""Alignment of the lines of two files, or of one file of pairs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pellucid.bundle import load_bundle, resolve_model
from pellucid.cli.align.align_options import unit_rule
from pellucid.cli.align.unusual_pairs import MAY_BE_DAMAGED, Lines, Remarks, take_lines
from pellucid.cli.align.written_links import (
    report_errors,
    write_all_links,
    write_links_of_pairs,
)
from pellucid.cli.lines.streams import STANDARD, open_output, parallel_windows, read_parallel
from pellucid.errors import DataError
from pellucid.evaluate.word_links import GoldLinks, Symmetrization, parse_gold
from pellucid.inside.align.alignment_maps import CONVENTIONS, MAPS, guided_view
from pellucid.inside.align.attention_links import LinkRule
from pellucid.inside.align.direction import Direction, make_direction
from pellucid.inside.align.linked_units import SIDES, Side, find_units
from pellucid.text.line_words import line_words


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
        files: path of ``--source`` and ``--target`` or of ``--pairs``, and perhaps of
            ``--source-words``, ``--target-words`` and ``--gold``.
        options: those of `pellucid.cli.align.align_options.VIEWS` and ``WORDS``.
        output_file: path for the links.
        may_overwrite: True if an existing output may be replaced.
        is_json: True to write JSON.

    Returns:
        The exit code: 2 if a pair could not be aligned.
    """
    method: Symmetrization = options["symmetrize"] or "grow-diag-final"
    if "--gold" not in files:
        windows = _windows(files)
        directions = _make_directions(model, options)
        with open_output(output_file, may_overwrite=may_overwrite) as output:
            return write_all_links(windows, directions, method, output, is_json=is_json)

    columns = dict(zip(files, read_parallel(files, damaged_in=MAY_BE_DAMAGED), strict=True))
    lines = take_lines(columns)
    directions = _make_directions(model, options)
    golds = _parse_gold(columns["--gold"], lines, files["--gold"], directions)
    best, has_errors = report_errors(directions, lines, golds, method, is_json=is_json)
    if output_file != STANDARD:  # standard output has the report
        with open_output(output_file, may_overwrite=may_overwrite) as output:
            told = Remarks(best)  # the report has told already
            write_links_of_pairs(best, method, lines, 0, output, told, is_json=is_json)
    return 2 if has_errors else 0


def _windows(files: Mapping[str, str]) -> Iterator[Lines]:
    """Check files at once, then read them window by window."""
    windows = parallel_windows(files, damaged_in=MAY_BE_DAMAGED)
    return (take_lines(dict(zip(files, window, strict=True))) for window in windows)


def _make_directions(model: str, options: Mapping[str, Any]) -> list[Direction]:
    """Load the model, and the one that translates back if there is one."""
    reverse, one_map, convention = (options[name] for name in ("reverse", "map", "convention"))
    names = [(model, "")] if reverse is None else [(model, ""), (reverse, "reverse_")]
    directions = []
    for name, prefix in names:
        bundle = load_bundle(resolve_model(name))
        direction = make_direction(
            bundle,
            rule=options["links"] or ("both" if reverse is None else "best"),
            maps=MAPS if one_map is None else (one_map,),
            conventions=CONVENTIONS if convention is None else (convention,),
            layer=options[f"{prefix}layer"],
            head=options[f"{prefix}head"],
            is_backward=bool(prefix),
            units=unit_rule(options),
        )
        view = guided_view(bundle)
        if view is not None and view in direction.views:
            rule: LinkRule = options["links"] or ("all" if reverse is None else "best")
            direction = replace(direction, taught=view, taught_rule=rule)
        directions.append(direction)
    return directions


def _parse_gold(
    links: Sequence[str], lines: Lines, path: str, directions: Sequence[Direction]
) -> list[GoldLinks]:
    """Parse gold links, checking that they join words of the lines; codes do not count as words."""
    lengths = []
    for number, pair in enumerate(zip(lines.sources, lines.targets, strict=True)):
        given = [lines.given.words(side, number) for side in SIDES]
        counts = [len(line_words(line)) for line in pair]
        for one in directions:
            if one.is_backward:  # it reads the target
                counts[1] = _count_units(one, "source", pair[1], given[1])
            else:
                counts = [_count_units(one, *side) for side in zip(SIDES, pair, given, strict=True)]
        # A line that is no pair is reported as such.
        is_pair = number not in lines.given.faults
        lengths.append((counts[0], counts[1]) if is_pair else (sys.maxsize, sys.maxsize))
    return parse_gold(links, lengths, path)


def _count_units(direction: Direction, side: Side, line: str, words: str | None) -> int:
    """Count the words of a line that links may name."""
    try:
        found = find_units(direction.tokenizer, side, line, rule=direction.units, words=words)
    except DataError:  # reported with the line
        return 0 if words is None else len(words.split())
    return len(found.names)
