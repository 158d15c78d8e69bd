"""Lines that a call gives as a file or as a list."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from pellucid.arguments import list_texts
from pellucid.text.reading.lines import read_lines

GivenLines = str | Path | Iterable[str]
"""A text file, or its lines."""


def read_given(name: str, given: object) -> list[str]:
    """Read the lines of a file, or take those that are given.

    Args:
        name: of the argument, for messages.
        given: the file or the lines.

    Raises:
        DataError: they are neither, or the file cannot be read as text.
    """
    return list(read_lines(given)) if isinstance(given, str | Path) else list_texts(name, given)
