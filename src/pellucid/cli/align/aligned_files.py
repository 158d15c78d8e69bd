"""Alignment of the lines of two files, or of one file of pairs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pellucid.bundle import load_bundle, resolve_model
from pellucid.cli.align.align_options import MAY_BE_DAMAGED, read_place, unit_rule
from pellucid.cli.align.unusual_pairs import Lines, Remarks, take_lines
from pellucid.cli.align.written_links import (
    report_errors,
    write_all_links,
    write_links_of_pairs,
)
from pellucid.cli.ending import LINES_FAILED
from pellucid.cli.lines.streams import STANDARD, open_output, parallel_windows, read_parallel
from pellucid.evaluation.word_links import GoldLinks, parse_gold
from pellucid.inside.align.direction import Direction, make_direction
from pellucid.inside.align.link_views import guided_view
from pellucid.inside.align.linked_units import SIDES, count_linkable_words
from pellucid.machine.devices import device_in_use
from pellucid.text.link_choices import CONVENTIONS, MAPS, LinkRule, Symmetrization


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
        windows = _windows(files)
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
