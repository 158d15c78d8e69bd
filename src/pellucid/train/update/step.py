"""One update: the gradients of its batches, a look at whether they are numbers, the optimizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.errors import TrainingError
from pellucid.model import Transformer
from pellucid.train.update.passes import Passes, Piece, is_out_of_memory, split_batch
from pellucid.train.update.processes import SharedPasses
from pellucid.train.weights.optimizer import Optimizer

__all__ = ["Updated", "Updater"]


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

    Args:
        model: its parameters are what is updated.
        optimizer: over those parameters.
        training: the settings.
        precision: that of the passes.
        processes: how many share every batch.
    """

    def __init__(
        self,
        model: Transformer,
        optimizer: Optimizer,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"],
        processes: int = 1,
    ) -> None:
        self._optimizer = optimizer
        self._training = training
        self._processes = processes
        self._passes: Passes | SharedPasses = Passes(model, training, precision)
        if processes > 1:
            self._passes = SharedPasses(model, training, precision, processes)

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
        self._passes.follow()
        loss, was_split = self._sum_gradients(step, batches)
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
            was_split=was_split,
        )

    def start(self) -> None:
        """Start the other processes, if there are to be any; otherwise the first update does.

        Raises:
            PellucidError: one could not start.
        """
        self._passes.start()

    def close(self) -> None:
        """End them."""
        self._passes.close()

    def _sum_gradients(self, step: int, batches: Sequence[Batch]) -> tuple[Tensor, bool]:
        """Leave the gradient of the mean loss; that loss, and whether memory ran out."""
        num_tokens = sum(batch.num_target_tokens for batch in batches)
        parts = [part for batch in batches for part in split_batch(batch, self._processes)]
        was_split = False
        while True:
            pieces = [
                Piece(number, part.num_target_tokens / num_tokens, part)
                for number, part in enumerate(parts)
            ]
            try:
                return self._passes.sum_gradients(step, pieces), was_split
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
            if all(len(part.source_BS) == 1 for part in parts):
                raise TrainingError(
                    "A batch must fit into memory, but a single pair of "
                    f"{max(part.target_in_BT.shape[1] for part in parts)} tokens does not. "
                    "Lower data.max_length, or choose a smaller model."
                )
            parts = [half for part in parts for half in split_batch(part)]
            was_split = True
