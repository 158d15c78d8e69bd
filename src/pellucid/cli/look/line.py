"""One line looked at: translated or given its target, replayed, and shown or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from pellucid.bundle import Bundle
from pellucid.cli.decoding import DECODING, useless_options
from pellucid.cli.ending import warn
from pellucid.cli.lines.notices import EXCEEDS_VECTOR
from pellucid.cli.look.compare import choose_side, draw_difference, show_difference
from pellucid.cli.look.contrast import show_contrast
from pellucid.cli.look.files import numbered, write_files
from pellucid.cli.look.heads import read_gold, show_heads
from pellucid.cli.look.links import show_links
from pellucid.cli.look.measures import show_lenses, show_measures, show_trust, to_place
from pellucid.cli.look.options import is_compared, to_ask
from pellucid.cli.look.trace import Focus, show_trace
from pellucid.cli.look.training_text import was_in_training
from pellucid.cli.look.what_if import show_changes
from pellucid.cli.look.writer import Writer
from pellucid.cli.options import given_of
from pellucid.decode.constraints.request import Constraints
from pellucid.formats.exporting import guided_head
from pellucid.inside.ask import Ask
from pellucid.inside.look import Replaying, look_at_given
from pellucid.inside.pair import Pair
from pellucid.inside.show.page.live import model_page
from pellucid.inside.traces import Trace
from pellucid.lessons.walks.for_page import lessons_for
from pellucid.text.codes import CodeFaults, find_fault
from pellucid.text.outside import say_unknown_words, unknown_words
from pellucid.translate.translator import Translator, load

_JSON_BYTES = 20
"""Approximate size of a number in JSON: digits, sign and separator."""


@dataclass(frozen=True)
class Line:
    """A line to look at.

    Attributes:
        text: the source.
        target: the translation to look at, or None to decode one.
        prefix: the beginning of the decoded translation.
    """

    text: str
    target: str | None
    prefix: str | None


def look_at_line(
    model: str,
    line: Line,
    files: Mapping[str, Path],
    options: Mapping[str, Any],
    *,
    float64: bool,
    threads: int | None,
) -> int:
    """Look inside the translation of a line.

    Args:
        model: the name of a model.
        line: the line.
        files: file to write by kind; without files, the terminal shows the line.
        options: those of `pellucid.cli.look.options` and of decoding.
        float64: True to keep the arrays in double precision.
        threads: number of processor threads.

    Returns:
        The exit code: 1 if a check of the replay failed.
    """
    ask = to_ask(options)
    # Only .npz files can take arrays as they are computed, before the trace is complete.
    is_streamed = files.keys() == {"npz"}
    translator = load(model, threads=threads)
    needs_weights = bool(options["stage"] or options["heads"])
    if ask == Ask() and not needs_weights and not translator.model.config.has_attention:
        ask = Ask(stages=("vector",))  # As the replay does; asked for by name, weights are refused.
    # A unit is followed with everything that a trace holds, also where nothing attends.
    is_unit = options["row"] is not None and translator.model.config.is_recurrent
    (replace(ask, everything=True) if is_unit else ask).check(translator.model.config)
    for sentence in remarks_on(translator, line.text):
        warn(sentence)
    how = Replaying(
        ask if options["row"] is None else Ask(everything=True),
        float64=float64,
        into=partial(numbered, files["npz"]) if is_streamed else None,
        before=partial(_warn_of_size, ask, float64=float64, is_json="json" in files)
        if options["all"]
        else None,
    )
    traces = replay_line(translator, line, how, options)
    if is_compared(options):
        return _compare(translator, traces[0], line, files, options)
    exit_code = report_problems(traces)
    if not files:
        _show(translator, traces, line, ask, options)
    elif not is_streamed:
        write_files(traces, files, partial(_make_page, translator.own_bundle, model, line))
    return exit_code


def remarks_on(translator: Translator, text: str) -> Iterator[str]:
    """Say what a reader should know about a line before a model's answer to it."""
    codes = CodeFaults()
    codes.add(0, find_fault(translator.tokenizer, text))
    if sentence := codes.sentence(translator.tokenizer):
        yield sentence
    if words := unknown_words(translator.tokenizer, text):
        said = say_unknown_words(words, translator.tokenizer)
        yield f"The model does not know these words and reads them as <unk>: {said}."
    if was_in_training(translator.own_bundle, text):
        yield "This sentence is in the text that the model learned from."
    has_vector = not translator.model.config.has_attention
    if has_vector and translator.examine(text, clean=False, split=False).exceeds_vector:
        yield f"This line has {EXCEEDS_VECTOR}"


