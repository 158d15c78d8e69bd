"""The models of a search in Python, one step at a time: on PyTorch, in C, or several as one.

A search makes slots for sentences, each with ``width`` hypotheses. Row b · width + w is hypothesis
w of slot b.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from pellucid.config import Precision
from pellucid.data import make_source_batch
from pellucid.decode.logits import log_normalizer
from pellucid.decode.probing.under_probe import UnderProbe
from pellucid.errors import InputError
from pellucid.machine.hardware import threads_in_use
from pellucid.model import EncoderDecoder
from pellucid.native.engine import NativeEngine
from pellucid.native.session import Encoded, Session


class SlotState(Protocol):
    """The sentences in the slots of a search."""

    def insert(self, slots_X: Tensor, memory: Any, chosen_X: Tensor) -> None:
        """Start some of the encoded sentences in slots, whose sentences are replaced."""

    def retire(self, slots_X: Tensor) -> None:
        """Empty slots, whose logits are needed no more."""

    def keep(self, slots_B: Tensor) -> None:
        """Keep only these slots."""

    def reorder(self, parents_BW: Tensor) -> None:
        """Let every hypothesis continue another one of its sentence, given by its column."""


class Stepper(Protocol):
    """A model, or several together, as a search needs it.

    Attributes:
        device: of the logits.
        starts_together: True if a state takes new sentences only when all of its slots are empty.
    """

    device: torch.device
    starts_together: bool

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens in each row of logits."""

    def encode(self, sources: Sequence[Sequence[int]]) -> Any:
        """Read sentences of at least one token each; the result is for `SlotState.insert`."""

    def new_state(self, sentences: int, width: int) -> SlotState:
        """Make empty slots for some sentences, each with ``width`` hypotheses."""

    def step(self, state: Any, newest_A: Tensor, is_growing_A: Tensor | None = None) -> Tensor:
        """Read a token of every row, and return the logits of the next: ``logits_AV``.

        They may be written into. Those of rows that do not grow may be any finite numbers.
        """


class SourceMemory(NamedTuple):
    """Encoded sentences; the mask is None if nothing is padding."""

    memory_BSD: Tensor
    mask_BS: Tensor | None

    def choose(self, rows_A: Tensor) -> SourceMemory:
        """Take the sentences of some rows."""
        mask_BS = self.mask_BS
        mask_AS = None if mask_BS is None else mask_BS.index_select(0, rows_A)
        return SourceMemory(self.memory_BSD.index_select(0, rows_A), mask_AS)


class ModelState:
    """A model's cache, and the source of each row; all sentences are at the same token."""

    def __init__(self, model: EncoderDecoder, width: int) -> None:
        self._model = model
        self._width = width

    def insert(self, slots_X: Tensor, memory: SourceMemory, chosen_X: Tensor) -> None:
        """Start sentences in all slots."""
        self.cache = self._model.new_cache()
        # A row for each hypothesis: the model knows rows of a batch, not the sentences of a beam.
        self.source = memory.choose(chosen_X.repeat_interleave(self._width))

    def retire(self, slots_X: Tensor) -> None:
        """Do nothing: an empty slot is computed until it is dropped."""

    def keep(self, slots_B: Tensor) -> None:
        """Keep only these slots."""
        columns_W = torch.arange(self._width, device=slots_B.device)
        rows_A = (slots_B[:, None] * self._width + columns_W).flatten()
        self.take(rows_A)
        self.source = self.source.choose(rows_A)

    def reorder(self, parents_BW: Tensor) -> None:
        """Let every hypothesis continue another one of its sentence, given by its column."""
        # The sources stay where they are, because a parent is of the same sentence.
        sentences_B = torch.arange(len(parents_BW), device=parents_BW.device)
        self.take((sentences_B[:, None] * self._width + parents_BW).flatten())

    def take(self, rows_A: Tensor) -> None:
        """Keep what the listed rows have read, in that order."""
        self.cache.reorder(rows_A)


class ModelStepper:
    """A model of either architecture, with its cache.

    Args:
        model: the weights.
        precision: bfloat16 rounds everything; int8, which only the engine in C has, is float32.
        dtype: float64 is for results that must not depend on rounding.

    Raises:
        InputError: a recurrent model was asked for another precision than float32.
    """

    # The cache has one length for all rows: docs/decisions/0022.
    starts_together = True

    def __init__(
        self,
        model: EncoderDecoder,
        precision: Precision = "float32",
        *,
        dtype: torch.dtype | None = None,
    ) -> None:
        if model.config.is_recurrent and precision != "float32":
            raise InputError(
                f"The precision of a recurrent model must be float32, but is {precision}: its "
                "states would add up the rounding of every step. Leave the precision out."
            )
        own = model.output_weight.dtype
        dtype = dtype or (torch.bfloat16 if precision == "bfloat16" else own)
        # A copy, since `to` would change the caller's own model.
        self._model = model if dtype == own else copy.deepcopy(model).to(dtype)
        self.device = model.output_weight.device

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens in each row of logits."""
        return self._model.config.target_vocabulary_size

    @torch.inference_mode()
    def encode(self, sources: Sequence[Sequence[int]]) -> SourceMemory:
        """Read sentences of at least one token each."""
        # Padding is never attended to; any id that exists will do.
        batch = make_source_batch(sources, pad_id=0)
        source_BS, mask_BS = (one.to(self.device) for one in batch)
        # Attention is faster without a mask, so sentences of one length get none.
        is_padded = len(set(map(len, sources))) > 1
        memory_BSD = self._model.encode(source_BS, mask_BS if is_padded else None)
        return SourceMemory(memory_BSD, mask_BS if is_padded else None)

    def new_state(self, sentences: int, width: int) -> ModelState:
        """Make empty slots for some sentences, each with ``width`` hypotheses."""
        return ModelState(self._model, width)

    @torch.inference_mode()
    def step(
        self, state: ModelState, newest_A: Tensor, is_growing_A: Tensor | None = None
    ) -> Tensor:
        """Read a token of every row, and return the logits of the next: ``logits_AV``."""
        newest_A1 = newest_A[:, None]
        states_A1D = self._model.decode(newest_A1, *state.source, cache=state.cache)
        logits_AV = self._model.logits(states_A1D)[:, 0]
        # The softmax and the sums of the search need more than bfloat16's 8 significant bits.
        return logits_AV.float() if logits_AV.dtype == torch.bfloat16 else logits_AV


class _NativeState:
    """Slots of the engine in C."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def insert(self, slots_X: Tensor, memory: Encoded, chosen_X: Tensor) -> None:
        """Start encoded sentences in some slots."""
        self.session.insert(slots_X.tolist(), memory, chosen_X.tolist())

    def retire(self, slots_X: Tensor) -> None:
        """Empty slots, so that nothing is computed for them."""
        self.session.retire(slots_X.tolist())

    def keep(self, slots_B: Tensor) -> None:
        """Keep only these slots."""
        self.session.keep(slots_B.tolist())

    def reorder(self, parents_BW: Tensor) -> None:
        """Let every hypothesis continue another one of its sentence, given by its column."""
        self.session.reorder(parents_BW.numpy())


