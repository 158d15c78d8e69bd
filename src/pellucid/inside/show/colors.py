"""Two color scales for every medium, readable without color vision.

Cividis is for numbers from 0 to 1; blue over white to orange is for signed numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CIVIDIS = (
    "00224e",
    "003170",
    "2a3f6d",
    "434e6c",
    "575d6d",
    "6a6c71",
    "7d7c78",
    "918b78",
    "a59c74",
    "bcae6c",
    "d2c060",
    "e9d34e",
    "fee838",
)
"""The scale at equal distances from 0 to 1 (Nuñez, Anderton and Renslow 2018)."""

BLUE_ORANGE = (
    "08468b",
    "3f7fc1",
    "8fb8e0",
    "d3e3f2",
    "f7f7f7",
    "fbe0c4",
    "f3b26b",
    "d9801f",
    "964b00",
)
"""The scale at equal distances from −1 over 0, the middle, to 1."""

EQUAL_CONTRAST = 0.179
"""The relative luminance on which black and white have the same contrast, 4.58."""

Color = tuple[int, int, int]


def shade(weight: float) -> Color:
    """Return the color of a weight: red, green and blue from 0 to 255; clipped to 0 to 1."""
    return _between(CIVIDIS, weight)


def shade_signed(value: float) -> Color:
    """Return the color of a number from −1 (blue) over 0 (white) to 1 (orange), clipped to that."""
    return _between(BLUE_ORANGE, (value + 1) / 2)


def ink_on(color: Color) -> str:
    """Return black or white, whichever has the higher contrast on a color: 4.5 or more."""
    return "#000000" if luminance(color) > EQUAL_CONTRAST else "#ffffff"


def luminance(color: Color) -> float:
    """Compute the relative luminance of a color, from 0 (black) to 1 (white), as WCAG 2.2 does."""
    shares = (part / 255 for part in color)
    # The transfer curve of sRGB, as WCAG 2.2 writes it.
    linear = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in shares)
    return sum(part * x for part, x in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def to_hex(color: Color) -> str:
    """Write a color for a page: ``#00224e``."""
    return "#{:02x}{:02x}{:02x}".format(*color)


def ground_and_ink(value: float, limit: float | None) -> tuple[str, str]:
    """Return the color of a cell, and of the number in it, as a page writes them.

    Args:
        value: the number.
        limit: the end of the signed scale; None for weights from 0 to 1.
    """
    color = shade(value) if limit is None else shade_signed(value / limit)
    return to_hex(color), ink_on(color)


def scale_end(values: np.ndarray) -> float:
    """Return the largest finite magnitude, the end of a signed scale; 1 if all numbers are 0."""
    finite = np.abs(values[np.isfinite(values)])
    return float(finite.max(initial=0.0)) or 1.0


def _between(stops: Sequence[str], share: float) -> Color:
    place = min(max(share, 0.0), 1.0) * (len(stops) - 1)
    # The end of the scale belongs to its last piece.
    index = min(int(place), len(stops) - 2)
    low, high = (bytes.fromhex(stops[i]) for i in (index, index + 1))
    rest = place - index
    red, green, blue = (round(a + rest * (b - a)) for a, b in zip(low, high, strict=True))
    return red, green, blue
