"""``pellucid align``: which words of a translation belong to which words of its source."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TextIO

import typer

from pellucid.cli.ending import warn
from pellucid.cli.lines.streams import (
    STANDARD,
    check_files,
    check_target,
    open_output,
    parallel_windows,
    read_parallel,
    to_json_line,
)
from pellucid.cli.options import Json, Model, OutputFile, Overwrite, Threads, flag, with_options
from pellucid.errors import InputError

if TYPE_CHECKING:
    from pellucid.evaluate.links import GoldLinks, Link, LinkScore, Symmetrization
    from pellucid.inside.align.direction import Direction, Judged

__all__ = ["align"]


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
            return _write_all(windows, directions, method, output, is_json=json)
    sources, targets, lines = read_parallel(files)
    golds = _parse_gold(lines, sources, targets, gold)
    chosen, has_errors = _report(directions, sources, targets, golds, method, is_json=json)
    if output_file != STANDARD:
        with open_output(output_file, may_overwrite=overwrite) as output:
            _write_window(chosen, method, sources, targets, 0, output, is_json=json)
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


def _write_all(
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
        has_errors |= _write_window(
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


def _write_window(
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
    for number, (links, error) in enumerate(_links(chosen, method, sources, targets), first):
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


def _links(
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


def _parse_gold(
    lines: list[str], sources: list[str], targets: list[str], path: str
) -> list[GoldLinks]:
    from pellucid.evaluate.links import parse_gold
    from pellucid.text.token_words import split_pieces

    pairs = zip(sources, targets, strict=True)
    lengths = [(len(split_pieces(one)), len(split_pieces(other))) for one, other in pairs]
    return parse_gold(lines, lengths, path)


def _report(
    directions: Sequence[Direction],
    sources: list[str],
    targets: list[str],
    golds: list[GoldLinks],
    method: Symmetrization,
    *,
    is_json: bool,
) -> tuple[list[Direction], bool]:
    """Write the error of every view; says which are best, and whether a pair has an error."""
    from pellucid.evaluate.links import score_links

    told: set[int] = set()

    def tell(index: int, error: str) -> None:
        if index not in told:
            told.add(index)
            warn(f"line {index + 1}: {error}")

    judged = [one.judge(sources, targets, golds, tell=tell) for one in directions]
    bests = [min(views, key=lambda one: one.score.error) for views in judged]
    chosen = [one.only(best.view) for one, best in zip(directions, bests, strict=True)]
    joined = None
    if len(chosen) == 2:
        found = [links for links, _ in _links(chosen, method, sources, targets)]
        joined = score_links(found, golds)
    if is_json:
        sys.stdout.write(to_json_line(_to_record(judged, bests, joined, method)))
    else:
        for name, views, best in zip(("", "--reverse "), judged, bests, strict=False):
            sys.stdout.write(_to_table(name, views, best))
        if joined is not None:
            sys.stdout.write(f"{method}: {_to_text(joined)}\n")
    return chosen, bool(told)


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
    """Alignment error in per cent: a row for each map, a column for each convention."""
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
    lines.append(f"{100 * best.end_share:.0f} % of its rows is on </s>, which is no word.")
    if len(judged) > 1:
        lines.append(
            f"Chosen by the gold links of these {best.score.num_sentences} pairs: expect more "
            "errors in others."
        )
    return "".join(f"{line}\n" for line in lines)


def _to_text(score: LinkScore) -> str:
    error, low, high = (100 * value for value in (score.error, score.low, score.high))
    return (
        f"error {error:.1f} % [{low:.1f}, {high:.1f}], precision {100 * score.precision:.1f} %, "
        f"recall {100 * score.recall:.1f} %"
    )
