"""Batches of few shapes, for a device on which every new shape costs time.

A GPU builds plans, kernels and graphs for each shape of a batch, so that a run is fastest if there
are few. `choose_shapes` makes a table of them for a text: a pair goes into the smallest shape that
holds both of its sides, and the batches of a shape have equally many rows. So padding is what a
pair lacks of its shape, and the rows that the last batch of a shape lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pellucid.data.epoch_order import EpochPlan, draw_numbers, plan_epoch

MOST_SHAPES = 16
"""Shapes of a table: a graph for each of them still fits into memory."""

_MOST_CANDIDATES = 24
"""Lengths of either side that a shape may end at."""

_ROUNDS = 4
"""Times that every shape may be replaced by a better one."""

_SPARE = 1.02
"""Rows for each row of the first epoch, if later ones cut some words otherwise."""

Lengths = NDArray[np.int32]
Costs = NDArray[np.int64]


class BatchShape(NamedTuple):
    """The shape of a batch: rows, and positions on both sides."""

    rows: int
    source: int
    target: int


def choose_shapes(
    source_lengths: Lengths,
    target_lengths: Lengths,
    *,
    max_tokens_per_batch: int,
    varies: bool = False,
    most: int = MOST_SHAPES,
) -> tuple[BatchShape, ...]:
    """Choose the shapes of a text's batches, with as little padding as so many shapes allow.

    Shapes are added one by one, each the one that saves most positions. Of the tables on this way
    the one is taken that computes least, if a batch costs ``max_tokens_per_batch`` positions in
    addition, as in `plan_epoch`: with few batches, more shapes would only make them smaller.

    Args:
        source_lengths: tokens of each source.
        target_lengths: tokens of each target.
        max_tokens_per_batch: the most positions, with padding, of a batch on either side.
        varies: True if other epochs cut some words otherwise, so that lengths change a little.
        most: the most shapes.

    Returns:
        At most so many shapes, of which the last holds every pair.
    """
    sizes_X2, counts_X = np.unique(
        np.stack([source_lengths, target_lengths], axis=1).astype(np.int64),
        axis=0,
        return_counts=True,
    )
    candidates_Y2 = _candidates(source_lengths, target_lengths)
    fits_XY = (sizes_X2[:, None] <= candidates_Y2[None]).all(axis=2)
    # What a pair of each size takes in each shape; a shape that does not hold it is never taken.
    cost_XY = np.where(fits_XY, candidates_Y2.sum(axis=1), np.iinfo(np.int32).max)
    chosen = [len(candidates_Y2) - 1]
    found: list[tuple[int, list[int]]] = []
    while True:
        cost, _ = _fill(candidates_Y2[chosen], sizes_X2, counts_X, max_tokens_per_batch, varies)
        found.append((cost, chosen))
        if len(chosen) == most:
            break
        longer = [*chosen, _best_next(cost_XY, counts_X, chosen)]
        if longer[-1] in chosen:
            break
        chosen = longer
    _, chosen = min(found, key=lambda one: one[0])
    better = _swap(cost_XY, counts_X, chosen)
    return min(
        _fill(candidates_Y2[one], sizes_X2, counts_X, max_tokens_per_batch, varies)
        for one in (chosen, better)
    )[1]


def _best_next(cost_XY: Costs, counts_X: Costs, chosen: Sequence[int]) -> int:
    """Find the shape that saves most positions in addition to the chosen ones."""
    best_X = cost_XY[:, chosen].min(axis=1)
    saved_Y = counts_X @ np.maximum(best_X[:, None] - cost_XY, 0)
    return int(saved_Y.argmax()) if saved_Y.any() else chosen[0]


def _swap(cost_XY: Costs, counts_X: Costs, chosen: Sequence[int]) -> list[int]:
    """Replace shapes one by one by better ones; the first, which holds every pair, stays."""
    better = list(chosen)
    for _ in range(_ROUNDS):
        before = list(better)
        for place in range(1, len(better)):
            others = better[:place] + better[place + 1 :]
            better[place] = _best_next(cost_XY, counts_X, others)
        if better == before:
            break
    # Two places may have found one shape.
    return list(dict.fromkeys(better))


def plan_in_shapes(
    source_lengths: Lengths,
    target_lengths: Lengths,
    shapes: Sequence[BatchShape],
    *,
    seed: int,
    epoch: int,
    max_tokens_per_batch: int,
) -> EpochPlan:
    """Put every pair into exactly one batch of an epoch, and every batch into a shape.

    Pairs that no shape holds, as another epoch may cut them into more pieces, get batches of their
    own shapes.

    Args:
        source_lengths: tokens of each source.
        target_lengths: tokens of each target.
        shapes: those of `choose_shapes`.
        seed: the run's seed.
        epoch: the epoch, from 0.
        max_tokens_per_batch: for the pairs that no shape holds.

    Returns:
        The plan, the same for the same arguments on every machine.
    """
    lengths_P2 = np.stack([source_lengths, target_lengths], axis=1).astype(np.int64)
    of_pair_P = _shape_of_each(lengths_P2, np.array([one[1:] for one in shapes]))
    # By shape, and by chance among the pairs of one.
    pairs = np.lexsort((draw_numbers(len(lengths_P2), seed, epoch, "pairs"), of_pair_P))
    counts = np.bincount(of_pair_P + 1, minlength=len(shapes) + 1)
    starts: list[int] = []
    ends: list[int] = []
    of_batch: list[BatchShape | None] = []
    if counts[0]:
        alone = pairs[: counts[0]]
        rest = plan_epoch(
            source_lengths[alone],
            target_lengths[alone],
            seed=seed,
            epoch=epoch,
            max_tokens_per_batch=max_tokens_per_batch,
        )
        pairs[: counts[0]] = alone[rest.pairs]
        starts += rest.starts.tolist()
        ends += rest.ends.tolist()
        of_batch += [None] * len(rest)
    first = int(counts[0])
    for shape, count in zip(shapes, counts[1:].tolist(), strict=True):
        begins = range(first, first + count, shape.rows)
        starts += begins
        ends += [min(begin + shape.rows, first + count) for begin in begins]
        of_batch += [shape] * len(begins)
        first += count
    shuffled = np.argsort(draw_numbers(len(starts), seed, epoch, "batches"), kind="stable")
    return EpochPlan(
        epoch,
        pairs,
        np.array(starts, dtype=np.int64)[shuffled],
        np.array(ends, dtype=np.int64)[shuffled],
        tuple(of_batch[index] for index in shuffled),
    )


def _candidates(source_lengths: Lengths, target_lengths: Lengths) -> NDArray[np.int64]:
    """List sizes that shapes may have, ``(sizes, 2)``, of which the last holds every pair."""
    places = np.linspace(0, 1, _MOST_CANDIDATES + 1)[1:]
    # Long sentences are few but wide, so that quantiles by tokens count, not by sentences.
    ends = []
    for lengths in (source_lengths, target_lengths):
        ordered = np.sort(lengths).astype(np.int64)
        shares = np.cumsum(ordered) / ordered.sum()
        found = ordered[np.minimum(np.searchsorted(shares, places), len(ordered) - 1)]
        ends.append(np.unique(np.append(found, ordered[-1])))
    return np.stack(np.meshgrid(*ends, indexing="ij"), axis=-1).reshape(-1, 2)


def _shape_of_each(
    lengths_P2: NDArray[np.int64], widths_K2: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Find the smallest shape that holds each pair; −1 if none does."""
    found_P = np.full(len(lengths_P2), -1)
    # The largest first, so that a smaller one that fits, too, is written over it.
    for shape in np.argsort(-widths_K2.sum(axis=1), kind="stable"):
        found_P[(lengths_P2 <= widths_K2[shape]).all(axis=1)] = shape
    return found_P


def _fill(
    widths_K2: NDArray[np.int64],
    sizes_X2: NDArray[np.int64],
    counts_X: NDArray[np.int64],
    budget: int,
    varies: bool,
) -> tuple[int, tuple[BatchShape, ...]]:
    """Give shapes their rows; return what an epoch costs, and the shapes, the largest last."""
    pairs_K = np.bincount(_shape_of_each(sizes_X2, widths_K2), counts_X, len(widths_K2)).astype(int)
    cost = 0
    shapes = []
    for shape in np.argsort(widths_K2.sum(axis=1), kind="stable").tolist():
        source, target = widths_K2[shape].tolist()
        most_rows = max(1, budget // max(source, target))
        count = max(1, int(pairs_K[shape]))
        batches = -(-count // most_rows)
        # Equally many rows in each batch, so that the last one is not half empty.
        rows = min(most_rows, -(-int(count * (_SPARE if varies else 1)) // batches))
        batches = -(-count // rows)
        cost += batches * (rows * (source + target) + budget)
        shapes.append(BatchShape(rows, source, target))
    return cost, tuple(shapes)
