"""Batches of any lengths: every pair exactly once, within the budget, always the same."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pellucid.data import (
    BatchOrder,
    build_store,
    make_batch,
    make_source_batch,
    padding_share,
    plan_epoch,
)

length_pairs = st.lists(st.tuples(st.integers(1, 43), st.integers(1, 47)), min_size=1, max_size=211)
sequences = st.lists(st.integers(4, 70_000), max_size=11).map(lambda ids: [*ids, 3])
budgets = st.integers(1, 307)
seeds = st.integers(0, 2**31)
epochs = st.integers(0, 1009)


class Text(NamedTuple):
    """A text that only has lengths."""

    source_lengths: NDArray[np.int32]
    target_lengths: NDArray[np.int32]


def lengths_of(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    sources, targets = np.array(pairs, dtype=np.int32).T
    return sources, targets


@given(length_pairs, budgets, seeds, epochs)
def test_epoch_of_any_lengths_holds_every_pair_exactly_once(
    pairs: list[tuple[int, int]], budget: int, seed: int, epoch: int
) -> None:
    sources, targets = lengths_of(pairs)
    plan = plan_epoch(sources, targets, seed=seed, epoch=epoch, max_tokens_per_batch=budget)
    batches = [plan[index] for index in range(len(plan))]
    assert all(len(batch) > 0 for batch in batches)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(pairs)))


@given(length_pairs, budgets, seeds, epochs)
def test_batch_of_any_lengths_exceeds_the_budget_only_alone(
    pairs: list[tuple[int, int]], budget: int, seed: int, epoch: int
) -> None:
    sources, targets = lengths_of(pairs)
    plan = plan_epoch(sources, targets, seed=seed, epoch=epoch, max_tokens_per_batch=budget)
    for batch in plan:
        longest = max(sources[batch].max(), targets[batch].max())
        assert len(batch) * longest <= budget or len(batch) == 1


@given(length_pairs, budgets, seeds, epochs)
def test_plan_with_the_same_arguments_is_the_same(
    pairs: list[tuple[int, int]], budget: int, seed: int, epoch: int
) -> None:
    sources, targets = lengths_of(pairs)
    first, second = (
        plan_epoch(sources, targets, seed=seed, epoch=epoch, max_tokens_per_batch=budget)
        for _ in range(2)
    )
    assert [batch.tolist() for batch in first] == [batch.tolist() for batch in second]
    assert 0 <= padding_share(first, sources, targets) < 1


@given(seeds, epochs)
def test_plan_with_another_seed_or_epoch_differs(seed: int, epoch: int) -> None:
    lengths = (np.arange(101) % 7 + 2).astype(np.int32)

    def batches(seed: int, epoch: int) -> list[list[int]]:
        plan = plan_epoch(lengths, lengths, seed=seed, epoch=epoch, max_tokens_per_batch=53)
        return [batch.tolist() for batch in plan]

    assert batches(seed, epoch) != batches(seed, epoch + 1)
    assert batches(seed, epoch) != batches(seed + 1, epoch)


@given(length_pairs, budgets, seeds, st.integers(0, 59))
def test_step_of_any_number_is_found_without_walking_through_batches(
    pairs: list[tuple[int, int]], budget: int, seed: int, step: int
) -> None:
    sources, targets = lengths_of(pairs)
    order = BatchOrder(lambda _: Text(sources, targets), seed=seed, max_tokens_per_batch=budget)
    epoch, index = order.locate(step)
    plan = plan_epoch(sources, targets, seed=seed, epoch=epoch, max_tokens_per_batch=budget)
    assert order.batch(step).tolist() == plan[index].tolist()
    earlier = sum(len(order.plan(before)) for before in range(epoch))
    assert earlier + index == step


@settings(max_examples=settings.default.max_examples * 2 // 5)
@given(st.lists(st.tuples(sequences, sequences), min_size=1, max_size=13), st.data())
def test_batch_of_stored_pairs_reads_back_row_by_row(
    pairs: list[tuple[list[int], list[int]]], data: st.DataObject
) -> None:
    indices = data.draw(st.permutations(range(len(pairs))))
    with tempfile.TemporaryDirectory() as folder:
        store = build_store(
            Path(folder) / "store",
            pairs,
            source_vocabulary_size=70_001,
            target_vocabulary_size=70_001,
        )
        batch = make_batch(store, np.array(indices), pad_id=0, start_id=2)
    for row, index in enumerate(indices):
        source, target = pairs[index]
        source_mask_S, target_mask_T = batch.source_mask_BS[row], batch.target_mask_BT[row]
        assert batch.source_BS[row][source_mask_S].tolist() == source
        assert batch.target_out_BT[row][target_mask_T].tolist() == target
        assert batch.target_in_BT[row][target_mask_T].tolist() == [2, *target[:-1]]
        # Padding is only on the right.
        assert source_mask_S.tolist() == sorted(source_mask_S.tolist(), reverse=True)
        assert target_mask_T.tolist() == sorted(target_mask_T.tolist(), reverse=True)
    for ids, mask in (
        (batch.source_BS, batch.source_mask_BS),
        (batch.target_in_BT, batch.target_mask_BT),
        (batch.target_out_BT, batch.target_mask_BT),
    ):
        assert (ids[~mask] == 0).all()
    assert batch.num_source_tokens == sum(len(source) for source, _ in pairs)
    assert batch.num_target_tokens == sum(len(target) for _, target in pairs)


@given(st.lists(sequences, min_size=1, max_size=13))
def test_source_batch_of_any_sequences_reads_back_row_by_row(rows: list[list[int]]) -> None:
    source_BS, source_mask_BS = make_source_batch(rows, pad_id=0)
    assert [ids[mask].tolist() for ids, mask in zip(source_BS, source_mask_BS, strict=True)] == rows
    assert source_BS.shape[1] == max(len(row) for row in rows)
    assert (source_BS[~source_mask_BS] == 0).all()
