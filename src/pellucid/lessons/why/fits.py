"""A power law through points: the exponent of a cost that grows with a length."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pellucid.errors import InputError


@dataclass(frozen=True)
class PowerLaw:
    r"""A cost of the form $c\,n^e$.

    Attributes:
        factor: c, the cost at a length of 1.
        exponent: e, the slope of the line through the logarithms.
    """

    factor: float
    exponent: float

    def at(self, length: float) -> float:
        """Compute the cost at a length."""
        return self.factor * float(length**self.exponent)


def fit_power_law(lengths: Sequence[float], costs: Sequence[float]) -> PowerLaw:
    r"""Fit $\log\text{cost} = \log c + e \log n$ by least squares.

    Raises:
        InputError: there are fewer than two lengths, or a number is not positive.
    """
    if len(lengths) < 2 or len(lengths) != len(costs):
        raise InputError(
            "A power law needs two or more lengths with one cost each, but got "
            f"{len(lengths)} and {len(costs)}. Measure more lengths."
        )
    if min(*lengths, *costs) <= 0:
        raise InputError(
            "Lengths and costs must be above 0 for a power law, but one is not. Leave it out."
        )
    # A power law is a line between logarithms.
    exponent, constant = np.polyfit(np.log(lengths), np.log(costs), 1)
    return PowerLaw(math.exp(constant), float(exponent))


def longest_below(cost_at: Callable[[float], float], limit: float) -> float:
    """Find the length at which a rising cost reaches a limit, by halving.

    Returns:
        1 if the cost is above the limit from the start, and about 1e12 if it stays below there.
    """
    low = 1.0
    high = 2.0
    # Doubling finds an upper end for any rising cost, of whatever power.
    while cost_at(high) < limit and high < 1e12:
        low = high
        high = 2 * high
    # Fifty halvings leave no digit of a float open.
    for _ in range(50):
        middle = (low + high) / 2
        if cost_at(middle) < limit:
            low = middle
        else:
            high = middle
    return low
