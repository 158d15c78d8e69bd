"""Updates by the fastest path: gradients, cut to what memory holds, then the optimizer's step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.errors import TrainingError
from pellucid.machine.devices import is_out_of_memory
from pellucid.model import EncoderDecoder
from pellucid.training.plain import UpdateResult, move_weights
from pellucid.training.update.batch_parts import BatchPart, make_pieces, split_batch
from pellucid.training.update.passes import Passes
from pellucid.training.update.ranks import RankedPasses, Ranks
from pellucid.training.update.recorded import RecordedUpdates, record_passes
from pellucid.training.weights.averaging import Averaging
from pellucid.training.weights.optimizer import Optimizer

T = TypeVar("T")


class Updater:
    """Makes the updates that `pellucid.training.plain.make_update` describes, only faster.

    Args:
        model: its float32 parameters are updated.
        optimizer: over those parameters.
        training: the settings.
        precision: of the passes.
        processes: parts that every batch is cut into.
        ranks: the processes that share them; by default as many are started.
        averaging: given if batches have few shapes, so that a GPU can repeat updates by itself: it
            then updates this average, too.

    Attributes:
        recorded: the updates of such a GPU; None if they are made step by step.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        optimizer: Optimizer,
        training: TrainingConfig,
        precision: Literal["float32", "bfloat16"],
        processes: int = 1,
        ranks: Ranks | None = None,
        averaging: Averaging | None = None,
    ) -> None:
        self._optimizer = optimizer
        self._training = training
        self._processes = processes
        self._ranked: RankedPasses | None = None
        self.recorded: RecordedUpdates | None = None
        device = next(model.parameters()).device
        ranks = ranks or Ranks()
        number = ranks.count(device, processes)
        recorded = None
        if averaging is not None and processes == 1:
            recorded = record_passes(model, training, precision)
        passes = recorded or Passes(model, training, precision)
        # One piece needs no tree of sums, and so no second buffer as large as the weights. Of two
        # recorded ones the second adds to the first, as in a tree.
        most = 1 if recorded is None else 2
        if number > 1 or processes * training.accumulate > most:
            self._ranked = RankedPasses(model, training, precision, ranks, number, passes)
        self._passes = self._ranked or passes
        if recorded is not None:
            self.recorded = RecordedUpdates(
                model, optimizer, training, averaging, recorded, self._ranked
            )

    def advance(
        self, step: int, batches: Sequence[Batch], *, rate: float, muon_rate: float
    ) -> list[UpdateResult]:
        """Make one update, and return the results that are known: maybe only earlier ones."""
        if self.recorded is None:
            return [self.update(step, batches, rate=rate, muon_rate=muon_rate)]
        self._begin(self.recorded, step, batches, rate=rate, muon_rate=muon_rate)
        return self.recorded.read()

    def read(self) -> list[UpdateResult]:
        """Return the results that are not known yet, and wait for them."""
        return [] if self.recorded is None else self.recorded.read(most_unread=0)

    def update(
        self, step: int, batches: Sequence[Batch], *, rate: float, muon_rate: float
    ) -> UpdateResult:
        """Make one update, and wait for its result.

        If memory runs out, every batch is cut in two and the update starts again.

        Args:
            step: its number, from 1; it decides what dropout drops.
            batches: their gradients are summed, each token counting the same.
            rate: the learning rate.
            muon_rate: the learning rate of Muon.

        Raises:
            TrainingError: a single pair does not fit into memory.
        """
        if self.recorded is not None:
            self._begin(self.recorded, step, batches, rate=rate, muon_rate=muon_rate)
            return self.read()[-1]
        passes = self._passes
        passes.refresh_weights()
        parts = [part for batch in batches for part in split_batch(batch, self._processes)]
        mean_loss, was_split = _in_memory(
            parts, lambda pieces, _: passes.sum_gradients(step, pieces)
        )
        updated = move_weights(
            self._optimizer,
            self._training,
            mean_loss,
            num_tokens=sum(batch.num_target_tokens for batch in batches),
            rate=rate,
            muon_rate=muon_rate,
        )
        return replace(updated, was_split=was_split, seconds_waited=passes.seconds_waited)

    def _begin(
        self,
        recorded: RecordedUpdates,
        step: int,
        batches: Sequence[Batch],
        *,
        rate: float,
        muon_rate: float,
    ) -> None:
        def begin(pieces: list[BatchPart], was_split: bool) -> None:
            recorded.begin(step, pieces, rate=rate, muon_rate=muon_rate, was_split=was_split)

        _in_memory(list(batches), begin)

    def start(self) -> None:
        """Link the other ranks, if there are to be any; otherwise the first update does.

        Raises:
            PellucidError: one could not start or did not come.
        """
        if self._ranked is not None:
            self._ranked.start()

    def close(self) -> None:
        """End the ranks that were started here; the next update starts them again."""
        if self._ranked is not None:
            self._ranked.close()


def _in_memory(parts: list[Batch], compute: Callable[[list[BatchPart], bool], T]) -> tuple[T, bool]:
    """Compute the parts of an update, and cut them in two as long as memory runs out."""
    was_split = False
    while True:
        try:
            return compute(make_pieces(parts), was_split), was_split
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
        # Only here: within the except block the traceback would still hold the pass's tensors.
        if all(len(part.source_BS) == 1 for part in parts):
            raise TrainingError(
                "A batch must fit into memory, but a single pair of "
                f"{max(part.target_in_BT.shape[1] for part in parts)} tokens does not. "
                "Lower data.max_pair_length, or choose a smaller model."
            )
        parts = [half for part in parts for half in split_batch(part)]
        was_split = True
