"""Standard output on a terminal: characters that would steer it are made visible."""

from __future__ import annotations

import io
import sys
import unicodedata

_HARMLESS = frozenset("\n\t\u200c\u200d")
"""Line ends and tabs, and the joiners that Persian, Indic scripts and emoji need."""


def show_controls(text: str) -> str:
    """Write control characters, direction marks and line separators as escapes."""
    if text.replace("\n", "").isprintable():  # nearly always
        return text
    return "".join(map(_shown, text))


def _shown(letter: str) -> str:
    if letter in _HARMLESS or unicodedata.category(letter) not in ("Cc", "Cf", "Zl", "Zp"):
        return letter
    return ascii(letter)[1:-1]


class TerminalOutput(io.TextIOBase):
    """Standard output that shows control characters instead of sending them."""

    def write(self, text: str) -> int:
        """Write a text."""
        sys.stdout.write(show_controls(text))
        return len(text)

    def flush(self) -> None:
        """Send what was written."""
        sys.stdout.flush()
