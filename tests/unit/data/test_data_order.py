"""The order of an epoch: padding, randomness, steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from forked import Forked
from numpy.typing import NDArray

from pellucid.data import BatchOrder, EpochPlan, padding_share, plan_epoch
from pellucid.errors import DataError

Lengths = NDArray[np.int32]


class Text(NamedTuple):
    """A text that only has lengths."""

    source_lengths: NDArray[np.int32]
    target_lengths: NDArray[np.int32]


def captions(num_pairs: int = 29_000, *, seed: int = 7) -> tuple[Lengths, Lengths]:
    """Lengths like those of image captions in subwords: 15 ± 4.6 and 17 ± 5.7, correlation 0.88."""
    generator = np.random.Generator(np.random.PCG64(seed))
    sources = np.exp(generator.normal(2.666, 0.29, num_pairs))
    targets = 1.12 * sources * np.exp(generator.normal(0, 0.16, num_pairs))
    return (
        np.clip(np.round(sources), 4, 48).astype(np.int32),
        np.clip(np.round(targets), 4, 59).astype(np.int32),
    )


def plan_by_target_alone(sources: Lengths, targets: Lengths, budget: int) -> EpochPlan:
    """Make batches as most toolkits do: sort by target length, fill up to the budget."""
    noise = np.random.Generator(np.random.PCG64(3)).random(len(targets))
    pairs = np.lexsort((noise, targets))
    cuts, widest = [0], 0
    for place, pair in enumerate(pairs):
        widest = max(widest, int(sources[pair]), int(targets[pair]))
        if (place + 1 - cuts[-1]) * widest > budget:
            cuts.append(place)
            widest = max(int(sources[pair]), int(targets[pair]))
    cuts.append(len(pairs))
    return EpochPlan(0, pairs, np.array(cuts[:-1]), np.array(cuts[1:]))


def test_captions_resemble_the_real_ones() -> None:
    sources, targets = captions()
    assert sources.mean() == pytest.approx(15, abs=0.5)
    assert targets.mean() == pytest.approx(17, abs=0.5)
    assert np.corrcoef(sources, targets)[0, 1] == pytest.approx(0.88, abs=0.04)


def test_padding_of_captions_is_under_five_percent_in_every_epoch() -> None:
    sources, targets = captions()
    for epoch in range(7):
        plan = plan_epoch(sources, targets, seed=1, epoch=epoch, max_tokens_per_batch=4096)
        assert padding_share(plan, sources, targets) < 0.05


def test_padding_sorting_by_target_alone_is_far_worse() -> None:
    sources, targets = captions()
    ours = plan_epoch(sources, targets, seed=1, epoch=0, max_tokens_per_batch=4096)
    naive = plan_by_target_alone(sources, targets, 4096)
    assert padding_share(naive, sources, targets) > 3 * padding_share(ours, sources, targets)


def test_batches_of_captions_are_nearly_as_few_as_possible() -> None:
    sources, targets = captions()
    plan = plan_epoch(sources, targets, seed=1, epoch=0, max_tokens_per_batch=4096)
    assert len(plan) < 1.2 * targets.sum() / 4096


def test_padding_share_of_a_plan_by_hand_is_counted_on_both_sides() -> None:
    sources = np.array([2, 3, 5], dtype=np.int32)
    targets = np.array([7, 2, 3], dtype=np.int32)
    plan = EpochPlan(0, np.array([2, 0, 1]), np.array([0, 1]), np.array([1, 3]))
    # 1 x (5 + 3) and 2 x (3 + 7) positions, 22 tokens.
    assert padding_share(plan, sources, targets) == pytest.approx(1 - 22 / 28)


def test_plan_in_another_epoch_mixes_batch_mates() -> None:
    sources, targets = captions()
    epochs = [
        plan_epoch(sources, targets, seed=1, epoch=epoch, max_tokens_per_batch=4096)
        for epoch in range(2)
    ]
    owner = np.empty(len(sources), dtype=np.int64)
    for index, batch in enumerate(epochs[1]):
        owner[batch] = index
    kept = [np.bincount(owner[batch]).max() / len(batch) for batch in epochs[0]]
    assert np.mean(kept) < 0.8


def test_plan_shuffles_short_and_long_batches() -> None:
    sources, targets = captions()
    plan = plan_epoch(sources, targets, seed=1, epoch=0, max_tokens_per_batch=4096)
    means = [targets[batch].mean() for batch in plan]
    places = np.arange(len(means))
    assert abs(np.corrcoef(places, means)[0, 1]) < 0.3


def test_plan_in_another_process_is_the_same(run_python: Callable[..., Any]) -> None:
    program = (
        "import hashlib, numpy as np\n"
        "from pellucid.data import plan_epoch\n"
        "lengths = (np.arange(997) % 41 + 2).astype(np.int32)\n"
        "plan = plan_epoch(lengths, lengths[::-1], seed=5, epoch=3, max_tokens_per_batch=101)\n"
        "print(hashlib.sha256(b'|'.join(batch.tobytes() for batch in plan)).hexdigest())\n"
    )
    finished = run_python("-c", program, kind=Forked)
    # Written down, so that neither NumPy nor this code can change a resumed run unnoticed.
    known = "0a86cf20ab3fcc6ddd115d55ffee14ae9ccb31d510a3bb4ef240344f6b2bb1e8"
    assert finished.stdout.strip() == known


def test_plan_with_one_pair_is_one_batch() -> None:
    one = np.array([7], dtype=np.int32)
    plan = plan_epoch(one, one, seed=1, epoch=0, max_tokens_per_batch=3)
    assert [batch.tolist() for batch in plan] == [[0]]


def test_plan_with_pairs_beyond_the_budget_gives_each_its_own_batch() -> None:
    sources = np.array([2, 90, 2, 3, 2], dtype=np.int32)
    targets = np.array([2, 3, 2, 97, 2], dtype=np.int32)
    plan = plan_epoch(sources, targets, seed=1, epoch=0, max_tokens_per_batch=11)
    batches = sorted(sorted(batch.tolist()) for batch in plan)
    assert batches == [[0, 2, 4], [1], [3]]


def test_plan_without_pairs_is_refused() -> None:
    none = np.array([], dtype=np.int32)
    with pytest.raises(DataError, match="at least one pair"):
        plan_epoch(none, none, seed=1, epoch=0, max_tokens_per_batch=11)


def test_steps_follow_the_epochs_one_after_the_other() -> None:
    sources, targets = captions(499)
    order = BatchOrder(lambda _: Text(sources, targets), seed=3, max_tokens_per_batch=257)
    expected = [(epoch, index) for epoch in range(3) for index in range(len(order.plan(epoch)))]
    assert [order.locate(step) for step in range(len(expected))] == expected


def test_steps_asked_in_any_order_give_the_same_batches() -> None:
    sources, targets = captions(499)
    forward = BatchOrder(lambda _: Text(sources, targets), seed=3, max_tokens_per_batch=257)
    straight = [forward.batch(step).tolist() for step in range(101)]
    for step in (100, 3, 57, 0):
        fresh = BatchOrder(lambda _: Text(sources, targets), seed=3, max_tokens_per_batch=257)
        assert fresh.batch(step).tolist() == straight[step]
        assert forward.batch(step).tolist() == straight[step]
