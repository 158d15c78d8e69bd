"""The page that looks inside: a model that runs in it, a recorded sentence, or both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pellucid.bundle import Bundle
from pellucid.inside.record.data import TraceData
from pellucid.inside.show.page.carry import cannot_carry, carry_model, carry_trace
from pellucid.inside.show.page.map import static_map
from pellucid.inside.show.page.measures import carry_measures
from pellucid.inside.show.view import default_view
from pellucid.page import make_page


def trace_page(trace: TraceData) -> str:
    """Make a page that shows what a trace recorded.

    It loads nothing, and its own policy forbids loading.

    Args:
        trace: the trace to show.

    Raises:
        InputError: the trace holds no array of a head, or more than a page may hold.
    """
    return make_page(
        _title(trace),
        traces=[carry_trace(trace)],
        start=_start(trace),
        remarks=_remarks(trace),
        without_script=static_map(default_view(trace)),
    )


def model_page(
    bundle: Bundle,
    trace: TraceData,
    text: str,
    *,
    lessons: Sequence[Mapping[str, Any]] = (),
    without_lessons: str = "",
    name: str = "",
    taught: tuple[int, int] | None = None,
    remarks: Sequence[str] = (),
) -> str:
    """Make a page that runs a model, opened at a sentence.

    A model that a page cannot run is shown by the trace, and a sentence says why. The trace comes
    along as well if the page would not find the same by itself: its target was given or searched
    for with other options, or something was changed.

    Args:
        bundle: the model.
        trace: of the sentence.
        text: the sentence.
        lessons: walks to offer next to the model.
        without_lessons: the reason, in a sentence, why it has no lessons.
        name: the model's name as the command line takes it.
        taught: layer and head of cross-attention that learned word links from given ones, if any.
        remarks: sentences to show at the top.

    Raises:
        InputError: the page must show the trace, which holds no array of a head, or more than a
            page may hold.
    """
    reason = cannot_carry(bundle)
    start = _start(trace)
    if reason:
        return make_page(
            _title(trace),
            traces=[carry_trace(trace) | {"measures": carry_measures(bundle, trace, text)}],
            start=start,
            remarks=[*_remarks(trace), *remarks, reason],
            without_lessons=without_lessons,
            without_script=static_map(default_view(trace)),
        )
    is_same = _is_greedy(trace) and not trace.problems
    return make_page(
        _title(trace),
        models=[carry_model(bundle, name, taught=taught)],
        traces=[] if is_same else [carry_trace(trace)],
        lessons=lessons,
        without_lessons=without_lessons,
        start={**start, "text": text, **({} if is_same else {"source": "1"})},
        remarks=[*_remarks(trace), *remarks],
    )


def _is_greedy(trace: TraceData) -> bool:
    decoding = trace.decoding
    plain = decoding.get("beam") == 1 and not decoding.get("sample")
    others = ("given", "changes", "prefix", "no_repeat_ngram", "min_length")
    return bool(plain and not any(decoding.get(name) for name in others))


def _title(trace: TraceData) -> str:
    return f"Inside: {' '.join(trace.source_tokens)}"


def _remarks(trace: TraceData) -> list[str]:
    changes = trace.decoding.get("changes")
    return [*trace.problems, *([f"CHANGED on the way: {changes}."] if changes else [])]


def _start(trace: TraceData) -> dict[str, str]:
    """Open at the only head of a trace; otherwise the page chooses."""
    sites = {name.rpartition(".")[0] for name in trace.arrays if name.endswith(".weights")}
    if len(sites) != 1 or len(trace.heads) != 1:
        return {"view": "links"}
    return {"view": "head", "head": f"{sites.pop()}.{trace.heads[0]}"}
