"""A look inside a model, and what-if, as answers: for the computing thread only."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pellucid.errors import InputError
from pellucid.serve.models import ServedModel
from pellucid.serve.problems import Problem

if TYPE_CHECKING:
    import numpy as np

    from pellucid.inside.ask import Ask
    from pellucid.inside.pair import Pair
    from pellucid.inside.traces import Trace

__all__ = ["change", "look", "write_trace"]

MOST_CHANGE_TOKENS = 512
"""Tokens of a sentence under changes: each token of its new translation is a whole pass."""

RECORDS = (
    "source_tokens",
    "source_ids",
    "target_tokens",
    "target_ids",
    "predicted_tokens",
    "predicted_ids",
    "log_probabilities",
    "argmax_tokens",
    "decode_log_probabilities",
    "heads",
    "checks",
    "model",
    "decoding",
)


def look(
    model: ServedModel, body: Any, *, most_bytes: int
) -> tuple[dict[str, Any], list[tuple[str, np.ndarray]]]:
    """Look inside the translation of a text.

    Args:
        model: the model.
        body: a request of ``/v1/look``.
        most_bytes: the most bytes of all arrays.

    Returns:
        The records of the trace, and its arrays in the order in which the model computes them.

    Raises:
        InputError: the text or the target cannot be looked at, or an array does not exist.
        Problem: 413, the arrays are too large.
    """
    from pellucid.inside.look import Replaying

    ask = _ask(body, model)
    trace = _trace(model, body, Replaying(ask), most_bytes)
    records = {name: getattr(trace, name) for name in RECORDS}
    records["problems"] = trace.problems
    order = {name: place for place, name in enumerate(_names(ask, model))}
    arrays = sorted(trace.arrays.items(), key=lambda pair: order.get(pair[0], len(order)))
    return records, arrays


def _ask(body: Any, model: ServedModel) -> Ask:
    from pellucid.inside.ask import Ask

    given = {
        name: getattr(body, name)
        for name in ("parts", "layers", "kinds", "heads", "stages")
        if getattr(body, name) is not None
    }
    ask = Ask(**given, everything=body.everything)
    ask.check(model.translator.model.config)
    return ask


def _names(ask: Ask, model: ServedModel) -> Iterator[str]:
    for wanted in ask.arrays(model.translator.model.config):
        yield wanted.name


def _trace(model: ServedModel, body: Any, how: Any, most_bytes: int) -> Trace:
    """Replay a given target, or the translation of the text; refuse too large a trace first."""
    from pellucid.inside.look import look_at_given, look_at_hypotheses

    translator = model.translator
    text = _one_line(body, model)

    def check(num_target: int) -> None:
        source = translator.tokenizer.encode_sources([text])[0]
        size = how.ask.num_bytes(translator.model.config, len(source), num_target)
        if size > most_bytes:
            raise Problem(
                413,
                f"The arrays must have at most {most_bytes:,} bytes, but would have {size:,}. "
                "Ask for single layers, heads or stages.",
            )

    if body.target_text is not None:
        if getattr(body, "beam", None) is not None:
            raise Problem(422, "beam cannot be combined with target_text. Leave one out.")
        check(len(translator.tokenizer.encode_target(body.target_text)))
        return look_at_given(translator.own_bundle, text, body.target_text, how)
    options: dict[str, Any] = {"precision": "float32", "n_best": 1}
    if getattr(body, "beam", None) is not None:
        options["beam"] = body.beam
    (found,) = translator.translate([text], clean=False, split=False, **options)
    if found.error is not None:
        raise InputError(found.error)
    check(len(found.ids))
    decoding = translator.configure(**options).model_dump(mode="json")
    hypotheses = found.hypotheses[:1]
    (trace,) = look_at_hypotheses(translator.own_bundle, text, hypotheses, how, decoding=decoding)
    return trace


def _one_line(body: Any, model: ServedModel) -> str:
    from pellucid.text.codes import with_codes

    text = body.text.strip()
    if not text or "\n" in text:
        raise Problem(422, "A text to look at must be one line that holds text.")
    (text,) = with_codes(model.translator.tokenizer, body.to, [text])
    return str(text)


def write_trace(records: dict[str, Any], arrays: list[tuple[str, np.ndarray]]) -> Iterator[bytes]:
    """Write a trace as a file of safetensors: a header in JSON, then the numbers.

    Args:
        records: go into the header, as a JSON text under ``__metadata__.trace``.
        arrays: float32, in the order in which they are written.

    Yields:
        The header, then each array.
    """
    import numpy as np

    header: dict[str, Any] = {
        "__metadata__": {"format": "pellucid-trace-1", "trace": json.dumps(_plain(records))}
    }
    place = 0
    for name, array in arrays:
        end = place + 4 * array.size
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [place, end]}
        place = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(8, "little") + text
    for _, array in arrays:
        yield np.ascontiguousarray(array, dtype="<f4").tobytes()


def change(model: ServedModel, body: Any) -> dict[str, Any]:
    """Translate a text again under changes, and score the old translation under them.

    Args:
        model: the model.
        body: a request of ``/v1/change``.

    Raises:
        InputError: a change cannot be read, or its place does not exist.
    """
    from pellucid.inside.ask import Ask
    from pellucid.inside.changes.what_if import what_if
    from pellucid.inside.changes.words import parse_changes
    from pellucid.inside.look import Replaying

    trace = _trace(model, body, Replaying(Ask(stages=("logits",))), 2**31)
    pair = _pair(model, trace)
    texts = [text for text in body.changes if text.strip()]
    found = what_if(
        pair,
        parse_changes(texts, pair.tokenizer, _one_line(body, model), pair.source_ids),
        prefix=body.prefix,
        max_length=min(2 * len(pair.target_ids) + 20, MOST_CHANGE_TOKENS),
        num_random=body.random,
    )
    outputs = {name: _output(getattr(found, name)) for name in ("original", "before", "after")}
    baseline = found.baseline
    return {
        "model": model.name,
        "changes": found.changes,
        **outputs,
        "effect": _number(found.effect),
        "under_change": list(map(_number, found.under_change)),
        "after_unchanged": list(map(_number, found.after_unchanged)),
        "edits": [
            {"place": one.place, "before": one.before, "after": one.after} for one in found.edits
        ],
        "baseline": None
        if baseline is None
        else {"changes": baseline.changes, "effects": list(map(_number, baseline.effects))},
    }


def _pair(model: ServedModel, trace: Trace) -> Pair:
    from pellucid.inside.pair import Pair

    length = max(len(trace.source_ids), len(trace.predicted_ids))
    if length > MOST_CHANGE_TOKENS:
        raise Problem(
            413,
            f"A sentence to change must have at most {MOST_CHANGE_TOKENS} tokens, but has "
            f"{length}. Send a shorter one.",
        )
    translator = model.translator
    return Pair(translator.model, translator.tokenizer, trace.source_ids, trace.predicted_ids)


def _output(output: Any) -> dict[str, Any]:
    return {
        "text": output.text,
        "tokens": output.tokens,
        "log_probabilities": list(map(_number, output.log_probabilities)),
    }


def _number(value: float) -> float | None:
    """Write a number that JSON has; None stands for minus infinity."""
    return value if math.isfinite(value) else None


def _plain(value: Any) -> Any:
    """Turn records into what JSON has; numbers that it lacks become None."""
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return _number(value)
    return value
