"""Gradients of the tables of a vocabulary, summed in float32 where they arise.

In bfloat16 the passes run on a copy of the weights. To a table that is tied, two lookups and the
loss each give a gradient, all of the table's size: in bfloat16, to be added up, and cast in the
end. Here each adds its own, the lookups their few rows, to the float32 gradient of the weights
themselves: no rounding on the way, and nothing of the table's size besides.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

__all__ = ["WideSum", "sum_lookups_wide"]


class WideSum:
    """The gradient of a parameter, as a sum that grows.

    Args:
        parameter: the float32 weights, not the copy that the passes run on.
    """

    def __init__(self, parameter: Tensor) -> None:
        self._parameter = parameter

    def add(self, grad_VD: Tensor, factor: float) -> None:
        """Add a gradient times a factor."""
        self._sum().add_(grad_VD, alpha=factor)

    def add_rows(self, rows_P: Tensor, grad_PD: Tensor) -> None:
        """Add a gradient of some rows, one after the other, in the order they are in."""
        self._sum().index_add_(0, rows_P, grad_PD.to(self._parameter.dtype))

    def _sum(self) -> Tensor:
        if self._parameter.grad is None:
            self._parameter.grad = torch.zeros_like(self._parameter)
        return self._parameter.grad


def sum_lookups_wide(working: nn.Module, model: nn.Module) -> None:
    """Let what is looked up in a copy's tables leave its gradient with the model's.

    Args:
        working: the copy, whose tables change.
        model: whose parameters get the gradients.
    """
    for copied, original in zip(working.modules(), model.modules(), strict=True):
        if type(copied) is nn.Embedding and type(original) is nn.Embedding:
            copied.__class__ = _WideTable
            copied.wide_sum = WideSum(original.weight)  # type: ignore[assignment]


class _WideTable(nn.Embedding):
    wide_sum: WideSum

    def forward(self, ids_BL: Tensor) -> Tensor:
        if not self.weight.requires_grad:
            return F.embedding(ids_BL, self.weight)
        found: Tensor = _Lookup.apply(self.weight, ids_BL, self.wide_sum)  # type: ignore[no-untyped-call]
        return found


class _Lookup(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weight_VD: Tensor, ids_BL: Tensor, wide_sum: WideSum) -> Tensor:
        ctx.ids_BL, ctx.wide_sum = ids_BL, wide_sum
        return F.embedding(ids_BL, weight_VD)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BLD: Tensor) -> tuple[None, None, None]:
        ctx.wide_sum.add_rows(ctx.ids_BL.flatten(), grad_BLD.flatten(0, 1))
        return None, None, None
