"""``pellucid look``: looks inside one translation."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pellucid.cli.ending import warn
from pellucid.cli.look.options import (
    FILES,
    PLACE,
    SHOWN,
    check_options,
    is_compared,
    to_ask,
    to_files,
)
from pellucid.cli.options import SEARCH, Model, Threads, useless_options, with_options

if TYPE_CHECKING:
    from pellucid.inside.ask import Ask
    from pellucid.inside.look import Replaying
    from pellucid.inside.pair import Pair
    from pellucid.inside.traces import Trace
    from pellucid.translator import Translator

__all__ = ["look"]

_JSON_BYTES = 20
"""A number takes about so many, digits, sign and separator."""


@with_options(PLACE, SHOWN, FILES, SEARCH)
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
    float64: Annotated[bool, typer.Option("--float64", help="Replay in double precision.")] = False,
    threads: Threads = None,
    **options: Any,
) -> int:
    """Look inside one translation: translate, replay, and show what was computed.

    In the terminal when no file is asked for. Without --layer, --head, --kind and --stage a file
    holds the weights of everything, and the terminal shows one head, whose choice is said. With
    --n-best K files are numbered: F.0, F.1 and so on before the ending.
    """
    from pellucid.cli.look.files import numbered, write_files
    from pellucid.inside.ask import Ask
    from pellucid.inside.look import Replaying
    from pellucid.translator import load

    check_options(options, is_target_given=target is not None, is_prefix_given=bool(prefix))
    ask = to_ask(options)
    wanted = to_files(options)
    is_written_at_once = wanted.keys() == {"npz"}
    translator = load(model, threads=threads)
    ask.check(translator.model.config)
    how = Replaying(
        ask if options["row"] is None else Ask(everything=True),
        float64=float64,
        into=partial(numbered, wanted["npz"]) if is_written_at_once else None,
        before=partial(_say_size, ask, float64=float64, is_json="json" in wanted)
        if options["all"]
        else None,
    )
    traces = _look(translator, text, target, prefix, how, options)
    if is_compared(options):
        return _compare(translator, traces[0], text, target, prefix, ask, wanted, options)
    problems = [problem for trace in traces for problem in trace.problems]
    for problem in problems:
        warn(problem)
    if not wanted:
        _show(translator, traces, ask, text, target, prefix, options)
    elif not is_written_at_once:
        write_files(traces, wanted)
    return 1 if problems else 0


def _look(
    translator: Translator,
    text: str,
    target: str | None,
    prefix: str | None,
    how: Replaying,
    options: dict[str, Any],
) -> list[Trace]:
    from pellucid.decode import Constraints
    from pellucid.inside.look import look_at_given

    if target is not None:
        return [look_at_given(translator.own_bundle, text, target, how)]
    given = {name: options[name] for name in SEARCH if options[name] is not None}
    decoding = translator.configure(**given)
    for sentence in useless_options(given, decoding, is_score_shown=True):
        warn(sentence)
    constraints = Constraints(prefix=prefix) if prefix else Constraints()
    (traces,) = translator.look_at_each([text], how, constraints=constraints, **given)
    return traces


def _compare(
    translator: Translator,
    trace: Trace,
    text: str,
    target: str | None,
    prefix: str | None,
    ask: Ask,
    files: dict[str, Path],
    options: dict[str, Any],
) -> int:
    from pellucid.cli.look.compare import choose_side, draw_difference, show_difference
    from pellucid.cli.look.terminal import Writer
    from pellucid.inside.look import Replaying
    from pellucid.translator import load

    other_text, name = options["compare"] or text, options["compare_model"]
    other = translator if name is None else load(name)
    other_prefix = prefix if other_text == text else None
    (second, *_) = _look(other, other_text, target, other_prefix, Replaying(), options)
    problems = [*trace.problems, *second.problems]
    for problem in problems:
        warn(problem)
    names = [f"{translator.own_bundle.folder.name}: {text}", f"{other.own_bundle.folder.name}: "]
    first_side = choose_side(trace, ask, None, names[0])
    head = options["compare_head"] or str(first_side.head)
    second_side = choose_side(second, ask, head, names[1] + other_text)
    if files:
        draw_difference(first_side, second_side, files)
    else:
        show_difference(first_side, second_side, Writer(is_plain=bool(options["plain"])))
    return 1 if problems else 0


def _say_size(ask: Ask, pair: Pair, *, float64: bool, is_json: bool) -> None:
    numbers = ask.num_bytes(
        pair.model.config, len(pair.source_ids), len(pair.target_ids), item_bytes=1
    )
    count = sum(1 for _ in ask.arrays(pair.model.config))
    size = numbers * (8 if float64 else 4) / 2**20
    written = f"; as JSON about {numbers * _JSON_BYTES / 2**20:.1f} MiB" if is_json else ""
    warn(f"This trace holds {count} arrays, {size:.1f} MiB{written}.")


def _show(
    translator: Translator,
    traces: list[Trace],
    ask: Ask,
    text: str,
    target: str | None,
    prefix: str | None,
    options: dict[str, Any],
) -> None:
    from pellucid.cli.look.heads import pair_of, read_gold, show_heads
    from pellucid.cli.look.measures import show_lenses, show_measures, show_trust
    from pellucid.cli.look.terminal import Shown, Writer, show
    from pellucid.cli.look.what_if import show_changes

    writer = Writer(is_plain=bool(options["plain"]))
    for trace in traces:
        if options["heads"]:
            links, gold = options["gold"], None
            if links is not None:
                gold = read_gold(translator, trace, text, target, links, options["convention"])
            show_heads(translator, trace, options["sort"], gold, writer)
        elif options["change"]:
            num_random = options["random"] or 0
            show_changes(translator, trace, text, options["change"], prefix, num_random, writer)
        elif options["measure"]:
            show_measures(pair_of(translator, trace), options["measure"], ask, writer)
        elif options["trust"]:
            show_trust(pair_of(translator, trace), options["trust"], ask, writer)
        elif options["lens"]:
            show_lenses(pair_of(translator, trace), writer)
        else:
            shown = Shown(
                ask,
                options["row"],
                options["column"],
                verify=bool(options["verify"]),
                words=options["words"] or 0,
            )
            show(translator, trace, shown, writer)
