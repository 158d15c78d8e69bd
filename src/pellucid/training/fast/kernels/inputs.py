"""The inputs of passes on kernels: sentences as rows, without padding; and what a pass saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from pellucid.native.kernels.calls import DropoutBytes

AddLosses = Callable[[str, Sequence[Tensor], Sequence[Tensor]], None]
"""Adds to the gradients of a place's queries and keys, as `AttentionLosses.add_gradients` does."""

Tape = list[Any]
"""What the forward pass saves. Each backward step removes what its forward step added last."""


class PackedSentences(NamedTuple):
    """Sentences as rows, one after the other, without padding.

    Attributes:
        ids_J: the token of each row.
        positions_J: its position in its sentence.
        start_X: the first row of each sentence, and the end of the last.
        longest: positions of the longest sentence.
    """

    ids_J: Tensor
    positions_J: Tensor
    start_X: Tensor
    longest: int

    @classmethod
    def of(cls, ids_BL: Tensor, mask_BL: Tensor) -> PackedSentences:
        """Pack padded sentences."""
        start_X = torch.zeros(len(ids_BL) + 1, dtype=torch.int64)
        torch.cumsum(mask_BL.sum(dim=1), dim=0, out=start_X[1:])
        positions_BL = torch.arange(ids_BL.shape[1]).expand_as(ids_BL)
        return cls(ids_BL[mask_BL], positions_BL[mask_BL], start_X, ids_BL.shape[1])


@dataclass(frozen=True)
class StackPass:
    """One pass through an encoder or decoder.

    Attributes:
        sentences: those of the rows.
        dropout: random bytes for each place that drops something; the forward pass takes them out.
        memory_ID: the encoder's output, for cross-attention.
        memory_sentences: those of its rows.
        tape: what the forward pass saves for backward.
        add_losses: adds the gradients of losses of attention, if there are any.
    """

    sentences: PackedSentences
    dropout: dict[str, DropoutBytes]
    memory_ID: Tensor | None = None
    memory_sentences: PackedSentences | None = None
    tape: Tape = field(default_factory=list)
    add_losses: AddLosses | None = None


def require_ids(ids_J: Tensor, vocabulary: int) -> None:
    """Refuse tokens outside of the vocabulary: kernels would read past the end of its table.

    Raises:
        IndexError: as in PyTorch's own lookup.
    """
    least, most = (int(bound) for bound in torch.aminmax(ids_J))
    if least < 0 or most >= vocabulary:
        raise IndexError(f"token ids from {least} to {most} in a vocabulary of {vocabulary}")
