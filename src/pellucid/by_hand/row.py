"""One row of an attention, number by number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from pellucid.attention.stages import mix
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Example,
    Part,
    Step,
    write_number,
)
from pellucid.errors import InputError

__all__ = ["follow_row", "follow_row_of"]


def follow_row_of(example: Example, row: int) -> Example:
    """Keep of an example what one row needs, written out number by number.

    Args:
        example: what to follow.
        row: which query, from 0, in every attention that has as many.

    Raises:
        InputError: no attention has that row.
    """
    parts = tuple(
        Part(part.title, part.note, follow_row(part.attention, row), part.attention)
        for part in example.parts
        if part.attention is not None and 0 <= row < len(part.attention.query_names)
    )
    if parts:
        return replace(example, parts=parts)
    sizes = [len(part.attention.query_names) for part in example.parts if part.attention]
    raise InputError(
        f"The row must be from 0 to {max(sizes) - 1}, but is {row} (--row, {example.name}). "
        "Choose one of those."
    )


def follow_row(attention: AttentionByHand, row: int) -> tuple[Step, ...]:
    """Write out every sum, product and quotient of one row.

    Args:
        attention: what was computed.
        row: which query, from 0.
    """
    return (
        *_score_steps(attention, row),
        *_softmax_steps(attention, row),
        *_mix_steps(attention, row),
    )


def _score_steps(a: AttentionByHand, row: int) -> tuple[Step, ...]:
    name, scores = a.query_names[row], a.scores_LM[row].tolist()
    if a.query_LK is None or a.key_MK is None:
        lines = [
            f"{name} · {key} = {write_number(s)}"
            for key, s in zip(a.key_names, scores, strict=True)
        ]
    else:
        query = a.query_LK[row].tolist()
        lines = [
            f"{name} · {key} = {_sum_of_products(query, numbers)} = {write_number(total)}"
            for key, numbers, total in zip(a.key_names, a.key_MK.tolist(), scores, strict=True)
        ]
    divisor = write_number(a.divisor)
    scaled = [
        f"{key}: {write_number(s)} ÷ {divisor} = {write_number(t)}"
        for key, s, t in zip(a.key_names, scores, a.scaled_LM[row].tolist(), strict=True)
    ]
    note = f"÷ {a.divisor_words}" if a.divisor_words else ""
    steps = (
        Step("scores", f"row {row}, {name}: its query times each key", lines=tuple(lines)),
        Step("scaled", note, lines=tuple(scaled)),
    )
    if a.mask_LM is None:
        return steps
    masked = [
        f"{key}: {write_number(value)}" + ("" if may else ", may not be attended to")
        for key, value, may in zip(
            a.key_names, a.masked_LM[row].tolist(), _allowed(a, row), strict=True
        )
    ]
    return (*steps, Step("masked", lines=tuple(masked)))


def _allowed(a: AttentionByHand, row: int) -> list[bool]:
    return [value > -math.inf for value in a.masked_LM[row].tolist()]


def _softmax_steps(a: AttentionByHand, row: int) -> tuple[Step, ...]:
    masked, exponentials = a.masked_LM[row].tolist(), a.exponentials_LM[row].tolist()
    total, largest = float(a.sums_L1[row]), max(masked)
    if largest == -math.inf:
        return (Step("weights", note="This row may attend nowhere, so all its weights are 0."),)
    raised = [
        f"{key}: exp({write_number(value)} − {_bracket(largest)}) = "
        f"exp({write_number(value - largest)}) = {write_number(e)}"
        for key, value, e in zip(a.key_names, masked, exponentials, strict=True)
    ]
    added = " + ".join(write_number(e) for e in exponentials)
    weights = [
        f"{key}: {write_number(e)} ÷ {write_number(total)} = {write_number(w)}"
        for key, e, w in zip(a.key_names, exponentials, a.weights_LM[row].tolist(), strict=True)
    ]
    return (
        Step(
            "exponentials",
            f"exp of each minus the largest, {write_number(largest)}",
            lines=(*raised, f"sum: {added} = {write_number(total)}"),
        ),
        Step("weights", "each exponential ÷ their sum", lines=tuple(weights)),
    )


def _mix_steps(a: AttentionByHand, row: int) -> tuple[Step, ...]:
    weights = a.weights_LM[row].tolist()
    if a.value_ME is None or a.context_LE is None:
        terms = [
            f"{write_number(w)}·v({key})" for w, key in zip(weights, a.key_names, strict=True) if w
        ]
        return (Step("context", "weights · V", lines=(" + ".join(terms) or "0",)),)
    mixed = mix(a.weights_LM[row : row + 1], a.value_ME)[0].tolist()
    lines = [
        f"c{feature} = {_sum_of_products(weights, column_M.tolist())} = {write_number(total)}"
        for feature, (column_M, total) in enumerate(zip(a.value_ME.T, mixed, strict=True))
    ]
    step = Step("context", "weights · V, feature by feature", lines=tuple(lines))
    if a.added_LE is None:
        return (step,)
    return (step, Step("context", "its own embedding as it is + that", lines=_added(a, row, mixed)))


def _added(a: AttentionByHand, row: int, mixed: Sequence[float]) -> tuple[str, ...]:
    own = _values(a.added_LE, row)
    return tuple(
        f"c{feature} = {write_number(x)} + {_bracket(value)} = {write_number(total)}"
        for feature, (x, value, total) in enumerate(
            zip(own, mixed, _values(a.context_LE, row), strict=True)
        )
    )


def _values(values_LE: Tensor | None, row: int) -> list[float]:
    return [] if values_LE is None else [float(value) for value in values_LE[row]]


def _sum_of_products(first: Sequence[float], second: Sequence[float]) -> str:
    return " + ".join(f"{_bracket(a)}·{_bracket(b)}" for a, b in zip(first, second, strict=True))


def _bracket(value: float) -> str:
    text = write_number(value)
    return f"({text})" if text.startswith("−") else text
