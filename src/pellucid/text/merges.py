"""Byte-pair encoding with merges left out at random: many segmentations of one text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import final

from pellucid.randomness import random_bytes

__all__ = ["MergeDropout"]

WAYS = 64
"""In how many ways a word is cut; which of them a place in a text gets is drawn."""

WORDS_KEPT = 2**19


@final
class MergeDropout:
    """Cuts words by the merges of a byte-pair vocabulary, each left out with some probability.

    Everything drawn is a function of the seed and the text, so that another process and another
    order of texts give the same.

    Args:
        ids: of all pieces, letters too.
        ranks: of the pieces that merges make; the lowest is made first.
        rate: the probability that a possible merge is left out of one step.
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
        self._cut = lru_cache(WORDS_KEPT)(self._cut_anew)

    def segment(self, words: Sequence[str], count: int) -> Iterator[list[tuple[int, ...]]]:
        """Cut the words of a text ``count`` times, each time into the ids of each word.

        A word that would be left with a letter that is no piece has none.
        """
        drawn = random_bytes(count * len(words), self._seed, "merges of a text", *words) % WAYS
        for ways in drawn.reshape(count, len(words)).tolist():
            yield list(map(self._cut, words, ways))

    def _cut_anew(self, word: str, way: int) -> tuple[int, ...]:
        pieces = list(word)
        draws = self._draws(word, way)
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

    def _draws(self, word: str, way: int) -> Iterator[int]:
        most = len(word) * (len(word) - 1) // 2
        drawn = random_bytes(2 * most, self._seed, "merges of a word", word, way)
        return iter(drawn.view("<u2").tolist())
