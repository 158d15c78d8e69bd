r"""Figures of attention weights, for many sentences and heads at once.

A figure of a head in a sentence is a mean over the rows that have it: every row that may attend to
something has an entropy, but the first row has no previous position.
"""

from __future__ import annotations

import torch
from torch import Tensor

WEIGHT_FIGURES = (
    *("previous", "same", "next", "first", "end"),
    *("entropy", "confidence", "distance"),
)
"""Weight on the position before the row's own, on its own and the next one, on the first and the
last; then as `pellucid.inside.heads.head_rows.HeadRow` explains them. Own means the same number in
cross-attention."""


def figures_of_weights(weights_BHLM: Tensor, rows_B: Tensor, keys_B: Tensor) -> Tensor:
    """Compute `WEIGHT_FIGURES` of each sentence and head: ``figures_BHX``, float64.

    Args:
        weights_BHLM: of a batch; weights on padding are 0 in the rows that count.
        rows_B: the number of rows of each sentence.
        keys_B: the number of positions that they attend to.

    Returns:
        Not a number for a figure that no row has.
    """
    # Figures are added up over thousands of lines.
    weights_BHLM = weights_BHLM.double()
    num_rows, num_keys = weights_BHLM.shape[-2:]
    row_L = torch.arange(num_rows, device=weights_BHLM.device)
    key_M = torch.arange(num_keys, device=weights_BHLM.device)
    # Padding, and rows that the mask leaves nothing, do not count.
    may_attend_BHL = (weights_BHLM.sum(dim=-1) > 0) & (row_L < rows_B[:, None])[:, None]
    found = []
    for offset in (-1, 0, 1):
        # A diagonal holds the weight on a position at a fixed distance, row after row.
        onto_BHX = weights_BHLM.diagonal(offset, dim1=-2, dim2=-1)
        first = max(0, -offset)
        size = onto_BHX.shape[-1]
        counts_BHX = may_attend_BHL[:, :, first : first + size]
        # The last rows have no next position in a sentence shorter than the batch.
        has_key_BX = (row_L[first : first + size] + offset) < keys_B[:, None]
        found.append(_mean(onto_BHX, counts_BHX & has_key_BX[:, None]))
    last_BHL1 = (keys_B - 1)[:, None, None, None].expand(*weights_BHLM.shape[:3], 1)
    distance_LM = (row_L[:, None] - key_M).abs()
    for figures_BHL in (
        weights_BHLM[..., 0],
        weights_BHLM.gather(-1, last_BHL1)[..., 0],
        # Which is 0 for a weight of 0, where the logarithm is not finite.
        -torch.xlogy(weights_BHLM, weights_BHLM).sum(dim=-1),
        weights_BHLM.amax(dim=-1),
        (weights_BHLM * distance_LM).sum(dim=-1),
    ):
        found.append(_mean(figures_BHL, may_attend_BHL))
    return torch.stack(found, dim=-1)


def _mean(values_BHL: Tensor, counts_BHL: Tensor) -> Tensor:
    """Average the values that count; not a number if none does."""
    return values_BHL.where(counts_BHL, 0.0).sum(dim=-1) / counts_BHL.sum(dim=-1)
