"""A translation as HTML for notebooks: two lines of text, with lines between linked words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

# Letters of a monospaced font are 0.6 em wide nearly everywhere, so that places can be computed.
_FONT_SIZE = 14
_LETTER = 0.6 * _FONT_SIZE
_TOP = 16
_BOTTOM = 76


def two_lines(source: str, text: str, remark: str = "") -> str:
    """Show a source and its translation, or the reason why there is none, one below the other."""
    rows = (source, text, *filter(None, [remark]))
    cells = "".join(
        f'<div style="white-space:pre-wrap;opacity:{shade}">{escape(row)}</div>'
        for row, shade in zip(rows, ("0.7", "1", "0.7"), strict=False)
    )
    return f'<div style="font-family:sans-serif">{cells}</div>'


def linked_lines(
    source_words: Sequence[str], words: Sequence[str], links: Iterable[tuple[int, int]]
) -> str:
    """Draw the words of a source above those of its translation, with a line for each link."""
    above, middles_above, width_above = _place(source_words, _TOP)
    below, middles_below, width_below = _place(words, _BOTTOM)
    lines = "".join(
        f'<line x1="{middles_above[i]:.1f}" y1="{_TOP + 6}" x2="{middles_below[j]:.1f}" '
        f'y2="{_BOTTOM - _FONT_SIZE}"/>'
        for i, j in links
    )
    width = max(width_above, width_below)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{_BOTTOM + 10}" '
        f'font-family="monospace" font-size="{_FONT_SIZE}" fill="currentColor" '
        f'stroke-width="1"><g stroke="currentColor" opacity="0.5">{lines}</g>{above}{below}</svg>'
    )


def _place(words: Sequence[str], height: int) -> tuple[str, list[float], float]:
    """Write words in a row, and return their middles and its width too."""
    texts = []
    middles = []
    left = 0.0
    for word in words:
        width = len(word) * _LETTER
        # The length is given, so that a font of another width does not move the words.
        texts.append(
            f'<text x="{left:.1f}" y="{height}" textLength="{width:.1f}">{escape(word)}</text>'
        )
        middles.append(left + width / 2)
        left += width + _LETTER
    return "".join(texts), middles, left
