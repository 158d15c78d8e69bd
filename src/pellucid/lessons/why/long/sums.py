"""Numbers of several seeds as lines, bars and cells of a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from pellucid.lessons.why.intervals import Interval, interval
from pellucid.lessons.why.result import Series
from pellucid.lessons.why.tiny.learn import thin as thin
from pellucid.lessons.why.tiny.learn import updates_until as updates_until

Numbers = Sequence[float]


def mean(values: Numbers) -> float:
    """Average over seeds."""
    return interval(values).mean


def write(values: Numbers, *, scale: float = 1.0) -> str:
    """Write the mean with half the width of its interval; a dash if a number is missing."""
    found = interval([scale * value for value in values])
    return "–" if found.mean != found.mean else str(found).replace("e-", "e−")


def series_of(
    name: str,
    places: Sequence[float],
    values: Sequence[Numbers],
    role: Literal["accent", "plain", "faint"] = "plain",
    *,
    scale: float = 1.0,
    in_logarithms: bool = False,
) -> Series:
    """Make a line or a set of bars with intervals.

    Args:
        name: for the legend.
        places: on the horizontal axis.
        values: for each place the numbers of all seeds.
        role: as in `pellucid.lessons.why.result.Series`.
        scale: multiplies every number, such as 100 for shares in %.
        in_logarithms: True takes means and intervals of the logarithms, for a logarithmic axis: an
            interval then never reaches 0. Places with a number that is not positive stay as they
            are.
    """
    average = _geometric_interval if in_logarithms else interval
    found = [average([scale * value for value in numbers]) for numbers in values]
    return Series(
        name,
        tuple(float(place) for place in places),
        tuple(one.mean for one in found),
        role,
        tuple(one.low for one in found),
        tuple(one.high for one in found),
    )


def _geometric_interval(values: Numbers) -> Interval:
    if not values or not min(values) > 0:
        return interval(values)
    found = interval([math.log(value) for value in values])
    return Interval(math.exp(found.mean), math.exp(found.low), math.exp(found.high))
