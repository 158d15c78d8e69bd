"""Segmentations that are drawn again in every epoch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pellucid.data import VariantStore, build_variants, make_batch
from pellucid.data.segmentations import SCORES
from pellucid.errors import DataError

COUNT = 3
PAIR = (
    [([5, 6], np.log(0.5)), ([5, 7, 8], np.log(0.3)), ([9, 9, 9, 9], np.log(0.2))],
    [([4, 3], np.log(0.9)), ([4, 4, 4], np.log(0.1))],
)


def build(folder: Path, num_pairs: int = 1) -> VariantStore:
    build_variants(
        folder / "segmentations",
        [PAIR] * num_pairs,
        COUNT,
        source_vocabulary_size=11,
        target_vocabulary_size=11,
    )
    return VariantStore(folder / "segmentations", COUNT)


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_segmentations_are_drawn_with_their_probability_to_the_power_alpha(
    alpha: float, tmp_path: Path
) -> None:
    num_pairs = 6007
    text = build(tmp_path, num_pairs).epoch(2, seed=1, alpha=alpha)
    for lengths, sizes, probabilities in (
        (text.source_lengths, (2, 3, 4), (0.5, 0.3, 0.2)),
        (text.target_lengths, (2, 3), (0.9, 0.1)),
    ):
        seen = np.array([(lengths == size).sum() for size in sizes])
        powers = np.array(probabilities) ** alpha
        expected = num_pairs * powers / powers.sum()
        assert seen.sum() == num_pairs
        # Chi-square with 1 or 2 degrees of freedom: above 13.8 once in a thousand.
        assert float(((seen - expected) ** 2 / expected).sum()) < 13.8


def test_draws_are_a_function_of_seed_epoch_and_side(tmp_path: Path) -> None:
    store = build(tmp_path, 101)

    def lengths(seed: int, epoch: int) -> list[int]:
        return store.epoch(epoch, seed=seed, alpha=0.0).source_lengths.tolist()

    assert lengths(1, 3) == lengths(1, 3)
    assert lengths(1, 3) != lengths(1, 4)
    assert lengths(1, 3) != lengths(2, 3)


def test_a_batch_holds_what_was_drawn(tmp_path: Path) -> None:
    text = build(tmp_path, 17).epoch(1, seed=1, alpha=0.0)
    batch = make_batch(text, np.arange(17), pad_id=0, start_id=2)
    ways = {2: [5, 6], 3: [5, 7, 8], 4: [9, 9, 9, 9]}
    for row, length in enumerate(text.source_lengths.tolist()):
        assert batch.source_BS[row, :length].tolist() == ways[length]
        assert not batch.source_BS[row, length:].any()
    assert batch.num_target_tokens == int(text.target_lengths.sum())


def test_other_numbers_of_segmentations_are_refused(tmp_path: Path) -> None:
    build(tmp_path, 7)
    folder = tmp_path / "segmentations"
    with pytest.raises(DataError, match="The segmentations must be 4 for every pair"):
        VariantStore(folder, 4)
    (folder / SCORES).write_bytes(b"1234")
    with pytest.raises(DataError, match="makes it again"):
        VariantStore(folder, COUNT)
