"""Which pairs an epoch passes over, where corpora have weights, and which way it reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pellucid.randomness import random_bytes

__all__ = ["pairs_of_epoch", "turned_pairs"]


def pairs_of_epoch(
    sizes: Sequence[int], weights: Sequence[float], *, seed: int, epoch: int
) -> NDArray[np.int64]:
    """The indices of an epoch's pairs, corpus after corpus.

    Each corpus is passed over as often as its weight says: the whole part in full, the rest as a
    fresh random part of it (rounded to whole pairs; at least one pair in all).

    Args:
        sizes: pairs of each corpus, which follow each other in the store.
        weights: the weight of each.
        seed: the run's.
        epoch: from 0.
    """
    chosen: list[NDArray[np.int64]] = []
    start = 0
    for number, (size, weight) in enumerate(zip(sizes, weights, strict=True)):
        pairs = np.arange(start, start + size, dtype=np.int64)
        whole = math.floor(weight)
        chosen += [pairs] * whole
        rest = round((weight - whole) * size)
        if size and not whole:
            rest = max(1, rest)
        if rest:
            order = random_bytes(8 * size, seed, "corpora", epoch, number).view("<u8")
            chosen.append(np.sort(pairs[np.argsort(order, kind="stable")[:rest]]))
        start += size
    return np.concatenate(chosen)


def turned_pairs(count: int, *, seed: int, epoch: int, batch: int) -> NDArray[np.bool_]:
    """Which pairs of a batch are read from target to source: each with a probability of one half.

    Args:
        count: pairs of the batch.
        seed: the run's.
        epoch: from 0.
        batch: its place in the epoch.
    """
    return random_bytes(count, seed, "direction", epoch, batch) < 128
