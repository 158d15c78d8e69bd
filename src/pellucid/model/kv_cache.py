"""What decoding keeps between steps, keys and values or a state, so that one step costs one row."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


class GrowingKeysValues:
    """The keys and values of one masked self-attention, growing by one row a step.

    They live in buffers that double when full, so that most appends copy only the new row.
    """

    def __init__(self) -> None:
        self.length = 0
        self._key_BHMK: Tensor | None = None
        self._value_BHME: Tensor | None = None

    def append(self, key_BHLK: Tensor, value_BHLE: Tensor) -> tuple[Tensor, Tensor]:
        """Add the newest rows and return all so far: ``key_BHMK``, ``value_BHME``."""
        end = self.length + key_BHLK.shape[2]
        self._key_BHMK = _with_room(self._key_BHMK, key_BHLK, end)
        self._value_BHME = _with_room(self._value_BHME, value_BHLE, end)
        self._key_BHMK[:, :, self.length : end] = key_BHLK
        self._value_BHME[:, :, self.length : end] = value_BHLE
        self.length = end
        return self._key_BHMK[:, :, :end], self._value_BHME[:, :, :end]

    def reorder(self, rows_B: Tensor) -> None:
        """Keep the listed batch rows, in that order; a row may be listed several times."""
        if self._key_BHMK is None or self._value_BHME is None:
            return
        self._key_BHMK = self._key_BHMK.index_select(0, rows_B)
        self._value_BHME = self._value_BHME.index_select(0, rows_B)


def _with_room(buffer: Tensor | None, rows: Tensor, end: int) -> Tensor:
    if buffer is not None and end <= buffer.shape[2]:
        return buffer
    batch, heads, _, width = rows.shape
    # Not zeros, because rows behind the length are never read.
    grown = rows.new_empty(batch, heads, max(16, 2 * end), width)
    if buffer is not None:
        grown[:, :, : buffer.shape[2]] = buffer
    return grown


class LastState:
    """The state of one recurrent unit, which stands for all positions read so far."""

    def __init__(self) -> None:
        self.length = 0
        self.state_BD: Tensor | None = None

    def extend(self, state_BTD: Tensor) -> None:
        """Keep the last of the states at new positions."""
        self.length += state_BTD.shape[1]
        self.state_BD = state_BTD[:, -1]

    def reorder(self, rows_B: Tensor) -> None:
        """Keep the listed batch rows, in that order; a row may be listed several times."""
        if self.state_BD is not None:
            self.state_BD = self.state_BD.index_select(0, rows_B)


@dataclass
class LayerCache:
    """What one decoder layer keeps of the target, and the source's keys and values.

    Those of the source are there from the first step on.
    """

    past: GrowingKeysValues | LastState
    cross_attention: tuple[Tensor, Tensor] | None = None


class DecoderCache:
    """What every decoder layer keeps, for one batch of target sentences.

    `reorder` serves beams and drops finished rows.
    """

    def __init__(self, num_layers: int, *, is_recurrent: bool = False) -> None:
        make_past = LastState if is_recurrent else GrowingKeysValues
        self.layers = [LayerCache(make_past()) for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """The number of target positions read so far."""
        return self.layers[0].past.length

    def reorder(self, rows_B: Tensor) -> None:
        """Keep the listed batch rows, in that order.

        The caller does the same to ``memory_BSD`` and ``source_mask_BS``.
        """
        for layer in self.layers:
            layer.past.reorder(rows_B)
            if layer.cross_attention is not None:
                # Within a beam this copies equal rows, for less than 2 %: docs/decisions/0022.
                key, value = layer.cross_attention
                layer.cross_attention = (
                    torch.index_select(key, 0, rows_B),
                    torch.index_select(value, 0, rows_B),
                )
