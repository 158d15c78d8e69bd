"""One row of an attention, number by number."""

from __future__ import annotations

import math
from dataclasses import replace

from pellucid.attention.stages import mix
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Part,
    Step,
    WorkedExample,
    make_step,
    write_number,
)
from pellucid.by_hand.written_stages import bracket, write_mixture, write_sum_of_products
from pellucid.errors import InputError

_ROLES = ("key", "value", "key = value", "query = key = value")
_STAGES = ("query", *_ROLES)
_MOST_LINES_OF_ROLE = 40
_MOST_NAMED = 12


def follow_row_of(example: WorkedExample, row: int) -> WorkedExample:
    """Write out one row of every attention and product of an example, number by number.

    Args:
        example: the example.
        row: the query, from 0. Parts with fewer rows are left out.

    Raises:
        InputError: no part has that row.
    """
    parts = tuple(
        replace(part, steps=steps)
        for part in example.parts
        if row >= 0 and (steps := _steps_of_row(part, row))
    )
    # Parts without the row are left out.
    if parts:
        return replace(example, parts=parts)
    rows = name_rows(example)
    if not rows:
        raise InputError(
            f"No row of {example.name} can be followed, but --row {row} is given. Leave it out."
        )
    # Enough to choose from, and no more than a line or two.
    listed = ", ".join(f"{index} {name}" for index, name in enumerate(rows[:_MOST_NAMED]))
    more = ", …" if len(rows) > _MOST_NAMED else ""
    raise InputError(
        f"The row must be from 0 to {len(rows) - 1}, but is {row} (--row, {example.name}). "
        f"Choose one of: {listed}{more}."
    )


def name_rows(example: WorkedExample) -> tuple[str, ...]:
    """Name the rows that can be followed, in order; different names of one row have a slash."""
    # Parts may name the same row by its word, its token or its place.
    groups = [names for part in example.parts if (names := _row_names(part))]
    return tuple(
        "/".join(dict.fromkeys(names[index] for names in groups if index < len(names)))
        for index in range(max(map(len, groups), default=0))
    )


def _row_names(part: Part) -> tuple[str, ...]:
    if part.attention is not None:
        return part.attention.query_names
    # Without an attention, the first step that can be written out says how many rows there are.
    return next((step.tables[0].rows for step in part.steps if step.arithmetic), ())


def _steps_of_row(part: Part, row: int) -> tuple[Step, ...]:
    """Write out a row of a part: what leads to its attention, the attention, what follows."""
    attention = part.attention
    if row >= len(_row_names(part)):
        return ()
    written = [
        (step.name in _STAGES, _arithmetic_of_row(step, row))
        for step in part.steps
        if step.arithmetic
    ]
    if attention is None:
        return tuple(step for _, step in written)
    # Queries, keys and values come before the scores that they make; all else comes after.
    before = (step for is_role, step in written if is_role)
    after = (step for is_role, step in written if not is_role)
    return (*before, *follow_row(attention, row), *after)


def _arithmetic_of_row(step: Step, row: int) -> Step:
    """Keep the lines of one row; keys and values are needed for all rows if there is room."""
    groups = step.arithmetic
    # A query meets the keys of all words, and the context has the values of all.
    is_needed_whole = step.name in _ROLES or row >= len(groups)
    if is_needed_whole and sum(map(len, groups)) <= _MOST_LINES_OF_ROLE:
        lines = tuple(line for group in groups for line in group)
    else:
        lines = groups[min(row, len(groups) - 1)]
    return replace(step, tables=(), printed=(), lines=lines)


def follow_row(attention: AttentionByHand, row: int) -> tuple[Step, ...]:
    """Write out every sum, product and quotient of one row, counted from 0."""
    return (
        *_score_steps(attention, row),
        *_softmax_steps(attention, row),
        *_mix_steps(attention, row),
    )


def _score_steps(a: AttentionByHand, row: int) -> list[Step]:
    name = a.query_names[row]
    scores = a.scores_LM[row].tolist()
    scaled = a.scaled_LM[row].tolist()
    # Without vectors the scores are given, and nothing is left to add up.
    sums = [""] * len(scores)
    if a.query_LK is not None and a.key_MK is not None:
        query = a.query_LK[row].tolist()
        sums = [f"{write_sum_of_products(query, key)} = " for key in a.key_MK.tolist()]
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
    masked = a.masked_LM[row].tolist()
    exponentials = a.exponentials_LM[row].tolist()
    total = write_number(float(a.sums_L1[row]))
    largest = max(masked)
    # exp(−∞ − −∞) would not be a number.
    if largest == -math.inf:
        note = "This row may attend nowhere, so all its weights are 0."
        return [make_step("weights", note=note)]
    raised = [
        f"{key}: exp({write_number(value)} − {bracket(largest)}) = "
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
    # Computed again: the context may have an embedding added to it.
    mixed = mix(a.weights_LM[row : row + 1], a.value_ME)[0].tolist()
    lines = [
        f"c{feature} = {write_sum_of_products(weights, column_M.tolist())} = {write_number(total)}"
        for feature, (column_M, total) in enumerate(zip(a.value_ME.T, mixed, strict=True))
    ]
    steps = [make_step("context", "weights · V, feature by feature", lines=lines)]
    if a.added_LE is not None:
        own = a.added_LE[row].tolist()
        context = a.context_LE[row].tolist()
        lines = [
            f"c{feature} = {write_number(first)} + {bracket(second)} = {write_number(total)}"
            for feature, (first, second, total) in enumerate(zip(own, mixed, context, strict=True))
        ]
        steps.append(make_step("context", "its own embedding as it is + that", lines=lines))
    return steps
