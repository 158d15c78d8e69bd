"""Steps of decoding that a GPU repeats by itself: keys and values in places that stay.

A step of one token launches some 150 kernels, each of which computes next to nothing. Recorded as
a graph they start at once. A graph reads and writes the same memory each time, so that caches
cannot grow: they live in buckets of a few sizes, and a mask hides the positions to come.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pellucid.config import ModelConfig, Precision
from pellucid.decode.steppers import ModelStepper, SourceMemory
from pellucid.machine.graphs import GraphDevice, GraphSchedule
from pellucid.model import Transformer
from pellucid.model.encoder_decoder import embed
from pellucid.model.kv_cache import GrowingKeysValues, LayerCache
from pellucid.model.rotary import IN_ATTENTION
from pellucid.model.site import Site

SOURCE_STEP = 16
"""Sources are padded to a multiple of this."""

FIRST_TARGET = 32
"""Target positions of the smallest buckets; the next have twice as many."""

MOST_BYTES = 4 << 30
"""Memory of all buckets beyond which unused ones are freed."""


def explain_unrecorded(config: ModelConfig) -> str | None:
    """Say why the steps of a model cannot be recorded; None if they can."""
    if config.is_recurrent or config.decoder == "ssru":
        return "its decoder is recurrent"
    if config.positions in IN_ATTENTION:
        # They turn or lower by a number of Python's own.
        return f"its positions are {config.positions}"
    return None


class BucketSize(NamedTuple):
    """Rows, source positions and target positions of a bucket."""

    rows: int
    source: int
    target: int


class FixedKeysValues(GrowingKeysValues):
    """The keys and values of one self-attention, in a bucket.

    Args:
        key_AHMK: of all positions, also of those to come.
        value_AHME: likewise.
        place_1: the position that is written next.
    """

    def __init__(self, key_AHMK: Tensor, value_AHME: Tensor, place_1: Tensor) -> None:
        # Its length stays 0: only positions inside attention would read it, which are not recorded.
        super().__init__()
        self.tensors = (key_AHMK, value_AHME)
        self._place_1 = place_1

    def append(self, key_AHLK: Tensor, value_AHLE: Tensor) -> tuple[Tensor, Tensor]:
        """Write the newest row, and return all, with those to come."""
        for kept, newest in zip(self.tensors, (key_AHLK, value_AHLE), strict=True):
            kept.index_copy_(2, self._place_1, newest)
        return self.tensors


class Bucket:
    """Memory for the steps of some rows.

    Args:
        size: how much.
        crossed: keys and values of the source, one pair a layer, of any size.
        vocabulary: logits of a row.
    """

    def __init__(
        self, size: BucketSize, crossed: list[tuple[Tensor, Tensor]], vocabulary: int
    ) -> None:
        self.size = size
        self.owner: weakref.ref[RecordedState] | None = None
        device = crossed[0][0].device
        self.place_1 = torch.zeros(1, dtype=torch.long, device=device)
        self.mask_AS = torch.zeros(size.rows, size.source, dtype=torch.bool, device=device)
        wide = torch.promote_types(crossed[0][0].dtype, torch.float32)
        self.logits_AV = torch.zeros(size.rows, vocabulary, dtype=wide, device=device)
        self.pasts: list[FixedKeysValues] = []
        self.layers: list[LayerCache] = []
        for pair in crossed:
            shapes = [(size.rows, one.shape[1], one.shape[3]) for one in pair]
            # Zeros, since a weight of 0 times what is not a number would not be a number.
            past, cross = (
                tuple(pair[0].new_zeros(a, h, length, k) for a, h, k in shapes)
                for length in (size.target, size.source)
            )
            self.pasts.append(FixedKeysValues(past[0], past[1], self.place_1))
            self.layers.append(LayerCache(self.pasts[-1], (cross[0], cross[1])))

    def tensors(self) -> list[Tensor]:
        """List everything that belongs to rows, with axes rows, heads, positions, width."""
        crossed = [one for layer in self.layers for one in layer.cross_attention or ()]
        return [one for past in self.pasts for one in past.tensors] + crossed

    @property
    def num_bytes(self) -> int:
        """The memory it takes."""
        return sum(one.nbytes for one in (*self.tensors(), self.logits_AV))

    @property
    def is_free(self) -> bool:
        """True if no state uses it."""
        return self.owner is None or self.owner() is None


class RecordedState:
    """The slots of a search, whose rows are in a bucket.

    Args:
        stepper: has the buckets.
        width: hypotheses of each sentence.
    """

    def __init__(self, stepper: RecordedStepper, width: int) -> None:
        self._stepper = stepper
        self.width = width
        self.bucket: Bucket | None = None
        self.place = 0
        self.num_rows = 0
        self.parents_A: Tensor | None = None

    def insert(self, slots_X: Tensor, memory: SourceMemory, chosen_X: Tensor) -> None:
        """Start sentences in all slots."""
        rows_A = chosen_X.repeat_interleave(self.width)
        self.num_rows = len(rows_A)
        self.place = 0
        self.parents_A = None
        length = memory.memory_BSD.shape[1]
        crossed = self._stepper.cross(memory.memory_BSD)
        # Given back first, so that a search that continues finds its own bucket again.
        self.bucket = None
        self._stepper.release(self)
        bucket = self._take(length, FIRST_TARGET, crossed)
        for one in bucket.tensors():
            one.zero_()
        # A softmax over nothing is not a number, also in a row that nobody reads.
        bucket.mask_AS.zero_()[:, 0] = True
        mask_BS = memory.mask_BS
        bucket.mask_AS[: self.num_rows, :length] = True if mask_BS is None else mask_BS[rows_A]
        for layer, pair in zip(bucket.layers, crossed, strict=True):
            for kept, one in zip(layer.cross_attention or (), pair, strict=True):
                kept[: self.num_rows, :, :length] = one.index_select(0, rows_A)

    def retire(self, slots_X: Tensor) -> None:
        """Do nothing: an empty slot is computed until it is dropped."""

    def reorder(self, parents_BW: Tensor) -> None:
        """Let every hypothesis continue another one of its sentence, in the next step."""
        sentences_B1 = torch.arange(len(parents_BW), device=parents_BW.device)[:, None]
        self.parents_A = (sentences_B1 * self.width + parents_BW).flatten()

    def keep(self, slots_B: Tensor) -> None:
        """Keep only these slots, in a smaller bucket if one suffices."""
        columns_W = torch.arange(self.width, device=slots_B.device)
        self._move((slots_B[:, None] * self.width + columns_W).flatten())

    def make_room(self) -> None:
        """Move to a bucket of more target positions, if all are taken."""
        assert self.bucket is not None
        if self.place == self.bucket.size.target:
            rows_A = torch.arange(self.num_rows, device=self.bucket.place_1.device)
            self._move(rows_A, target=2 * self.place)

    def _move(self, rows_A: Tensor, *, target: int | None = None) -> None:
        """Take some rows into a bucket that holds them."""
        old = self.bucket
        assert old is not None
        if self.parents_A is not None:
            rows_A = self.parents_A[rows_A]
            self.parents_A = None
        self.num_rows = len(rows_A)
        crossed = [layer.cross_attention for layer in old.layers if layer.cross_attention]
        new = self._take(old.size.source, target or old.size.target, crossed)
        for before, after in zip(old.tensors(), new.tensors(), strict=True):
            kept = before.index_select(0, rows_A)
            after[: len(rows_A), :, : kept.shape[2]] = kept
            after[: len(rows_A), :, kept.shape[2] :] = 0
        new.mask_AS[:, 0] = True
        new.mask_AS[: len(rows_A)] = old.mask_AS.index_select(0, rows_A)

    def _take(self, source: int, target: int, crossed: list[tuple[Tensor, Tensor]]) -> Bucket:
        sentences = self.num_rows // self.width
        size = BucketSize(
            _round_up(sentences, 1 << max(0, sentences.bit_length() - 2)) * self.width,
            _round_up(source, SOURCE_STEP),
            target,
        )
        if self.bucket is None or self.bucket.size != size:
            self._stepper.release(self)
            self.bucket = self._stepper.take(size, crossed)
            self.bucket.owner = weakref.ref(self)
        return self.bucket


class RecordedStepper(ModelStepper):
    """A Transformer whose steps a GPU repeats: the numbers of `ModelStepper`, up to rounding.

    Args:
        model: one that `explain_unrecorded` has nothing against.
        precision: as there.
        graphs: record the steps.
    """

    _model: Transformer

    def __init__(self, model: Transformer, precision: Precision, graphs: GraphDevice) -> None:
        super().__init__(model, precision)
        self._schedule = GraphSchedule(graphs)
        self._buckets: list[Bucket] = []

    def cross(self, memory_BSD: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Compute the keys and values of sources for each layer, once for all hypotheses."""
        layers: Any = self._model.decoder.layers
        return [layer.cross_attention.project_key_value(memory_BSD) for layer in layers]

    def new_state(self, sentences: int, width: int) -> RecordedState:  # type: ignore[override]
        """Make empty slots for some sentences, each with ``width`` hypotheses."""
        return RecordedState(self, width)

    def release(self, state: RecordedState) -> None:
        """Free the buckets of a state."""
        for bucket in self._buckets:
            if bucket.owner is not None and bucket.owner() is state:
                bucket.owner = None

    def take(self, size: BucketSize, crossed: list[tuple[Tensor, Tensor]]) -> Bucket:
        """Find a free bucket of a size, or make one; if memory is short, drop free ones before."""
        for bucket in self._buckets:
            if bucket.size == size and bucket.is_free:
                return bucket
        if sum(bucket.num_bytes for bucket in self._buckets) > MOST_BYTES:
            for bucket in [one for one in self._buckets if one.is_free]:
                for has_parents in (False, True):
                    self._schedule.forget((bucket, has_parents))
                self._buckets.remove(bucket)
        self._buckets.append(Bucket(size, crossed, self.vocabulary_size))
        return self._buckets[-1]

    @torch.inference_mode()
    def step(  # type: ignore[override]
        self, state: RecordedState, newest_A: Tensor, is_growing_A: Tensor | None = None
    ) -> Tensor:
        """Read a token of every row, and return the logits of the next: ``logits_AV``."""
        model = self._model
        if state.place >= model.decoder.max_length:  # It refuses, as in any other step.
            model.decoder.enter(
                newest_A[:, None], model.embedding_of("target"), Site("decoder"), offset=state.place
            )
        state.make_room()
        bucket = state.bucket
        assert bucket is not None
        rows_A = torch.arange(bucket.size.rows, device=newest_A.device)
        tokens_A = torch.zeros_like(rows_A)
        tokens_A[: state.num_rows] = newest_A
        values = {"newest_A": tokens_A, "place_1": torch.tensor([state.place])}
        if state.width > 1:
            if state.parents_A is not None:
                rows_A[: state.num_rows] = state.parents_A
            values["parents_A"] = rows_A
        self._schedule.run((bucket, state.width > 1), values, partial(self._compute, bucket))
        state.parents_A = None
        state.place += 1
        return bucket.logits_AV[: state.num_rows]

    @torch.inference_mode()
    def _compute(self, bucket: Bucket, buffers: Mapping[str, Tensor]) -> None:
        """Compute the logits of a bucket's rows."""
        model = self._model
        bucket.place_1.copy_(buffers["place_1"])
        if "parents_A" in buffers:
            for past in bucket.pasts:
                for one in past.tensors:
                    one.copy_(one.index_select(0, buffers["parents_A"]))
        site = Site("decoder")
        decoder = model.decoder
        newest_A1 = buffers["newest_A"][:, None]
        # The place is data; that it is not too large was seen before.
        x_A1D = embed(newest_A1, model.embedding_of("target"), model.config, site, end=1)
        positions_TD = decoder.positions_of(0, decoder.max_length, like=x_A1D)
        if positions_TD is not None:
            x_A1D = x_A1D + positions_TD.index_select(0, bucket.place_1)
        places_M = torch.arange(bucket.size.target, device=x_A1D.device)
        may_111M = (places_M <= bucket.place_1)[None, None, None]
        cross_A11S = bucket.mask_AS[:, None, None]
        for index, layer in enumerate(decoder.layers):
            cache = bucket.layers[index]
            # The source's keys and values are in the cache, so that nothing reads its vectors.
            x_A1D = layer(x_A1D, x_A1D, may_111M, cross_A11S, cache, site.within(index))
        bucket.logits_AV.copy_(model.logits(decoder.leave(x_A1D, site))[:, 0])


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
