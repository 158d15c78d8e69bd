"""Text for a terminal: counts of things, paragraphs, tables, visible control characters."""

from __future__ import annotations

import os
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TextIO

# Line ends and tabs, and the joiners that Persian, Indic scripts and emoji need.
_HARMLESS = frozenset("\n\t\u200c\u200d")


def count_of(number: int, one: str, many: str | None = None) -> str:
    """Count things: ``1 line``, ``4,000 lines``.

    Args:
        number: how many there are.
        one: the noun of one, with a verb if that follows.
        many: the same for several; by default the noun and an s.
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"


def any_of(names: Iterable[str]) -> str:
    """List names of which one is to be taken: ``a, b or c``."""
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last


def percent(share: float, *, most: int | None = None) -> str:
    """Write a share in percent, small ones with two digits after the point.

    A share that is not whole never looks so: 99.96 % of some pairs are not all of them.

    Args:
        share: from 0 to 1.
        most: the most digits after the point, for shares that are not counts: a softmax gives
            nothing exactly 0, and its seventh digit means nothing. None for as many as needed.
    """
    digits = 2 if share < 0.1 else 0
    text = f"{100 * share:.{digits}f}"
    while 0 < share < 1 and float(text) in (0, 100):
        if digits == most:
            least = 10.0**-digits
            return f"under {least:g} %" if share < 0.5 else f"over {100 - least:g} %"
        digits += 1
        text = f"{100 * share:.{digits}f}"
    return f"{text} %"


def wrap(
    text: str,
    width: int = 80,
    *,
    first: str = "",
    later: str | None = None,
    most: int | None = None,
    breaks_words: bool = False,
) -> list[str]:
    """Break a paragraph into lines.

    Args:
        text: the paragraph; an empty one gives no line.
        width: of a line, in characters.
        first: the beginning of the first line.
        later: the beginning of the others; that of the first unless given.
        most: the number of lines after which the rest is cut off; None keeps everything.
        breaks_words: True to break at hyphens, and within words that are wider than a line.
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=first if later is None else later,
        max_lines=most,
        placeholder=" …",
        break_long_words=breaks_words,
        break_on_hyphens=breaks_words,
    )


def lay_out(rows: Sequence[Sequence[str]], is_right: Sequence[bool]) -> Iterator[str]:
    """Lay out a table, with two spaces between columns.

    Args:
        rows: the cells, those of the heading first.
        is_right: for each column True if it stands at the right, as numbers do.

    Yields:
        Lines.
    """
    from rich.cells import cell_len

    # Cells of the terminal, of which a Chinese letter takes two.
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for text, width, to_the_right in zip(row, widths, is_right, strict=True):
            room = " " * (width - cell_len(text))
            cells.append(room + text if to_the_right else text + room)
        yield "  ".join(cells).rstrip()


def show_controls(text: str) -> str:
    """Write control characters, direction marks and line separators as escapes."""
    if text.replace("\n", "").isprintable():  # nearly always
        return text
    return "".join(map(_shown, text))


def _shown(letter: str) -> str:
    if letter in _HARMLESS or unicodedata.category(letter) not in ("Cc", "Cf", "Zl", "Zp"):
        return letter
    return ascii(letter)[1:-1]


class TerminalOutput:
    """Standard output on a terminal, which control characters must not steer: they are shown.

    Args:
        styled: the terminal itself, for texts whose styles are control characters.
    """

    def __init__(self, styled: TextIO) -> None:
        self.styled = styled

    def write(self, text: str) -> int:
        """Write a text."""
        return self.styled.write(show_controls(text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.styled, name)


def wants_sentences() -> bool:
    """Tell whether the reader wants sentences instead of pictures, as for a screen reader.

    ``PELLUCID_PLAIN=1`` says so, which is set once; so does a terminal that calls itself dumb.
    """
    asked = os.environ.get("PELLUCID_PLAIN", "")
    if asked:
        return asked != "0"
    return os.environ.get("TERM") == "dumb" and sys.stdout.isatty()


def styled_output() -> TextIO:
    """Return standard output for texts with styles, whose control characters are shown already."""
    # Only on a terminal is standard output a `TerminalOutput`.
    found: TextIO = getattr(sys.stdout, "styled", sys.stdout)
    return found


_IN_ASCII = str.maketrans("→▁…·÷√Σαᵢⱼ–−“”‘’␛", ">_~*/v+aij--\"\"''^")


def replace_letters(error: UnicodeError) -> tuple[str, int]:
    """Replace what an encoding lacks, one letter for one: as an error handler of `codecs`.

    A letter loses its accents, a sign becomes a similar one, and others a question mark. Half of
    a surrogate pair becomes an escape.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    shown = []
    for letter in error.object[error.start : error.end].translate(_IN_ASCII):
        # Decomposed, a letter comes before its accents.
        plain = unicodedata.normalize("NFKD", letter)[0]
        is_half = "\ud800" <= letter <= "\udfff"
        shown.append(ascii(letter)[1:-1] if is_half else plain if plain.isascii() else "?")
    return "".join(shown), error.end
