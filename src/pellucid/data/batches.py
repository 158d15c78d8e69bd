"""Padded tensors for training and decoding.

Padding is on the right. Masks follow the rule of the package: True = may attend, here where
there is a token and not padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pellucid.data.store import Gathered, TokenStore
from pellucid.data.variants import EpochText
from pellucid.errors import DataError

__all__ = ["Batch", "make_batch", "make_source_batch"]


@final
@dataclass(frozen=True, eq=False)
class Batch:
    """Some pairs, ready for teacher forcing.

    Row by row, position t of ``target_in_BT`` is what the decoder reads and position t of
    ``target_out_BT`` what it is to predict: the targets, and the same shifted by one behind the
    start token.

    Args:
        source_BS: source ids, int64, each row ending in the end token.
        source_mask_BS: True where ``source_BS`` holds a token.
        target_in_BT: start token, then the target without its last token.
        target_out_BT: the target, ending in the end token.
        target_mask_BT: True where ``target_in_BT`` and ``target_out_BT`` hold a token.
        num_source_tokens: source tokens, padding not counted.
        num_target_tokens: target tokens to predict, padding not counted.
        guide_BTS: where a guided head should look, see `with_guide`; None without one.
    """

    source_BS: Tensor
    source_mask_BS: Tensor
    target_in_BT: Tensor
    target_out_BT: Tensor
    target_mask_BT: Tensor
    num_source_tokens: int
    num_target_tokens: int
    guide_BTS: Tensor | None = None


def make_batch(
    store: TokenStore | EpochText,
    indices: NDArray[np.int64],
    *,
    pad_id: int,
    start_id: int,
    pad_to: int = 0,
    turned: NDArray[np.bool_] | None = None,
) -> Batch:
    """Take some pairs out of a store and pad them.

    Args:
        store: the tokens.
        indices: which pairs, in which order.
        pad_id: fills the places without a token.
        start_id: what every target starts from.
        pad_to: the fixed length of every sequence; 0 pads to the longest of the batch.
        turned: of which pairs source and target change places; None: of none.

    Returns:
        The batch.

    Raises:
        DataError: a sequence is longer than ``pad_to``.

    Source:
        The fixed size: notes "Transformers", section 5.
    """
    sources, targets = store.gather_sources(indices), store.gather_targets(indices)
    if turned is not None:
        sources, targets = (
            _exchanged(sources, targets, turned),
            _exchanged(targets, sources, turned),
        )
    (source_tokens, source_lengths), (target_tokens, target_lengths) = sources, targets
    if pad_to:
        _check_fixed_size(indices, source_lengths, side="source", pad_to=pad_to)
        _check_fixed_size(indices, target_lengths, side="target", pad_to=pad_to)
    source_BS, source_mask_BS = _pad(source_tokens, source_lengths, pad_id=pad_id, width=pad_to)
    target_out_BT, target_mask_BT = _pad(target_tokens, target_lengths, pad_id=pad_id, width=pad_to)
    target_in_BT = torch.full_like(target_out_BT, start_id)
    target_in_BT[:, 1:] = target_out_BT[:, :-1]
    # The end token of a shorter row has moved into the first padded place.
    target_in_BT.masked_fill_(~target_mask_BT, pad_id)
    return Batch(
        source_BS=source_BS,
        source_mask_BS=source_mask_BS,
        target_in_BT=target_in_BT,
        target_out_BT=target_out_BT,
        target_mask_BT=target_mask_BT,
        num_source_tokens=len(source_tokens),
        num_target_tokens=len(target_tokens),
    )


def make_source_batch(sequences: Sequence[Sequence[int]], *, pad_id: int) -> tuple[Tensor, Tensor]:
    """Pad sources for decoding.

    Args:
        sequences: the ids of each source, ending in the end token.
        pad_id: fills the places without a token.

    Returns:
        ``source_BS`` (int64) and ``source_mask_BS`` (True where there is a token).
    """
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    tokens = np.fromiter(
        (token for sequence in sequences for token in sequence), np.int64, int(lengths.sum())
    )
    return _pad(tokens, lengths, pad_id=pad_id, width=0)


def _exchanged(own: Gathered, other: Gathered, turned: NDArray[np.bool_]) -> Gathered:
    """The rows of one gathering, some of them the other's."""
    own_rows, other_rows = (
        np.split(tokens, np.cumsum(lengths)[:-1]) for tokens, lengths in (own, other)
    )
    rows = [
        other_row if is_turned else own_row
        for own_row, other_row, is_turned in zip(own_rows, other_rows, turned, strict=True)
    ]
    return np.concatenate(rows), np.where(turned, other[1], own[1])


def _pad(
    tokens: NDArray[np.int64], lengths: NDArray[np.int64], *, pad_id: int, width: int
) -> tuple[Tensor, Tensor]:
    """Lay tokens that follow each other into rows of equal width; 0 means the longest row's."""
    width = width or int(lengths.max(initial=0))
    mask = np.arange(width) < lengths[:, None]
    padded = np.full(mask.shape, pad_id, dtype=np.int64)
    padded[mask] = tokens
    return torch.from_numpy(padded), torch.from_numpy(mask)


def _check_fixed_size(
    indices: NDArray[np.int64], lengths: NDArray[np.int64], *, side: str, pad_to: int
) -> None:
    """Refuse a sequence that is longer than the fixed size."""
    row = int(lengths.argmax())
    if lengths[row] > pad_to:
        raise DataError(
            f"With data.pad_to every {side} must have at most {pad_to} tokens, but one has "
            f"{lengths[row]} (pair {indices[row]} of the stored training text, from 0). "
            "Raise data.pad_to, or lower data.max_length to leave such pairs out."
        )
