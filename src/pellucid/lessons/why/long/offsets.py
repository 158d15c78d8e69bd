"""A step between positions as a linear map: exact for sinusoids, fitted for a learned table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from pellucid.attention.positions import offset_matrix, sinusoidal_positions
from pellucid.lessons.why.tiny.learn import make_tiny, train_tiny
from pellucid.lessons.why.tiny.words import Pair
from pellucid.machine.randomness import generator

FOLDS = 5
STRENGTHS = (1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
"""Of the ridge, as a share of the mean variance; the best one counts."""


def error_of_matrix(offset: int, num_positions: int, d_model: int) -> float:
    r"""Compute the largest error of $M(\delta)\,\text{PE}_i = \text{PE}_{i+\delta}$ in float64."""
    encoded_LD = sinusoidal_positions(num_positions + offset, d_model, dtype=torch.float64)
    matrix_DD = offset_matrix(offset, d_model, dtype=torch.float64)
    moved_LD = encoded_LD[:num_positions] @ matrix_DD.T
    return float((moved_LD - encoded_LD[offset:]).abs().max())


def fit_of_offset(table_LD: np.ndarray, offset: int) -> float:
    """Compute R² of the best linear map from PE_i to PE_{i+δ}, for positions it was not fitted on.

    The map has a constant and is fitted by ridge regression on four fifths of the positions, five
    times. With as many numbers as positions a map would fit anything that it was fitted on, which
    would say nothing.

    Args:
        table_LD: the encodings.
        offset: δ.

    Returns:
        1 for a perfect map; 0 or less for one that is no better than the mean.
    """
    start_XD, end_XD = table_LD[:-offset], table_LD[offset:]
    fold_X = np.arange(len(start_XD)) % FOLDS
    return max(_held_out(start_XD, end_XD, fold_X, strength) for strength in STRENGTHS)


def _held_out(
    start_XD: np.ndarray, end_XD: np.ndarray, fold_X: np.ndarray, strength: float
) -> float:
    missed = spread = 0.0
    for fold in range(FOLDS):
        is_in_X = fold_X != fold
        center_D, target_D = start_XD[is_in_X].mean(axis=0), end_XD[is_in_X].mean(axis=0)
        given_XD = start_XD[is_in_X] - center_D
        gram_DD = given_XD.T @ given_XD
        gram_DD += strength * np.trace(gram_DD) / len(gram_DD) * np.eye(len(gram_DD))
        map_DD = np.linalg.solve(gram_DD, given_XD.T @ (end_XD[is_in_X] - target_D))
        true_XD = end_XD[~is_in_X] - target_D
        missed += float(((true_XD - (start_XD[~is_in_X] - center_D) @ map_DD) ** 2).sum())
        spread += float((true_XD**2).sum())
    return 1 - missed / spread


def table_fits(table_LD: np.ndarray, offsets: Sequence[int]) -> list[float]:
    """Compute R² for several offsets."""
    return [fit_of_offset(table_LD, offset) for offset in offsets]


def fits_of_learned(
    offsets: Sequence[int], *, count: int, longest: int, d_model: int, steps: int, seed: int
) -> dict[str, object]:
    """Train a model with learned positions to copy letters, and fit its tables.

    Copying letters needs positions and nothing else, and lines of all lengths train all of them.

    Returns:
        R² of the ``encoder``'s and the ``decoder``'s table after training, of the encoder's table
        ``before`` it, and the ``loss`` at the end.
    """
    pairs = _draw_letters(count, longest, seed)
    tiny = make_tiny(
        pairs, seed=seed, d_model=d_model,
        d_ff=2 * d_model, num_heads=2, positions="learned", max_source_length=longest + 1,
        max_target_length=longest + 1,
    )  # fmt: skip
    tables = {
        name.split(".")[0]: weight
        for name, weight in tiny.model.named_parameters()
        if name.endswith("positions.weight")
    }

    def fits(side: str) -> list[float]:
        return table_fits(tables[side].detach().double().numpy()[:longest], offsets)

    before = fits("encoder")
    tiny = train_tiny(tiny, pairs, steps=steps, seed=seed, rate=5e-3)
    tail = tiny.losses[-10:]
    return {
        "encoder": fits("encoder"),
        "decoder": fits("decoder"),
        "before": before,
        "loss": sum(tail) / len(tail),
    }


def _draw_letters(count: int, longest: int, seed: int) -> list[Pair]:
    numbers = generator(seed, "why position letters")
    found = []
    for _ in range(count):
        drawn = numbers.integers(0, 12, int(numbers.integers(1, longest + 1)))
        line = " ".join("abcdefghijkl"[letter] for letter in drawn)
        found.append((line, line))
    return found
