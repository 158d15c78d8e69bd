"""Matrix products in bfloat16 on a processor, brought to few shapes.

oneDNN, which computes them there, makes a kernel for every shape that it has not met: some
milliseconds, ten times what the product itself takes. Batches differ in their number of positions,
so nearly every product of a run would be new. Here their rows are cut or filled up to some few
numbers, and a kernel once made serves the whole run.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = [
    "fill_rows",
    "make_shapes_repeat",
    "multiply_by",
    "rows_at_once",
    "shapes_matter",
    "turned",
]

FEWEST_ROWS = 128
"""What numbers of rows are multiples of."""

WORTH_TURNING = 1 << 20
"""From how many numbers on, in the product, its transposed factor is turned by hand before."""

MOST_NUMBERS = 16
"""How many such multiples there may be, about, however many rows there are."""


def make_shapes_repeat(model: nn.Module) -> None:
    """Let every linear layer of a model compute in products of few shapes."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = _LinearOfFewShapes


def shapes_matter(tensor: Tensor) -> bool:
    """Whether its products are such that a new shape costs more than the product."""
    return tensor.dtype == torch.bfloat16 and tensor.device.type == "cpu"


def rows_at_once(num_rows: int, *, fewest: int = FEWEST_ROWS) -> int:
    """What the rows of a product are brought to multiples of: ``fewest``, doubled as needed."""
    multiple = fewest
    while multiple * MOST_NUMBERS < num_rows:
        multiple *= 2
    return multiple


def fill_rows(matrix_JC: Tensor, multiple: int) -> Tensor:
    """Add rows of zeros up to a multiple; the matrix itself where there are none to add."""
    missing = -len(matrix_JC) % multiple
    if not missing:
        return matrix_JC
    return torch.cat((matrix_JC, matrix_JC.new_zeros(missing, matrix_JC.shape[1])))


def multiply_by(x_JD: Tensor, weight_FD: Tensor, bias_F: Tensor | None) -> Tensor:
    """Compute $XW^T + b$, in products of few shapes where that matters."""
    if not shapes_matter(x_JD):
        return F.linear(x_JD, weight_FD, bias_F)
    product_JF: Tensor = _Product.apply(x_JD, weight_FD, bias_F)  # type: ignore[no-untyped-call]
    return product_JF


class _LinearOfFewShapes(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return multiply_by(x.flatten(0, -2), self.weight, self.bias).view(*x.shape[:-1], -1)


class _Product(torch.autograd.Function):
    """$XW^T + b$ and its gradients."""

    @staticmethod
    def forward(ctx: Any, x_JD: Tensor, weight_FD: Tensor, bias_F: Tensor | None) -> Tensor:
        ctx.save_for_backward(x_JD, weight_FD)
        ctx.has_bias = bias_F is not None
        y_JF = _multiply(x_JD, weight_FD.T)
        return y_JF if bias_F is None else y_JF.add_(bias_F)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_JF: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        x_JD, weight_FD = ctx.saved_tensors
        grad_JF = grad_JF.contiguous()
        grad_bias_F = grad_JF.sum(dim=0) if ctx.has_bias else None
        return _multiply(grad_JF, weight_FD), _multiply_over_rows(grad_JF, x_JD), grad_bias_F


def _multiply(x_JD: Tensor, matrix_DF: Tensor) -> Tensor:
    """Multiply ``x_JD @ matrix_DF``; some rows twice, so that their number is one of few."""
    num_rows = len(x_JD)
    at_once = rows_at_once(num_rows)
    if num_rows < at_once:
        return fill_rows(x_JD, at_once).mm(matrix_DF)[:num_rows]
    whole = num_rows - num_rows % at_once
    y_JF = x_JD.new_empty(num_rows, matrix_DF.shape[1])
    torch.mm(x_JD[:whole], matrix_DF, out=y_JF[:whole])
    if whole < num_rows:
        torch.mm(x_JD[-at_once:], matrix_DF, out=y_JF[-at_once:])
    return y_JF


def _multiply_over_rows(x_JF: Tensor, y_JD: Tensor) -> Tensor:
    """Multiply ``x_JF.T @ y_JD``; rows of zeros make their number one of few."""
    num_rows = len(x_JF)
    at_once = rows_at_once(num_rows)
    whole = num_rows - num_rows % at_once
    product_FD = _multiply_turned(x_JF[:whole], y_JD[:whole])
    if whole < num_rows:
        rest_RF, rest_RD = fill_rows(x_JF[whole:], at_once), fill_rows(y_JD[whole:], at_once)
        product_FD += rest_RF.T @ rest_RD
    return product_FD


def _multiply_turned(x_JF: Tensor, y_JD: Tensor) -> Tensor:
    """Multiply ``x_JF.T @ y_JD``; for a large product, turn the narrower factor before."""
    if x_JF.shape[1] * y_JD.shape[1] < WORTH_TURNING:
        return x_JF.T @ y_JD
    if x_JF.shape[1] <= y_JD.shape[1]:
        return turned(x_JF) @ y_JD
    return turned(turned(y_JD) @ x_JF)


def turned(matrix_JC: Tensor) -> Tensor:
    """Lay a matrix down transposed, on a processor block by block.

    There PyTorch's own copy of a whole matrix leaves the cache at every number.
    """
    if matrix_JC.device.type != "cpu":
        return matrix_JC.T.contiguous()
    turned_CJ = matrix_JC.new_empty(matrix_JC.shape[1], len(matrix_JC))
    for first in range(0, len(matrix_JC), FEWEST_ROWS):
        rows = slice(first, first + FEWEST_ROWS)
        turned_CJ[:, rows] = matrix_JC[rows].T
    return turned_CJ
