"""Arithmetic written out: products with a matrix, sums, mean and variance, term by term.

Each function gives one group of lines for each row, so that a row can be followed by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

from pellucid.by_hand.sheet import Step, make_step, table, write_number

Arithmetic = tuple[tuple[str, ...], ...]

_MOST_LINES = 12
_FIRST_ROW = "The other rows: --row N."


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
            products, total = f"{products} + {bracket(bias)}", total + bias
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


def shown_lines(arithmetic: Arithmetic) -> tuple[str, ...]:
    """Choose what a whole example shows: all lines if they are few, otherwise the first row's."""
    if not arithmetic:
        return ()
    if sum(map(len, arithmetic)) <= _MOST_LINES:
        return tuple(line for row in arithmetic for line in row)
    first = arithmetic[0]
    return (*first, _FIRST_ROW) if len(arithmetic) > 1 else first


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
    result_LK = result_LK if bias_K is None else result_LK + bias_K
    result_LK = result_LK.relu() if is_rectified else result_LK
    arithmetic = write_products(
        names, x_LD, weight_DK, letter, bias_K=bias_K, is_rectified=is_rectified
    )
    return make_step(
        name,
        formula,
        table(names, result_LK, letter),
        note=note,
        lines=shown_lines(arithmetic),
        arithmetic=arithmetic,
    )
