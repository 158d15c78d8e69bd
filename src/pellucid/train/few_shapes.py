"""Matrix products in bfloat16 on a processor, brought to few shapes.

oneDNN, which computes them there, makes a kernel for every shape that it has not met: some
milliseconds, ten times what the product itself takes. Batches differ in their number of positions,
so nearly every product of a run would be new. Here their rows are cut or filled up to some few
numbers, and a kernel once made serves the whole run.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = ["fill_rows", "make_shapes_repeat", "rows_at_once", "shapes_matter", "turned"]

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


def rows_at_once(num_rows: int) -> int:
    """What the rows of a product are brought to multiples of: a power of two."""
    multiple = FEWEST_ROWS
    while multiple * MOST_NUMBERS < num_rows:
        multiple *= 2
    return multiple


def fill_rows(matrix_NC: Tensor, multiple: int) -> Tensor:
    """Add rows of zeros up to a multiple; the matrix itself where there are none to add."""
    missing = -len(matrix_NC) % multiple
    if not missing:
        return matrix_NC
    return torch.cat((matrix_NC, matrix_NC.new_zeros(missing, matrix_NC.shape[1])))


class _LinearOfFewShapes(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        product: Tensor = _Product.apply(x.flatten(0, -2), self.weight, self.bias)  # type: ignore[no-untyped-call]
        return product.view(*x.shape[:-1], len(self.weight))


class _Product(torch.autograd.Function):
    """$XW^T + b$ and its gradients."""

    @staticmethod
    def forward(ctx: Any, x_ND: Tensor, weight_FD: Tensor, bias_F: Tensor | None) -> Tensor:
        ctx.save_for_backward(x_ND, weight_FD)
        ctx.has_bias = bias_F is not None
        y_NF = _multiply(x_ND, weight_FD.T)
        return y_NF if bias_F is None else y_NF.add_(bias_F)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_NF: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        x_ND, weight_FD = ctx.saved_tensors
        grad_NF = grad_NF.contiguous()
        grad_bias_F = grad_NF.sum(dim=0) if ctx.has_bias else None
        return _multiply(grad_NF, weight_FD), _multiply_over_rows(grad_NF, x_ND), grad_bias_F


def _multiply(x_ND: Tensor, matrix_DF: Tensor) -> Tensor:
    """Multiply ``x_ND @ matrix_DF``; some rows twice, so that their number is one of few."""
    num_rows = len(x_ND)
    at_once = rows_at_once(num_rows)
    if num_rows < at_once:
        return fill_rows(x_ND, at_once).mm(matrix_DF)[:num_rows]
    whole = num_rows - num_rows % at_once
    y_NF = x_ND.new_empty(num_rows, matrix_DF.shape[1])
    torch.mm(x_ND[:whole], matrix_DF, out=y_NF[:whole])
    if whole < num_rows:
        torch.mm(x_ND[-at_once:], matrix_DF, out=y_NF[-at_once:])
    return y_NF


def _multiply_over_rows(x_NF: Tensor, y_ND: Tensor) -> Tensor:
    """Multiply ``x_NF.T @ y_ND``; rows of zeros make their number one of few."""
    num_rows = len(x_NF)
    at_once = rows_at_once(num_rows)
    whole = num_rows - num_rows % at_once
    product_FD = _multiply_turned(x_NF[:whole], y_ND[:whole])
    if whole < num_rows:
        rest_RF, rest_RD = fill_rows(x_NF[whole:], at_once), fill_rows(y_ND[whole:], at_once)
        product_FD += rest_RF.T @ rest_RD
    return product_FD


def _multiply_turned(x_NF: Tensor, y_ND: Tensor) -> Tensor:
    """Multiply ``x_NF.T @ y_ND``; for a large product, turn the narrower factor before."""
    if x_NF.shape[1] * y_ND.shape[1] < WORTH_TURNING:
        return x_NF.T @ y_ND
    if x_NF.shape[1] <= y_ND.shape[1]:
        return turned(x_NF) @ y_ND
    return turned(turned(y_ND) @ x_NF)


def turned(matrix_NC: Tensor) -> Tensor:
    """Lay a matrix down transposed, on a processor block by block.

    There PyTorch's own copy of a whole matrix leaves the cache at every number.
    """
    if matrix_NC.device.type != "cpu":
        return matrix_NC.T.contiguous()
    turned_CN = matrix_NC.new_empty(matrix_NC.shape[1], len(matrix_NC))
    for first in range(0, len(matrix_NC), FEWEST_ROWS):
        rows = slice(first, first + FEWEST_ROWS)
        turned_CN[:, rows] = matrix_NC[rows].T
    return turned_CN
