"""Shares of attention weights that distance explains, and that the two words explain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Explained:
    r"""The shares of a head's weights that can be foreseen, on sentences not used to learn them.

    A share is $1 - \sum(w - \hat w)^2 / \sum(w - 1/n)^2$: 1 if every weight is foreseen, 0 if no
    better than even weights over the n words; below 0 if worse.

    Attributes:
        distance: from the distance between the two words only, with its direction.
        words: from the two words only.
        both: from the distance, and then the words.
    """

    distance: float
    words: float
    both: float


def explain(
    weights: Sequence[NDArray[np.floating]], sentences: Sequence[Sequence[int]]
) -> list[Explained]:
    """Measure for each head what its weights can be foreseen from.

    The mean weight above even ones is learned for each distance, and for each pair of words, from
    every second sentence; the others are foreseen. A mean counts one weight more, which is even,
    so that rare pairs do not decide.

    Args:
        weights: for each sentence ``weights_HLM`` of the heads.
        sentences: the numbers of its words.
    """
    above, distance, words, is_known = [], [], [], []
    for place, (weights_HLM, ids) in enumerate(zip(weights, sentences, strict=True)):
        length = len(ids)
        above.append(weights_HLM.reshape(len(weights_HLM), -1) - 1 / length)
        i_LM, j_LM = np.indices((length, length))
        distance.append((j_LM - i_LM).ravel())
        ids_L = np.asarray(ids, dtype=np.int64)
        words.append((ids_L[:, None] * 2**31 + ids_L[None]).ravel())
        is_known.append(np.full(length * length, place % 2 == 0))
    above_HP = np.concatenate(above, axis=1)
    known_P = np.concatenate(is_known)
    by_distance_P = np.unique(np.concatenate(distance), return_inverse=True)[1]
    by_words_P = np.unique(np.concatenate(words), return_inverse=True)[1]
    found = []
    for above_P in above_HP:
        far_P = _foresee(above_P, by_distance_P, known_P)
        word_P = _foresee(above_P, by_words_P, known_P)
        both_P = far_P + _foresee(above_P - far_P, by_words_P, known_P)
        total = float((above_P[~known_P] ** 2).sum())
        shares = [
            1 - float(((above_P - guess_P)[~known_P] ** 2).sum()) / total
            for guess_P in (far_P, word_P, both_P)
        ]
        found.append(Explained(*shares))
    return found


def _foresee(
    above_P: NDArray[np.floating], group_P: NDArray[np.intp], known_P: NDArray[np.bool_]
) -> NDArray[np.floating]:
    """Give each place the mean of its group over the known places."""
    size = int(group_P.max()) + 1
    sums = np.bincount(group_P[known_P], above_P[known_P], size)
    counts = np.bincount(group_P[known_P], minlength=size)
    return np.asarray((sums / (counts + 1))[group_P])
