"""A trace in the terminal: one map, or one row followed number by number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pellucid.bundle import Bundle
from pellucid.cli.look.writer import LookWriter
from pellucid.errors import InputError
from pellucid.inside.ask import HEAD_STAGES, Ask, require_attention
from pellucid.inside.pair import PairData
from pellucid.inside.show.steps import SHOWN, NumberTable, follow_one_row
from pellucid.inside.show.terminal import draw_tokens
from pellucid.inside.show.unit_steps import follow_simple_unit, follow_unit
from pellucid.inside.show.view import HeadView, usual_head
from pellucid.inside.traces import Trace
from pellucid.inside.verify import verify_cell
from pellucid.inside.vocabulary import best_words
from pellucid.model import RecurrentModel

_OF_TRANSFORMER = (
    "This is cross-attention: what the translation reads in the source. What the source's words "
    "read in each other, encoder self-attention: --head encoder. What the translation's words read "
    "in each other: --head decoder.*.self. Which words go together: --show links. One row in "
    "numbers: --row 0."
)
_OF_UNITS = (
    "This is cross-attention: what the translation reads in the source. What the source's words "
    "read in each other: --head encoder. The decoder has no self-attention: what its units keep of "
    "earlier words is in --head decoder.0.recurrent --stage forget (or candidate, state, output), "
    "and in numbers with --row 0 --head decoder.0.recurrent. Which words go together: --show links."
)
_OF_RECURRENT = (
    "This is the attention of a recurrent decoder: what the translation reads in the source. What "
    "its units hold at each word: --head decoder.0.recurrent; those of the source: --head "
    "encoder.0.recurrent. Which words go together: --show links. One step in numbers: --row 0."
)

MOST_WORDS = 10
"""Words that are listed because their keys match a query."""


def show_trace(
    bundle: Bundle,
    pair: PairData,
    trace: Trace,
    ask: Ask,
    options: Mapping[str, Any],
    writer: LookWriter,
) -> None:
    """Show a map of a trace, or follow one of its rows number by number.

    Args:
        bundle: the model.
        pair: the sentence and the model.
        trace: of that sentence.
        ask: the arrays; if it names none, one head is chosen.
        options: ``row`` and what belongs to it.
        writer: where to show it.

    Raises:
        InputError: the row, the column or the stage does not exist.
    """
    model = pair.model.config
    if options["row"] is not None:
        is_unit = ask.level("kind") == ("recurrent",)
        follow_it = _follow_simple_unit if is_unit else _follow_row
        if model.is_recurrent:
            follow_it = _follow_unit
        follow_it(bundle, pair, trace, ask, options, writer)
        return
    writer.lines(_summarize(trace))
    writer.lines(draw_tokens(trace))
    name, head, why = choose_array(trace)
    writer.lines(["", *([why] if why else [])])
    writer.array(trace, name, head)
    if ask == Ask():
        said = _OF_UNITS if model.decoder == "ssru" else _OF_TRANSFORMER
        writer.lines(["", _OF_RECURRENT if model.is_recurrent else said])


def _summarize(trace: Trace) -> Iterator[str]:
    yield f"Source       {' '.join(trace.source_tokens)}"
    yield f"Target       {' '.join(trace.predicted_tokens)}"
    yield f"             log-probability {sum(trace.log_probabilities):.4f}"
    found = ", ".join(f"{name} {value:.1e}" for name, value in trace.checks.items())
    yield f"Checks       largest differences: {found}"


def choose_array(trace: Trace) -> tuple[str, int | None, str]:
    """Choose the array to show.

    Returns:
        Its name, its head, and a sentence that says why it was chosen, empty without a choice.
    """
    names = list(trace.arrays)
    with_heads = [name for name in names if name.rsplit(".", 1)[1] in HEAD_STAGES]
    if not with_heads:
        return names[-1], None, _explain_last(names)
    weights = [name for name in with_heads if name.endswith(".weights")]
    if not weights:
        return with_heads[-1], trace.heads[0], _explain_last(with_heads)
    cross = [name for name in weights if ".cross." in name]
    view, why = usual_head(trace, cross or weights)
    if len(weights) * len(trace.heads) == 1:
        return view.name, view.head, ""
    why = f"Shown: {why}. Name another with --head."
    return view.name, view.head, why


def _explain_last(names: Sequence[str]) -> str:
    if len(names) == 1:
        return ""
    return f"Shown: the last of {len(names)}. Name another with --head and --stage."


def _follow_unit(
    bundle: Bundle,
    pair: PairData,
    trace: Trace,
    ask: Ask,
    options: Mapping[str, Any],
    writer: LookWriter,
) -> None:
    """Follow a row of a recurrent model through a step of its unit."""
    model = pair.model
    row = options["row"]
    column = options["key_column"]
    assert isinstance(model, RecurrentModel)
    if options["show"] == "words":
        raise InputError(
            "--show words needs self-attention, but this model is recurrent. Leave it out."
        )
    (part,) = (ask.level("part") or ("decoder",))[:1]
    (layer,) = (ask.level("layer") or (0,))[:1]
    shown = None if options["everything"] else SHOWN
    steps = list(follow_unit(trace, model, row, part=part, layer=layer, column=column, shown=shown))
    predicts = f" → predicts {trace.predicted_tokens[row]}" if part == "decoder" else ""
    reads = trace.query_tokens(part)[row]
    writer.lines([*_summarize(trace), ""])
    writer.lines([f"Row {row} of {part} layer {layer}: reads {reads}{predicts}"])
    _write_steps(steps, shown, writer)
    if options["show"] == "verify":
        if (part, layer) != ("decoder", 0):
            raise InputError(
                "--show verify needs attention, which is in decoder layer 0. Leave it out."
            )
        require_attention(model.config)
        weights_LM = trace["decoder.0.cross.0"]
        column = int(weights_LM[row].argmax()) if column is None else column
        writer.lines(["", _verify(bundle, trace, "decoder.0.cross", 0, row, column)])


def _follow_simple_unit(
    bundle: Bundle,
    pair: PairData,
    trace: Trace,
    ask: Ask,
    options: Mapping[str, Any],
    writer: LookWriter,
) -> None:
    """Follow a row through the unit that a decoder has in the place of self-attention."""
    row = options["row"]
    if options["show"] in ("words", "verify") or options["key_column"] is not None:
        raise InputError(
            "A unit has no weights, but --show words, --show verify or a column asks for one. "
            "Leave it out, or name a head."
        )
    (layer,) = (ask.level("layer") or (0,))[:1]
    shown = None if options["everything"] else SHOWN
    steps = list(follow_simple_unit(trace, pair.model.config, row, layer=layer, shown=shown))
    reads = f"reads {trace.target_tokens[row]} → predicts {trace.predicted_tokens[row]}"
    title = f"Row {row} of decoder.{layer}.recurrent: {reads}"
    writer.lines([*_summarize(trace), "", title])
    _write_steps(steps, shown, writer)


def _write_steps(steps: Iterable[NumberTable], shown: int | None, writer: LookWriter) -> None:
    for step in steps:
        writer.table(step)
    if shown is not None:
        writer.lines(["", f"Vectors: their length and first {SHOWN} numbers. All: --everything."])


def _verify(bundle: Bundle, trace: Trace, site: str, head: int, row: int, column: int) -> str:
    found = verify_cell(bundle, trace, site, head, row, column)
    return (
        f"Verified: row {row}, column {column} has the weight {found.shown:.8f}; recomputed "
        f"from the bundle's files {found.recomputed:.8f}; difference {found.difference:.1e}."
    )


def _follow_row(
    bundle: Bundle,
    pair: PairData,
    trace: Trace,
    ask: Ask,
    options: Mapping[str, Any],
    writer: LookWriter,
) -> None:
    view, why = _choose_view(trace, ask)
    row = options["row"]
    column = options["key_column"]
    shown = None if options["everything"] else SHOWN
    steps = list(follow_one_row(view, pair.model.config, row, column=column, shown=shown))
    # The place that the row looks at most.
    if column is None:
        column = int(view.cells[row].argmax())
    predicts = f" → predicts {view.predicted[row]}" if view.predicted else ""
    title = f"Row {row} of {view.site}, head {view.head}: reads {view.rows[row]}{predicts}"
    # Before anything is written, so that only the mistake is shown.
    words = list(_list_words(pair, view, row, column)) if options["show"] == "words" else []
    writer.lines([*_summarize(trace), "", title])
    if ask.level("head") is None or view.is_taught:
        writer.lines([f"The head: {why}."])
    _write_steps(steps, shown, writer)
    if words:
        writer.lines(["", *words])
    if options["show"] == "verify":
        writer.lines(["", _verify(bundle, trace, view.site, view.head, row, column)])


def _choose_view(trace: Trace, ask: Ask) -> tuple[HeadView, str]:
    """Choose the head that a row is followed through, and say why."""
    (part,) = (ask.level("part") or ("decoder",))[:1]
    # In the decoder what it reads of the source is asked about most.
    (kind,) = (ask.level("kind") or ("cross" if part == "decoder" else "self",))[:1]
    names = [
        name
        for name in trace.arrays
        if name.startswith(f"{part}.") and name.endswith(f".{kind}.weights")
        if any(one.is_at(name.rpartition(".")[0]) for one in ask.addresses)
    ]
    if not names:
        raise InputError(
            f"--row needs an attention to follow, and {part}.{kind} is not one. Name one with "
            "--head."
        )
    return usual_head(trace, names, ask.level("head"))


def _list_words(pair: PairData, view: HeadView, row: int, column: int) -> Iterator[str]:
    if view.layer or view.kind != "self":
        raise InputError(
            f"--show words needs layer 0's self-attention, but the row is followed in {view.site}, "
            f"whose keys depend on the whole sentence. Add --head {view.part}.0.self."
        )
    part: Any = view.part
    yield f"Words whose keys match this query best at position {column}, by scaled product:"
    for match in best_words(pair, part, head=view.head, row=row, position=column, most=MOST_WORDS):
        yield f"{match.scaled:9.3f}  {match.token}"
