"""Matrix products in bfloat16 on a processor, limited to a few shapes.

oneDNN, which computes them there, compiles a kernel for every shape that it has not seen. That
takes some milliseconds, ten times as long as the product. Batches differ in their number of
positions, so nearly every product of a run would have a new shape. Here their rows are cut or
padded to a few different numbers, so that the same kernels serve the whole run.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

FEWEST_ROWS = 128
"""Numbers of rows are multiples of this."""

MIN_SIZE_TO_TRANSPOSE = 1 << 20
"""The size of a product from which its transposed factor is copied before."""

MAX_MULTIPLES = 16
"""About how many different numbers of rows there may be, however long batches are."""


def make_shapes_repeat(model: nn.Module) -> None:
    """Make every linear layer of a model compute in products of few shapes."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = _LinearOfFewShapes


def shapes_matter(tensor: Tensor) -> bool:
    """Tell whether a new shape costs more than the product: in bfloat16 on a processor."""
    return tensor.dtype == torch.bfloat16 and tensor.device.type == "cpu"


def row_multiple(num_rows: int, *, fewest: int = FEWEST_ROWS) -> int:
    """Choose what the rows of a product are made a multiple of: ``fewest``, doubled as needed."""
    multiple = fewest
    while multiple * MAX_MULTIPLES < num_rows:
        multiple *= 2
    return multiple


def pad_rows(matrix_JC: Tensor, multiple: int) -> Tensor:
    """Add rows of zeros up to a multiple; without any to add, return the matrix itself."""
    missing = -len(matrix_JC) % multiple
    if not missing:
        return matrix_JC
    return torch.cat((matrix_JC, matrix_JC.new_zeros(missing, matrix_JC.shape[1])))


def linear_in_few_shapes(x_JD: Tensor, weight_FD: Tensor, bias_F: Tensor | None) -> Tensor:
    """Compute $XW^T + b$, in products of few shapes if shapes matter."""
    if not shapes_matter(x_JD):
        return F.linear(x_JD, weight_FD, bias_F)
    product_JF: Tensor = _Product.apply(x_JD, weight_FD, bias_F)  # type: ignore[no-untyped-call]
    return product_JF


class _LinearOfFewShapes(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return linear_in_few_shapes(x.flatten(0, -2), self.weight, self.bias).view(
            *x.shape[:-1], -1
        )


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
    """Multiply ``x_JD @ matrix_DF``, computing some rows twice to have one of few shapes."""
    num_rows = len(x_JD)
    multiple = row_multiple(num_rows)
    if num_rows < multiple:
        return pad_rows(x_JD, multiple).mm(matrix_DF)[:num_rows]
    whole = num_rows - num_rows % multiple
    y_JF = x_JD.new_empty(num_rows, matrix_DF.shape[1])
    torch.mm(x_JD[:whole], matrix_DF, out=y_JF[:whole])
    if whole < num_rows:
        torch.mm(x_JD[-multiple:], matrix_DF, out=y_JF[-multiple:])
    return y_JF


def _multiply_over_rows(x_JF: Tensor, y_JD: Tensor) -> Tensor:
    """Multiply ``x_JF.T @ y_JD``, adding rows of zeros to have one of few shapes."""
    num_rows = len(x_JF)
    multiple = row_multiple(num_rows)
    whole = num_rows - num_rows % multiple
    product_FD = _multiply_transposed(x_JF[:whole], y_JD[:whole])
    if whole < num_rows:
        rest_RF, rest_RD = pad_rows(x_JF[whole:], multiple), pad_rows(y_JD[whole:], multiple)
        product_FD += rest_RF.T @ rest_RD
    return product_FD


def _multiply_transposed(x_JF: Tensor, y_JD: Tensor) -> Tensor:
    """Multiply ``x_JF.T @ y_JD``; for a large product, transpose the narrower factor first."""
    if x_JF.shape[1] * y_JD.shape[1] < MIN_SIZE_TO_TRANSPOSE:
        return x_JF.T @ y_JD
    if x_JF.shape[1] <= y_JD.shape[1]:
        return transposed_copy(x_JF) @ y_JD
    return transposed_copy(transposed_copy(y_JD) @ x_JF)


def transposed_copy(matrix_JC: Tensor) -> Tensor:
    """Copy a matrix transposed, on a processor block by block.

    There PyTorch's own copy of a whole matrix misses the cache at every number.
    """
    if matrix_JC.device.type != "cpu":
        return matrix_JC.T.contiguous()
    transposed_CJ = matrix_JC.new_empty(matrix_JC.shape[1], len(matrix_JC))
    for first in range(0, len(matrix_JC), FEWEST_ROWS):
        rows = slice(first, first + FEWEST_ROWS)
        transposed_CJ[:, rows] = matrix_JC[rows].T
    return transposed_CJ
