r"""Trust in a map: take away the words that it points at, or take away all the others.

A map orders the source words of each row. Of the first k of them, $r_k$,

$$\text{comprehensiveness} = \frac{1}{|B| + 1} \sum_{k} m(x) - m(x \setminus r_k), \qquad
\text{sufficiency} = \frac{1}{|B| + 1} \sum_{k} m(x) - m(r_k)$$

where $m(x) = p(y_t \mid x, y_{<t})$, k goes through none and 1, 5, 10, 20 and 50 % of the words
(rounded up), and $|B| = 5$. A faithful map has high comprehensiveness (without these words the
token is less likely) and low sufficiency (with only these words it is as likely). Both numbers
mean something only in comparison with a random order. ``</s>`` is never taken away.

Source:
    DeYoung et al. 2020, "ERASER: A Benchmark to Evaluate Rationalized NLP Models", section 4,
    equations 1 to 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pellucid.arguments import checked
from pellucid.errors import InputError
from pellucid.inside.measures.agreement import on_words
from pellucid.inside.measures.maps import Map, shares_of_rows, source_words
from pellucid.inside.measures.occlusion import log_probabilities_of
from pellucid.inside.pair import PairData
from pellucid.machine.randomness import generator
from pellucid.shapes import Brief

BINS = (0.01, 0.05, 0.1, 0.2, 0.5)
"""Shares of the words, as in the paper."""


@dataclass(frozen=True)
class MapScore:
    """A map's score, averaged over the rows, and the scores of random orders.

    Attributes:
        value: the map's.
        random: the mean of random orders.
        low: the lower end of the interval that holds 95 % of random orders.
        high: its upper end.
    """

    value: float
    random: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class Faithfulness(Brief):
    """The faithfulness of a map on one sentence.

    Attributes:
        title: of the map.
        comprehensiveness: the higher, the better.
        sufficiency: the lower, the better.
        comprehensiveness_rows: the map's, row by row.
        sufficiency_rows: the same.
    """

    title: str
    comprehensiveness: MapScore
    sufficiency: MapScore
    comprehensiveness_rows: np.ndarray
    sufficiency_rows: np.ndarray

    @property
    def beats_random(self) -> tuple[bool, bool]:
        """True if comprehensiveness is above that of random orders; if sufficiency is below."""
        is_above = self.comprehensiveness.value > self.comprehensiveness.high
        return is_above, self.sufficiency.value < self.sufficiency.low


@dataclass(frozen=True)
class Raise:
    r"""A word that a map points at, although the token is likelier without it.

    Attributes:
        row: of the decoder.
        word: its number among the source words.
        share: of the row's mass on the source that lies on the word.
        effect: $\Delta \log p$ of `occlusion`, below 0.
    """

    row: int
    word: int
    share: float
    effect: float


@checked
def faithfulness(
    pair: PairData, maps: Sequence[Map], *, num_random: int = 50, seed: int = 1
) -> list[Faithfulness]:
    """Compare maps of one pair with random orders of its words.

    Args:
        pair: the sentence.
        maps: decoder rows by source; in signed maps, negative numbers come last.
        num_random: the number of random orders to run; each row's order is drawn from them.
        seed: decides them.

    Raises:
        InputError: a map has other rows or columns, the source has fewer than two words, or no
            random order is asked for.
    """
    words = [word for word in source_words(pair) if not _is_end(pair, word)]
    if len(words) < 2:
        raise InputError(
            f"A source must have at least 2 words to order, but has {len(words)}. Look at a longer "
            "sentence."
        )
    if num_random < 1:
        raise InputError(
            f"num_random must be at least 1, but is {num_random}. Draw a random order to compare "
            "with."
        )
    is_word = [not _is_end(pair, word) for word in source_words(pair)]
    num_rows = len(pair.target_ids)
    rng = generator(seed, "random orders of words")
    random_orders = [rng.permutation(len(words)) for _ in range(num_random)]
    # All orders of all rows are scored once, and drawn from below.
    random_values = _areas(pair, words, random_orders)
    # A draw takes one of the random orders for each row, as a map has its own order in each row.
    draws = rng.integers(num_random, size=(1000, num_rows))
    drawn = random_values[:, draws, np.arange(num_rows)].mean(axis=-1)
    found = []
    for map_ in maps:
        # Signed on purpose: a word that speaks against comes last.
        orders = np.argsort(-on_words(pair, map_)[:, is_word], axis=1, kind="stable")
        rows = np.arange(num_rows)
        own = _areas(pair, words, list(orders))[:, rows, rows]
        scores = []
        for one in range(2):
            low, high = _interval(drawn[one])
            random = float(random_values[one].mean())
            scores.append(MapScore(float(own[one].mean()), random, low, high))
        found.append(Faithfulness(map_.title, scores[0], scores[1], own[0], own[1]))
    return found


@checked
def find_raises(
    pair: PairData, map_: Map, effects: Map, *, least_share: float = 0.2
) -> tuple[Raise, ...]:
    """Find the words with a high weight without which the token is likelier.

    Args:
        pair: the sentence.
        map_: decoder rows by source, without negative numbers.
        effects: `occlusion` of the same words.
        least_share: the least share of a row's mass on the source that counts as high.

    Returns:
        The words, the largest effect first.
    """
    weights = on_words(pair, map_)
    deltas = on_words(pair, effects)
    # Of the mass on the source, since a map may give the target prefix a share too.
    shares = shares_of_rows(weights)
    places = np.argwhere((shares >= least_share) & (deltas < 0))
    found = [
        Raise(row, word, float(shares[row, word]), float(deltas[row, word]))
        for row, word in places.tolist()
    ]
    return tuple(sorted(found, key=lambda one: one.effect))


def _areas(
    pair: PairData, words: Sequence[Sequence[int]], orders: Sequence[np.ndarray]
) -> np.ndarray:
    """Compute comprehensiveness and sufficiency of each order and row: ``(2, orders, rows)``."""
    # Rounded up, so that short sentences lose a word even at 1 %.
    sizes = [0, *(math.ceil(share * len(words)) for share in BINS)]
    sources: dict[tuple[int, ...], int] = {}  # Many orders share their first words.
    places = np.zeros((2, len(orders), len(sizes)), dtype=int)
    for index, order in enumerate(orders):
        for column, size in enumerate(sizes):
            chosen = [token for word in order[:size] for token in words[word]]
            for is_kept in (False, True):
                source = _keep(pair, chosen, is_kept=is_kept)
                # The same source is scored once, however many orders lead to it.
                places[int(is_kept), index, column] = sources.setdefault(source, len(sources))
    with torch.inference_mode():
        before = pair.log_probabilities().exp().double().numpy(force=True)
        after = log_probabilities_of(pair, list(sources)).exp().double().numpy(force=True)
    areas: np.ndarray = before - after[places].mean(axis=2)
    return areas


def _keep(pair: PairData, chosen: Sequence[int], *, is_kept: bool) -> tuple[int, ...]:
    """Return the source without some tokens, or with only these; ``</s>`` stays."""
    return tuple(
        id_
        for place, id_ in enumerate(pair.source_ids)
        if _is_end(pair, [place]) or (place in chosen) == is_kept
    )


def _is_end(pair: PairData, word: Sequence[int]) -> bool:
    return [pair.source_ids[place] for place in word] == [pair.tokenizer.config.eos_id]


def _interval(values: np.ndarray) -> tuple[float, float]:
    low, high = np.quantile(values, (0.025, 0.975))
    return float(low), float(high)
