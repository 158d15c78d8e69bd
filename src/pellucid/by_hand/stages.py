"""The stages of one attention, written down as steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from pellucid.attention.stages import mix
from pellucid.by_hand.printed import WorkedNumber
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Step,
    Table,
    name_columns,
    table,
    write_number,
)

__all__ = ["stage_steps"]


def stage_steps(
    attention: AttentionByHand,
    *,
    formulas: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
    printed: Mapping[str, Sequence[WorkedNumber]] | None = None,
) -> tuple[Step, ...]:
    """Write an attention down, stage by stage.

    Args:
        attention: what was computed.
        formulas: by the name of a step, another formula than the usual one.
        notes: by the name of a step, what to know about it.
        printed: by the name of a step, what a text prints there.
    """
    formulas, notes, printed = formulas or {}, notes or {}, printed or {}
    return tuple(
        replace(
            step,
            formula=formulas.get(step.name, step.formula),
            note=notes.get(step.name, step.note),
            printed=tuple(printed.get(step.name, ())),
        )
        for step in (*_projected(attention), *_compared(attention), *_mixed(attention))
    )


def _projected(a: AttentionByHand) -> list[Step]:
    """Queries, keys and values; once where all three are the same."""
    if a.query_LK is None or a.key_MK is None or a.value_ME is None:
        return []
    if a.query_LK is a.key_MK is a.value_ME:
        return [Step("query = key = value", tables=(table(a.query_names, a.query_LK, "x"),))]
    steps = [Step("query", "Q", tables=(table(a.query_names, a.query_LK, "q"),))]
    if a.key_MK is a.value_ME:
        return [*steps, Step("key = value", "K", tables=(table(a.key_names, a.key_MK, "k"),))]
    return [
        *steps,
        Step("key", "K", tables=(table(a.key_names, a.key_MK, "k"),)),
        Step("value", "V", tables=(table(a.key_names, a.value_ME, "v"),)),
    ]


def _compared(a: AttentionByHand) -> list[Step]:
    """From scores to weights."""

    def by_keys(values_LM: Tensor, *more: str) -> tuple[Table, ...]:
        return (Table(a.query_names, (*a.key_names, *more), values_LM),)

    root = a.divisor_words or write_number(a.divisor)
    steps = [
        Step("scores", "Q·Kᵀ", "Each query times each key.", by_keys(a.scores_LM)),
        Step("scaled", f"scores ÷ {root}", tables=by_keys(a.scaled_LM)),
    ]
    if a.mask_LM is not None:
        note = "−∞ where a query may not attend."
        steps.append(Step("masked", "scaled + mask", note, by_keys(a.masked_LM)))
    last = "scaled" if a.mask_LM is None else "masked"
    with_sums = torch.cat([a.exponentials_LM, a.sums_L1], dim=-1)
    return [
        *steps,
        Step(
            "exponentials",
            f"exp({last} − largest of the row)",
            "Taking off the largest changes no weight: it cancels in the division.",
            by_keys(with_sums, "sum"),
        ),
        Step("weights", "exponentials ÷ their sum", _row_sums(a), by_keys(a.weights_LM)),
    ]


def _row_sums(a: AttentionByHand) -> str:
    is_empty = (a.sums_L1 == 0).flatten().tolist()
    if not any(is_empty):
        return "Each row sums to 1."
    names = ", ".join(name for name, empty in zip(a.query_names, is_empty, strict=True) if empty)
    return f"Each row sums to 1, but a row that may attend nowhere has weights 0: {names}."


def _mixed(a: AttentionByHand) -> list[Step]:
    """Weights times values and their sum; with letters where no values are known."""
    if a.value_ME is None or a.context_LE is None:
        lines = tuple(
            f"context({name}) = {_in_letters(weights, a.key_names)}"
            for name, weights in zip(a.query_names, a.weights_LM.tolist(), strict=True)
        )
        note = "No values are given, so they stay letters: v(word) is the value of a word."
        return [Step("context", "weights · V", note, lines=lines)]
    columns = name_columns("v", a.value_ME.shape[-1])
    products = []
    for name, weights_M, total_E in zip(
        a.query_names, a.weights_LM, mix(a.weights_LM, a.value_ME), strict=True
    ):
        values_LX = torch.cat([weights_M[:, None] * a.value_ME, total_E[None]])
        products.append(Table((*a.key_names, "sum"), columns, values_LX, f"for {name}"))
    steps = [
        Step(
            "weights × values",
            "each value times its weight, and their sum",
            tables=tuple(products),
        )
    ]
    formula = "weights · V"
    if a.added_LE is not None:
        formula = "its own embedding as it is + weights · V"
    return [*steps, Step("context", formula, tables=(table(a.query_names, a.context_LE, "c"),))]


def _in_letters(weights: Sequence[float], names: Sequence[str]) -> str:
    terms = [
        f"{write_number(weight)}·v({name})"
        for weight, name in zip(weights, names, strict=True)
        if weight != 0
    ]
    return " + ".join(terms) or "0"
