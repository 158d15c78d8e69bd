"""One color scale for every medium: cividis, readable also without color vision."""

from __future__ import annotations

__all__ = ["ink_on", "shade"]

_CIVIDIS = ("00204d", "213d6b", "555b6c", "7b7a77", "a59c74", "d3c064", "ffe945")
"""The scale at equal distances from 0 to 1 (Nuñez, Anderton and Renslow 2018)."""


def shade(weight: float) -> tuple[int, int, int]:
    """The color of a weight: red, green and blue from 0 to 255; outside 0 to 1 the end's."""
    place = min(max(weight, 0.0), 1.0) * (len(_CIVIDIS) - 1)
    index = min(int(place), len(_CIVIDIS) - 2)
    low, high = (bytes.fromhex(_CIVIDIS[i]) for i in (index, index + 1))
    share = place - index
    red, green, blue = (round(a + share * (b - a)) for a, b in zip(low, high, strict=True))
    return red, green, blue


def ink_on(color: tuple[int, int, int]) -> str:
    """Black or white, whichever is read more easily on a color."""
    red, green, blue = color
    return "#000000" if 0.299 * red + 0.587 * green + 0.114 * blue > 110 else "#ffffff"
