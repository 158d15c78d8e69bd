"""The pairs of an epoch if corpora have weights, and the direction in which each is read."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pellucid.machine.randomness import random_bytes


def pairs_of_epoch(
    sizes: Sequence[int], weights: Sequence[float], *, seed: int, epoch: int
) -> NDArray[np.int64]:
    """Choose the pairs of an epoch, corpus after corpus.

    An epoch takes each corpus as often as its weight says: the integer part of the weight in full
    passes, the fraction as a new random part (rounded to whole pairs; at least one pair in all).

    Args:
        sizes: the pairs of each corpus, which follow each other in the store.
        weights: the weight of each corpus.
        seed: the run's seed.
        epoch: the epoch, from 0.

    Returns:
        Indices of pairs in the store.
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
    """Choose the pairs of a batch that are read from target to source, each with probability 1/2.

    Args:
        count: the number of pairs.
        seed: the run's seed.
        epoch: the epoch, from 0.
        batch: the batch's place in the epoch.
    """
    return random_bytes(count, seed, "direction", epoch, batch) < 128
