"""The choice of the head to show if none is named."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from pellucid.inside.record.data import TraceData

CLEAREST = "of all of this kind the head whose rows have the least entropy on this sentence"


def clearest_head(
    trace: TraceData, names: Sequence[str], heads: Collection[int] | None = None
) -> tuple[str, int]:
    """Find the head with the least entropy on this sentence; it need not be a useful one.

    Args:
        trace: holds the weights.
        names: the arrays of weights to choose from.
        heads: the heads to choose from; all unless given.

    Returns:
        The array's name, and the head.
    """
    places = [(name, head) for name in names for head in heads or trace.heads]
    return min(places, key=lambda place: mean_entropy(trace.head(*place)))


def mean_entropy(weights_LM: np.ndarray) -> float:
    """Return the entropy of a row's weights, averaged over the rows, in nats."""
    logs_LM = np.log(np.where(weights_LM > 0, weights_LM, 1.0))
    return float(-(weights_LM * logs_LM).sum(axis=-1).mean())
