"""Label-smoothed cross-entropy over the vocabulary, without ever holding all the logits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["smoothed_cross_entropy"]

ROWS_PER_CHUNK = 256
"""Rows whose logits are held at once: few enough to stay in the processor's cache."""


def smoothed_cross_entropy(
    states_PD: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_P: Tensor,
    *,
    smoothing: float,
) -> tuple[Tensor, Tensor]:
    r"""Project to the vocabulary, take the softmax, and compare with the true tokens.

    $$\ell = -\sum_v q_v \log p_v, \quad q_v = (1 - ε)[v = y] + ε/|V|$$

    With ε = 0 it is exactly the mean of $-\log p(y)$.

    Args:
        states_PD: one row for each real target position (padding left out).
        weight_VD: the output projection.
        bias_V: its bias, or None.
        target_P: the true token of each row.
        smoothing: ε.

    Returns:
        The mean smoothed loss, which has gradients, and the mean of −log p(y) in nats, which
        has none.

    Source:
        Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4.
    """
    smoothed, plain = _ProjectedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        states_PD, weight_VD, bias_V, target_P, smoothing
    )
    return smoothed, plain


class _ProjectedCrossEntropy(torch.autograd.Function):
    """Computes loss and gradients together, chunk by chunk, in the forward pass."""

    @staticmethod
    def forward(
        ctx: Any,
        states_PD: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_P: Tensor,
        smoothing: float,
    ) -> tuple[Tensor, Tensor]:
        num_rows, vocabulary = states_PD.shape[0], weight_VD.shape[0]
        grad_states_PD = torch.empty_like(states_PD)
        grad_weight_VD = torch.zeros_like(weight_VD)
        grad_bias_V = None if bias_V is None else torch.zeros_like(bias_V)
        smoothed = plain = states_PD.new_zeros(())
        for start in range(0, num_rows, ROWS_PER_CHUNK):
            rows = slice(start, start + ROWS_PER_CHUNK)
            chunk_CD, chunk_target_C1 = states_PD[rows], target_P[rows, None]
            logits_CV = chunk_CD @ weight_VD.T
            if bias_V is not None:
                logits_CV += bias_V
            log_sum_C1 = logits_CV.logsumexp(dim=1, keepdim=True)
            true_C1 = logits_CV.gather(1, chunk_target_C1)
            plain_C1 = log_sum_C1 - true_C1
            uniform_C1 = log_sum_C1 - logits_CV.mean(dim=1, keepdim=True)
            plain = plain + plain_C1.sum()
            smoothed = smoothed + ((1 - smoothing) * plain_C1 + smoothing * uniform_C1).sum()
            grad_CV = logits_CV.sub_(log_sum_C1).exp_()
            grad_CV -= smoothing / vocabulary
            grad_CV.scatter_add_(1, chunk_target_C1, torch.full_like(true_C1, smoothing - 1))
            grad_CV /= num_rows
            torch.mm(grad_CV, weight_VD, out=grad_states_PD[rows])
            grad_weight_VD.addmm_(grad_CV.T, chunk_CD)
            if grad_bias_V is not None:
                grad_bias_V += grad_CV.sum(dim=0)
        ctx.save_for_backward(grad_states_PD, grad_weight_VD, grad_bias_V)
        plain = plain / num_rows
        ctx.mark_non_differentiable(plain)
        return smoothed / num_rows, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_smoothed: Tensor, _grad_plain: Tensor) -> tuple[Any, ...]:
        grad_states_PD, grad_weight_VD, grad_bias_V = ctx.saved_tensors
        return (
            grad_states_PD * grad_smoothed,
            grad_weight_VD * grad_smoothed,
            None if grad_bias_V is None else grad_bias_V * grad_smoothed,
            None,
            None,
        )
