"""Numbers of several seeds as cells of tables and as lines with their intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pellucid.lessons.why.intervals import interval
from pellucid.lessons.why.result import Series


def write_over_seeds(values: Sequence[float], form: str) -> str:
    """Write the mean of some seeds, with half of the 95 % interval if there are several.

    Args:
        values: one for each seed.
        form: a format of Python for the mean, such as ``.0f``.
    """
    found = interval(values)
    if len(values) == 1:
        return f"{found.mean:{form}}"
    return f"{found.mean:{form}} ± {found.high - found.mean:{form}}"


def line_over_seeds(
    name: str,
    places: Sequence[float],
    values: Sequence[Sequence[float]],
    role: Literal["accent", "plain", "faint"] = "plain",
    *,
    scale: float = 1.0,
    ends: tuple[float, float] | None = None,
) -> Series:
    """Make a line of means, with a band of their 95 % intervals if there are several seeds.

    Args:
        name: for the legend.
        places: on the horizontal axis.
        values: for each place one number a seed.
        role: of the line.
        scale: multiplies every number, such as 100 for percent.
        ends: that no number can leave, before scaling; a band is cut there.
    """
    found = [interval(row) for row in values]
    least, most = ends or (float("-inf"), float("inf"))
    has_band = any(one.low != one.high for one in found)
    return Series(
        name,
        tuple(places),
        tuple(scale * one.mean for one in found),
        role,
        low=tuple(scale * max(one.low, least) for one in found) if has_band else (),
        high=tuple(scale * min(one.high, most) for one in found) if has_band else (),
    )
