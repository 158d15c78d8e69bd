"""Weights of corpora in an epoch, and pairs that are read backwards."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pellucid.data import pairs_of_epoch, turned_pairs

SIZES = (7, 11, 5)


def counts_of(epoch: int, weights: tuple[float, ...], seed: int = 1) -> list[list[int]]:
    """Count how often each pair is seen, corpus by corpus."""
    seen = Counter(pairs_of_epoch(SIZES, weights, seed=seed, epoch=epoch).tolist())
    ends = np.cumsum(SIZES)
    return [
        [seen[i] for i in range(end - size, end)] for size, end in zip(SIZES, ends, strict=True)
    ]


def test_whole_weights_show_every_pair_so_often() -> None:
    assert counts_of(0, (1, 3, 2)) == [[1] * 7, [3] * 11, [2] * 5]


def test_fractions_show_a_part_that_changes_with_the_epoch() -> None:
    epochs = [counts_of(epoch, (0.5, 1.25, 1)) for epoch in range(40)]
    for halves, quarters, whole in epochs:
        assert sum(halves) == 4
        assert max(halves) == 1
        assert sum(quarters) == 11 + 3
        assert set(quarters) == {1, 2}
        assert whole == [1] * 5
    assert all(any(halves[pair] for halves, _, _ in epochs) for pair in range(7))
    assert len({tuple(halves) for halves, _, _ in epochs}) > 10


def test_a_tiny_weight_still_shows_a_pair() -> None:
    assert [sum(counts) for counts in counts_of(0, (0.01, 1, 0.01))] == [1, 11, 1]


@pytest.mark.parametrize("epoch", [0, 5])
def test_pairs_are_a_function_of_seed_and_epoch(epoch: int) -> None:
    weights = (0.5, 0.5, 0.5)
    assert counts_of(epoch, weights) == counts_of(epoch, weights)
    assert counts_of(epoch, weights) != counts_of(epoch, weights, seed=2)


def test_turned_pairs_are_a_half_that_changes_with_seed_epoch_and_batch() -> None:
    places = [(seed, epoch, batch) for seed in (1, 2) for epoch in (0, 1) for batch in (0, 1)]
    drawn = {
        place: turned_pairs(1009, seed=place[0], epoch=place[1], batch=place[2]) for place in places
    }
    assert all(abs(turned.sum() - 1009 / 2) < 6 * 1009**0.5 / 2 for turned in drawn.values())
    assert len({turned.tobytes() for turned in drawn.values()}) == len(places)
    assert np.array_equal(drawn[1, 0, 1], turned_pairs(1009, seed=1, epoch=0, batch=1))
