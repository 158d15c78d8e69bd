"""``pellucid look``: looks inside one translation."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pellucid.cli.ending import warn
from pellucid.cli.options import SEARCH, Model, Threads, useless_options, with_options
from pellucid.errors import InputError

if TYPE_CHECKING:
    from pellucid.inside.ask import Ask
    from pellucid.inside.looking import Replaying
    from pellucid.inside.pair import Pair
    from pellucid.inside.trace import Trace
    from pellucid.translator import Translator

__all__ = ["look"]

Numbers = list[int] | None
FileName = Annotated[str | None, typer.Option(metavar="FILE")]


def _file(help_text: str) -> Any:
    return typer.Option(metavar="FILE", help=help_text)


@with_options(SEARCH)
def look(
    model: Model,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The line to look inside.")],
    target: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Look at this translation instead of the model's own."),
    ] = None,
    prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What the translation begins with.")
    ] = None,
    part: Annotated[
        Literal["encoder", "decoder"] | None, typer.Option(help="One half of the model.")
    ] = None,
    layer: Annotated[Numbers, typer.Option(metavar="L", help="From 0; may be repeated.")] = None,
    head: Annotated[Numbers, typer.Option(metavar="H", help="From 0; may be repeated.")] = None,
    kind: Annotated[
        Literal["self", "cross", "feed_forward"] | None, typer.Option(help="Which sub-layer.")
    ] = None,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            metavar="S",
            help="query, key, value, scores, scaled, masked, weights, context, output, or what is "
            "around: input, residual, norm, inner, activated, embedding, positions, logits.",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Everything from token to token; says its size first.")
    ] = False,
    row: Annotated[
        int | None,
        typer.Option(metavar="R", help="Follow this position, number by number, through one head."),
    ] = None,
    column: Annotated[
        int | None,
        typer.Option(metavar="C", help="With --row: whose product is shown in full."),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CHANGE",
            help="What if: 'cut decoder.1.cross.0' (a head), 'cut encoder.0.self.2:4>7' (an edge), "
            "'average …', 'force decoder.1.cross.0:3>2=0.8'; may be repeated.",
        ),
    ] = None,
    random: Annotated[
        int,
        typer.Option(
            metavar="N", help="With --change: the same for N other heads drawn at random."
        ),
    ] = 0,
    verify: Annotated[
        bool, typer.Option("--verify", help="Recompute the shown weight from the bundle alone.")
    ] = False,
    words: Annotated[
        int,
        typer.Option(metavar="N", help="With --row in layer 0: the N words whose keys match best."),
    ] = 0,
    heads: Annotated[
        bool, typer.Option("--heads", help="A table of all layers and heads.")
    ] = False,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="FIGURE",
            help="With --heads: entropy, confidence, end_mass, punctuation_mass, distance, or "
            "cut_effect.",
        ),
    ] = None,
    float64: Annotated[bool, typer.Option("--float64", help="Replay in double precision.")] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Sentences instead of pictures, for screen readers.")
    ] = False,
    html: Annotated[str | None, _file("A page that needs no network.")] = None,
    svg: Annotated[str | None, _file("A picture of one head, or of all.")] = None,
    png: Annotated[str | None, _file("The same.")] = None,
    pdf: Annotated[str | None, _file("The same.")] = None,
    npz: Annotated[str | None, _file("The arrays, for NumPy.")] = None,
    json: Annotated[str | None, _file("The arrays, as JSON.")] = None,
    threads: Threads = None,
    **options: Any,
) -> int:
    """Look inside one translation: translate, replay, and show what was computed.

    In the terminal when no file is asked for. Without --layer, --head, --kind and --stage a file
    holds the weights of everything, and the terminal shows one head, whose choice is said. With
    --n-best K files are numbered: F.0, F.1 and so on before the ending.
    """
    from pellucid.cli.look_files import numbered, write_files
    from pellucid.cli.look_more import show_changes, show_heads
    from pellucid.cli.look_terminal import Shown, show
    from pellucid.inside.ask import Ask
    from pellucid.inside.looking import Replaying
    from pellucid.translator import load

    files = {"html": html, "svg": svg, "png": png, "pdf": pdf, "npz": npz, "json": json}
    wanted = {name: Path(path) for name, path in files.items() if path is not None}
    _check(row, column, verify=verify, words=words, target=target, options=options)
    for name, is_given, needed, is_there in (
        ("--random", random > 0, "--change", change),
        ("--sort", sort is not None, "--heads", heads),
    ):
        if is_given and not is_there:
            raise InputError(f"{name} must be given with {needed}, but there is none.")
    ask = Ask(
        parts=None if part is None else (part,),
        layers=layer,
        kinds=None if kind is None else (kind,),
        heads=head,
        stages=tuple(stage or ("weights",)),
        everything=everything,
    )
    translator = load(model, threads=threads)
    ask.check(translator.model.config)
    is_written_at_once = wanted.keys() == {"npz"}
    how = Replaying(
        Ask(everything=True) if row is not None and not wanted else ask,
        float64=float64,
        into=partial(numbered, wanted["npz"]) if is_written_at_once else None,
        before=partial(_say_size, ask, float64=float64) if everything else None,
    )
    traces = _look(translator, text, target, prefix, how, options)
    has_problem = False
    for trace in traces:
        for problem in trace.problems:
            has_problem = True
            warn(problem)
    if is_written_at_once:
        return 1 if has_problem else 0
    if wanted:
        write_files(traces, wanted)
    else:
        shown = Shown(ask, row, column, verify=verify, words=words)
        for trace in traces:
            if heads:
                show_heads(translator, trace, sort, is_plain=plain)
            elif change:
                show_changes(translator, trace, change, prefix, random, is_plain=plain)
            else:
                show(translator, trace, shown, is_plain=plain)
    return 1 if has_problem else 0


def _check(
    row: int | None,
    column: int | None,
    *,
    verify: bool,
    words: int,
    target: str | None,
    options: dict[str, Any],
) -> None:
    for name, is_given in (("--column", column is not None), ("--words", words > 0)):
        if is_given and row is None:
            raise InputError(f"{name} must be given with --row, but there is none.")
    if verify and row is None:
        raise InputError(
            "--verify must know which weight to recompute: name a position with --row R, and with "
            "--column C what it attends to."
        )
    given = [name for name in SEARCH if options[name] is not None]
    if target is not None and given:
        raise InputError(
            f"With --target nothing is searched, but --{given[0].replace('_', '-')} is given. "
            "Leave one of them out."
        )


def _look(
    translator: Translator,
    text: str,
    target: str | None,
    prefix: str | None,
    how: Replaying,
    options: dict[str, Any],
) -> list[Trace]:
    from pellucid.decode import Constraints
    from pellucid.inside.looking import look_at_given

    if target is not None:
        return [look_at_given(translator.own_bundle, text, target, how)]
    given = {name: value for name, value in options.items() if value is not None}
    decoding = translator.configure(**given)
    for sentence in useless_options(given, decoding, is_score_shown=True):
        warn(sentence)
    constraints = Constraints(prefix=prefix) if prefix else Constraints()
    (traces,) = translator.look_at_each([text], how, constraints=constraints, **given)
    return traces


def _say_size(ask: Ask, pair: Pair, *, float64: bool) -> None:
    size = ask.num_bytes(
        pair.model.config,
        len(pair.source_ids),
        len(pair.target_ids),
        item_bytes=8 if float64 else 4,
    )
    count = sum(1 for _ in ask.arrays(pair.model.config))
    warn(f"This trace holds {count} arrays, {size / 2**20:.1f} MiB.")
