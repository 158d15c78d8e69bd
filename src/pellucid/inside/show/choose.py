"""Which head is shown where nobody said which."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from pellucid.inside.record.data import TraceData

__all__ = ["CLEAREST", "clearest_head", "mean_entropy"]

CLEAREST = "of all of this kind the head whose rows have the least entropy on this sentence"


def clearest_head(
    trace: TraceData, names: Sequence[str], heads: Collection[int] | None = None
) -> tuple[str, int]:
    """The head with the least entropy on this sentence; that alone says nothing of its use.

    Args:
        trace: holds the weights.
        names: of the arrays of weights to choose from.
        heads: to choose from; all unless given.

    Returns:
        The array's name, and the head.
    """
    places = [(name, head) for name in names for head in heads or trace.heads]
    return min(places, key=lambda place: mean_entropy(trace.head(*place)))


def mean_entropy(weights_LM: np.ndarray) -> float:
    """The mean over rows of the entropy of their weights, in nats."""
    logs_LM = np.log(np.where(weights_LM > 0, weights_LM, 1.0))
    return float(-(weights_LM * logs_LM).sum(axis=-1).mean())
