"""Label-smoothed cross-entropy over the vocabulary, without ever holding all the logits."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from pellucid.train.fast.rows.few_shapes import FEWEST_ROWS, fill_rows, shapes_matter, turned
from pellucid.train.fast.rows.wide_sums import WideSum

__all__ = ["chunk_rows", "in_turn", "smoothed_cross_entropy"]

ROWS_PER_CHUNK = 512
"""Rows whose logits are held at once, at most: few enough to stay in the processor's cache."""

NUMBERS_PER_CHUNK = 1 << 23
"""Logits that are held at once, at most, whatever the vocabulary."""


def chunk_rows(vocabulary: int, *, multiple: int = 1) -> int:
    """How many rows have their logits held at once.

    Args:
        vocabulary: the logits of a row.
        multiple: what the rows are a multiple of, however large the vocabulary.
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
    wide_sum: WideSum | None = None,
) -> tuple[Tensor, Tensor]:
    r"""Project to the vocabulary, take the softmax, and compare with the true tokens.

    $$\ell = -\sum_v q_v \log p_v, \quad q_v = (1 - ε)[v = y] + ε/|V|$$

    With ε = 0 it is exactly the mean of $-\log p(y)$. With R-Drop rows 2i and 2i + 1 are two
    readings of one token, p and q, under different dropout, and every pair adds
    $\frac{α}{4}(KL(p\|q) + KL(q\|p))$ to the mean over pairs: half of what its paper minimizes.

    Args:
        states_PD: one row for each real target position (padding left out).
        weight_VD: the output projection.
        bias_V: its bias, or None.
        target_P: the true token of each row.
        smoothing: ε.
        r_drop: α; 0 for none.
        wide_sum: what the projection's gradient is added to, instead of being handed on.

    Returns:
        The mean smoothed loss, which has gradients, and the mean of −log p(y) in nats, which
        has none.

    Source:
        Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4. Liang et al. 2021,
        "R-Drop: Regularized Dropout for Neural Networks", equation 4.
    """
    smoothed, plain = _ProjectedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        states_PD, weight_VD, bias_V, target_P, smoothing, r_drop, wide_sum
    )
    return smoothed, plain


def in_turn(rows_P: Tensor) -> Tensor:
    """Two readings' rows, all of the first before all of the second, as rows of both in turn."""
    return torch.stack(rows_P.chunk(2), dim=1).flatten(0, 1)


