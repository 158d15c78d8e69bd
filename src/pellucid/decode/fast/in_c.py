"""The engine in C as the model of a search in Python: one call a step."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid.machine.hardware import threads_in_use
from pellucid.native import Encoded, NativeEngine, Session


class NativeState:
    """Slots of the engine, as a search changes them; see `DecoderState`."""

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
        """Let every hypothesis continue another one of its sentence."""
        self.session.reorder(parents_BW.numpy())


class NativeStepper:
    """The engine with the interface of `Engine`.

    A row's logits have the same bits whatever other rows are computed, with any number of threads.

    Args:
        engine: one without an obstacle.
    """

    def __init__(self, engine: NativeEngine) -> None:
        self._engine = engine
        self.device = torch.device("cpu")

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens in each row of logits."""
        return self._engine.config.target_vocabulary_size

    def encode(self, sources: Sequence[Sequence[int]]) -> Encoded:
        """Read source sentences, and compute the keys and values that the decoder attends to."""
        return self._engine.encode(sources, threads=threads_in_use())

    def new_state(self, sentences: int, width: int) -> NativeState:
        """Make empty slots for some sentences, each with ``width`` hypotheses."""
        return NativeState(self._engine.open_session(sentences=sentences, width=width))

    def step(
        self, state: NativeState, newest_A: Tensor, is_growing_A: Tensor | None = None
    ) -> Tensor:
        """Read one more token of every row, or of those that grow.

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
