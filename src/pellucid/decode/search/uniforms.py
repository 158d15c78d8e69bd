"""The random numbers of samples, without PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pellucid.decode.constraints.request import Request
from pellucid.randomness import generator

__all__ = ["number_sample", "uniforms"]


def number_sample(request: Request, index: int) -> Request:
    """Give one of several samples of a request its own random numbers."""
    return replace(request, key=f"{index}\x1f{request.key}")


def uniforms(keys: Sequence[str], seed: int, count: int) -> np.ndarray:
    """Make the random numbers of samples.

    A sample's numbers depend only on the seed and its own key, not on its neighbors. The first
    numbers stay the same if more are asked for.

    Args:
        keys: one for each sample.
        seed: the option's value.
        count: the numbers of each sample: one for each token.

    Returns:
        ``float64`` of shape (samples, count), in [0, 1).
    """
    numbers = [generator(seed, "sample", key).random(count) for key in keys]
    return np.stack(numbers) if numbers else np.empty((0, count))
