"""The loss on a GPU: in chunks, with padding that counts nothing, and without asking the device."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from pellucid.training.fast.loss import add_r_drop_gradient

NUMBERS_PER_CHUNK = 1 << 26
"""The most logits that are held at once: rows enough for large products, 256 MiB in float32."""


def masked_cross_entropy(
    states_PD: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_P: Tensor,
    real_P: Tensor,
    *,
    smoothing: float,
    r_drop: float = 0.0,
    most_numbers: int = NUMBERS_PER_CHUNK,
) -> tuple[Tensor, Tensor]:
    """Compute the loss of `smoothed_cross_entropy`, with rows of padding between the real ones.

    Which rows are padding is data here, so that the shapes depend on nothing but the batch's own.

    Args:
        states_PD: one row for each target position.
        weight_VD: the output projection.
        bias_V: its bias, or None.
        target_P: the true token of each row; any token for padding.
        real_P: False for padding.
        smoothing: ε.
        r_drop: α, for rows that alternate between two passes; 0 for none.
        most_numbers: the most logits to hold at once.

    Returns:
        The mean smoothed loss, which has gradients, and the mean of −log p(y) in nats, without.
    """
    rows = max(2, most_numbers // len(weight_VD) // 2 * 2)  # R-Drop's rows come in pairs.
    smoothed, plain = _MaskedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        states_PD, weight_VD, bias_V, target_P, real_P, smoothing, r_drop, rows
    )
    return smoothed, plain


class _MaskedCrossEntropy(torch.autograd.Function):
    """Computes loss and gradients together, chunk by chunk, in the forward pass.

    A chunk's log-probabilities, in float32 or wider, become its gradient in place. The part of the
    gradient that all tokens share is added at the end, as products of sums.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states_PD: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_P: Tensor,
        real_P: Tensor,
        smoothing: float,
        r_drop: float,
        rows_per_chunk: int,
    ) -> tuple[Tensor, Tensor]:
        wide = torch.promote_types(states_PD.dtype, torch.float32)
        counts_P = real_P.to(wide)
        # A batch without a token would otherwise divide by 0.
        number = counts_P.sum().clamp(min=1)
        # Rows of zeros add nothing to the weights' gradient, so the logits need no mask.
        kept_PD = states_PD * real_P[:, None]
        grad_states_PD = torch.empty_like(states_PD)
        grad_weight_VD = torch.zeros_like(weight_VD, dtype=wide)
        grad_bias_V = None if bias_V is None else torch.zeros_like(bias_V, dtype=wide)
        nll_P = counts_P.new_empty(len(counts_P))
        true_logit_P = torch.empty_like(nll_P)
        divergence = counts_P.new_zeros(())
        for start in range(0, len(states_PD), rows_per_chunk):
            rows = slice(start, start + rows_per_chunk)
            target_C1 = target_P[rows, None]
            logits_CV = F.linear(states_PD[rows], weight_VD, bias_V)
            true_logit_P[rows] = logits_CV.gather(1, target_C1)[:, 0].to(wide)
            wide_CV = torch.log_softmax(logits_CV, dim=1, dtype=wide)
            nll_P[rows] = -wide_CV.gather(1, target_C1)[:, 0]
            wide_CV.exp_()
            if r_drop:
                pairs_C = add_r_drop_gradient(wide_CV, r_drop / 2)
                divergence += (pairs_C[:, 0] * counts_P[rows][::2]).sum()
            # Scattered, not added by index: each place occurs once, so that its order is no matter.
            wide_CV.scatter_(1, target_C1, wide_CV.gather(1, target_C1) - (1 - smoothing))
            grad_CV = wide_CV.to(states_PD.dtype)
            torch.mm(grad_CV, weight_VD, out=grad_states_PD[rows])
            grad_weight_VD += grad_CV.T @ kept_PD[rows]
            if grad_bias_V is not None:
                grad_bias_V += counts_P[rows] @ wide_CV
        share = smoothing / len(weight_VD)
        grad_states_PD.sub_(weight_VD.sum(dim=0), alpha=share).mul_(real_P[:, None])
        grad_weight_VD.sub_(kept_PD.sum(dim=0, dtype=wide), alpha=share)
        mean_P = states_PD.to(wide) @ weight_VD.mean(dim=0, dtype=wide)
        if bias_V is not None and grad_bias_V is not None:
            grad_bias_V -= share * number
            mean_P = mean_P + bias_V.mean(dtype=wide)
        uniform_P = nll_P + true_logit_P - mean_P
        smoothed = (((1 - smoothing) * nll_P + smoothing * uniform_P) * counts_P).sum() / number
        ctx.save_for_backward(grad_states_PD, grad_weight_VD, grad_bias_V, number)
        plain = (nll_P * counts_P).sum() / number
        ctx.mark_non_differentiable(plain)
        return smoothed + r_drop / 2 * divergence / number, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_smoothed: Tensor, _grad_plain: Tensor) -> tuple[Any, ...]:
        *gradients, number = ctx.saved_tensors
        factor = grad_smoothed / number
        found = [None if one is None else one * factor.to(one.dtype) for one in gradients]
        return (*found, *[None] * 5)
