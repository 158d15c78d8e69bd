"""One row of an attention, number by number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from pellucid.attention.stages import mix
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Example,
    Part,
    Step,
    make_step,
    write_number,
)
from pellucid.by_hand.stages import write_mixture
from pellucid.errors import InputError

__all__ = ["follow_row", "follow_row_of"]


def follow_row_of(example: Example, row: int) -> Example:
    """Write out one row of every attention of an example, number by number.

    Args:
        example: the example.
        row: the query, from 0. Attentions with fewer queries are left out.

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
    """Write out every sum, product and quotient of one row, counted from 0."""
    return (
        *_score_steps(attention, row),
        *_softmax_steps(attention, row),
        *_mix_steps(attention, row),
    )


def _score_steps(a: AttentionByHand, row: int) -> list[Step]:
    name, scores, scaled = a.query_names[row], a.scores_LM[row].tolist(), a.scaled_LM[row].tolist()
    sums = [""] * len(scores)
    if a.query_LK is not None and a.key_MK is not None:
        query = a.query_LK[row].tolist()
        sums = [f"{_sum_of_products(query, key)} = " for key in a.key_MK.tolist()]
    steps = [
        make_step(
            "scores",
            f"row {row}, {name}: its query times each key",
            lines=[
                f"{name} · {key} = {products}{write_number(score)}"
                for key, products, score in zip(a.key_names, sums, scores, strict=True)
            ],
        ),
        make_step(
            "scaled",
            f"÷ {a.divisor_words}" if a.divisor_words else "",
            lines=[
                f"{key}: {write_number(score)} ÷ {write_number(a.divisor)} = {write_number(result)}"
                for key, score, result in zip(a.key_names, scores, scaled, strict=True)
            ],
        ),
    ]
    if a.mask_LM is not None:
        masked = [
            f"{key}: {write_number(value)}"
            + (", may not be attended to" if value == -math.inf else "")
            for key, value in zip(a.key_names, a.masked_LM[row].tolist(), strict=True)
        ]
        steps.append(make_step("masked", lines=masked))
    return steps


def _softmax_steps(a: AttentionByHand, row: int) -> list[Step]:
    masked, exponentials = a.masked_LM[row].tolist(), a.exponentials_LM[row].tolist()
    total, largest = write_number(float(a.sums_L1[row])), max(masked)
    if largest == -math.inf:
        note = "This row may attend nowhere, so all its weights are 0."
        return [make_step("weights", note=note)]
    raised = [
        f"{key}: exp({write_number(value)} − {_bracket(largest)}) = "
        f"exp({write_number(value - largest)}) = {write_number(result)}"
        for key, value, result in zip(a.key_names, masked, exponentials, strict=True)
    ]
    added = " + ".join(map(write_number, exponentials))
    weights = [
        f"{key}: {write_number(exponential)} ÷ {total} = {write_number(weight)}"
        for key, exponential, weight in zip(
            a.key_names, exponentials, a.weights_LM[row].tolist(), strict=True
        )
    ]
    formula = f"exp of each minus the largest, {write_number(largest)}"
    return [
        make_step("exponentials", formula, lines=[*raised, f"sum: {added} = {total}"]),
        make_step("weights", "each exponential ÷ their sum", lines=weights),
    ]


def _mix_steps(a: AttentionByHand, row: int) -> list[Step]:
    weights = a.weights_LM[row].tolist()
    if a.value_ME is None or a.context_LE is None:
        return [make_step("context", "weights · V", lines=[write_mixture(weights, a.key_names)])]
    mixed = mix(a.weights_LM[row : row + 1], a.value_ME)[0].tolist()
    lines = [
        f"c{feature} = {_sum_of_products(weights, column_M.tolist())} = {write_number(total)}"
        for feature, (column_M, total) in enumerate(zip(a.value_ME.T, mixed, strict=True))
    ]
    steps = [make_step("context", "weights · V, feature by feature", lines=lines)]
    if a.added_LE is not None:
        own, context = a.added_LE[row].tolist(), a.context_LE[row].tolist()
        lines = [
            f"c{feature} = {write_number(first)} + {_bracket(second)} = {write_number(total)}"
            for feature, (first, second, total) in enumerate(zip(own, mixed, context, strict=True))
        ]
        steps.append(make_step("context", "its own embedding as it is + that", lines=lines))
    return steps


def _sum_of_products(first: Sequence[float], second: Sequence[float]) -> str:
    return " + ".join(f"{_bracket(a)}·{_bracket(b)}" for a, b in zip(first, second, strict=True))


def _bracket(value: float) -> str:
    text = write_number(value)
    return f"({text})" if text.startswith("−") else text
