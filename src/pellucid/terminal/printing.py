"""Styled text on standard output: paragraphs that wrap, and lines that must not."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from pellucid.errors import make_printable
from pellucid.terminal.text import styled_output

_NARROWEST = 24


class Printer:
    """A printer to standard output, in colors if that is a terminal.

    Args:
        widest: most columns of a paragraph, on however wide a terminal; None for no limit.
    """

    def __init__(self, widest: int | None = None) -> None:
        # No highlighting: rich would color every number and path by itself.
        self._console = Console(file=styled_output(), highlight=False, soft_wrap=True)
        width = max(self._console.width, _NARROWEST)
        self.width = width if widest is None else min(width, widest)

    def paragraph(
        self, text: Text | str, style: str = "", *, first: str = "", later: str | None = None
    ) -> None:
        """Print a text that wraps.

        Args:
            text: the text.
            style: its style, if it is not styled already.
            first: the beginning of the first line.
            later: the beginning of the others; that of the first unless given.
        """
        # A copy, as its control characters are replaced below.
        styled = Text(text, style) if isinstance(text, str) else text.copy()
        styled.plain = make_printable(styled.plain)
        indent = first if later is None else later
        room = max(self.width - max(len(first), len(indent)), 1)
        for index, line in enumerate(styled.wrap(self._console, room)):
            line.rstrip()
            self.line(Text(indent if index else first) + line)

    def line(self, line: Text | str = "") -> None:
        """Print a line as it is, however long it is."""
        self._console.print(
            Text(line) if isinstance(line, str) else line,
            no_wrap=True,
            overflow="ignore",
            crop=False,
        )
