"""Attention over short sentences, as training in bfloat16 on a processor needs it: in few calls.

PyTorch's fused kernel is slow there in bfloat16, so it would be given float32, in copies that
autograd makes and turns back one by one, and it goes through sentences and heads one after the
other. Here a copy into float32 also lays the heads side by side, for two batched products forward
and four back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["attend_short"]

COLUMNS_AT_ONCE = 16
"""What numbers of keys are filled up to multiples of: PyTorch's softmax takes ten times as long
over rows narrower than this."""


def attend_short(
    query_BHLK: Tensor,
    key_BHMK: Tensor,
    value_BHME: Tensor,
    mask: Tensor | None,
    factor: float,
) -> Tensor:
    """Compute the context, and its gradients when they are asked for.

    Products and softmax are in float32 at least, whatever the type of what comes in. A row that may
    attend nowhere attends everywhere: the caller puts zeros there.

    Args:
        query_BHLK: the queries.
        key_BHMK: the keys.
        value_BHME: the values.
        mask: True = may attend; broadcasts to (B, H, L, M).
        factor: what scores are multiplied by.

    Returns:
        ``context_BHLE`` in the type of the queries, the heads of a position side by side in memory.
    """
    context_BHLE: Tensor = _ShortAttention.apply(  # type: ignore[no-untyped-call]
        query_BHLK, key_BHMK, value_BHME, mask, factor
    )
    return context_BHLE


class _ShortAttention(torch.autograd.Function):
    r"""$C = PV$ where $P = \text{softmax}(fQK^T)$, and for the gradient $G$ of $C$ all others.

    $$\nabla V = P^T G, \quad S = P ∘ (GV^T - \text{rowsum}(P ∘ GV^T)), \quad
    \nabla Q = f S K, \quad \nabla K = f S^T Q$$
    """

    @staticmethod
    def forward(
        ctx: Any,
        query_BHLK: Tensor,
        key_BHMK: Tensor,
        value_BHME: Tensor,
        mask: Tensor | None,
        factor: float,
    ) -> Tensor:
        batch, heads, length, _ = query_BHLK.shape
        filled = -key_BHMK.shape[2] % COLUMNS_AT_ONCE
        query_NLK = _heads_apart(query_BHLK).mul_(factor)
        key_NMK, value_NME = _heads_apart(key_BHMK, filled), _heads_apart(value_BHME, filled)
        scores_NLM = torch.bmm(query_NLK, key_NMK.transpose(1, 2))
        if filled or mask is not None:
            scores_BHLM = scores_NLM.view(batch, heads, length, -1)
            scores_BHLM += _as_bias(mask, key_BHMK.shape[2], filled, like=scores_NLM)
        weights_NLM = torch.softmax(scores_NLM, dim=-1, out=scores_NLM)
        ctx.save_for_backward(query_NLK, key_NMK, value_NME, weights_NLM)
        ctx.factor, ctx.batch, ctx.filled, ctx.dtype = factor, batch, filled, query_BHLK.dtype
        return _heads_together(torch.bmm(weights_NLM, value_NME), batch, query_BHLK.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_BHLE: Tensor) -> tuple[Tensor | None, ...]:
        query_NLK, key_NMK, value_NME, weights_NLM = ctx.saved_tensors
        grad_NLE = _heads_apart(grad_BHLE)
        grad_value_NME = torch.bmm(weights_NLM.transpose(1, 2), grad_NLE)
        grad_weights_NLM = torch.bmm(grad_NLE, value_NME.transpose(1, 2))
        grad_scores_NLM = torch._softmax_backward_data(
            grad_weights_NLM, weights_NLM, -1, weights_NLM.dtype
        )
        grad_query_NLK = torch.bmm(grad_scores_NLM, key_NMK).mul_(ctx.factor)
        grad_key_NMK = torch.bmm(grad_scores_NLM.transpose(1, 2), query_NLK)
        width = key_NMK.shape[1] - ctx.filled
        return (
            _heads_together(grad_query_NLK, ctx.batch, ctx.dtype),
            _heads_together(grad_key_NMK[:, :width], ctx.batch, ctx.dtype),
            _heads_together(grad_value_NME[:, :width], ctx.batch, ctx.dtype),
            None,
            None,
        )


def _heads_apart(x_BHLK: Tensor, filled: int = 0) -> Tensor:
    """Lay each head's rows side by side, all heads of all sentences on one axis, in full width."""
    batch, heads, length, width = x_BHLK.shape
    dtype = torch.promote_types(x_BHLK.dtype, torch.float32)
    laid_BHLK = x_BHLK.new_empty(batch, heads, length + filled, width, dtype=dtype)
    laid_BHLK[:, :, :length] = x_BHLK
    laid_BHLK[:, :, length:] = 0
    return laid_BHLK.flatten(0, 1)


def _heads_together(x_NLK: Tensor, batch: int, dtype: torch.dtype) -> Tensor:
    """Lay all heads of a position side by side, and see them by head: ``x_BHLK``."""
    _, length, width = x_NLK.shape
    x_BHLK = x_NLK.view(batch, -1, length, width)
    laid_BLHK = x_NLK.new_empty(batch, length, x_BHLK.shape[1], width, dtype=dtype)
    return laid_BLHK.transpose(1, 2).copy_(x_BHLK)


def _as_bias(mask: Tensor | None, num_keys: int, filled: int, *, like: Tensor) -> Tensor:
    """Make 0 where a key may be attended, and the least number elsewhere."""
    if mask is None:
        mask = like.new_ones(num_keys, dtype=torch.bool)
    bias = like.new_full((*mask.shape[:-1], num_keys + filled), torch.finfo(like.dtype).min)
    bias[..., :num_keys].masked_fill_(mask, 0)
    return bias
