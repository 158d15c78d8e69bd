"""A whole model on PyTorch's operations: the loss of a batch, and its gradient."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.model import Dropout, EncoderDecoder
from pellucid.training.fast.attention_losses import AttentionLosses
from pellucid.training.fast.bfloat16 import (
    Float32Gradient,
    make_shapes_repeat,
    sum_lookups_in_float32,
)
from pellucid.training.fast.loss import add_r_drop_gradient, interleave, smoothed_cross_entropy
from pellucid.training.update.batch_parts import to_device


class ModelOnPyTorch:
    """Forward and backward passes of a model on PyTorch's operations.

    In bfloat16 they run on a copy of the weights, cast once an update; gradients are summed in
    float32. Nothing here waits for a device that is not the processor.

    Args:
        model: its parameters get the gradients.
        training: the settings.
        precision: of the passes.
        losses: those that are computed from attention.
        masks_padding: True if the loss skips padding by a mask; by default on every device but the
            processor, where real rows are selected.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"],
        losses: AttentionLosses,
        *,
        masks_padding: bool = False,
    ) -> None:
        self._model = model
        self._working = model
        self._device = next(model.parameters()).device
        self._masks_padding = masks_padding or self._device.type != "cpu"
        leave_shapes_unplanned(self._device)
        self._losses = losses
        self._output_gradient: Float32Gradient | None = None
        if precision == "bfloat16":
            self._working = copy.deepcopy(model).to(torch.bfloat16)
            if not self._masks_padding:
                make_shapes_repeat(self._working)
                sum_lookups_in_float32(self._working, model)
                if model.output_weight.requires_grad:
                    self._output_gradient = Float32Gradient(model.output_weight)
        self._weights = trained(model)
        self._working_weights = trained(self._working)

    def refresh_weights(self) -> None:
        """Copy the weights as they are now."""
        if self._working is not self._model:
            with torch.no_grad():
                torch._foreach_copy_(self._working_weights, self._weights)

    def clear_gradients(self, _into: Sequence[Tensor] = ()) -> None:
        """Drop all gradients; the copy has some left if memory ran out in the last attempt."""
        for parameter in (*self._weights, *self._working_weights):
            parameter.grad = None

    def add_gradient(
        self,
        batch: Batch,
        dropout: Dropout,
        *,
        smoothing: float,
        share: float | Tensor,
        r_drop: float = 0.0,
    ) -> Tensor:
        """Add a gradient, as ``ModelOnKernels.add_gradient`` does in the kernels' model."""
        batch = to_device(batch, self._device)
        compute = self._masked_loss if self._masks_padding else self._loss_of_real_rows
        smoothed, loss = compute(batch, self._run(batch, dropout), smoothing, r_drop)
        (self._losses.add_to(smoothed, batch) * share).backward()  # type: ignore[no-untyped-call]
        if self._working is not self._model:
            self._gather()
        return loss

    def _loss_of_real_rows(
        self, batch: Batch, states_BTD: Tensor, smoothing: float, r_drop: float
    ) -> tuple[Tensor, Tensor]:
        real_P = batch.target_mask_BT.flatten().nonzero()[:, 0]
        if r_drop:
            real_P = interleave(real_P)
        return smoothed_cross_entropy(
            states_BTD.flatten(0, 1)[real_P],
            self._working.output_weight,
            self._working.output_bias,
            batch.target_out_BT.flatten()[real_P],
            smoothing=smoothing,
            r_drop=r_drop,
            weight_gradient=self._output_gradient,
        )

    def _masked_loss(
        self, batch: Batch, states_BTD: Tensor, smoothing: float, r_drop: float
    ) -> tuple[Tensor, Tensor]:
        rows = [states_BTD.flatten(0, 1), batch.target_out_BT, batch.target_mask_BT]
        rows[1:] = [one.flatten() for one in rows[1:]]
        if r_drop:
            rows = [interleave(one) for one in rows]
        states_PD, target_P, real_P = rows
        return masked_cross_entropy(
            states_PD,
            self._working.output_weight,
            self._working.output_bias,
            target_P,
            real_P,
            smoothing=smoothing,
            r_drop=r_drop,
        )

    def _run(self, batch: Batch, dropout: Dropout) -> Tensor:
        """Run encoder and decoder: the decoder's state at every target position."""
        model = self._working
        probe = self._losses if self._losses.sites else None
        memory_BSD = model.encode(
            batch.source_BS, batch.source_mask_BS, probe=probe, dropout=dropout
        )
        return model.decode(
            batch.target_in_BT,
            memory_BSD,
            batch.source_mask_BS,
            target_mask_BT=None if model.config.look_ahead_mask else batch.target_mask_BT,
            probe=probe,
            dropout=dropout,
        )

    def _gather(self) -> None:
        """Add the gradients of the copy to those of the model."""
        for copied, parameter in zip(self._working_weights, self._weights, strict=True):
            if copied.grad is None:
                continue
            if parameter.grad is None:
                parameter.grad = copied.grad.to(parameter.dtype)
            else:
                parameter.grad += copied.grad
            copied.grad = None


def trained(module: nn.Module) -> list[Tensor]:
    """List the parameters that training moves, in the model's order."""
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def leave_shapes_unplanned(device: torch.device) -> None:
    """Let attention on a GPU start at once on every new shape.

    cuDNN's attention, which PyTorch prefers on Hopper, builds a plan of about 9 ms for each shape
    that it has not seen. Batches of sorted lengths bring new shapes in nearly every update, so
    that most of the time went into plans: without cuDNN's attention an H100 trained the size
    `base` at 200,000 instead of 60,000 tokens a second. PyTorch's other kernels need no plans.
    """
    if device.type == "cuda":
        torch.backends.cuda.enable_cudnn_sdp(False)


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
            # Scattered, not added by index: each place occurs once, so order does not matter.
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