class _ProjectedCrossEntropy(torch.autograd.Function):
    r"""Computes loss and gradients together, chunk by chunk, in the forward pass.

    A chunk's logits become its probabilities in place, and nothing else of that size is touched:
    all that the loss and its gradients add to the products $PW$ and $P^T X$ is a row or a rank of
    one. No product has a transposed factor: on processors those are slow in bfloat16.

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
        wide_sum: WideSum | None,
    ) -> tuple[Tensor, Tensor]:
        num_rows, vocabulary = states_PD.shape[0], weight_VD.shape[0]
        sums = torch.promote_types(states_PD.dtype, torch.float32)
        grad_states_PD = torch.empty_like(states_PD)
        weight_DV = turned(weight_VD)
        grad_weight_DV = torch.zeros_like(weight_DV, dtype=sums)
        part_DV = None if weight_DV.dtype == sums else torch.empty_like(weight_DV)
        grad_bias_V = None if bias_V is None else torch.zeros_like(bias_V, dtype=sums)
        true_P = torch.empty(num_rows, dtype=sums, device=states_PD.device)
        plain_P = torch.empty_like(true_P)
        apart = torch.zeros((), dtype=sums, device=states_PD.device)
        is_on_cpu = states_PD.device.type == "cpu"
        multiple = FEWEST_ROWS if shapes_matter(states_PD) else 2 if r_drop else 1
        chunk = chunk_rows(vocabulary, multiple=multiple)
        buffer_CV = states_PD.new_empty(min(chunk, num_rows + -num_rows % multiple), vocabulary)
        for start in range(0, num_rows, chunk):
            rows = slice(start, min(start + chunk, num_rows))
            chunk_target_C1 = target_P[rows, None]
            real = len(chunk_target_C1)
            chunk_CD = fill_rows(states_PD[rows], multiple)
            logits_CV = buffer_CV[: len(chunk_CD)]
            torch.mm(chunk_CD, weight_DV, out=logits_CV)
            if bias_V is not None:
                logits_CV += bias_V
            true_P[rows] = logits_CV[:real].gather(1, chunk_target_C1)[:, 0]
            if not is_on_cpu:
                plain_P[rows] = logits_CV[:real].to(sums).logsumexp(dim=1) - true_P[rows]
            softmax_CV = torch.softmax(logits_CV, dim=1, out=logits_CV)
            if is_on_cpu:
                plain_P[rows] = -softmax_CV[:real].gather(1, chunk_target_C1)[:, 0].to(sums).log()
            if r_drop:
                apart += _pull_together(softmax_CV[:real], r_drop / 2)
            _multiply_into(grad_states_PD[rows], softmax_CV, weight_VD)
            _add_product(grad_weight_DV, chunk_CD.T.contiguous(), softmax_CV, part_DV)
            if grad_bias_V is not None:
                grad_bias_V += softmax_CV[:real].sum(dim=0, dtype=sums)
        grad_weight_VD = turned(grad_weight_DV)
        if is_on_cpu:
            _mend_underflow(plain_P, true_P, states_PD, weight_VD, bias_V)
        mean_P = states_PD.to(sums) @ weight_VD.mean(dim=0, dtype=sums)
        if bias_V is not None:
            mean_P = mean_P + bias_V.mean(dtype=sums)
        uniform_P = plain_P + true_P - mean_P
        smoothed = ((1 - smoothing) * plain_P + smoothing * uniform_P).mean()
        smoothed = smoothed + r_drop / 2 * apart / num_rows
        _subtract_targets(
            grad_states_PD, grad_weight_VD, grad_bias_V, states_PD, weight_VD, target_P, smoothing
        )
        ctx.save_for_backward(grad_states_PD, grad_weight_VD, grad_bias_V)
        ctx.num_rows, ctx.wide_sum = num_rows, wide_sum
        plain = plain_P.mean()
        ctx.mark_non_differentiable(plain)
        return smoothed, plain

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_smoothed: Tensor, _grad_plain: Tensor) -> tuple[Any, ...]:
        grad_states_PD, grad_weight_VD, grad_bias_V = ctx.saved_tensors
        factor = grad_smoothed / ctx.num_rows
        if ctx.wide_sum is None:
            grad_weight_VD = grad_weight_VD * factor
        else:
            ctx.wide_sum.add(grad_weight_VD, factor.item())
            grad_weight_VD = None
        return (
            grad_states_PD * factor.to(grad_states_PD.dtype),
            grad_weight_VD,
            None if grad_bias_V is None else grad_bias_V * factor,
            *[None] * 4,
        )


def _pull_together(softmax_CV: Tensor, agreement: float) -> Tensor:
    r"""Add what R-Drop adds to the gradient of each row's logits to its probabilities.

    The gradient of $KL(p\|q) + KL(q\|p)$ by the logits of p is
    $p(\log\frac{p}{q} - KL(p\|q)) + p - q$.

    Args:
        softmax_CV: p and q in turn; what is added is rounded with them.
        agreement: α / 2.

    Returns:
        The sum of both divergences over all pairs.
    """
    wide = torch.promote_types(softmax_CV.dtype, torch.float32)
    p_CV, q_CV = softmax_CV[::2].to(wide), softmax_CV[1::2].to(wide)
    least = torch.finfo(wide).tiny
    ratio_CV = p_CV.clamp(min=least).log() - q_CV.clamp(min=least).log()
    p_apart_C1 = (p_CV * ratio_CV).sum(dim=1, keepdim=True)
    q_apart_C1 = -(q_CV * ratio_CV).sum(dim=1, keepdim=True)
    p_pull_CV = p_CV * (ratio_CV - p_apart_C1) + p_CV - q_CV
    q_pull_CV = -q_CV * (ratio_CV + q_apart_C1) + q_CV - p_CV
    softmax_CV[::2] = (p_CV + agreement * p_pull_CV).to(softmax_CV.dtype)
    softmax_CV[1::2] = (q_CV + agreement * q_pull_CV).to(softmax_CV.dtype)
    return (p_apart_C1 + q_apart_C1).sum()


def _multiply_into(product_CD: Tensor, left_CV: Tensor, right_VD: Tensor) -> None:
    """Take a product whose left factor may have rows more than it has: they were filled."""
    if len(product_CD) == len(left_CV):
        torch.mm(left_CV, right_VD, out=product_CD)
    else:
        product_CD.copy_((left_CV @ right_VD)[: len(product_CD)])


def _add_product(
    total_DV: Tensor, left_DC: Tensor, right_CV: Tensor, part_DV: Tensor | None
) -> None:
    """Add a product to a sum, which keeps float32 where the factors, and the part, are narrower."""
    if part_DV is None:
        total_DV.addmm_(left_DC, right_CV)
    else:
        total_DV += torch.mm(left_DC, right_CV, out=part_DV)


def _mend_underflow(
    plain_P: Tensor,
    true_P: Tensor,
    states_PD: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
) -> None:
    """Work out −log p(y) where p(y) itself was too small for a float.

    To know where, another device than the processor would have to be waited for.
    """
    lost = (plain_P > -math.log(torch.finfo(plain_P.dtype).tiny)).nonzero()[:, 0]
    for rows in torch.split(lost, chunk_rows(len(weight_VD))):
        logits_CV = F.linear(states_PD[rows], weight_VD, bias_V).to(plain_P.dtype)
        plain_P[rows] = logits_CV.logsumexp(dim=1) - true_P[rows]


def _subtract_targets(
    grad_states_PD: Tensor,
    grad_weight_VD: Tensor,
    grad_bias_V: Tensor | None,
    states_PD: Tensor,
    weight_VD: Tensor,
    target_P: Tensor,
    smoothing: float,
) -> None:
    """Take what the smoothed truth asks for from gradients that hold the softmax's part."""
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
