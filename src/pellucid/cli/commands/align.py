"""``pellucid align``: which words of a translation belong to which words of its source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pellucid.cli.lines.streams import (
    STANDARD,
    check_files,
    check_target,
    open_output,
    parallel_windows,
    read_parallel,
)
from pellucid.cli.options import Json, Model, OutputFile, Overwrite, Threads, flag, with_options
from pellucid.errors import InputError

if TYPE_CHECKING:
    from pellucid.evaluate.links import GoldLinks, Symmetrization
    from pellucid.inside.align.direction import Direction

from pellucid.cli.align.links import write_all_links, write_window
from pellucid.cli.align.report import report_errors

__all__ = [
    "align",
]


VIEWS: dict[str, tuple[Any, str | None, str]] = {
    "layer": (int, "L", "A layer of the decoder, from 0."),
    "head": (int, "H", "A head of it, from 0."),
    "map": (
        Literal["head", "layer-mean", "norms"],
        None,
        "A head's weights, the average over heads, or the norms of what is added up.",
    ),
    "convention": (
        Literal["predicts", "reads"],
        None,
        "Which token a decoder row counts for: the one it predicts, or the one it reads.",
    ),
    "links": (
        Literal["best", "both"],
        None,
        "Link each target word to its best source word, or ask in both directions. 'both' unless "
        "given; 'best' with --reverse.",
    ),
    "reverse": (str, "MODEL", "A model that translates target into source."),
    "reverse_layer": (int, "L", "Its layer."),
    "reverse_head": (int, "H", "Its head."),
    "symmetrize": (
        Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"],
        None,
        "How the two directions are joined; grow-diag-final unless given.",
    ),
    "history": (
        bool,
        "",
        "With --gold: error and entropy of each head at every checkpoint of the run folder MODEL.",
    ),
}
"""One option for each part of a view, and for the second direction."""


@with_options(VIEWS)
def align(
    model: Model,
    source: Annotated[
        str, typer.Option("--source", metavar="FILE", help="Source lines; '-' is standard input.")
    ],
    target: Annotated[
        str, typer.Option("--target", metavar="FILE", help="Their translations, line by line.")
    ],
    gold: Annotated[
        str | None,
        typer.Option("--gold", metavar="FILE", help="The right links: i-j sure, ipj possible."),
    ] = None,
    json: Json = False,
    output_file: OutputFile = STANDARD,
    overwrite: Overwrite = False,
    threads: Threads = None,
    **options: Any,
) -> int:
    """Link the words of lines and their translations, as cross-attention sees them.

    One line of links a pair, in the Pharaoh format: i-j joins word i of the source and word j of
    the target, both counted from 0 between spaces. What --layer, --head, --map and --convention
    leave open is chosen: the view with the most consistent links, and standard error names it.

    With --gold the alignment error of every view that is left open is written instead, with its
    95 % bootstrap interval; -o FILE then takes the links of the best.
    """
    _check_options(options, has_gold=gold is not None)
    if output_file != STANDARD:
        check_target(output_file, may_overwrite=overwrite)
    files = {"--source": source, "--target": target}
    if gold is not None:
        files["--gold"] = gold
    check_files(files)

    from pellucid.hardware import set_threads

    set_threads(threads)
    if options["history"] and gold is not None:
        return _write_history(model, files, options, output_file, overwrite, is_json=json)
    directions = _make_directions(model, options)
    method: Symmetrization = options["symmetrize"] or "grow-diag-final"
    if gold is None:
        windows = parallel_windows(files)
        with open_output(output_file, may_overwrite=overwrite) as output:
            return write_all_links(windows, directions, method, output, is_json=json)
    sources, targets, lines = read_parallel(files)
    golds = _parse_gold(lines, sources, targets, gold)
    chosen, has_errors = report_errors(directions, sources, targets, golds, method, is_json=json)
    if output_file != STANDARD:
        with open_output(output_file, may_overwrite=overwrite) as output:
            write_window(chosen, method, sources, targets, 0, output, is_json=json)
    return 2 if has_errors else 0


def _check_options(options: Mapping[str, Any], *, has_gold: bool) -> None:
    """Refuse options that cannot go together."""
    if options["history"]:
        given = [n for n in VIEWS if options[n] is not None]
        useless = [n for n in given if n not in ("history", "convention", "links")]
        if not has_gold or useless:
            what = flag(useless[0]) + " is given" if useless else "there is none"
            raise InputError(
                "--history must be asked for with gold links (--gold FILE) and for all heads of "
                f"one run, but {what}."
            )
    for name in ("symmetrize", "reverse_layer", "reverse_head"):
        if options["reverse"] is None and options[name] is not None:
            raise InputError(
                f"{flag(name)} must come with a second model, but there is none. "
                "Add --reverse MODEL."
            )
    heads = (options["head"], options["reverse_head"])
    if options["map"] == "layer-mean" and heads != (None, None):
        raise InputError(
            "--map layer-mean averages over heads, but a head is named. Leave one of them out."
        )


def _write_history(
    run: str,
    files: Mapping[str, str],
    options: Mapping[str, Any],
    output_file: str,
    overwrite: bool,
    *,
    is_json: bool,
) -> int:
    from pellucid.cli.align.history import write_history

    sources, targets, lines = read_parallel(files)
    golds = _parse_gold(lines, sources, targets, files["--gold"])
    pairs = list(zip(sources, targets, strict=True))
    with open_output(output_file, may_overwrite=overwrite) as output:
        write_history(run, pairs, golds, options, output, is_json=is_json)
    return 0


def _make_directions(model: str, options: Mapping[str, Any]) -> list[Direction]:
    """Load the model, and the one that translates back."""
    from pellucid.bundle import load_bundle, resolve_model
    from pellucid.inside.align.direction import make_direction
    from pellucid.inside.align.maps import CONVENTIONS, MAPS

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
    lines: list[str], sources: list[str], targets: list[str], path: str
) -> list[GoldLinks]:
    from pellucid.evaluate.links import parse_gold
    from pellucid.text.token_words import split_pieces

    pairs = zip(sources, targets, strict=True)
    lengths = [(len(split_pieces(one)), len(split_pieces(other))) for one, other in pairs]
    return parse_gold(lines, lengths, path)
