"""Confidence intervals of a mean over a few seeds."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

_T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t at 97.5 % for 1, 2, … degrees of freedom."""
_NORMAL_975 = 1.96


@dataclass(frozen=True)
class Interval:
    """A mean with the ends of its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        half = self.high - self.mean
        return f"{self.mean:.3g}" if half == 0 else f"{self.mean:.3g} ± {half:.2g}"


def interval(values: Sequence[float]) -> Interval:
    """Return the mean with its 95 % confidence interval by Student's t.

    Args:
        values: one for each seed. A single one has no width; none, or one that is not finite, gives
            an interval that is not a number.
    """
    if not values or not all(math.isfinite(value) for value in values):
        return Interval(math.nan, math.nan, math.nan)
    mean = statistics.fmean(values)
    if len(values) == 1:
        return Interval(mean, mean, mean)
    freedom = len(values) - 1
    t = _T_975[freedom - 1] if freedom <= len(_T_975) else _NORMAL_975
    half = t * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean, mean - half, mean + half)
