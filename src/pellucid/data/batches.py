"""Padded tensors for training and decoding.

Padding is on the right. Masks follow the rule of the package, True = may attend: True for a token,
False for padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pellucid.data.segmentations import EpochText
from pellucid.data.token_store import Gathered, TokenStore


# Not compared by value, because tensors compare number by number.
@final
@dataclass(frozen=True, eq=False)
class Batch:
    """Some pairs, ready for teacher forcing.

    In each row the decoder reads position t of ``target_in_BT`` and learns to predict position t of
    ``target_out_BT``: the first is the second, shifted right by one behind the start token.

    Args:
        source_BS: source ids, int64, each row ending in the end token.
        source_mask_BS: True for the tokens of ``source_BS``, False for padding.
        target_in_BT: start token, then the target without its last token.
        target_out_BT: the target, ending in the end token.
        target_mask_BT: the same for ``target_in_BT`` and ``target_out_BT``.
        num_source_tokens: source tokens, without padding.
        num_target_tokens: target tokens to predict, without padding.
        guide_BTS: the weights that a guided head should have, see `with_guide`; None without one.
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
    turned: NDArray[np.bool_] | None = None,
    shape: tuple[int, int, int] | None = None,
) -> Batch:
    """Take pairs from a store and pad them.

    Args:
        store: the tokens.
        indices: the pairs, in order.
        pad_id: the id of padding.
        start_id: the token that every target starts from.
        turned: the pairs whose source and target change places; None for no pair.
        shape: rows, source and target positions to fill up to; by default those of the pairs. A
            row without a pair has no token.

    Returns:
        The batch.
    """
    sources = store.gather_sources(indices)
    targets = store.gather_targets(indices)
    if turned is not None:
        turned_sources = _exchange(sources, targets, turned)
        targets = _exchange(targets, sources, turned)
        sources = turned_sources
    source_tokens, source_lengths = sources
    target_tokens, target_lengths = targets
    rows, source_width, target_width = shape or (0, 0, 0)
    if turned is not None:
        # Either side may stand on the other.
        source_width = target_width = max(source_width, target_width)
    source_BS, source_mask_BS = _pad(
        source_tokens, source_lengths, pad_id=pad_id, least=(rows, source_width)
    )
    # A softmax over nothing is not a number, also in a row that nobody reads.
    source_mask_BS[len(indices) :, :1] = True
    target_out_BT, target_mask_BT = _pad(
        target_tokens, target_lengths, pad_id=pad_id, least=(rows, target_width)
    )
    target_in_BT = torch.full_like(target_out_BT, start_id)
    target_in_BT[:, 1:] = target_out_BT[:, :-1]
    # The end token of a shorter row was shifted into the first padded position.
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
        pad_id: the id of padding.

    Returns:
        ``source_BS`` (int64) and ``source_mask_BS`` (True for tokens, False for padding).
    """
    lengths = np.array([len(sequence) for sequence in sequences], dtype=np.int64)
    tokens = np.fromiter(
        (token for sequence in sequences for token in sequence), np.int64, int(lengths.sum())
    )
    return _pad(tokens, lengths, pad_id=pad_id)


def _exchange(own: Gathered, other: Gathered, turned: NDArray[np.bool_]) -> Gathered:
    """Take the turned rows from the other side, all others from the own side."""
    own_rows, other_rows = (
        np.split(tokens, np.cumsum(lengths)[:-1]) for tokens, lengths in (own, other)
    )
    rows = [
        other_row if is_turned else own_row
        for own_row, other_row, is_turned in zip(own_rows, other_rows, turned, strict=True)
    ]
    return np.concatenate(rows), np.where(turned, other[1], own[1])


def _pad(
    tokens: NDArray[np.int64],
    lengths: NDArray[np.int64],
    *,
    pad_id: int,
    least: tuple[int, int] = (0, 0),
) -> tuple[Tensor, Tensor]:
    """Arrange consecutive tokens in rows as wide as the longest, with at least so many of both."""
    rows, width = least
    width = max(width, int(lengths.max(initial=0)))
    lengths = np.pad(lengths, (0, max(0, rows - len(lengths))))
    mask = np.arange(width) < lengths[:, None]  # (rows, width)
    padded = np.full(mask.shape, pad_id, dtype=np.int64)
    # NumPy fills the places of a mask row by row, which is the order of the tokens.
    padded[mask] = tokens
    return torch.from_numpy(padded), torch.from_numpy(mask)


def with_guide(
    batch: Batch,
    links: TokenStore,
    indices: NDArray[np.int64],
    convention: Literal["predicts", "reads"],
) -> Batch:
    """Add to a batch the attention weights that each decoder row should have.

    Args:
        batch: the batch.
        links: for every pair, the source and the target position of each link.
        indices: the batch's pairs, in its order.
        convention: the row that a target token's links belong to: the one that ``predicts`` it, or
            the one that ``reads`` it. That is the next row, which the last token does not have.

    Returns:
        The batch with ``guide_BTS``: rows that sum to 1, or to 0 if the row's token has no links.
    """
    sources, counts = links.gather_sources(indices)
    rows, _ = links.gather_targets(indices)
    pairs = np.repeat(np.arange(len(indices)), counts)
    if convention == "reads":
        rows = rows + 1
        # No row reads the last token, so its links are dropped.
        is_inside = rows < batch.target_mask_BT.sum(dim=1).numpy()[pairs]
        pairs = pairs[is_inside]
        rows = rows[is_inside]
        sources = sources[is_inside]
    guide_BTS = torch.zeros(*batch.target_in_BT.shape, batch.source_BS.shape[1])
    # Assigned, not added: a link that is listed twice counts once.
    guide_BTS[pairs, rows, sources] = 1
    # At least 1, so that rows without links stay 0.
    guide_BTS /= guide_BTS.sum(dim=2, keepdim=True).clamp(min=1)
    return replace(batch, guide_BTS=guide_BTS)
