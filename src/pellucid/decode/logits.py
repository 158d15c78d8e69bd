"""Normalizers and the highest entries of rows of logits."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 64
"""Columns whose maximum is found first."""

ROWS_AT_ONCE = 64
"""Rows whose normalizers are computed at once."""


def log_normalizer(logits_AV: Tensor) -> Tensor:
    """Compute the logarithm of the softmax's denominator for each row: ``log_A``.

    A few rows at a time, so that intermediate results stay in the processor's cache.
    """
    if len(logits_AV) <= ROWS_AT_ONCE:
        return logits_AV.logsumexp(dim=-1)
    return torch.cat([chunk.logsumexp(dim=-1) for chunk in torch.split(logits_AV, ROWS_AT_ONCE)])


def best_of_rows(values_AV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Find the highest values of each row and their columns, highest first.

    The maximum of each block of columns is found first, which is several times cheaper than
    sorting: the best ``count`` values lie in the ``count`` blocks with the highest maxima. With a
    ``count`` of 1, the first of equal values wins.

    Returns:
        ``value_AX``, ``id_AX``.
    """
    rows, width = values_AV.shape
    blocks, rest = divmod(width, BLOCK)
    if blocks < 4 * count:  # too few to save anything
        return _top(values_AV, count)
    highest = values_AV[:, : width - rest].view(rows, blocks, BLOCK).amax(dim=-1)
    _, chosen = _top(highest, count)
    inside = torch.arange(BLOCK, device=values_AV.device)
    columns = (chosen[:, :, None] * BLOCK + inside).flatten(1)
    # The columns behind the last whole block are candidates as they are.
    if rest:
        last = torch.arange(width - rest, width, device=values_AV.device)
        columns = torch.cat([columns, last.expand(rows, -1)], dim=1)
    value_AX, place_AX = _top(values_AV.gather(1, columns), count)
    return value_AX, columns.gather(1, place_AX)


def _top(values_AV: Tensor, count: int) -> tuple[Tensor, Tensor]:
    if count == 1:
        # Of equal values argmax takes the first, which topk does not promise.
        best_A1 = values_AV.argmax(dim=-1, keepdim=True)
        return values_AV.gather(1, best_A1), best_A1
    return torch.topk(values_AV, count, dim=-1)
