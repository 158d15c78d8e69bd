"""Several segmentations of each sentence, of which every epoch draws one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import final

import numpy as np
from numpy.typing import NDArray

from pellucid.data.token_store import Gathered, TokenStore, build_store
from pellucid.errors import DataError
from pellucid.files import write_bytes
from pellucid.machine.randomness import random_bytes

Variant = tuple[Sequence[int], float]
"""The ids of one segmentation, and its log-probability."""

SCORES = "scores.f4"


@final
class EpochText:
    """The pairs of one epoch, with one segmentation of each side; read like a `TokenStore`."""

    def __init__(
        self,
        store: TokenStore,
        source_rows: NDArray[np.int64],
        target_rows: NDArray[np.int64],
    ) -> None:
        self._store = store
        self._source_rows = source_rows
        self._target_rows = target_rows
        self.source_lengths: NDArray[np.int32] = store.source_lengths[source_rows]
        self.target_lengths: NDArray[np.int32] = store.target_lengths[target_rows]

    def gather_sources(self, indices: NDArray[np.int64]) -> Gathered:
        """Read several sources: their ids one after the other, and how many each has."""
        return self._store.gather_sources(self._source_rows[indices])

    def gather_targets(self, indices: NDArray[np.int64]) -> Gathered:
        """Read several targets: their ids one after the other, and how many each has."""
        return self._store.gather_targets(self._target_rows[indices])


@final
class VariantStore:
    """Segmentations on disk, the same number for every pair; made by `build_variants`.

    A pair with fewer repeats its best one in the free places, which are never drawn.

    Args:
        folder: the folder that `build_variants` wrote.
        count: the segmentations of each pair.

    Attributes:
        store: all segmentations; those of a pair follow each other.

    Raises:
        DataError: the files do not hold this number of segmentations.
    """

    def __init__(self, folder: Path, count: int) -> None:
        self.store = TokenStore.open(folder / "tokens")
        path = folder / SCORES
        scores = np.fromfile(path, dtype="<f4") if path.is_file() else np.empty(0)
        if len(self.store) % count or scores.size != 2 * len(self.store):
            raise DataError(
                f"The segmentations must be {count} for every pair, with their scores, but those "
                f"in {folder} are not. Delete {folder.parent}; the same command makes it again."
            )
        self._count = count
        self._scores = scores.reshape(2, -1, count).astype(np.float64)

    def epoch(self, epoch: int, *, seed: int, alpha: float) -> EpochText:
        r"""Draw a segmentation of each sentence, with probability proportional to $p^α$.

        Args:
            epoch: the epoch, from 0; each draws again.
            seed: the run's seed.
            alpha: 0 draws all with the same probability, 1 by their own.

        Source:
            Kudo 2018, "Subword Regularization", section 3.2.
        """
        source, target = (
            self._draw(side, seed=seed, epoch=epoch, alpha=alpha) for side in range(2)
        )
        return EpochText(self.store, source, target)

    def _draw(self, side: int, *, seed: int, epoch: int, alpha: float) -> NDArray[np.int64]:
        scores = self._scores[side]  # (pairs, segmentations); NaN if a pair has fewer
        is_real = np.isfinite(scores)
        best = np.where(is_real, scores, -np.inf).max(axis=1, keepdims=True)
        # Relative to the best, so that exp does not underflow for all of them.
        weights = np.where(is_real, np.exp(alpha * np.where(is_real, scores - best, 0.0)), 0.0)
        ends = np.cumsum(weights, axis=1)
        raw = random_bytes(8 * len(scores), seed, "segmentation", epoch, side).view("<u8")
        # Each pair draws a point on the line of its weights; the segmentation there is chosen.
        points = raw.astype(np.float64) / 2.0**64 * ends[:, -1]
        # Rounding can put the point at the very end.
        chosen = np.minimum((ends <= points[:, None]).sum(axis=1), is_real.sum(axis=1) - 1)
        places: NDArray[np.int64] = np.arange(len(scores)) * self._count + chosen
        return places


def build_variants(
    folder: Path,
    pairs: Iterable[tuple[Sequence[Variant], Sequence[Variant]]],
    count: int,
    *,
    source_vocabulary_size: int,
    target_vocabulary_size: int,
) -> None:
    """Write the segmentations of all pairs.

    Args:
        folder: the folder to make; must not exist.
        pairs: the segmentations of source and target, at least one each, the best first.
        count: the most segmentations to keep.
        source_vocabulary_size: one more than the largest possible source id.
        target_vocabulary_size: the same for targets.

    Raises:
        DataError: ``pairs`` is empty.
        OutputError: the disk cannot take them.
    """
    scores: list[list[float]] = [[], []]

    def rows() -> Iterable[tuple[Sequence[int], Sequence[int]]]:
        for sides in pairs:
            filled = []
            for side, variants in enumerate(sides):
                real = list(variants[:count])
                missing = count - len(real)
                scores[side] += [score for _, score in real] + [np.nan] * missing
                # Free places hold the best one, but no score, so they are never drawn.
                filled.append([ids for ids, _ in real] + [real[0][0]] * missing)
            yield from zip(*filled, strict=True)

    folder.mkdir()
    build_store(
        folder / "tokens",
        rows(),
        source_vocabulary_size=source_vocabulary_size,
        target_vocabulary_size=target_vocabulary_size,
    )
    write_bytes(folder / SCORES, np.array(scores, dtype="<f4").tobytes())