class NativeStepper:
    """The engine in C: one call a step.

    A row's logits have the same bits whatever other rows are computed, with any number of threads.

    Args:
        engine: one without an obstacle.
        under: a probe that changes the encoder.
    """

    # Every slot has its own keys and values, so a sentence may start at any step.
    starts_together = False

    def __init__(self, engine: NativeEngine, under: UnderProbe | None = None) -> None:
        self._engine = engine
        self._under = under
        self.device = torch.device("cpu")

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens in each row of logits."""
        return self._engine.config.target_vocabulary_size

    def encode(self, sources: Sequence[Sequence[int]]) -> Encoded:
        """Read sentences, and compute the keys and values that the decoder attends to."""
        given = None if self._under is None else self._under.vectors(sources)
        return self._engine.encode(sources, given, threads=threads_in_use())

    def new_state(self, sentences: int, width: int) -> _NativeState:
        """Make empty slots for some sentences, each with ``width`` hypotheses."""
        return _NativeState(self._engine.open_session(sentences=sentences, width=width))

    def step(
        self, state: _NativeState, newest_A: Tensor, is_growing_A: Tensor | None = None
    ) -> Tensor:
        """Read a token of every row, or of those that grow.

        Returns:
            ``logits_AV`` of the next, which share the engine's memory: they may be written into,
            and the next step replaces them. They are zeros for the other rows.
        """
        logits_AV = state.session.step(
            newest_A.numpy(),
            None if is_growing_A is None else is_growing_A.numpy(),
            threads=threads_in_use(),
        )
        return torch.from_numpy(logits_AV)


class _States:
    """The states of all members, which change together."""

    def __init__(self, members: Sequence[SlotState]) -> None:
        self.members = members

    def insert(self, slots_X: Tensor, memories: Sequence[Any], chosen_X: Tensor) -> None:
        """Start sentences in some slots of every member."""
        for state, memory in zip(self.members, memories, strict=True):
            state.insert(slots_X, memory, chosen_X)

    def retire(self, slots_X: Tensor) -> None:
        """Empty slots of every member."""
        for state in self.members:
            state.retire(slots_X)

    def keep(self, slots_B: Tensor) -> None:
        """Keep only these slots of every member."""
        for state in self.members:
            state.keep(slots_B)

    def reorder(self, parents_BW: Tensor) -> None:
        """Let every hypothesis continue another one of its sentence, given by its column."""
        for state in self.members:
            state.reorder(parents_BW)


class Ensemble:
    r"""Several models as one: $p(w) = \frac{1}{n} \sum_i p_i(w)$, over one target vocabulary.

    The members may differ in size and architecture. The same source ids must mean the same to all.

    Args:
        members: at least one.

    Raises:
        InputError: their vocabularies have different sizes.
    """

    def __init__(self, members: Sequence[Stepper]) -> None:
        sizes = {member.vocabulary_size for member in members}
        if len(sizes) > 1:
            raise InputError(
                "The models of an ensemble must share one target vocabulary, but theirs have "
                f"{' and '.join(str(size) for size in sorted(sizes))} tokens. "
                "Train them with one tokenizer."
            )
        self._members = tuple(members)
        self.device = members[0].device
        # All members fill the same slots, so the one that can do least decides.
        self.starts_together = any(member.starts_together for member in members)

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens in each row of logits."""
        return self._members[0].vocabulary_size

    def encode(self, sources: Sequence[Sequence[int]]) -> list[Any]:
        """Read sentences with every member."""
        return [member.encode(sources) for member in self._members]

    def new_state(self, sentences: int, width: int) -> _States:
        """Make empty slots for every member."""
        return _States([member.new_state(sentences, width) for member in self._members])

    @torch.inference_mode()
    def step(self, states: _States, newest_A: Tensor, is_growing_A: Tensor | None = None) -> Tensor:
        """Read a token of every row; return the logarithm of the mean probability: ``logs_AV``."""
        logs = []
        for member, state in zip(self._members, states.members, strict=True):
            logits_AV = member.step(state, newest_A, is_growing_A)
            # Normalized first, because logits of two models have no common zero.
            logs.append(logits_AV.sub_(log_normalizer(logits_AV)[:, None]))
        return torch.stack(logs).logsumexp(dim=0).sub_(math.log(len(logs)))
