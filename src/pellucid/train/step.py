"""One update: the gradients of its batches, a look at whether they are numbers, the optimizer."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal

import torch
from torch import Tensor, nn

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.errors import TrainingError
from pellucid.model import Dropout, Transformer
from pellucid.train.guide import GuidedHead
from pellucid.train.loss import smoothed_cross_entropy
from pellucid.train.optimizer import Optimizer
from pellucid.train.schedule import dropout_share

__all__ = ["Updated", "Updater", "split_batch"]


@dataclass(frozen=True)
class Updated:
    """What one update saw.

    Attributes:
        loss: mean −log p of the true tokens, in nats, without smoothing.
        gradient_norm: length of the whole gradient, before it was clipped.
        num_target_tokens: target tokens, padding not counted.
        was_made: False where loss or gradient was no number: the weights are as they were.
        was_split: whether memory ran out, so that a batch was cut.
    """

    loss: float
    gradient_norm: float
    num_target_tokens: int
    was_made: bool
    was_split: bool


class Updater:
    """Makes updates of a model's float32 weights.

    In bfloat16 the passes run on a copy of the weights, cast once an update; gradients are summed
    and applied in float32.

    Args:
        model: its parameters are what is updated.
        optimizer: over those parameters.
        training: the settings.
        precision: that of the passes.
    """

    def __init__(
        self,
        model: Transformer,
        optimizer: Optimizer,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"],
    ) -> None:
        self._model = model
        self._optimizer = optimizer
        self._training = training
        self._device = next(model.parameters()).device
        self._guided_head = None
        if training.guided_head:
            layer, head = training.guided_head
            self._guided_head = GuidedHead(layer, head, training.guided_weight)
        self._working = model
        if precision == "bfloat16":
            self._working = copy.deepcopy(model).to(torch.bfloat16)

    def update(
        self, step: int, batches: Sequence[Batch], *, rate: float, muon_rate: float
    ) -> Updated:
        """Make one update.

        Where memory runs out every batch is cut in two and the update begins anew.

        Args:
            step: its number, from 1, which decides what dropout drops.
            batches: their gradients are summed, each token counting the same.
            rate: the learning rate.
            muon_rate: that of Muon.

        Raises:
            TrainingError: a single pair is too much for the memory.
        """
        self._refresh()
        pieces = list(batches)
        while True:
            try:
                loss = self._sum_gradients(step, pieces)
                break
            except (MemoryError, RuntimeError) as error:
                if not _is_out_of_memory(error):
                    raise
            if all(len(piece.source_BS) == 1 for piece in pieces):
                raise TrainingError(
                    "A batch must fit into memory, but a single pair of "
                    f"{max(piece.target_in_BT.shape[1] for piece in pieces)} tokens does not. "
                    "Lower data.max_length, or choose a smaller model."
                )
            pieces = [half for piece in pieces for half in split_batch(piece)]
        norm = self._optimizer.gradient_norm()
        found_loss, found_norm = torch.stack((loss, norm.to(loss.dtype))).tolist()
        is_fine = found_loss - found_loss == 0 and found_norm - found_norm == 0
        if is_fine:
            if self._training.max_gradient_norm:
                self._optimizer.clip_(norm, self._training.max_gradient_norm)
            self._optimizer.step(rate, muon_rate)
        return Updated(
            found_loss,
            found_norm,
            sum(batch.num_target_tokens for batch in batches),
            was_made=is_fine,
            was_split=len(pieces) > len(batches),
        )

    def _sum_gradients(self, step: int, pieces: Sequence[Batch]) -> Tensor:
        """Leave the gradient of the mean loss over all pieces in the model; the loss itself."""
        num_tokens = sum(piece.num_target_tokens for piece in pieces)
        self._model.zero_grad(set_to_none=True)
        self._working.zero_grad(set_to_none=True)  # of an attempt that ran out of memory
        total = torch.zeros((), device=self._device)
        for part, piece in enumerate(pieces):
            share = piece.num_target_tokens / num_tokens
            smoothed, plain = self._loss(_to_device(piece, self._device), step, part)
            (smoothed * share).backward()  # type: ignore[no-untyped-call]
            total += share * plain
            self._gather()
        return total

    def _loss(self, batch: Batch, step: int, part: int) -> tuple[Tensor, Tensor]:
        training, model = self._training, self._working
        share = dropout_share(step, training)
        dropout = Dropout(
            share * training.dropout,
            training.seed,
            step,
            part,
            attention_rate=share * training.attention_dropout,
            feed_forward_rate=share * training.feed_forward_dropout,
            token_rate=share * training.token_dropout,
        )
        memory_BSD = model.encode(batch.source_BS, batch.source_mask_BS, dropout=dropout)
        states_BTD = model.decode(
            batch.target_in_BT,
            memory_BSD,
            batch.source_mask_BS,
            probe=self._guided_head,
            dropout=dropout,
        )
        smoothed, plain = smoothed_cross_entropy(
            states_BTD[batch.target_mask_BT],
            model.output_weight,
            model.output_bias,
            batch.target_out_BT[batch.target_mask_BT],
            smoothing=training.label_smoothing,
        )
        if self._guided_head is not None and batch.guide_BTS is not None:
            smoothed = smoothed + self._guided_head.loss(batch.guide_BTS, batch.num_target_tokens)
        return smoothed, plain

    def _refresh(self) -> None:
        """Cast the weights for the passes of this update."""
        if self._working is not self._model:
            copies, weights = _trained(self._working), _trained(self._model)
            with torch.no_grad():
                torch._foreach_copy_(copies, weights)

    def _gather(self) -> None:
        """Add the gradients of the passes to those of the model."""
        if self._working is self._model:
            return
        for copied, parameter in zip(_trained(self._working), _trained(self._model), strict=True):
            if copied.grad is None:
                continue
            if parameter.grad is None:
                parameter.grad = copied.grad.to(parameter.dtype)
            else:
                parameter.grad += copied.grad
            copied.grad = None


def split_batch(batch: Batch) -> tuple[Batch, ...]:
    """Cut a batch of two pairs or more in two."""
    num_rows = len(batch.source_BS)
    if num_rows == 1:
        return (batch,)
    halves = []
    for rows in (slice(0, num_rows // 2), slice(num_rows // 2, num_rows)):
        parts = {
            field.name: getattr(batch, field.name)[rows]
            for field in fields(batch)
            if isinstance(getattr(batch, field.name), Tensor)
        }
        halves.append(
            Batch(
                **parts,
                num_source_tokens=int(parts["source_mask_BS"].sum()),
                num_target_tokens=int(parts["target_mask_BT"].sum()),
            )
        )
    return tuple(halves)


def _trained(module: nn.Module) -> list[Tensor]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _to_device(batch: Batch, device: torch.device) -> Batch:
    if device.type == "cpu":
        return batch
    tensors = {
        field.name: getattr(batch, field.name).pin_memory().to(device, non_blocking=True)
        for field in fields(batch)
        if isinstance(getattr(batch, field.name), Tensor)
    }
    return replace(batch, **tensors)


def _is_out_of_memory(error: Exception) -> bool:
    """Whether an allocator said no: PyTorch's for CPUs has no exception of its own."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        "can't allocate memory" in str(error) or "not enough memory" in str(error)
    )
