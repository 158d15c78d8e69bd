"""BPE-dropout: byte-pair encoding with random merges left out, for many segmentations of a text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import final

from pellucid.machine.randomness import random_bytes

NUM_SEGMENTATIONS = 64
"""Segmentations drawn of each word; each of its places in a text then draws one of them."""

CACHE_SIZE = 2**19
"""Segmentations of words to remember."""


@final
class MergeDropout:
    """Cuts words by the merges of a byte-pair vocabulary, each left out with a probability.

    Everything drawn is a function of the seed and the text, so that other processes and other
    orders of the texts give the same result.

    Args:
        ids: the id of each piece, single letters included.
        ranks: the rank of each piece that a merge makes; the lowest is made first.
        rate: the probability that one step leaves out a possible merge.
        seed: the run's.

    Source:
        Provilkov et al. 2020, "BPE-Dropout: Simple and Effective Subword Regularization",
        algorithm 1.
    """

    def __init__(
        self, ids: Mapping[str, int], ranks: Mapping[str, float], *, rate: float, seed: int
    ) -> None:
        self._ids = ids
        self._ranks = ranks
        self._threshold = round(rate * 2**16)
        self._seed = seed
        self._cut = lru_cache(CACHE_SIZE)(self._segment_word)

    def segment(self, words: Sequence[str], count: int) -> Iterator[list[tuple[int, ...]]]:
        """Cut the words of a text ``count`` times, each time into the ids of each word.

        A word with a letter that is not a piece gets no ids.
        """
        raw = random_bytes(count * len(words), self._seed, "merges of a text", *words)
        numbers = (raw % NUM_SEGMENTATIONS).reshape(count, len(words))
        for row in numbers.tolist():
            yield list(map(self._cut, words, row))

    def _segment_word(self, word: str, number: int) -> tuple[int, ...]:
        pieces = list(word)
        draws = self._draws(word, number)
        while True:
            best, place = math.inf, -1
            for at, (left, right) in enumerate(pairwise(pieces)):
                rank = self._ranks.get(left + right, math.inf)
                if rank < best and next(draws) >= self._threshold:
                    best, place = rank, at
            if place < 0:
                is_whole = all(piece in self._ids for piece in pieces)
                return tuple(self._ids[piece] for piece in pieces) if is_whole else ()
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]

    def _draws(self, word: str, number: int) -> Iterator[int]:
        # A word of n letters has at most n - 1 merges to weigh, then n - 2, and so on.
        most = len(word) * (len(word) - 1) // 2
        drawn = random_bytes(2 * most, self._seed, "merges of a word", word, number)
        return iter(drawn.view("<u2").tolist())
