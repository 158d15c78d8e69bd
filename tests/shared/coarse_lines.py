"""Lines that the packaged model translates with other words in int8 than in its own precision."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_FOUND = Path(__file__).parents[1] / "golden" / "coarse_lines.tsv"
"""Written by `find_coarse_lines.py` next to it."""


class Coarse(NamedTuple):
    """A line, and what the model writes in float32 and in int8."""

    line: str
    own: str
    other: str


def coarse_lines() -> list[Coarse]:
    """Read the lines. The first is not flagged as wrong."""
    rows = _FOUND.read_text(encoding="utf-8").splitlines()
    return [Coarse(*row.split("\t")) for row in rows]
