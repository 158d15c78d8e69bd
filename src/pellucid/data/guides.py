"""The weights that a guided head should have, from links between the tokens of a pair."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from pellucid.data.batches import Batch
from pellucid.data.store import TokenStore


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
        is_inside = rows < batch.target_mask_BT.sum(dim=1).numpy()[pairs]
        pairs, rows, sources = pairs[is_inside], rows[is_inside], sources[is_inside]
    guide_BTS = torch.zeros(*batch.target_in_BT.shape, batch.source_BS.shape[1])
    guide_BTS[pairs, rows, sources] = 1
    guide_BTS /= guide_BTS.sum(dim=2, keepdim=True).clamp(min=1)
    return replace(batch, guide_BTS=guide_BTS)