def _make_page(bundle: Bundle, model: str, line: Line, trace: Trace) -> str:
    """Make the page of a trace: the model runs in it if it can, next to the lessons."""
    lessons, reason = lessons_for(bundle)
    taught = guided_head(bundle)
    return model_page(
        bundle,
        trace,
        line.text,
        lessons=lessons,
        without_lessons=reason,
        name=model,
        taught=taught,
    )


def replay_line(
    translator: Translator, line: Line, how: Replaying, options: Mapping[str, Any]
) -> list[Trace]:
    """Decode a line, unless its target is given, and replay each hypothesis."""
    if line.target is not None:
        trace = look_at_given(translator.own_bundle, line.text, line.target, how)
        if unknown := trace.decoding.get("unknown"):
            warn(
                f"The model's vocabulary cannot write {', '.join(unknown)}, which the target has. "
                "It is looked at as <unk>."
            )
        return [trace]
    given = given_of(DECODING, options)
    decoding = translator.configure(**given)
    for sentence in useless_options(given, decoding, is_score_shown=True):
        warn(sentence)
    constraints = Constraints(prefix=line.prefix) if line.prefix else Constraints()
    (traces,) = translator.look_at_each([line.text], how, constraints=constraints, **given)
    return traces


def report_problems(traces: Sequence[Trace]) -> int:
    """Write the checks that failed to standard error, and return the exit code."""
    problems = [problem for trace in traces for problem in trace.problems]
    for problem in problems:
        warn(problem)
    return 1 if problems else 0


def _compare(
    translator: Translator,
    trace: Trace,
    line: Line,
    files: Mapping[str, Path],
    options: Mapping[str, Any],
) -> int:
    """Show or draw the difference to another line, another head or another model."""
    other_text, name = options["compare"] or line.text, options["compare_model"]
    other = translator if name is None else load(name)
    # The prefix begins the translation of the first line only.
    other_prefix = line.prefix if other_text == line.text else None
    other_line = Line(other_text, line.target, other_prefix)
    second, *_ = replay_line(other, other_line, Replaying(), options)
    exit_code = report_problems([trace, second])
    first_side = choose_side(trace, None, f"{translator.own_bundle.folder.name}: {line.text}")
    head = options["compare_head"] or str(first_side.head)
    second_side = choose_side(second, head, f"{other.own_bundle.folder.name}: {other_text}")
    if files:
        draw_difference(first_side, second_side, files)
    else:
        show_difference(first_side, second_side, Writer(is_plain=bool(options["plain"])))
    return exit_code


def _warn_of_size(ask: Ask, pair: Pair, *, float64: bool, is_json: bool) -> None:
    """Say on standard error how large a trace will be, before it is computed."""
    numbers = ask.num_bytes(
        pair.model.config, len(pair.source_ids), len(pair.target_ids), item_bytes=1
    )
    count = sum(1 for _ in ask.arrays(pair.model.config))
    size = numbers * (8 if float64 else 4) / 2**20
    in_json = f"; as JSON about {numbers * _JSON_BYTES / 2**20:.1f} MiB" if is_json else ""
    warn(f"This trace holds {count} arrays, {size:.1f} MiB{in_json}.")


def _show(
    translator: Translator,
    traces: Sequence[Trace],
    line: Line,
    ask: Ask,
    options: Mapping[str, Any],
) -> None:
    """Show in the terminal what the options ask for, for each trace."""
    writer = Writer(is_plain=bool(options["plain"]))
    for trace in traces:
        pair = Pair(translator.model, translator.tokenizer, trace.source_ids, trace.predicted_ids)
        if options["links"]:
            target = translator.tokenizer.decode_target(trace.predicted_ids)
            target = target if line.target is None else line.target
            show_links(translator.own_bundle, line.text, target, writer)
        elif options["heads"]:
            links, gold = options["gold"], None
            if links is not None:
                gold = read_gold(pair, line.text, line.target, links, options["convention"])
            show_heads(pair, trace, options["sort"], gold, writer)
        elif options["change"]:
            num_random = options["random"] or 0
            show_changes(pair, line.text, options["change"], line.prefix, num_random, writer)
        elif options["why"] is not None:
            target = translator.tokenizer.decode_target(trace.predicted_ids)
            target = target if line.target is None else line.target
            words = (target, options["why"], options["not"])
            show_contrast(pair, words, options["measure"], to_place(ask, options), writer)
        elif options["measure"]:
            show_measures(pair, options["measure"], to_place(ask, options), writer)
        elif options["trust"]:
            show_trust(pair, options["trust"], to_place(ask, options), writer)
        elif options["lens"]:
            show_lenses(pair, writer)
        else:
            focus = Focus(
                ask,
                options["row"],
                options["column"],
                verify=bool(options["verify"]),
                words=options["words"] or 0,
                whole=bool(options["whole"]),
            )
            show_trace(translator.own_bundle, pair, trace, focus, writer)
