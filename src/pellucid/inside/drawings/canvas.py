"""A small canvas for boxes, arrows and words, written as SVG."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

FILLS = {"attention": "#d3e3f2", "network": "#fbe0c4", "table": "#ece7cf", "plain": "#f0f0f0"}
"""Colors of boxes; the words in a box say the same as its color."""

FONT = "'DejaVu Sans', Verdana, 'Segoe UI', 'Helvetica Neue', sans-serif"
INK = "#1a1a1a"
FAINT = "#555555"
COUNT = "#08468b"
"""The color of counts of parameters."""

LINE_HEIGHT = 15


@dataclass(frozen=True)
class Box:
    """The place of a box: its center and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self) -> float:
        """Its upper edge."""
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.y + self.height / 2

    @property
    def left(self) -> float:
        """Its left edge."""
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.x + self.width / 2


class Canvas:
    """A drawing that grows with the shapes drawn on it; y increases downwards.

    Args:
        title: of the drawing.
    """

    def __init__(self, title: str) -> None:
        self.title = title
        self._shapes: list[str] = []
        # Nothing is drawn yet, so that the first shape sets the edges.
        self._left = self._top = float("inf")
        self._right = self._bottom = float("-inf")

    def box(
        self, box: Box, lines: Sequence[str], *, fill: str = "plain", is_dashed: bool = False
    ) -> Box:
        """Draw a box with lines of words in it, the first in bold, and return it."""
        dash = ' stroke-dasharray="5 3"' if is_dashed else ""
        self._rectangle(box, f'rx="5" fill="{FILLS[fill]}" stroke="{FAINT}"{dash}')
        # The lines together stand in the middle of the box.
        start = box.y - (len(lines) - 1) * LINE_HEIGHT / 2
        for index, line in enumerate(lines):
            self.text(box.x, start + index * LINE_HEIGHT, line, is_bold=index == 0)
        return box

    def frame(self, box: Box, words: str) -> None:
        """Draw a frame around several boxes, with words at its upper left corner."""
        self._rectangle(box, f'rx="9" fill="none" stroke="{FAINT}" stroke-width="1.5"')
        self.text(box.left + 8, box.top - 9, words, anchor="start", is_bold=True)

    def arrow(
        self,
        points: Sequence[tuple[float, float]],
        *,
        shape: str = "",
        count: int = 0,
        is_dashed: bool = False,
    ) -> None:
        """Draw an arrow through points.

        Args:
            points: from the first to the last.
            shape: of what flows, written to the right of the middle of the last piece.
            count: of parameters in the step that it comes from, written to the left unless 0.
            is_dashed: draw a dashed line.
        """
        dash = ' stroke-dasharray="5 3"' if is_dashed else ""
        self.line(points, style=f'{dash} marker-end="url(#head)"')
        (x_1, y_1), (x_2, y_2) = points[-2:]
        x = (x_1 + x_2) / 2
        y = (y_1 + y_2) / 2
        # Beside a level arrow there is no room, so the words stand above and below.
        if y_1 == y_2:
            self.text(x, y - 9, shape, size=11)
            self.text(x, y + 11, in_words(count), size=11, color=COUNT)
            return
        self.text(x + 7, y, shape, anchor="start", size=11)
        self.text(x - 7, y, in_words(count), anchor="end", size=11, color=COUNT)

    def rise(self, x: float, start: float, end: float, *, shape: str = "", count: int = 0) -> None:
        """Draw an arrow straight up, from one height to another."""
        self.arrow([(x, start), (x, end)], shape=shape, count=count)

    def stack(
        self,
        below: Box,
        box: Box,
        lines: Sequence[str],
        *,
        shape: str,
        count: int = 0,
        fill: str = "plain",
        is_dashed: bool = False,
    ) -> Box:
        """Draw a box, and the arrow that rises into it from the box below."""
        self.box(box, lines, fill=fill, is_dashed=is_dashed)
        self.rise(box.x, below.top, box.bottom, shape=shape, count=count)
        return box

    def line(self, points: Sequence[tuple[float, float]], *, style: str = "") -> None:
        """Draw a line without a head."""
        path = " ".join(f"{x:g},{y:g}" for x, y in points)
        self._shapes.append(
            f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="1.3"{style}/>'
        )
        self._reach(*points)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        anchor: str = "middle",
        size: float = 12,
        color: str = INK,
        is_bold: bool = False,
    ) -> None:
        """Write words, vertically centered at a place."""
        if not words:
            return
        weight = ' font-weight="600"' if is_bold else ""
        self._shapes.append(
            f'<text x="{x:g}" y="{y + 0.36 * size:g}" text-anchor="{anchor}" font-size="{size:g}" '
            f'fill="{color}"{weight}>{escape(words)}</text>'
        )
        # An estimate: the font is only known when the drawing is shown.
        width = len(words) * size * (0.68 if is_bold else 0.62)
        left = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
        self._reach((left, y - size / 2), (left + width, y + size / 2))

    def notes(self, sentences: Sequence[str]) -> None:
        """Write sentences below everything, each on a new line."""
        left = self._left
        top = self._bottom + 28
        # As wide as the drawing, but never narrower than can be read.
        letters = max(50, int((self._right - left) / (12 * 0.6)))
        lines = [line for sentence in sentences for line in textwrap.wrap(sentence, letters)]
        for index, line in enumerate(lines):
            self.text(left, top + index * 17, line, anchor="start", color=FAINT)

    def to_svg(self) -> str:
        """Return the drawing as an SVG document."""
        margin = 16
        left = self._left - margin
        top = self._top - margin
        width = self._right + margin - left
        height = self._bottom + margin - top
        box = f'x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" height="{height:.0f}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} {top:.0f} {width:.0f} '
            f'{height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img" '
            f'font-family="{FONT}">\n<title>{escape(self.title)}</title>\n'
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{INK}"/></marker>'
            f'</defs>\n<rect {box} fill="#ffffff"/>\n' + "\n".join(self._shapes) + "\n</svg>\n"
        )

    def _rectangle(self, box: Box, style: str) -> None:
        self._shapes.append(
            f'<rect x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" '
            f'height="{box.height:g}" {style}/>'
        )
        self._reach((box.left, box.top), (box.right, box.bottom))

    def _reach(self, *points: tuple[float, float]) -> None:
        for x, y in points:
            self._left = min(self._left, x)
            self._right = max(self._right, x)
            self._top = min(self._top, y)
            self._bottom = max(self._bottom, y)


def in_words(count: int) -> str:
    """Write a count of parameters; nothing for 0."""
    return f"{count:,}" if count else ""
