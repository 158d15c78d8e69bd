"""Measures how the time of a function grows with the size of its input."""

from __future__ import annotations

import gc
import math
import random
from collections.abc import Callable, Sequence
from time import sleep, thread_time

MOST = 1.3
"""The largest exponent of time by size: 1 is linear, 2 quadratic."""
TIMES = 8
"""How much larger the larger text is: what caches and other programs add weighs less."""
TRIES = 8
"""Measurements before a document counts as slow: a busy machine slows down single ones."""
PAUSE_SECONDS = 0.2
"""Between later measurements, so that what slowed down the first ones may be over."""
LONG_SECONDS = 1.0
"""Times that no busy machine explains."""
LEAST_SECONDS = 0.0002
"""Shorter times count as this one: a clock and a busy machine cannot tell them apart."""


def _seconds(work: Callable[[str], object], text: str) -> float:
    is_collecting = gc.isenabled()
    gc.disable()  # A collection takes time by the size of everything that is in memory.
    try:
        start = thread_time()
        work(text)
        return thread_time() - start
    finally:
        if is_collecting:
            gc.enable()


def exponent(work: Callable[[str], object], frame: str, motif: str, size: int) -> float:
    """Measure how time grows with repetitions of a motif: its exponent by the size."""
    small, large = (frame.replace("{}", motif * (k * size // len(motif))) for k in (1, TIMES))
    one = max(LEAST_SECONDS, _seconds(work, small))
    other = math.inf
    for number in range(TRIES):
        if number > 1:
            sleep(PAUSE_SECONDS)
        one = max(LEAST_SECONDS, min(one, _seconds(work, small)))
        other = min(other, _seconds(work, large))
        if other < one * TIMES**MOST or other > LONG_SECONDS:
            break
    return math.log(other / one, TIMES)


def find_growing(
    work: Callable[[str], object],
    frames: Sequence[str],
    signs: Sequence[str],
    *,
    motifs: int,
    size: int,
    seed: str,
) -> list[tuple[float, str, str]]:
    """Repeat random motifs in frames; list those whose time grows more than `MOST` allows.

    Args:
        work: what reads a text.
        frames: texts with ``{}`` where the motif goes.
        signs: what motifs consist of.
        motifs: how many are tried.
        size: characters of the smaller text.
        seed: of the motifs.

    Returns:
        The exponent, the frame and the motif of each.
    """
    rng = random.Random(seed)
    found = []
    for _ in range(motifs):
        frame = rng.choice(frames)
        motif = "".join(rng.choice(signs) for _ in range(rng.randint(1, 4)))
        grown = exponent(work, frame, motif, size)
        if grown >= MOST:
            found.append((round(grown, 2), frame, motif))
    return found
