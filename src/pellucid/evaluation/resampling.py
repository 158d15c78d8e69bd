"""Bootstrap samples of sentences. What counts links draws them too, and needs no sacreBLEU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pellucid.errors import ConfigurationError


def check_resampling(num_resamples: int, seed: int) -> None:
    """Refuse numbers of resamples and seeds that cannot be used."""
    if num_resamples < 2:
        raise ConfigurationError(
            f"The number of bootstrap resamples must be at least 2, but is {num_resamples} "
            f"(num_resamples). Use 1000, as is usual."
        )
    if seed < 0:
        raise ConfigurationError(
            f"The seed of the bootstrap must be at least 0, but is {seed} (seed). "
            f"Use 12345, as is usual."
        )


def draw_resamples(
    num_sentences: int, num_resamples: int, seed: int
) -> Iterator[NDArray[np.int64]]:
    """Draw corpora of the same size, with replacement.

    The draws depend only on the arguments; they are also those of sacreBLEU.

    Yields:
        How often each sentence was drawn: (num_sentences,). One sample at a time, because all at
        once would need gigabytes for a large corpus.
    """
    generator = np.random.default_rng(seed)
    for _ in range(num_resamples):
        drawn = generator.choice(num_sentences, size=num_sentences, replace=True)
        yield np.bincount(drawn, minlength=num_sentences)
