"""Links between the tokens of a pair, as the weights that a guided head should have."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from pellucid.data.batches import Batch
from pellucid.data.store import TokenStore

__all__ = ["with_guide"]


def with_guide(
    batch: Batch,
    links: TokenStore,
    indices: NDArray[np.int64],
    convention: Literal["predicts", "reads"],
) -> Batch:
    """Add to a batch where each decoder row should look.

    Args:
        batch: some pairs.
        links: of every pair, the source and the target position of each link.
        indices: the batch's pairs, in its order.
        convention: whether a target token's links belong to the row that predicts it, or to the
            row that reads it: the next one, which the last token has not.

    Returns:
        The batch with ``guide_BTS``: rows that sum to one, or to zero where the row's token is
        linked to nothing.
    """
    sources, counts = links.gather_sources(indices)
    rows, _ = links.gather_targets(indices)
    pairs = np.repeat(np.arange(len(indices)), counts)
    if convention == "reads":
        rows = rows + 1
        is_there = rows < batch.target_mask_BT.sum(dim=1).numpy()[pairs]
        pairs, rows, sources = pairs[is_there], rows[is_there], sources[is_there]
    guide_BTS = torch.zeros(*batch.target_in_BT.shape, batch.source_BS.shape[1])
    guide_BTS[pairs, rows, sources] = 1
    guide_BTS /= guide_BTS.sum(dim=2, keepdim=True).clamp(min=1)
    return replace(batch, guide_BTS=guide_BTS)
