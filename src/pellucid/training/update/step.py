"""Updates by the fastest path: gradients, cut to what memory holds, then the optimizer's step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.errors import TrainingError
from pellucid.model import EncoderDecoder
from pellucid.training.plain import UpdateResult, move_weights
from pellucid.training.update.batch_parts import make_pieces, split_batch
from pellucid.training.update.passes import Passes, is_out_of_memory
from pellucid.training.update.ranks import RankedPasses, Ranks
from pellucid.training.weights.optimizer import Optimizer


class Updater:
    """Makes the updates that `pellucid.training.plain.make_update` describes, only faster.

    Args:
        model: its float32 parameters are updated.
        optimizer: over those parameters.
        training: the settings.
        precision: of the passes.
        processes: parts that every batch is cut into.
        ranks: the processes that share them; by default as many are started.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        optimizer: Optimizer,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"],
        processes: int = 1,
        ranks: Ranks | None = None,
    ) -> None:
        self._optimizer = optimizer
        self._training = training
        self._processes = processes
        self._passes: Passes | RankedPasses
        if processes * training.accumulate == 1:
            # One piece needs no tree of sums, and so no second buffer as large as the weights.
            self._passes = Passes(model, training, precision)
        else:
            ranks = ranks or Ranks()
            number = ranks.count(next(model.parameters()).device, processes)
            self._passes = RankedPasses(model, training, precision, ranks, number)

    def update(
        self, step: int, batches: Sequence[Batch], *, rate: float, muon_rate: float
    ) -> UpdateResult:
        """Make one update.

        If memory runs out, every batch is cut in two and the update starts again.

        Args:
            step: its number, from 1; it decides what dropout drops.
            batches: their gradients are summed, each token counting the same.
            rate: the learning rate.
            muon_rate: the learning rate of Muon.

        Raises:
            TrainingError: a single pair does not fit into memory.
        """
        passes = self._passes
        passes.refresh_weights()
        parts = [part for batch in batches for part in split_batch(batch, self._processes)]
        was_split = False
        while True:
            try:
                mean_loss = passes.sum_gradients(step, make_pieces(parts))
                break
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise
            # Only here: within the except block the traceback would still hold the pass's tensors.
            parts = _halve(parts)
            was_split = True
        updated = move_weights(
            self._optimizer,
            self._training,
            mean_loss,
            num_tokens=sum(batch.num_target_tokens for batch in batches),
            rate=rate,
            muon_rate=muon_rate,
        )
        return replace(updated, was_split=was_split, seconds_waited=passes.seconds_waited)

    def start(self) -> None:
        """Link the other ranks, if there are to be any; otherwise the first update does.

        Raises:
            PellucidError: one could not start or did not come.
        """
        if isinstance(self._passes, RankedPasses):
            self._passes.start()

    def close(self) -> None:
        """End the ranks that were started here; the next update starts them again."""
        if isinstance(self._passes, RankedPasses):
            self._passes.close()


def _halve(parts: Sequence[Batch]) -> list[Batch]:
    """Cut every part of an update that did not fit into memory in two.

    Raises:
        TrainingError: they are single pairs.
    """
    if all(len(part.source_BS) == 1 for part in parts):
        raise TrainingError(
            "A batch must fit into memory, but a single pair of "
            f"{max(part.target_in_BT.shape[1] for part in parts)} tokens does not. "
            "Lower data.max_pair_length, or choose a smaller model."
        )
    return [half for part in parts for half in split_batch(part)]
