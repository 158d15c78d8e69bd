"""One line: look at its translations, or explain one word of one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pellucid.bundle import Bundle
from pellucid.cli.ending import note
from pellucid.cli.lines.decoding_options import given_decoding
from pellucid.cli.lines.streams import to_json_line
from pellucid.cli.look.look_options import is_compared, to_ask
from pellucid.cli.look.measures import (
    contrast_to_record,
    show_contrast,
    show_lenses,
    show_measures,
    show_trust,
    to_place,
)
from pellucid.cli.look.replaying import LookedLine, remarks_on, replay_line, report_problems
from pellucid.cli.look.sentence_tables import (
    read_gold_of_pair,
    show_changes,
    show_heads,
    show_links,
)
from pellucid.cli.look.trace import show_trace
from pellucid.cli.look.two import look_at_difference
from pellucid.cli.look.writer import LookWriter
from pellucid.cli.outputs import numbered
from pellucid.errors import InputError
from pellucid.files import write_bytes
from pellucid.inside.align.link_views import guided_view
from pellucid.inside.ask import Ask
from pellucid.inside.line_traces import Replaying
from pellucid.inside.pair import PairData
from pellucid.inside.show.model_page import model_page
from pellucid.inside.traces import Trace, save_trace
from pellucid.lessons.walks.for_page import lessons_for
from pellucid.translate.translator import Translator, load

_JSON_BYTES = 20
"""Approximate size of a number in JSON: digits, sign and separator."""


def look_at_line(
    model: str,
    line: LookedLine,
    files: Mapping[Path, str],
    options: Mapping[str, Any],
    *,
    float64: bool,
    threads: int | None,
) -> int:
    """Look inside the translation of a line.

    Args:
        model: the name of a model.
        line: the line.
        files: the form of each file; without files, the terminal shows the line.
        options: those of `pellucid.cli.look.look_options` and of decoding.
        float64: True to keep the arrays in double precision.
        threads: number of processor threads.

    Returns:
        The exit code: 1 if a check of the replay failed.
    """
    ask = to_ask(options)
    # Only .npz files can take arrays as they are computed, before the trace is complete.
    is_streamed = list(files.values()) == ["npz"]
    translator = load(model, threads=threads)
    if ask == Ask() and not options["stage"] and options["show"] != "heads":
        ask = usual_ask(translator)
    # A unit is followed with everything that a trace holds, also where nothing attends.
    is_unit = options["row"] is not None and translator.model.config.is_recurrent
    # Before the translation, so that a mistake shows at once.
    traced = replace(ask, everything=True) if is_unit else ask
    if options["measure"] and not options["stage"]:
        # A measure needs no array of its place, which may have no weights.
        ask.check_places(translator.model.config)
        traced = usual_ask(translator)
    traced.check(translator.model.config)
    line = line.coded(translator.tokenizer)
    remarks = []
    for say, sentence in remarks_on(translator, line.text):
        say(sentence)
        remarks.append(sentence)
    line = line.as_read(translator.tokenizer)
    how = Replaying(
        # Following a row needs every stage on its way.
        traced if options["row"] is None else Ask(everything=True),
        float64=float64,
        into=partial(numbered, next(iter(files))) if is_streamed else None,
        before=partial(_warn_of_size, ask, float64=float64, is_json="json" in files.values())
        if options["everything"] and options["row"] is None
        else None,
    )
    traces = replay_line(translator, line, how, options)
    # Their own checks follow there, for both sides.
    if is_compared(options):
        return look_at_difference(translator, traces[0], line, files, options, threads)
    exit_code = report_problems(traces)
    if not files:
        _show(translator, traces, line, ask, options)
    elif not is_streamed:
        write_files(traces, files, partial(_make_page, translator.bundle, model, line, remarks))
    return exit_code


def usual_ask(translator: Translator) -> Ask:
    """Return what a trace of a model holds unless something is asked for."""
    # As the replay does: a model without attention has one vector instead of weights.
    return Ask() if translator.model.config.has_attention else Ask(stages=("vector",))


def _make_page(
    bundle: Bundle, model: str, line: LookedLine, remarks: Sequence[str], trace: Trace
) -> str:
    """Make the page of a trace: the model runs in it if it can, next to the lessons."""
    lessons, reason = lessons_for(bundle)
    return model_page(
        bundle,
        trace,
        line.text,
        lessons=lessons,
        without_lessons=reason,
        name=model,
        notes=remarks,
    )


def _warn_of_size(ask: Ask, pair: PairData, *, float64: bool, is_json: bool) -> None:
    """Say on standard error how large a trace will be, before it is computed."""
    # Counted in numbers first: their size depends on the precision.
    numbers = ask.num_bytes(
        pair.model.config, len(pair.source_ids), len(pair.target_ids), item_bytes=1
    )
    count = sum(1 for _ in ask.arrays(pair.model.config))
    size = numbers * (8 if float64 else 4) / 2**20
    in_json = f"; as JSON about {numbers * _JSON_BYTES / 2**20:.1f} MiB" if is_json else ""
    note(f"This trace holds {count} arrays, {size:.1f} MiB{in_json}.")


def _show(
    translator: Translator,
    traces: Sequence[Trace],
    line: LookedLine,
    ask: Ask,
    options: Mapping[str, Any],
) -> None:
    """Show in the terminal what the options ask for, for each trace."""
    writer = LookWriter()
    for number, trace in enumerate(traces):
        if len(traces) > 1:
            # Numbered as files are.
            writer.lines(["", f"Hypothesis {number}"])
        pair = PairData(
            translator.model,
            translator.tokenizer,
            trace.source_ids,
            trace.predicted_ids,
            line.text,
        )
        if options["changed"]:
            pair = replace(pair, changes=pair.read(options["changed"]))
        target = line.target
        if target is None:
            # The model's own translation, as text.
            target = translator.tokenizer.decode_target(trace.predicted_ids)
        if options["show"] == "links":
            show_links(translator.bundle, line.text, target, writer, changes=pair.changes)
        elif options["show"] == "heads":
            links = options["gold_links"]
            gold = None
            if links is not None:
                gold = read_gold_of_pair(pair, line.text, target, links)
            show_heads(pair, trace, options["sort"], gold, writer)
        elif options["change"]:
            search = translator.options(**given_decoding(options))
            num_random = options["random"] or 0
            show_changes(pair, options["change"], line.prefix, search, num_random, writer)
        elif options["measure"]:
            show_them = show_trust if options["show"] == "trust" else show_measures
            show_them(pair, options["measure"], to_place(ask), writer)
        elif options["show"] == "lens":
            show_lenses(pair, writer)
        else:
            bundle = translator.bundle
            is_plain_look = ask == Ask() and options["row"] is None
            # A model without a taught head: links of all heads together say more than one of them.
            if is_plain_look and guided_view(bundle) is None and bundle.config.model.has_attention:
                with suppress(InputError):  # Not every pair can be linked.
                    show_links(bundle, line.text, target, writer, changes=pair.changes)
                    writer.lines([""])
            show_trace(translator.bundle, pair, trace, ask, options, writer)


def write_files(
    traces: Sequence[Trace], wanted: Mapping[Path, str], make_page: Callable[[Trace], str]
) -> None:
    """Write each trace in every kind of file that was asked for.

    Args:
        traces: one for each hypothesis; files of several are numbered.
        wanted: the form of each file (``npz``, ``svg``, …).
        make_page: makes the page of a trace.

    Raises:
        OutputError: a file cannot be written.
    """
    for index, trace in enumerate(traces):
        for path, kind in wanted.items():
            own = numbered(path, index, len(traces))
            if kind == "html":
                write_bytes(own, make_page(trace).encode(), follows_link=True)
            else:
                save_trace(trace, own, kind=kind)


def explain_word(
    model: str,
    line: LookedLine,
    words: tuple[str, str | None],
    names: Sequence[str],
    options: Mapping[str, Any],
    threads: int | None,
) -> int:
    """Show measures as the difference of a word and another one.

    Args:
        model: the name of a model.
        line: the line.
        words: the word of its translation, and the other one; None takes the likeliest.
        names: of the measures.
        options: those of ``pellucid why``.
        threads: number of processor threads.

    Returns:
        The exit code: 1 if a check of the replay failed.
    """
    ask = to_ask({**options, "stage": None, "everything": False})
    place = to_place(ask)
    translator = load(model, threads=threads)
    ask.check_places(translator.model.config)
    line = line.coded(translator.tokenizer)
    for say, sentence in remarks_on(translator, line.text):
        say(sentence)
    line = line.as_read(translator.tokenizer)
    trace, *_ = replay_line(translator, line, Replaying(usual_ask(translator)), options)
    exit_code = report_problems([trace])
    tokenizer = translator.tokenizer
    text = line.target or tokenizer.decode_target(trace.predicted_ids)
    pair = PairData(translator.model, tokenizer, trace.source_ids, trace.predicted_ids)
    if options["json"]:
        record = contrast_to_record(pair, (text, *words), names, place)
        sys.stdout.write(to_json_line({"source": line.text, "translation": text, **record}))
    else:
        show_contrast(pair, (text, *words), names, place, LookWriter())
    return exit_code
