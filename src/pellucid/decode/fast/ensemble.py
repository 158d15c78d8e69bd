"""Several models as one: the mean of their softmaxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pellucid.decode.logits import log_normalizer
from pellucid.decode.search.loop import Stepper
from pellucid.errors import InputError


@dataclass(frozen=True)
class _States:
    """The states of all members, which change together."""

    members: tuple[Any, ...]

    def insert(self, slots_X: Tensor, memories: Sequence[Any], chosen_X: Tensor) -> None:
        for state, memory in zip(self.members, memories, strict=True):
            state.insert(slots_X, memory, chosen_X)

    def retire(self, slots_X: Tensor) -> None:
        for state in self.members:
            state.retire(slots_X)

    def keep(self, slots_B: Tensor) -> None:
        for state in self.members:
            state.keep(slots_B)

    def reorder(self, parents_BW: Tensor) -> None:
        for state in self.members:
            state.reorder(parents_BW)


class Ensemble:
    r"""Decodes with $p(w) = \frac{1}{n} \sum_i p_i(w)$, for models with one target vocabulary.

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
        self.members = tuple(members)
        self.device = members[0].device

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens in each row of logits."""
        return self.members[0].vocabulary_size

    def encode(self, sources: Sequence[Sequence[int]]) -> list[Any]:
        """Read source sentences with every member."""
        return [member.encode(sources) for member in self.members]

    def new_state(self, sentences: int, width: int) -> Any:
        """Make empty slots for every member."""
        return _States(tuple(member.new_state(sentences, width) for member in self.members))

    @torch.inference_mode()
    def step(self, states: Any, newest_A: Tensor, is_growing_A: Tensor | None = None) -> Tensor:
        """Read a token of every row; return the logarithm of the mean probability: ``logs_AV``."""
        logs = []
        for member, state in zip(self.members, states.members, strict=True):
            logits_AV = member.step(state, newest_A, is_growing_A)
            logs.append(logits_AV.sub_(log_normalizer(logits_AV)[:, None]))
        return torch.stack(logs).logsumexp(dim=0).sub_(math.log(len(logs)))
