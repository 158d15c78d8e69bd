"""Batches for the trainer, made in advance by a thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pellucid.config import Recipe
from pellucid.data import (
    Batch,
    BatchOrder,
    BatchShape,
    EpochPlan,
    EpochText,
    TokenStore,
    choose_shapes,
    make_batch,
    padding_share,
    pairs_of_epoch,
    plan_in_shapes,
    turned_pairs,
    with_guide,
)
from pellucid.terminal.text import count_of
from pellucid.training.start.prepare import PreparedData

AHEAD = 8
"""Updates to make in advance."""


@dataclass(frozen=True)
class UpdateBatches:
    """The batches whose gradients one update sums, and the epoch of the first."""

    epoch: int
    batches: tuple[Batch, ...]


class Feed:
    """Hands out updates by number, each a pure function of it.

    Args:
        prepared: the data.
        recipe: seed, batches per update, fixed lengths.
        max_tokens_per_batch: positions of a batch on either side.
        has_few_shapes: True to fill batches up to the shapes of a table.
    """

    def __init__(
        self,
        prepared: PreparedData,
        recipe: Recipe,
        *,
        max_tokens_per_batch: int,
        has_few_shapes: bool = False,
    ) -> None:
        self._prepared = prepared
        self._training = recipe.training
        self._text: tuple[int, TokenStore | EpochText] = (-1, prepared.store)
        self._order = BatchOrder(
            self._text_of,
            seed=recipe.training.seed,
            max_tokens_per_batch=max_tokens_per_batch,
            pairs_of=self._pairs_of if recipe.data.train_weights else None,
            plan_with=self._plan_in_shapes if has_few_shapes else None,
        )
        self._data = recipe.data
        self._max_tokens = max_tokens_per_batch

    def updates(self, after: int) -> Generator[UpdateBatches]:
        """Yield updates without end, starting after so many; close it to end the thread.

        Raises:
            PellucidError: making a batch raised it.
        """
        ready: queue.Queue[UpdateBatches | BaseException] = queue.Queue(AHEAD)
        stop = threading.Event()

        def work() -> None:
            number = after
            while not stop.is_set():
                made: UpdateBatches | BaseException
                try:
                    made = self.update(number)
                except BaseException as error:
                    made = error
                number += 1
                while not stop.is_set():
                    try:
                        # Not for ever: in front of a full queue it must see that it is to stop.
                        ready.put(made, timeout=0.1)
                        break
                    except queue.Full:
                        continue
                if isinstance(made, BaseException):
                    return

        thread = threading.Thread(target=work, name="pellucid-feed", daemon=True)
        thread.start()
        leaves_at_once = False
        try:
            while True:
                made = ready.get()
                if isinstance(made, BaseException):
                    raise made
                yield made
        except (KeyboardInterrupt, SystemExit):
            # The thread may be busy sorting a large text; as a daemon it ends with the process.
            leaves_at_once = True
            raise
        finally:
            stop.set()
            if not leaves_at_once:
                thread.join()

    def update(self, number: int) -> UpdateBatches:
        """Make the update of one number, from 0."""
        count = self._training.accumulate
        places = [self._order.locate(number * count + part) for part in range(count)]
        is_mixed = number < self._training.both_directions_steps
        batches = tuple(self._batch(epoch, index, is_mixed=is_mixed) for epoch, index in places)
        first_epoch, _ = places[0]
        return UpdateBatches(first_epoch, batches)

    @cached_property
    def shapes(self) -> tuple[BatchShape, ...]:
        """The shapes of the table, which the first epoch decides."""
        text = self._text_of(0)
        sources = text.source_lengths
        targets = text.target_lengths
        has_weights = bool(self._data.train_weights)
        if has_weights:
            pairs = self._pairs_of(0)
            sources = sources[pairs]
            targets = targets[pairs]
        varies = has_weights or self._prepared.variants is not None
        return choose_shapes(sources, targets, max_tokens_per_batch=self._max_tokens, varies=varies)

    def describe_shapes(self) -> str:
        """Say how many shapes batches have, and what that costs."""
        text = self._text_of(0)
        padding = padding_share(self._order.plan(0), text.source_lengths, text.target_lengths)
        return (
            f"Batches have {count_of(len(self.shapes), 'shape')}; {padding:.1%} of their positions "
            "are padding."
        )

    def _plan_in_shapes(
        self, sources: NDArray[np.int32], targets: NDArray[np.int32], **how: Any
    ) -> EpochPlan:
        return plan_in_shapes(sources, targets, self.shapes, **how)

    def batches_in_epoch(self, epoch: int) -> int:
        """Count the batches of an epoch; epochs differ by a few."""
        return len(self._order.plan(epoch))

    def _batch(self, epoch: int, index: int, *, is_mixed: bool) -> Batch:
        indices = self._order.plan(epoch)[index]
        turned = None
        if is_mixed:
            seed = self._training.seed
            turned = turned_pairs(len(indices), seed=seed, epoch=epoch, batch=index)
        tokenizer = self._prepared.tokenizer.config
        links = self._prepared.links
        batch = make_batch(
            self._text_of(epoch),
            indices,
            pad_id=tokenizer.pad_id,
            start_id=tokenizer.target_start_id,
            turned=turned,
            shape=self._order.plan(epoch).shape_of(index),
        )
        if links is None:
            return batch
        return with_guide(batch, links, indices, self._training.guided_convention)

    def _text_of(self, epoch: int) -> TokenStore | EpochText:
        """Get the text in this epoch's segmentation; the latest is kept."""
        variants = self._prepared.variants
        training = self._training
        if variants is None:
            return self._prepared.store
        if self._text[0] != epoch:
            drawn = variants.epoch(epoch, seed=training.seed, alpha=training.subword_alpha)
            self._text = (epoch, drawn)
        return self._text[1]

    def _pairs_of(self, epoch: int) -> NDArray[np.int64]:
        sizes = [corpus.kept for corpus in self._prepared.corpora]
        weights = [corpus.weight for corpus in self._prepared.corpora]
        return pairs_of_epoch(sizes, weights, seed=self._training.seed, epoch=epoch)
