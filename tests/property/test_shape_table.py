"""Batches of few shapes: every pair in one batch, little padding, and the same gradient."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from pellucid.data import EpochPlan, choose_shapes, padding_share, plan_epoch, plan_in_shapes
from pellucid.data.shape_table import MOST_SHAPES

Lengths = tuple[NDArray[np.int32], NDArray[np.int32]]

pairs = st.lists(st.tuples(st.integers(1, 70), st.integers(1, 70)), min_size=1, max_size=80)


def make_lengths(count: int, seed: int) -> Lengths:
    """Lengths like those of captions: 14 tokens on average, with translations 12 % off."""
    numbers = np.random.default_rng(seed)
    targets = np.exp(numbers.normal(np.log(14), 0.33, count)).round()
    sources = (targets * np.exp(numbers.normal(0, 0.12, count))).round()
    source_lengths, target_lengths = (
        one.clip(3, 60).astype(np.int32) for one in (sources, targets)
    )
    return source_lengths, target_lengths


def plan(lengths: Lengths, budget: int, epoch: int = 0, *, of: Lengths | None = None) -> EpochPlan:
    shapes = choose_shapes(*(of or lengths), max_tokens_per_batch=budget)
    return plan_in_shapes(*lengths, shapes, seed=1, epoch=epoch, max_tokens_per_batch=budget)


@given(pairs, st.integers(10, 3000), st.integers(0, 3))
def test_every_pair_is_in_one_batch_whose_shape_holds_it(
    sizes: list[tuple[int, int]], budget: int, epoch: int
) -> None:
    sources, targets = (np.array(one, dtype=np.int32) for one in zip(*sizes, strict=True))
    shapes = choose_shapes(sources, targets, max_tokens_per_batch=budget)
    found = plan((sources, targets), budget, epoch)
    assert sorted(found.pairs.tolist()) == list(range(len(sizes)))
    assert sum(map(len, found)) == len(sizes)
    assert len(shapes) <= MOST_SHAPES
    for index, batch in enumerate(found):
        shape = found.shape_of(index)
        assert shape in shapes
        rows, source, target = shape
        assert len(batch) <= rows
        assert sources[batch].max() <= source
        assert targets[batch].max() <= target
        assert rows * max(source, target) <= budget or rows == 1


@given(pairs, pairs, st.integers(10, 3000))
def test_pairs_that_no_shape_holds_get_their_own(
    known: list[tuple[int, int]], later: list[tuple[int, int]], budget: int
) -> None:
    """Later epochs of sampled segmentations may have longer sentences than the first one."""
    first, second = (
        tuple(np.array(one, dtype=np.int32) for one in zip(*sizes, strict=True))
        for sizes in (known, later)
    )
    found = plan(second, budget, of=first)  # type: ignore[arg-type]
    assert sorted(found.pairs.tolist()) == list(range(len(later)))
    for index, batch in enumerate(found):
        shape = found.shape_of(index)
        if shape is None:
            assert len(batch) == 1 or len(batch) * max(one[batch].max() for one in second) <= budget
        else:
            assert second[0][batch].max() <= shape[1]
            assert second[1][batch].max() <= shape[2]


@pytest.mark.parametrize("budget", [1024, 2048, 8192])
def test_padding_stays_under_12_percent(budget: int) -> None:
    lengths = make_lengths(29_000, 3)
    found = plan(lengths, budget, 2)
    assert len(set(found.shapes or ())) <= MOST_SHAPES
    assert padding_share(found, *lengths) < 0.12


def test_with_few_batches_there_is_no_more_padding_than_without_a_table() -> None:
    lengths = make_lengths(29_000, 3)
    free = plan_epoch(*lengths, seed=1, epoch=0, max_tokens_per_batch=25_000)
    found = plan(lengths, 25_000)
    assert padding_share(found, *lengths) < padding_share(free, *lengths) + 0.01
    assert len(found) <= 1.2 * len(free)


def test_epochs_have_the_same_shapes_and_other_batches() -> None:
    lengths = make_lengths(3000, 5)
    one, other = (plan(lengths, 2048, epoch) for epoch in (0, 1))
    assert sorted(map(str, one.shapes or ())) == sorted(map(str, other.shapes or ()))
    assert one.shapes != other.shapes
    assert not np.array_equal(one.pairs, other.pairs)
    again = plan(lengths, 2048)
    assert np.array_equal(again.pairs, one.pairs)
    assert np.array_equal(again.starts, one.starts)
