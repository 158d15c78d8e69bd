"""Alignment of the lines of two files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pellucid.bundle import load_bundle, resolve_model
from pellucid.cli.align.history import write_history
from pellucid.cli.align.links import write_all_links, write_links_of_pairs
from pellucid.cli.align.remarks import Remarks
from pellucid.cli.align.report import report_errors
from pellucid.cli.lines.streams import STANDARD, open_output, parallel_windows, read_parallel
from pellucid.evaluate.links import GoldLinks, Symmetrization, parse_gold
from pellucid.inside.align.direction import Direction, make_direction
from pellucid.inside.align.maps import CONVENTIONS, MAPS
from pellucid.text.token_words import source_pieces, split_pieces

__all__ = ["align_files"]


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
        model: the name of a model; a run folder for ``history``.
        files: path of ``--source``, ``--target`` and perhaps ``--gold``.
        options: those of `pellucid.cli.align.options.VIEWS`.
        output_file: path for the links.
        may_overwrite: True if an existing output may be replaced.
        is_json: True to write JSON.

    Returns:
        The exit code: 2 if a pair could not be aligned.
    """
    method: Symmetrization = options["symmetrize"] or "grow-diag-final"
    if "--gold" not in files:
        windows = parallel_windows(files)
        directions = _make_directions(model, options)
        with open_output(output_file, may_overwrite=may_overwrite) as output:
            return write_all_links(windows, directions, method, output, is_json=is_json)

    sources, targets, lines = read_parallel(files)
    # A run that keeps its checkpoints need not have a bundle.
    directions = [] if options["history"] else _make_directions(model, options)
    golds = _parse_gold(lines, sources, targets, files["--gold"], directions)
    if options["history"]:
        pairs = list(zip(sources, targets, strict=True))
        with open_output(output_file, may_overwrite=may_overwrite) as output:
            write_history(model, pairs, golds, options, output, is_json=is_json)
        return 0

    best, has_errors = report_errors(directions, sources, targets, golds, method, is_json=is_json)
    if output_file != STANDARD:  # standard output has the report
        with open_output(output_file, may_overwrite=may_overwrite) as output:
            told = Remarks(best)  # the report has told already
            write_links_of_pairs(best, method, sources, targets, 0, output, told, is_json=is_json)
    return 2 if has_errors else 0


def _make_directions(model: str, options: Mapping[str, Any]) -> list[Direction]:
    """Load the model, and the one that translates back if there is one."""
    reverse, one_map, convention = (options[name] for name in ("reverse", "map", "convention"))
    names = [(model, "")] if reverse is None else [(model, ""), (reverse, "reverse_")]
    return [
        make_direction(
            load_bundle(resolve_model(name)),
            rule=options["links"] or ("both" if reverse is None else "best"),
            maps=MAPS if one_map is None else (one_map,),
            conventions=CONVENTIONS if convention is None else (convention,),
            layer=options[f"{prefix}layer"],
            head=options[f"{prefix}head"],
            is_backward=bool(prefix),
        )
        for name, prefix in names
    ]


def _parse_gold(
    lines: Sequence[str],
    sources: Sequence[str],
    targets: Sequence[str],
    path: str,
    directions: Sequence[Direction],
) -> list[GoldLinks]:
    """Parse gold links, checking that they join words of the lines; codes do not count as words."""
    lengths = []
    for pair in zip(sources, targets, strict=True):
        counts = [len(split_pieces(line)) for line in pair]
        for one in directions:  # a model that translates back reads the target
            counts[one.is_backward] = len(source_pieces(one.tokenizer, pair[one.is_backward]))
        lengths.append((counts[0], counts[1]))
    return parse_gold(lines, lengths, path)
