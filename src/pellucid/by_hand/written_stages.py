"""An attention written down stage by stage, and arithmetic written out term by term.

Arithmetic has one group of lines for each row, so that a row can be followed by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pellucid.attention.stages import mix
from pellucid.by_hand.printed import WorkedNumber
from pellucid.by_hand.sheet import (
    Arithmetic,
    AttentionByHand,
    NamedMatrix,
    Step,
    make_step,
    name_columns,
    named_matrix,
    shown_lines,
    write_number,
)


def bracket(value: float) -> str:
    """Write a number, in brackets if it is negative."""
    text = write_number(value)
    return f"({text})" if text.startswith("−") else text


def write_sum_of_products(first: Sequence[float], second: Sequence[float]) -> str:
    """Write ``1·2 + 3·(−4)``."""
    return " + ".join(f"{bracket(a)}·{bracket(b)}" for a, b in zip(first, second, strict=True))


def write_products(
    names: Sequence[str],
    x_LD: Tensor,
    weight_DK: Tensor,
    letter: str,
    *,
    bias_K: Tensor | None = None,
    is_rectified: bool = False,
) -> Arithmetic:
    """Write out x·W, or max(0, x·W + b).

    Args:
        names: one for each row of x.
        x_LD: the rows.
        weight_DK: the matrix.
        letter: the letter of the results.
        bias_K: what is added to each row.
        is_rectified: True to replace negative results by 0.
    """
    result_LK = x_LD @ weight_DK
    biases = [None] * weight_DK.shape[-1] if bias_K is None else bias_K.tolist()
    columns = list(zip(weight_DK.T.tolist(), biases, strict=True))

    def write(name: str, index: int, row: Sequence[float], total: float) -> str:
        column, bias = columns[index]
        products = write_sum_of_products(row, column)
        if bias is not None:
            products = f"{products} + {bracket(bias)}"
            # The product of the matrices has no bias yet.
            total = total + bias
        if is_rectified:
            products = f"max(0, {products}) = max(0, {write_number(total)})"
            total = max(0.0, total)
        return f"{name}: {letter}{index} = {products} = {write_number(total)}"

    return tuple(
        tuple(write(name, index, row, total) for index, total in enumerate(totals))
        for name, row, totals in zip(names, x_LD.tolist(), result_LK.tolist(), strict=True)
    )


def write_added(
    names: Sequence[str], first_LD: Tensor, second_LD: Tensor, letter: str
) -> Arithmetic:
    """Write out the sum of two matrices, number by number."""
    return tuple(
        tuple(
            f"{name}: {letter}{index} = {write_number(a)} + {bracket(b)} = {write_number(a + b)}"
            for index, (a, b) in enumerate(zip(first, second, strict=True))
        )
        for name, first, second in zip(names, first_LD.tolist(), second_LD.tolist(), strict=True)
    )


def write_spread(names: Sequence[str], rows_LD: Tensor, epsilon: float) -> Arithmetic:
    """Write out the mean of each row, its variance, and the root that divides."""

    def write(name: str, row: list[float]) -> tuple[str, ...]:
        # Exact sums, so that the last digit that is shown never depends on their order.
        mean = math.fsum(row) / len(row)
        variance = math.fsum((value - mean) ** 2 for value in row) / len(row)
        total = " + ".join(map(bracket, row))
        squares = " + ".join(f"({write_number(value)} − {bracket(mean)})²" for value in row)
        root = write_number(math.sqrt(variance + epsilon))
        return (
            f"{name}: μ = ({total}) ÷ {len(row)} = {write_number(mean)}",
            f"{name}: σ² = ({squares}) ÷ {len(row)} = {write_number(variance)}",
            f"{name}: √(σ² + ε) = √({write_number(variance)} + {epsilon:g}) = {root}",
        )

    return tuple(write(*pair) for pair in zip(names, rows_LD.tolist(), strict=True))


def write_normed(
    names: Sequence[str],
    rows_LD: Tensor,
    mean_L1: Tensor,
    root_L1: Tensor,
    *,
    gain_D: Tensor | None = None,
    bias_D: Tensor | None = None,
) -> Arithmetic:
    """Write out (y − μ) ÷ √(σ² + ε), and gain and bias if there are any."""
    width = rows_LD.shape[-1]
    # A missing gain changes nothing, and is not written.
    gains = [1.0] * width if gain_D is None else gain_D.tolist()
    biases = [0.0] * width if bias_D is None else bias_D.tolist()

    def write(name: str, index: int, value: float, mean: float, root: float) -> str:
        text = f"({write_number(value)} − {bracket(mean)}) ÷ {write_number(root)}"
        result = (value - mean) / root * gains[index] + biases[index]
        text += "" if gain_D is None else f"·{bracket(gains[index])}"
        text += "" if bias_D is None else f" + {bracket(biases[index])}"
        return f"{name}: n{index} = {text} = {write_number(result)}"

    lines = zip(
        names, rows_LD.tolist(), mean_L1[:, 0].tolist(), root_L1[:, 0].tolist(), strict=True
    )
    return tuple(
        tuple(write(name, index, value, mean, root) for index, value in enumerate(row))
        for name, row, mean, root in lines
    )


def make_product_step(
    name: str,
    formula: str,
    names: Sequence[str],
    x_LD: Tensor,
    weight_DK: Tensor,
    letter: str,
    *,
    bias_K: Tensor | None = None,
    is_rectified: bool = False,
    note: str = "",
) -> Step:
    """Make a step of x·W, or max(0, x·W + b), with its arithmetic. See `write_products`."""
    result_LK = x_LD @ weight_DK
    # The table has what the arithmetic ends in.
    result_LK = result_LK if bias_K is None else result_LK + bias_K
    result_LK = result_LK.relu() if is_rectified else result_LK
    arithmetic = write_products(
        names, x_LD, weight_DK, letter, bias_K=bias_K, is_rectified=is_rectified
    )
    return make_step(
        name, formula, named_matrix(names, result_LK, letter), note=note, arithmetic=arithmetic
    )


@dataclass(frozen=True, eq=False)
class Product:
    """The origin of queries, keys or values: rows with names, times a matrix."""

    names: tuple[str, ...]
    x_LD: Tensor
    weight_DK: Tensor

    def write(self, letter: str) -> Arithmetic:
        """Write out each sum of products."""
        return write_products(self.names, self.x_LD, self.weight_DK, letter)


def stage_steps(
    attention: AttentionByHand,
    *,
    products: Mapping[str, Product] | None = None,
    formulas: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
    printed: Mapping[str, Sequence[WorkedNumber]] | None = None,
) -> tuple[Step, ...]:
    """Write an attention down, stage by stage.

    Args:
        attention: the computed stages.
        products: the x and W of queries, keys and values, by the name of the step; their
            arithmetic is written out.
        formulas: other formulas than the usual ones, by the name of the step.
        notes: other notes, by the name of the step.
        printed: the numbers that a text prints, by the name of the step.
    """
    formulas = formulas or {}
    notes = notes or {}
    printed = printed or {}
    written = {
        # q, k and v; one matrix for all roles has no letter.
        name: product.write("x" if name.startswith("query =") else name[0])
        for name, product in (products or {}).items()
    }
    return tuple(
        replace(
            step,
            arithmetic=written.get(step.name, ()),
            lines=(*step.lines, *shown_lines(written.get(step.name, ()))),
            formula=formulas.get(step.name, step.formula),
            note=notes.get(step.name, step.note),
            printed=tuple(printed.get(step.name, ())),
        )
        # The order in which attention is computed.
        for step in (*_projected(attention), *_compared(attention), *_mixed(attention))
    )


def _projected(a: AttentionByHand) -> list[Step]:
    """Show queries, keys and values; those that are the same only once."""
    if a.query_LK is None or a.key_MK is None or a.value_ME is None:
        return []
    # The same object, not only equal numbers: then one table stands for all roles.
    if a.query_LK is a.key_MK is a.value_ME:
        return [make_step("query = key = value", "", named_matrix(a.query_names, a.query_LK, "x"))]
    query = make_step("query", "Q", named_matrix(a.query_names, a.query_LK, "q"))
    keys = named_matrix(a.key_names, a.key_MK, "k")
    if a.key_MK is a.value_ME:
        return [query, make_step("key = value", "K", keys)]
    value = make_step("value", "V", named_matrix(a.key_names, a.value_ME, "v"))
    return [query, make_step("key", "K", keys), value]


def _compared(a: AttentionByHand) -> list[Step]:
    """Show the way from scores to weights."""

    def by_keys(values_LM: Tensor, *more: str) -> NamedMatrix:
        return NamedMatrix(a.query_names, (*a.key_names, *more), values_LM)

    scores = by_keys(a.scores_LM)
    divisor = a.divisor_words or write_number(a.divisor)
    steps = [
        make_step("scores", "Q·Kᵀ", scores, note="Each query times each key."),
        make_step("scaled", f"scores ÷ {divisor}", by_keys(a.scaled_LM)),
    ]
    if a.mask_LM is not None:
        note = "−∞ for keys that a query may not attend to."
        steps.append(make_step("masked", "scaled + mask", by_keys(a.masked_LM), note=note))
    exponentials = by_keys(torch.cat([a.exponentials_LM, a.sums_L1], dim=-1), "sum")
    note = "Subtracting the largest changes no weight: it cancels in the division."
    weights = by_keys(a.weights_LM)
    return [
        *steps,
        make_step(
            "exponentials", f"exp({steps[-1].name} − largest of the row)", exponentials, note=note
        ),
        make_step("weights", "exponentials ÷ their sum", weights, note=_row_sums(a)),
    ]


def _row_sums(a: AttentionByHand) -> str:
    # All keys masked: the sum of no exponentials is 0.
    empty = [name for name, total in zip(a.query_names, a.sums_L1, strict=True) if total == 0]
    if not empty:
        return "Each row sums to 1."
    names = ", ".join(empty)
    return f"Each row sums to 1, but a row that may attend nowhere has weights 0: {names}."


def _mixed(a: AttentionByHand) -> list[Step]:
    """Show the weighted values and their sum; without known values in letters."""
    if a.value_ME is None or a.context_LE is None:
        note = "No values are given, so they stay letters: v(word) is the value of a word."
        lines = [
            f"context({name}) = {write_mixture(weights, a.key_names)}"
            for name, weights in zip(a.query_names, a.weights_LM.tolist(), strict=True)
        ]
        return [make_step("context", "weights · V", note=note, lines=lines)]
    columns = name_columns("v", a.value_ME.shape[-1])
    products = []
    for name, weights_M, total_E in zip(
        a.query_names, a.weights_LM, mix(a.weights_LM, a.value_ME), strict=True
    ):
        # Each product above the line, their sum below it.
        values_LX = torch.cat([weights_M[:, None] * a.value_ME, total_E[None]])
        products.append(NamedMatrix((*a.key_names, "sum"), columns, values_LX, f"for {name}"))
    added = "" if a.added_LE is None else "its own embedding as it is + "
    return [
        make_step("weights × values", "each value times its weight, and their sum", *products),
        make_step("context", f"{added}weights · V", named_matrix(a.query_names, a.context_LE, "c")),
    ]


def write_mixture(weights: Sequence[float], names: Sequence[str]) -> str:
    """Write a sum of weighted values whose numbers are unknown: ``0.5·v(a) + 0.5·v(b)``."""
    terms = [
        f"{write_number(weight)}·v({name})"
        for weight, name in zip(weights, names, strict=True)
        # Masked words leave the sum.
        if weight != 0
    ]
    return " + ".join(terms) or "0"
