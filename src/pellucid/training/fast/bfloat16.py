"""Passes in bfloat16 on a processor: products of few shapes, and gradients of tables in float32.

oneDNN, which computes products there, compiles a kernel for every shape that it has not seen. That
takes some milliseconds, ten times as long as the product. Batches differ in their number of
positions, so nearly every product of a run would have a new shape. Here their rows are cut or
padded to a few different numbers, so that the same kernels serve the whole run.

A table that is tied gets a gradient from two lookups and from the loss; autograd would make each in
bfloat16, of the table's size, add them up and cast the sum. Here each is added directly to the
float32 gradient of the model's own weights, the lookups only their few rows. Nothing is rounded in
between, and no memory of the table's size is needed.
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
            # In place, so that parameters keep their names.
            module.__class__ = _LinearOfFewShapes


def shapes_matter(tensor: Tensor) -> bool:
    """Tell whether a new shape costs more than the product: in bfloat16 on a processor."""
    return tensor.dtype == torch.bfloat16 and tensor.device.type == "cpu"


def row_multiple(num_rows: int) -> int:
    """Choose the multiple that the rows of a product are brought to."""
    multiple = FEWEST_ROWS
    while multiple * MAX_MULTIPLES < num_rows:
        multiple *= 2
    return multiple


def pad_to_multiple(matrix_JC: Tensor, multiple: int) -> Tensor:
    """Add rows of zeros up to a multiple; without any to add, return the matrix itself."""
    missing = -len(matrix_JC) % multiple
    if not missing:
        return matrix_JC
    return torch.cat((matrix_JC, matrix_JC.new_zeros(missing, matrix_JC.shape[1])))


class _LinearOfFewShapes(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        product_JF: Tensor = _Product.apply(x.flatten(0, -2), self.weight, self.bias)  # type: ignore[no-untyped-call]
        return product_JF.view(*x.shape[:-1], -1)


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
        return pad_to_multiple(x_JD, multiple).mm(matrix_DF)[:num_rows]
    whole = num_rows - num_rows % multiple
    y_JF = x_JD.new_empty(num_rows, matrix_DF.shape[1])
    torch.mm(x_JD[:whole], matrix_DF, out=y_JF[:whole])
    if whole < num_rows:
        # The last rows overlap those before: some computed twice cost less than a new shape.
        torch.mm(x_JD[-multiple:], matrix_DF, out=y_JF[-multiple:])
    return y_JF


def _multiply_over_rows(x_JF: Tensor, y_JD: Tensor) -> Tensor:
    """Multiply ``x_JF.T @ y_JD``, adding rows of zeros to have one of few shapes."""
    num_rows = len(x_JF)
    multiple = row_multiple(num_rows)
    whole = num_rows - num_rows % multiple
    product_FD = _multiply_transposed(x_JF[:whole], y_JD[:whole])
    if whole < num_rows:
        rest_RF = pad_to_multiple(x_JF[whole:], multiple)
        rest_RD = pad_to_multiple(y_JD[whole:], multiple)
        # Rows are summed here, so none may count twice; zeros add nothing.
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


class Float32Gradient:
    """The gradient of a parameter, which others add to.

    Args:
        parameter: the float32 weights, not the copy that the passes run on.
    """

    def __init__(self, parameter: Tensor) -> None:
        self._parameter = parameter

    def add(self, grad_VD: Tensor, factor: float) -> None:
        """Add a gradient times a factor."""
        self._sum().add_(grad_VD, alpha=factor)

    def add_rows(self, rows_P: Tensor, grad_PD: Tensor) -> None:
        """Add the gradients of some rows, in the order given."""
        self._sum().index_add_(0, rows_P, grad_PD.to(self._parameter.dtype))

    def _sum(self) -> Tensor:
        if self._parameter.grad is None:
            self._parameter.grad = torch.zeros_like(self._parameter)
        return self._parameter.grad


def sum_lookups_in_float32(working: nn.Module, model: nn.Module) -> None:
    """Make lookups in a copy's tables add their gradient to the model's parameters.

    Args:
        working: the copy, whose tables change.
        model: gets the gradients.
    """
    for copied, original in zip(working.modules(), model.modules(), strict=True):
        if type(copied) is nn.Embedding and type(original) is nn.Embedding:
            copied.__class__ = _EmbeddingWithFloat32Gradient
            # The copy's own gradient would be in bfloat16 and of the table's size (decision 0010).
            copied.gradient = Float32Gradient(original.weight)  # type: ignore[assignment]


class _EmbeddingWithFloat32Gradient(nn.Embedding):
    gradient: Float32Gradient

    def forward(self, ids_BL: Tensor) -> Tensor:
        if not self.weight.requires_grad:
            return F.embedding(ids_BL, self.weight)
        found: Tensor = _Lookup.apply(self.weight, ids_BL, self.gradient)  # type: ignore[no-untyped-call]
        return found


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight_VD: Tensor, ids_BL: Tensor, gradient: Float32Gradient) -> Tensor:
        ctx.ids_BL = ids_BL
        ctx.gradient = gradient
        return F.embedding(ids_BL, weight_VD)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BLD: Tensor) -> tuple[None, None, None]:
        ctx.gradient.add_rows(ctx.ids_BL.flatten(), grad_BLD.flatten(0, 1))
        return None, None, None
