"""The random numbers of samples, without PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from pellucid.config import DecodingConfig
from pellucid.decode.constraints.request import Request
from pellucid.decode.hypothesis import Hypothesis
from pellucid.machine.randomness import generator


def number_sample(request: Request, index: int) -> Request:
    """Give one of several samples of a request its own random numbers."""
    # U+001F separates the two, as in `derive_key`: no text can look like another's number.
    return replace(request, key=f"{index}\x1f{request.key}")


def draw_many_samples(
    requests: Sequence[Request],
    config: DecodingConfig,
    draw: Callable[[Sequence[Request], DecodingConfig], Sequence[tuple[Hypothesis, ...]]],
) -> list[tuple[Hypothesis, ...]]:
    """Draw ``n_best`` samples of each request, each as a request with its own key.

    Args:
        requests: in any order.
        config: the options.
        draw: draws one sample of each request.
    """
    count = config.n_best
    numbered = [number_sample(request, i) for request in requests for i in range(count)]
    drawn = draw(numbered, config.model_copy(update={"n_best": 1}))
    return [tuple(chain.from_iterable(drawn[i : i + count])) for i in range(0, len(drawn), count)]


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
    # A new generator for each key instead of one stream: docs/decisions/0006.
    numbers = [generator(seed, "sample", key).random(count) for key in keys]
    return np.stack(numbers) if numbers else np.empty((0, count))
