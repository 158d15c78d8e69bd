"""The steps of a search under a probe, on PyTorch with a cache.

A step computes the newest row of each hypothesis. The probe is handed that row with those before it
and may replace it, so that a change written for a whole sentence means the same in every search.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from pellucid.attention.checks import fitted
from pellucid.attention.probe import wants
from pellucid.config import Precision
from pellucid.data import make_source_batch
from pellucid.decode.probing.under_probe import OneByOne, Reading, UnderProbe
from pellucid.decode.steppers import ModelState, ModelStepper, SourceMemory
from pellucid.model import EncoderDecoder


class ProbedMemory(NamedTuple):
    """Encoded sentences with the tokens that a probe's `begin` gets."""

    source: SourceMemory
    ids: Sequence[tuple[int, ...]]


class RowsSoFar:
    """A probe of one step: hands on all rows so far, and takes the newest back.

    Args:
        under: the probe.

    Attributes:
        growing: the rows of the batch that anything continues.
        readings: of each row of the batch, what it reads.
    """

    def __init__(self, under: UnderProbe) -> None:
        self._under = under
        self._probe = under.probe
        # As they were computed: what stands before has had its effect.
        self._computed: dict[tuple[str, str], Tensor] = {}
        self.growing: list[int] = []
        self.readings: list[Reading] = []

    @property
    def sites(self) -> Any:
        """The sites whose attention the probe wants to see."""
        return getattr(self._probe, "sites", None)

    def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
        """Hand on a result with its earlier rows; return it with what the probe replaced."""
        if not wants(self._probe, site, stage):
            return None
        # Keys and values are of positions, all of which each step sees.
        is_whole = stage in ("key", "value")
        rows_A = tensor if is_whole else self._extend(site, stage, tensor)
        newest = slice(None) if is_whole else slice(-1, None)
        if self._under.takes_batches:
            found = self._probe.see(site, stage, rows_A.clone())
            return None if found is None else fitted(found, rows_A, site, stage)[..., newest, :]
        one_by_one = OneByOne(self._probe, self.readings, self.growing)
        joined = one_by_one.see(site, stage, rows_A)
        return None if joined is None else joined[..., newest, :]

    def reorder(self, rows_A: Tensor) -> None:
        """Keep the listed rows of the batch, in that order."""
        for name, tensor in self._computed.items():
            self._computed[name] = tensor.index_select(0, rows_A)

    def _extend(self, site: str, stage: str, newest: Tensor) -> Tensor:
        """Append the newest row to those before it."""
        before = self._computed.get((site, stage))
        if before is None:
            # A search writes into its logits.
            rows = newest.clone()
        else:
            # An earlier row of weights had fewer keys: it may not see those to come.
            missing = newest.shape[-1] - before.shape[-1]
            hidden = -torch.inf if stage == "masked" else 0.0
            rows = torch.cat([F.pad(before, (0, missing), value=hidden), newest], dim=-2)
        self._computed[site, stage] = rows
        return rows


class ProbedState(ModelState):
    """A model's cache with the rows that a probe has seen, and the tokens of each hypothesis."""

    def __init__(self, model: EncoderDecoder, width: int, under: UnderProbe) -> None:
        super().__init__(model, width)
        self._under = under

    def insert(  # type: ignore[override]
        self, slots_X: Tensor, memory: ProbedMemory, chosen_X: Tensor
    ) -> None:
        """Start sentences in all slots."""
        super().insert(slots_X, memory.source, chosen_X)
        self.probe = RowsSoFar(self._under)
        chosen = chosen_X.repeat_interleave(self._width).tolist()
        begun = [self._under.reading(ids) for ids in memory.ids]
        self.readings = [begun[index] for index in chosen]

    def read(self, newest_A: Tensor, is_growing_A: Tensor | None) -> None:
        """Note the tokens that the next rows read."""
        self.readings = [
            replace(one, read_ids=(*one.read_ids, token))
            for one, token in zip(self.readings, newest_A.tolist(), strict=True)
        ]
        everyone = list(range(len(self.readings)))
        self.probe.readings = self.readings
        self.probe.growing = (
            everyone if is_growing_A is None else is_growing_A.nonzero()[:, 0].tolist()
        )

    def take(self, rows_A: Tensor) -> None:
        """Keep the listed rows, in that order."""
        super().take(rows_A)
        self.probe.reorder(rows_A)
        self.readings = [self.readings[row] for row in rows_A.tolist()]


class ProbedStepper(ModelStepper):
    """A model under a probe: the results of `ModelStepper`, changed on the way.

    Args:
        model: the weights.
        precision: as there.
        dtype: as there.
        under: the probe.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        precision: Precision,
        under: UnderProbe,
        *,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(model, precision, dtype=dtype)
        self._under = under
        config = model.config
        # Later rows would reach earlier ones, or a changed state be carried on, as in no one pass.
        is_attention = config.decoder == "attention" and config.look_ahead_mask
        self._is_cached = is_attention and not config.is_recurrent

    @torch.inference_mode()
    def encode(self, sources: Sequence[Sequence[int]]) -> Any:
        """Read sentences of at least one token each, under the probe."""
        memory_BSD = pad_sequence(self._under.encode(sources, self._model), batch_first=True)
        mask_BS = make_source_batch(sources, pad_id=0)[1].to(self.device)
        is_padded = len(set(map(len, sources))) > 1
        source = SourceMemory(memory_BSD, mask_BS if is_padded else None)
        if not self._under.reaches_decoder:
            return source
        return ProbedMemory(source, [tuple(ids) for ids in sources])

    def new_state(self, sentences: int, width: int) -> ModelState:
        """Make empty slots for some sentences, each with ``width`` hypotheses."""
        if not self._under.reaches_decoder:
            return super().new_state(sentences, width)
        return ProbedState(self._model, width, self._under)

    @torch.inference_mode()
    def step(self, state: Any, newest_A: Tensor, is_growing_A: Tensor | None = None) -> Tensor:
        """Read a token of every row, and return the logits of the next: ``logits_AV``."""
        if not self._under.reaches_decoder:
            return super().step(state, newest_A, is_growing_A)
        state.read(newest_A, is_growing_A)
        if not self._is_cached:
            return self._step_again(state)
        probe = state.probe
        source = state.source
        states_A1D = self._model.decode(
            newest_A[:, None],
            source.memory_BSD,
            source.mask_BS,
            cache=state.cache,
            probe=probe,
        )
        logits_AV = self._model.logits(states_A1D, probe=probe)[:, 0]
        return logits_AV.float() if logits_AV.dtype == torch.bfloat16 else logits_AV

    def _step_again(self, state: ProbedState) -> Tensor:
        """Compute all rows of each hypothesis again, for a model whose rows need one pass."""
        logits_AV = state.source.memory_BSD.new_zeros(len(state.readings), self.vocabulary_size)
        probe = self._under.probe
        for row in state.probe.growing:
            reading = state.readings[row]
            memory_1SD = state.source.memory_BSD[row : row + 1, : len(reading.source_ids)]
            read_1T = torch.tensor([list(reading.read_ids)], device=self.device)
            probe.begin(reading)
            states_1TD = self._model.decode(read_1T, memory_1SD, probe=probe)
            logits_AV[row] = self._model.logits(states_1TD, probe=probe)[0, -1]
        return logits_AV
