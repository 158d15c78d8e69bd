"""A moving picture of heads through a training: an SVG that needs no program to run."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np

from pellucid.inside.show.colors import shade, to_hex
from pellucid.inside.studies.training_history import HeadHistory

NAMED = ("#d9801f", "#08468b", "#3d3d3d")
"""Colors of the lines that have a name: of the heads that change most."""
FRAME_SECONDS = 0.4
LEAST_SECONDS = 6
STILL = 0.2
"""Seconds of a step, of the whole picture at least, and the share in which it rests at the end."""
LEFT = 62
TOP = 64
WIDTH = 470
HEIGHT = 230
BELOW = TOP + HEIGHT + 44
CELL = 29
KINDS = ("encoder.self", "decoder.self", "decoder.cross")
STYLE = (
    ".title{font-size:15px;font-weight:600}.faint{fill:#555;font-size:11px}"
    ".step{font-size:13px;font-weight:600}"
)


def moving_picture(history: HeadHistory, figure: str, *, title: str, meaning: str) -> str:
    """Draw one figure: a line for each head, and a map of heads that changes with the steps.

    A program that shows no movement shows the last step.

    Args:
        history: what to draw.
        figure: one of its figures.
        title: the heading.
        meaning: of the figure, in a sentence.
    """
    sheet = _Sheet(len(history.steps))
    values_HN = history.table(figure).values
    sheet.write(16, 24, title, 'class="title"')
    sheet.write(16, 43, meaning)
    low = float(np.nanmin(values_HN))
    high = float(np.nanmax(values_HN))
    # Shares have their whole scale, so that pictures can be compared.
    low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (min(low, 0.0), high)
    for part in (0, 0.25, 0.5, 0.75, 1):
        y = TOP + HEIGHT * (1 - part)
        sheet.shapes.append(f'<path d="M{LEFT} {y:g}h{WIDTH}" stroke="#e4e4e4"/>')
        sheet.write(LEFT - 34, y + 4, f"{low + part * (high - low):.3g}")
    # All numbers may be equal.
    share_HN = (values_HN - low) / ((high - low) or 1.0)
    _draw_lines(sheet, history, share_HN)
    for place, step in enumerate(history.steps):
        shown = [str(int(one == place)) for one in range(len(history.steps))]
        # A program that shows no movement shows the last step.
        style = f'class="step" opacity="{shown[-1]}"'
        sheet.write(16, BELOW, f"step {step:,}", style, sheet.move("opacity", shown, "discrete"))
    width, height = _draw_map(sheet, history, share_HN)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" font-size="12" '
        f"font-family=\"'DejaVu Sans', sans-serif\">\n<title>{escape(title)}</title>\n"
        f'<style>{STYLE}</style>\n<rect width="100%" height="100%" fill="#fff"/>\n'
        + "\n".join([*sheet.shapes, "</svg>\n"])
    )


class _Sheet:
    """Shapes that move through a number of steps."""

    def __init__(self, num_steps: int) -> None:
        self.shapes: list[str] = []
        self._seconds = max(LEAST_SECONDS, FRAME_SECONDS * num_steps) / (1 - STILL)
        # At the end the picture rests, so that one can read the last step.
        places = (*np.linspace(0, 1 - STILL, num_steps), 1)
        self._times = ";".join(f"{one:.4f}" for one in places)

    def move(self, attribute: str, frames: Iterable[str], mode: str = "linear") -> str:
        """Animate an attribute; it rests at its last value."""
        *_, last = frames = [*frames]
        return (
            f'<animate attributeName="{attribute}" dur="{self._seconds:g}s" calcMode="{mode}" '
            f'repeatCount="indefinite" keyTimes="{self._times}" '
            f'values="{";".join([*frames, last])}"/>'
        )

    def write(
        self, x: float, y: float, words: str, style: str = 'class="faint"', more: str = ""
    ) -> None:
        """Write words, and what moves them."""
        self.shapes.append(f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}{more}</text>')


def _draw_lines(sheet: _Sheet, history: HeadHistory, share_HN: np.ndarray) -> None:
    """Draw a line for each head, names for those that change most, and the moving step."""
    steps = history.steps
    x_N = LEFT + WIDTH * (np.array(steps, float) - steps[0]) / (steps[-1] - steps[0])
    y_HN = TOP + HEIGHT * (1 - share_HN)
    bottom = TOP + HEIGHT + 17
    sheet.write(LEFT, bottom, f"step {steps[0]:,}")
    sheet.write(LEFT + WIDTH, bottom, f"step {steps[-1]:,}", 'class="faint" text-anchor="end"')
    change_H = np.nan_to_num(np.abs(share_HN[:, -1] - share_HN[:, 0]), nan=-1.0)
    # The lines that change most come last, above the others.
    order = [row for row in change_H.argsort(kind="stable").tolist() if change_H[row] >= 0]
    named = dict(zip(reversed(order), NAMED, strict=False))
    for row in order:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(x_N, y_HN[row], strict=True))
        line = f'stroke="{named.get(row, "#b9b9b9")}" stroke-width="{2.4 if row in named else 1}"'
        sheet.shapes.append(f'<polyline points="{points}" fill="none" {line}/>')
    # The highest name stands at its line, each further one at a distance below.
    y = -np.inf
    for row in sorted(named, key=lambda row: float(y_HN[row, -1])):
        y = max(y + 15, y_HN[row, -1])  # names keep a distance
        sheet.write(LEFT + WIDTH + 10, y + 4, history.heads[row], f'fill="{named[row]}"')
    box = f'y="{TOP}" width="1" height="{HEIGHT}" fill="#d9801f"'
    cursor = sheet.move("x", (f"{x:.1f}" for x in x_N))
    sheet.shapes.append(f'<rect x="{x_N[-1]:g}" {box}>{cursor}</rect>')


def _draw_map(sheet: _Sheet, history: HeadHistory, share_HN: np.ndarray) -> tuple[int, int]:
    """Draw the heads as squares in the model's shape; return the width and height of all."""
    names = [name.split(".") for name in history.heads]
    places = [(f"{part}.{kind}", int(layer), int(head)) for part, layer, kind, head in names]
    columns = 2 + max(head for _, _, head in places)
    apart = max(120, CELL * columns)
    lefts = {kind: LEFT + apart * place for place, kind in enumerate(KINDS)}
    for kind in dict.fromkeys(kind for kind, _, _ in places):
        sheet.write(lefts[kind], BELOW + 24, kind.replace(".", " "))
    for (kind, layer, head), name, row in zip(places, history.heads, share_HN, strict=True):
        x = lefts[kind] + CELL * head
        y = BELOW + 34 + CELL * layer
        fills = ["none" if np.isnan(one) else to_hex(shade(one)) for one in row]
        inside = f"<title>{name}</title>{'' if 'none' in fills else sheet.move('fill', fills)}"
        box = f'width="{CELL - 3}" height="{CELL - 3}" rx="3" stroke="#ccc" fill="{fills[-1]}"'
        sheet.shapes.append(f'<rect x="{x}" y="{y}" {box}>{inside}</rect>')
    bottom = BELOW + 50 + CELL * (1 + max(layer for _, layer, _ in places))
    said = "A row of squares is a layer, a column a head; yellow is high, blue is low."
    sheet.write(LEFT, bottom, said)
    return max(lefts[KINDS[-1]] + apart, LEFT + WIDTH + 140), bottom + 14
