"""Label-smoothed cross-entropy over the vocabulary that never holds all logits at once."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from pellucid.training.fast.bfloat16 import (
    FEWEST_ROWS,
    Float32Gradient,
    pad_to_multiple,
    shapes_matter,
    transposed_copy,
)

ROWS_PER_CHUNK = 512
"""The most rows whose logits are held at once: few enough for the processor's cache."""

NUMBERS_PER_CHUNK = 1 << 23
"""The most logits that are held at once, for large vocabularies."""


def chunk_rows(vocabulary: int, *, multiple: int = 1) -> int:
    """Compute the number of rows whose logits are held at once.

    Args:
        vocabulary: the logits of a row.
        multiple: the result is a multiple of this, however large the vocabulary.
    """
    rows = min(ROWS_PER_CHUNK, NUMBERS_PER_CHUNK // vocabulary)
    return max(multiple, rows - rows % multiple)


def smoothed_cross_entropy(
    states_PD: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    target_P: Tensor,
    *,
    smoothing: float,
    r_drop: float = 0.0,
    weight_gradient: Float32Gradient | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Project to the vocabulary, take the softmax, and compare with the true tokens.

    $$\ell = -\sum_v q_v \log p_v, \quad q_v = (1 - ε)[v = y] + ε/|V|$$

    With ε = 0 it is exactly the mean of $-\log p(y)$. With R-Drop rows 2i and 2i + 1 are p and q,
    two passes of one token with different dropout. Every pair adds
    $\frac{α}{4}(KL(p\|q) + KL(q\|p))$ to the mean over pairs: half of what its paper minimizes.

    Args:
        states_PD: one row for each real target position (padding left out).
        weight_VD: the output projection.
        bias_V: its bias, or None.
        target_P: the true token of each row.
        smoothing: ε.
        r_drop: α; 0 for none.
        weight_gradient: gets the projection's gradient, instead of autograd.

    Returns:
        The mean smoothed loss, which has gradients, and the mean of −log p(y) in nats, without.

    Source:
        Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4. Liang et al. 2021,
        "R-Drop: Regularized Dropout for Neural Networks", equation 4.
    """
    smoothed, plain = _ProjectedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        states_PD, weight_VD, bias_V, target_P, smoothing, r_drop, weight_gradient
    )
    return smoothed, plain


def interleave(rows_P: Tensor) -> Tensor:
    """Reorder the rows of two passes, one after the other, so that they alternate."""
    return torch.stack(rows_P.chunk(2), dim=1).flatten(0, 1)


class _ProjectedCrossEntropy(torch.autograd.Function):
    r"""Computes loss and gradients together, chunk by chunk, in the forward pass.

    A chunk's logits become its probabilities in place, and nothing else of that size is touched: to
    the products $PW$ and $P^T X$ the loss and its gradients only add rows and rank-one terms. No
    product has a transposed factor, which is slow on processors in bfloat16.

    $$\nabla X = \frac{1}{n}\left(PW - (1-ε)W_y - \frac{ε}{|V|}\mathbf{1}^T W\right), \quad
    \nabla W = \frac{1}{n}\left(P^T X - (1-ε)Y^T X - \frac{ε}{|V|}\mathbf{1}\mathbf{1}^T X\right)$$
    """

    @staticmethod
    def forward(
        ctx: Any,
        states_PD: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        target_P: Tensor,
        smoothing: float,
        r_drop: float,
        weight_gradient: Float32Gradient | None,
    ) -> tuple[Tensor, Tensor]:
        num_rows = states_PD.shape[0]
        vocabulary = weight_VD.shape[0]
        sums = torch.promote_types(states_PD.dtype, torch.float32)
        grad_states_PD = torch.empty_like(states_PD)
        # Once, here: in bfloat16 on a processor, products with a transposed factor are slow.
        weight_DV = transposed_copy(weight_VD)
        grad_weight_DV = torch.zeros_like(weight_DV, dtype=sums)
        part_DV = None if weight_DV.dtype == sums else torch.empty_like(weight_DV)
        grad_bias_V = None if bias_V is None else torch.zeros_like(bias_V, dtype=sums)
        true_logit_P = torch.empty(num_rows, dtype=sums, device=states_PD.device)
        nll_P = torch.empty_like(true_logit_P)
        divergence = torch.zeros((), dtype=sums, device=states_PD.device)  # For R-Drop.
        # With R-Drop both passes of a token must be in one chunk.
        multiple = FEWEST_ROWS if shapes_matter(states_PD) else 2 if r_drop else 1
        chunk = chunk_rows(vocabulary, multiple=multiple)
        buffer_CV = states_PD.new_empty(min(chunk, num_rows + -num_rows % multiple), vocabulary)
        for start in range(0, num_rows, chunk):
            rows = slice(start, min(start + chunk, num_rows))
            chunk_target_C1 = target_P[rows, None]
            real = len(chunk_target_C1)
            chunk_CD = pad_to_multiple(states_PD[rows], multiple)
            logits_CV = buffer_CV[: len(chunk_CD)]
            torch.mm(chunk_CD, weight_DV, out=logits_CV)
            if bias_V is not None:
                logits_CV += bias_V
            true_logit_P[rows] = logits_CV[:real].gather(1, chunk_target_C1)[:, 0]
            # In place: from here on the logits are gone.
            softmax_CV = torch.softmax(logits_CV, dim=1, out=logits_CV)
            nll_P[rows] = -softmax_CV[:real].gather(1, chunk_target_C1)[:, 0].to(sums).log()
            if r_drop:
                divergence += add_r_drop_gradient(softmax_CV[:real], r_drop / 2).sum()
            _multiply_into(grad_states_PD[rows], softmax_CV, weight_VD)
            _add_product(grad_weight_DV, chunk_CD.T.contiguous(), softmax_CV, part_DV)
            if grad_bias_V is not None:
                grad_bias_V += softmax_CV[:real].sum(dim=0, dtype=sums)
        grad_weight_VD = transposed_copy(grad_weight_DV)
        _recompute_underflow(nll_P, true_logit_P, states_PD, weight_VD, bias_V)
        # The mean of all logits of a row: without a pass over them, from the mean of the weights.
        mean_P = states_PD.to(sums) @ weight_VD.mean(dim=0, dtype=sums)
        if bias_V is not None:
            mean_P = mean_P + bias_V.mean(dtype=sums)
        uniform_P = nll_P + true_logit_P - mean_P
        smoothed = ((1 - smoothing) * nll_P + smoothing * uniform_P).mean()
        smoothed = smoothed + r_drop / 2 * divergence / num_rows
        _subtract_targets(
            grad_states_PD, grad_weight_VD, grad_bias_V, states_PD, weight_VD, target_P, smoothing
        )
        ctx.save_for_backward(grad_states_PD, grad_weight_VD, grad_bias_V)
        ctx.num_rows = num_rows
        ctx.weight_gradient = weight_gradient
        plain = nll_P.mean()
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_smoothed: Tensor, _grad_plain: Tensor) -> tuple[Any, ...]:
        grad_states_PD, grad_weight_VD, grad_bias_V = ctx.saved_tensors
        factor = grad_smoothed / ctx.num_rows
        if ctx.weight_gradient is None:
            grad_weight_VD = grad_weight_VD * factor
        else:
            ctx.weight_gradient.add(grad_weight_VD, factor.item())
            # It is in the float32 gradient of the model's own weights now.
            grad_weight_VD = None
        return (
            grad_states_PD * factor.to(grad_states_PD.dtype),
            grad_weight_VD,
            None if grad_bias_V is None else grad_bias_V * factor,
            *[None] * 4,
        )


def add_r_drop_gradient(softmax_CV: Tensor, half_alpha: float) -> Tensor:
    r"""Add the gradient of R-Drop's divergences by each row's logits to its probabilities.

    The gradient of $KL(p\|q) + KL(q\|p)$ by the logits of p is
    $p(\log\frac{p}{q} - KL(p\|q)) + p - q$.

    Args:
        softmax_CV: p and q alternate; sums are rounded to its type.
        half_alpha: α / 2.

    Returns:
        The sum of both divergences of each pair, as a column.
    """
    wide = torch.promote_types(softmax_CV.dtype, torch.float32)
    p_CV = softmax_CV[::2].to(wide)
    q_CV = softmax_CV[1::2].to(wide)
    # 0 · log 0 counts as 0, but would be computed as not a number.
    least = torch.finfo(wide).tiny
    ratio_CV = p_CV.clamp(min=least).log() - q_CV.clamp(min=least).log()
    p_divergence_C1 = (p_CV * ratio_CV).sum(dim=1, keepdim=True)
    q_divergence_C1 = -(q_CV * ratio_CV).sum(dim=1, keepdim=True)
    p_grad_CV = p_CV * (ratio_CV - p_divergence_C1) + p_CV - q_CV
    q_grad_CV = -q_CV * (ratio_CV + q_divergence_C1) + q_CV - p_CV
    softmax_CV[::2] = (p_CV + half_alpha * p_grad_CV).to(softmax_CV.dtype)
    softmax_CV[1::2] = (q_CV + half_alpha * q_grad_CV).to(softmax_CV.dtype)
    return p_divergence_C1 + q_divergence_C1


def _multiply_into(product_CD: Tensor, left_CV: Tensor, right_VD: Tensor) -> None:
    """Write a product into a tensor without the padding rows of its left factor."""
    if len(product_CD) == len(left_CV):
        torch.mm(left_CV, right_VD, out=product_CD)
    else:
        product_CD.copy_((left_CV @ right_VD)[: len(product_CD)])


def _add_product(
    total_DV: Tensor, left_DC: Tensor, right_CV: Tensor, part_DV: Tensor | None
) -> None:
    """Add a product to a sum, which is float32 even if the factors and ``part_DV`` are narrower."""
    if part_DV is None:
        total_DV.addmm_(left_DC, right_CV)
    else:
        total_DV += torch.mm(left_DC, right_CV, out=part_DV)


def _recompute_underflow(
    nll_P: Tensor,
    true_logit_P: Tensor,
    states_PD: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
) -> None:
    """Compute −log p(y) again for rows whose p(y) was too small for a float.

    A device would have to be waited for to find them: see `masked_cross_entropy`.
    """
    lost = (nll_P > -math.log(torch.finfo(nll_P.dtype).tiny)).nonzero()[:, 0]
    for rows in torch.split(lost, chunk_rows(len(weight_VD))):
        logits_CV = F.linear(states_PD[rows], weight_VD, bias_V).to(nll_P.dtype)
        nll_P[rows] = logits_CV.logsumexp(dim=1) - true_logit_P[rows]


def _subtract_targets(
    grad_states_PD: Tensor,
    grad_weight_VD: Tensor,
    grad_bias_V: Tensor | None,
    states_PD: Tensor,
    weight_VD: Tensor,
    target_P: Tensor,
    smoothing: float,
) -> None:
    """Subtract the smoothed targets' part from gradients that hold the softmax's part."""
    share = smoothing / weight_VD.shape[0]
    grad_states_PD.sub_(weight_VD[target_P], alpha=1 - smoothing)
    grad_states_PD.sub_(weight_VD.sum(dim=0), alpha=share)
    states = states_PD.to(grad_weight_VD.dtype)
    grad_weight_VD.index_add_(0, target_P, states, alpha=smoothing - 1)
    grad_weight_VD.sub_(states.sum(dim=0), alpha=share)
    if grad_bias_V is not None:
        ones_P = torch.ones_like(target_P, dtype=grad_bias_V.dtype)
        grad_bias_V.index_add_(0, target_P, ones_P, alpha=smoothing - 1)
        grad_bias_V.sub_(len(target_P) * share)
