"""The keys and values that decoding keeps between steps, for sentences that come and go.

All rows share one axis of columns. A sentence that enters later begins at a later column, and
does not see the columns before; so a step writes one column for all rows, whatever their lengths.
Columns that no row sees any more are dropped when room is needed.

The hypotheses of a sentence attend together, over the columns of all of them, each through a mask
that shows it only its own past. When one hypothesis replaces another, only the small masks move;
the keys and values stay in their places.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.config import ModelConfig

FIRST_COLUMNS = 32
"""The columns to allocate at first; they double when they are full."""


@dataclass(frozen=True)
class Memory:
    """Encoded sentences: the keys and values of every decoder layer's cross-attention.

    ``key_NBHSK`` and ``value_NBHSE`` are padded on the right, from ``length_B`` on.
    """

    key_NBHSK: Tensor
    value_NBHSE: Tensor
    length_B: Tensor


class DecoderState:
    """Keys and values of the sentences in some slots, each with ``width`` rows (its hypotheses).

    Row b · width + w is hypothesis w of slot b; its key in column c is key c · width + w of the
    slot. All hypotheses share one copy of the source's keys and values.
    """

    def __init__(
        self,
        config: ModelConfig,
        sentences: int,
        width: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.sentences = sentences
        self.width = width
        self.longest = 0
        self.self_mask: Tensor | None = None
        self.cross_mask: Tensor | None = None
        layers, heads = config.num_decoder_layers, config.num_heads
        self._dtype, self._device = dtype, device
        self._key_NBHMK = self._zeros(layers, sentences, heads, FIRST_COLUMNS * width, config.d_key)
        self._value_NBHME = self._zeros(
            layers, sentences, heads, FIRST_COLUMNS * width, config.d_value
        )
        self._hidden_B1WM = self._zeros(sentences, 1, width, FIRST_COLUMNS * width)
        # A hypothesis sees its own newest token, and none of the others'.
        self._newest_WW = self._zeros(width, width).fill_(-math.inf).fill_diagonal_(0)
        self._key_NBHSK = self._zeros(layers, sentences, heads, 0, config.d_key)
        self._value_NBHSE = self._zeros(layers, sentences, heads, 0, config.d_value)
        self._source_length_B = torch.ones(sentences, dtype=torch.long, device=device)
        self._start_B = torch.zeros(sentences, dtype=torch.long, device=device)
        self._is_empty_B = torch.ones(sentences, dtype=torch.bool, device=device)
        self._first = 0
        self._end = 0

    def insert(self, slots_X: Tensor, memory: Memory, chosen_X: Tensor) -> None:
        """Start encoded sentences in some slots, at the next column.

        Args:
            slots_X: the slots; sentences in them are replaced.
            memory: encoded sentences.
            chosen_X: the indices of those to start.
        """
        length_X = memory.length_B[chosen_X]
        longest = int(length_X.max())
        if longest > self._key_NBHSK.shape[3]:
            more = longest - self._key_NBHSK.shape[3]
            self._key_NBHSK = torch.nn.functional.pad(self._key_NBHSK, (0, 0, 0, more))
            self._value_NBHSE = torch.nn.functional.pad(self._value_NBHSE, (0, 0, 0, more))
        self._key_NBHSK[:, slots_X, :, :longest] = memory.key_NBHSK[:, chosen_X, :, :longest]
        self._value_NBHSE[:, slots_X, :, :longest] = memory.value_NBHSE[:, chosen_X, :, :longest]
        self._source_length_B[slots_X] = length_X
        self._start_B[slots_X] = self._end
        self._hidden_B1WM[slots_X] = -math.inf
        self._is_empty_B[slots_X] = False
        self._mask_source()

    def retire(self, slots_X: Tensor) -> None:
        """Mark slots as empty, so that they need no columns, neither of source nor of target."""
        self._source_length_B[slots_X] = 1
        self._is_empty_B[slots_X] = True

    def keep(self, slots_B: Tensor) -> None:
        """Keep only these slots."""
        self.sentences = len(slots_B)
        for name in ("_key_NBHMK", "_value_NBHME", "_key_NBHSK", "_value_NBHSE"):
            setattr(self, name, getattr(self, name).index_select(1, slots_B))
        for name in ("_hidden_B1WM", "_source_length_B", "_start_B", "_is_empty_B"):
            setattr(self, name, getattr(self, name)[slots_B])
        self._mask_source()

    def reorder(self, parents_BW: Tensor) -> None:
        """Let every hypothesis continue another one of its sentence.

        Args:
            parents_BW: the column of that other one.
        """
        seen = slice(self._first * self.width, self._end * self.width)
        hidden_BWM = self._hidden_B1WM[:, 0, :, seen]
        parents_BWM = parents_BW[:, :, None].expand(hidden_BWM.shape)
        self._hidden_B1WM[:, 0, :, seen] = hidden_BWM.gather(1, parents_BWM)

    def advance(self) -> Tensor:
        """Add a column, and return the position of the newest token of each row: ``length_A``."""
        # An empty slot sees only the newest column, so that older ones can be dropped.
        self._start_B.masked_fill_(self._is_empty_B, self._end)
        self._first = int(self._start_B.min())
        if self._end * self.width == self._key_NBHMK.shape[3]:
            self._make_room()
        newest = slice(self._end * self.width, (self._end + 1) * self.width)
        self._hidden_B1WM[:, 0, :, newest] = self._newest_WW
        self._end += 1
        length_B = self._end - 1 - self._start_B
        self.longest = self._end - self._first
        is_ragged = self.width > 1 or int(length_B.min()) + 1 < self.longest
        self.self_mask = None
        if is_ragged:
            self.self_mask = self._hidden_B1WM[..., self._first * self.width : newest.stop]
        return length_B.repeat_interleave(self.width)

    def append(self, layer: int, key_AHK: Tensor, value_AHE: Tensor) -> tuple[Tensor, Tensor]:
        """Write the newest column, and return all columns that some row sees.

        Returns:
            ``key_BHMK``, ``value_BHME``, for queries of all hypotheses with `self_mask`.
        """
        newest = slice((self._end - 1) * self.width, self._end * self.width)
        seen = slice(self._first * self.width, self._end * self.width)
        key_BHMK, value_BHME = self._key_NBHMK[layer], self._value_NBHME[layer]
        key_BHMK[:, :, newest] = self.by_sentence(key_AHK)
        value_BHME[:, :, newest] = self.by_sentence(value_AHE)
        return key_BHMK[:, :, seen], value_BHME[:, :, seen]

    def by_sentence(self, rows_AHK: Tensor) -> Tensor:
        """Group the rows of all hypotheses by sentence: ``rows_BHWK``."""
        return rows_AHK.view(self.sentences, self.width, *rows_AHK.shape[1:]).transpose(1, 2)

    def memory(self, layer: int) -> tuple[Tensor, Tensor]:
        """Read the source's keys and values of one layer: ``key_BHSK``, ``value_BHSE``."""
        return (
            self._key_NBHSK[layer, :, :, : self._longest_source],
            self._value_NBHSE[layer, :, :, : self._longest_source],
        )

    def _mask_source(self) -> None:
        self._longest_source = int(self._source_length_B.max())
        self.cross_mask = None
        if int(self._source_length_B.min()) < self._longest_source:
            columns_S = torch.arange(self._longest_source, device=self._device)
            hidden_BS = columns_S >= self._source_length_B[:, None]
            mask_BS = self._zeros(*hidden_BS.shape).masked_fill_(hidden_BS, -math.inf)
            self.cross_mask = mask_BS[:, None, None]

    def _make_room(self) -> None:
        """Drop the columns that no row sees, and double the room if too few are free then."""
        capacity = self._key_NBHMK.shape[3]
        seen = slice(self._first * self.width, self._end * self.width)
        used = seen.stop - seen.start
        capacity = 2 * capacity if 2 * used > capacity else capacity
        for name in ("_key_NBHMK", "_value_NBHME"):
            old = getattr(self, name)
            new = self._zeros(*old.shape[:3], capacity, old.shape[4])
            new[:, :, :, :used] = old[:, :, :, seen]
            setattr(self, name, new)
        hidden_B1WM = self._zeros(self.sentences, 1, self.width, capacity)
        hidden_B1WM[..., :used] = self._hidden_B1WM[..., seen]
        self._hidden_B1WM = hidden_B1WM
        self._start_B -= self._first
        self._end, self._first = self._end - self._first, 0

    def _zeros(self, *shape: int) -> Tensor:
        return torch.zeros(shape, dtype=self._dtype, device=self._device)
