"""Gradients of embedding tables, added up in float32 as they are computed.

In bfloat16 the passes run on a copy of the weights. A table that is tied gets a gradient from two
lookups and from the loss; autograd would make each in bfloat16, of the table's size, add them up
and cast the sum. Here each is added directly to the float32 gradient of the model's own weights,
the lookups only their few rows. Nothing is rounded in between, and no memory of the table's size is
needed.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


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
        ctx.ids_BL, ctx.gradient = ids_BL, gradient
        return F.embedding(ids_BL, weight_VD)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BLD: Tensor) -> tuple[None, None, None]:
        ctx.gradient.add_rows(ctx.ids_BL.flatten(), grad_BLD.flatten(0, 1))
        return None, None, None
