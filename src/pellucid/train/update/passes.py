"""Forward and backward passes by the fastest path; `pellucid.train.plain` is their reference."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.model import Dropout, EncoderDecoder, Transformer
from pellucid.train import plain
from pellucid.train.fast.compiled import CompiledTransformer
from pellucid.train.fast.kernels.guided import Guide
from pellucid.train.fast.kernels.model import ModelOnKernels, choose_kernels
from pellucid.train.fast.loss import interleave, smoothed_cross_entropy
from pellucid.train.fast.rows.few_shapes import make_shapes_repeat, shapes_matter
from pellucid.train.fast.rows.float32_gradients import Float32Gradient, sum_lookups_in_float32
from pellucid.train.fast.rows.model import TransformerOnRows, supports_rows
from pellucid.train.update.guided_head import GuidedHead
from pellucid.train.update.pieces import Piece, repeat_batch, to_device
from pellucid.train.weights.schedule import make_dropout


class Passes:
    """Forward and backward passes of a model.

    In bfloat16 they run on a copy of the weights, cast once an update; gradients are summed in
    float32. Nothing here waits for a device that is not the processor.

    Args:
        model: its parameters get the gradients.
        training: the settings.
        precision: of the passes.
        gradients: tensors for the gradients of the trained parameters, used if the passes can.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"],
        *,
        gradients: Sequence[Tensor] = (),
    ) -> None:
        self._model = model
        self._gradients = list(gradients)
        self._training = training
        self._device = next(model.parameters()).device
        self._guided_head = None
        if training.guided_head:
            layer, head = training.guided_head
            self._guided_head = GuidedHead(layer, head, training.guided_weight)
        self._working = model
        self._on_kernels = _on_kernels(model, training, precision)
        self._output_gradient: Float32Gradient | None = None
        if precision == "bfloat16" and self._on_kernels is None:
            self._working = copy.deepcopy(model).to(torch.bfloat16)
            if self._device.type == "cpu" and not training.compile:
                make_shapes_repeat(self._working)
                sum_lookups_in_float32(self._working, model)
                if model.output_weight.requires_grad:
                    self._output_gradient = Float32Gradient(model.output_weight)
        self._weights, self._working_weights = trained(model), trained(self._working)
        self._compiled = CompiledTransformer(self._working, training) if training.compile else None
        self._is_plain = (
            self._on_kernels is None
            and self._working is model
            and self._compiled is None
            and self._guided_head is None
            and not training.r_drop
        )
        self._in_rows = supports_rows(model.config, training) and shapes_matter(
            next(self._working.parameters())
        )

    def start(self) -> None:
        """Do nothing: these passes run in one process."""

    def close(self) -> None:
        """Do nothing: these passes run in one process."""

    def refresh_weights(self) -> None:
        """Copy the weights as they are now, for the passes of one update."""
        if self._on_kernels is not None:
            self._on_kernels.refresh_weights()
        if self._working is not self._model:
            with torch.no_grad():
                torch._foreach_copy_(self._working_weights, self._weights)

    def sum_gradients(self, step: int, pieces: Sequence[Piece]) -> Tensor:
        """Leave the sum of the pieces' gradients, each times its share, in the model.

        Returns:
            The same sum of their losses, without smoothing.
        """
        if self._is_plain:
            return plain.sum_gradients(self._model, pieces, self._training, step=step)
        for parameter in (*self._weights, *self._working_weights):
            # The working copy has gradients left if memory ran out in the last attempt.
            parameter.grad = None
        total = torch.zeros((), device=self._device)
        if self._on_kernels is not None:
            self._begin_gradients()
        for piece in pieces:
            total += piece.share * self._add_gradient(piece, step)
        return total

    def _begin_gradients(self) -> None:
        """Clear the gradients that kernels add to."""
        if not self._gradients:
            self._gradients = [torch.empty_like(parameter) for parameter in self._weights]
        for parameter, gradient in zip(self._weights, self._gradients, strict=True):
            parameter.grad = gradient.zero_()

    def _add_gradient(self, piece: Piece, step: int) -> Tensor:
        """Add a piece's gradient times its share to the model's; its loss without smoothing."""
        if self._training.r_drop:
            piece = replace(piece, batch=repeat_batch(piece.batch))
        if self._on_kernels is not None:
            return self._on_kernels.add_gradient(
                piece.batch,
                self._dropout(piece, step),
                smoothing=self._training.label_smoothing,
                r_drop=self._training.r_drop,
                share=piece.share,
            )
        smoothed, loss = self._loss(piece, step)
        (smoothed * piece.share).backward()  # type: ignore[no-untyped-call]
        self._gather()
        return loss

    def _loss(self, piece: Piece, step: int) -> tuple[Tensor, Tensor]:
        training, model = self._training, self._working
        real_P = piece.batch.target_mask_BT.flatten().nonzero()[:, 0].to(self._device)
        batch = to_device(piece.batch, self._device)
        if training.r_drop:
            real_P = interleave(real_P)
        states_BTD = self._states(batch, self._dropout(piece, step))
        smoothed, loss = smoothed_cross_entropy(
            states_BTD.flatten(0, 1)[real_P],
            model.output_weight,
            model.output_bias,
            batch.target_out_BT.flatten()[real_P],
            smoothing=training.label_smoothing,
            r_drop=training.r_drop,
            weight_gradient=self._output_gradient,
        )
        if self._guided_head is not None and batch.guide_BTS is not None:
            smoothed = smoothed + self._guided_head.loss(batch.guide_BTS, batch.num_target_tokens)
        return smoothed, loss

    def _dropout(self, piece: Piece, step: int) -> Dropout:
        return make_dropout(self._training, step=step, part=piece.part)

    def _states(self, batch: Batch, dropout: Dropout) -> Tensor:
        """Run encoder and decoder: the decoder's state at every target position."""
        model, masks = self._working, batch.source_mask_BS
        own_mask_BT = None if model.config.look_ahead_mask else batch.target_mask_BT
        if self._in_rows:
            assert isinstance(model, Transformer)
            on_rows = TransformerOnRows(model, masks, batch.target_in_BT.shape[1], dropout)
            memory_BSD = on_rows.encode(batch.source_BS)
            return on_rows.decode(batch.target_in_BT, memory_BSD, target_mask_BT=own_mask_BT)
        encode, decode, shown = model.encode, model.decode, self._guided_head
        dropping: Any = dropout
        if self._compiled is not None:
            encode, decode = self._compiled.encode, self._compiled.decode
            dropping = self._compiled.with_masks_of(dropout)
        memory_BSD = encode(batch.source_BS, masks, dropout=dropping)
        return decode(
            batch.target_in_BT,
            memory_BSD,
            masks,
            target_mask_BT=own_mask_BT,
            probe=shown,
            dropout=dropping,
        )

    def _gather(self) -> None:
        """Add the gradients of the passes to those of the model."""
        if self._working is self._model:
            return
        for copied, parameter in zip(self._working_weights, self._weights, strict=True):
            if copied.grad is None:
                continue
            if parameter.grad is None:
                parameter.grad = copied.grad.to(parameter.dtype)
            else:
                parameter.grad += copied.grad
            copied.grad = None


def _on_kernels(
    model: EncoderDecoder, training: TrainingConfig, precision: Literal["float32", "bfloat16"]
) -> ModelOnKernels | None:
    """Put the model on the package's own kernels; None if PyTorch's are chosen."""
    chosen = choose_kernels(
        model.config,
        training,
        precision,
        next(model.parameters()).device,
        has_output_bias=model.output_bias is not None,
    )
    if chosen.kernels is None:
        return None
    assert isinstance(model, Transformer)
    guide = None
    if training.guided_head:
        layer, head = training.guided_head
        guide = Guide(layer, head, training.guided_weight)
    return ModelOnKernels(model, chosen.kernels, guide)


def trained(module: nn.Module) -> list[Tensor]:
    """List the parameters that training moves, in the model's order."""
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def is_out_of_memory(error: Exception) -> bool:
    """Tell whether an allocator refused: for CPUs and in cuBLAS that is a plain RuntimeError."""
    said = ("can't allocate memory", "not enough memory", "CUBLAS_STATUS_ALLOC_FAILED")
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(
        words in str(error) for words in said
    )
