"""A moving picture of heads through a training: an SVG that needs no program to run."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

import numpy as np

from pellucid.inside.corpus.history import History
from pellucid.inside.show.colors import shade, to_hex

NAMED = ("#d9801f", "#08468b", "#3d3d3d")
"""Colors of the lines that have a name: of the heads that change most."""
FRAME_SECONDS, LEAST_SECONDS, STILL = 0.4, 6, 0.2
"""Seconds of a step, of the whole picture at least, and the share in which it rests at the end."""
LEFT, TOP, WIDTH, HEIGHT = 62, 64, 470, 230
BELOW, CELL = TOP + HEIGHT + 44, 29
KINDS = ("encoder.self", "decoder.self", "decoder.cross")
STYLE = (
    ".title{font-size:15px;font-weight:600}.faint{fill:#555;font-size:11px}"
    ".step{font-size:13px;font-weight:600}"
)


def moving_picture(history: History, figure: str, *, title: str, meaning: str) -> str:
    """Draw one figure: a line for each head, and a map of heads that changes with the steps.

    A program that shows no movement shows the last step.

    Args:
        history: what to draw.
        figure: one of its figures.
        title: the heading.
        meaning: of the figure, in a sentence.
    """
    values_HN, steps = history.table(figure).values, history.steps
    low, high = float(np.nanmin(values_HN)), float(np.nanmax(values_HN))
    low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (min(low, 0.0), high)
    share_HN = (values_HN - low) / ((high - low) or 1.0)
    x_N = LEFT + WIDTH * (np.array(steps, float) - steps[0]) / (steps[-1] - steps[0])
    y_HN = TOP + HEIGHT * (1 - share_HN)
    seconds = max(LEAST_SECONDS, FRAME_SECONDS * len(steps)) / (1 - STILL)
    times = ";".join(f"{one:.4f}" for one in (*np.linspace(0, 1 - STILL, len(steps)), 1))
    shapes = []

    def move(attribute: str, frames: Iterable[str], mode: str = "linear") -> str:
        *_, last = frames = [*frames]
        return (
            f'<animate attributeName="{attribute}" dur="{seconds:g}s" repeatCount="indefinite" '
            f'calcMode="{mode}" keyTimes="{times}" values="{";".join([*frames, last])}"/>'
        )

    def write(x: float, y: float, words: str, style: str = 'class="faint"', more: str = "") -> None:
        shapes.append(f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}{more}</text>')

    write(16, 24, title, 'class="title"')
    write(16, 43, meaning)
    for part in (0, 0.25, 0.5, 0.75, 1):
        y = TOP + HEIGHT * (1 - part)
        shapes.append(f'<path d="M{LEFT} {y:g}h{WIDTH}" stroke="#e4e4e4"/>')
        write(LEFT - 34, y + 4, f"{low + part * (high - low):.3g}")
    write(LEFT, TOP + HEIGHT + 17, f"step {steps[0]:,}")
    write(LEFT + WIDTH, TOP + HEIGHT + 17, f"step {steps[-1]:,}", 'class="faint" text-anchor="end"')
    change_H = np.nan_to_num(np.abs(values_HN[:, -1] - values_HN[:, 0]), nan=-1.0)
    # The lines that change most come last, above the others.
    order = [row for row in change_H.argsort(kind="stable") if change_H[row] >= 0]
    named = dict(zip(reversed(order), NAMED, strict=False))
    for row in order:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(x_N, y_HN[row], strict=True))
        line = f'stroke="{named.get(row, "#b9b9b9")}" stroke-width="{2.4 if row in named else 1}"'
        shapes.append(f'<polyline points="{points}" fill="none" {line}/>')
    y = -np.inf
    for row in sorted(named, key=lambda row: y_HN[row, -1]):
        y = max(y + 15, y_HN[row, -1])  # names keep a distance
        write(LEFT + WIDTH + 10, y + 4, history.heads[row], f'fill="{named[row]}"')
    box = f'y="{TOP}" width="1" height="{HEIGHT}" fill="#d9801f"'
    cursor = move("x", (f"{x:.1f}" for x in x_N))
    shapes.append(f'<rect x="{x_N[-1]:g}" {box}>{cursor}</rect>')
    for place, step in enumerate(steps):
        shown = [str(int(one == place)) for one in range(len(steps))]
        style = f'class="step" opacity="{shown[-1]}"'
        write(16, BELOW, f"step {step:,}", style, move("opacity", shown, "discrete"))
    places = [(f"{part}.{kind}", int(layer), int(head)) for part, layer, kind, head in (
        name.split(".") for name in history.heads)]  # fmt: skip
    columns = 2 + max(head for _, _, head in places)
    depth = 1 + max(layer for _, layer, _ in places)
    lefts = {kind: LEFT + max(120, CELL * columns) * place for place, kind in enumerate(KINDS)}
    for kind in {kind: 0 for kind, _, _ in places}:
        write(lefts[kind], BELOW + 24, kind.replace(".", " "))
    for (kind, layer, head), name, row in zip(places, history.heads, share_HN, strict=True):
        x, y = lefts[kind] + CELL * head, BELOW + 34 + CELL * layer
        fills = ["none" if np.isnan(one) else to_hex(shade(one)) for one in row]
        inside = f"<title>{name}</title>{'' if 'none' in fills else move('fill', fills)}"
        box = f'width="{CELL - 3}" height="{CELL - 3}" rx="3" stroke="#ccc" fill="{fills[-1]}"'
        shapes.append(f'<rect x="{x}" y="{y}" {box}>{inside}</rect>')
    bottom = BELOW + 50 + CELL * depth
    write(LEFT, bottom, "A row of squares is a layer, a column a head; yellow is high, blue low.")
    width = max(lefts[KINDS[-1]] + CELL * columns, LEFT + WIDTH + 140)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 14}" '
        f'width="{width}" height="{bottom + 14}" role="img" font-size="12" '
        f"font-family=\"'DejaVu Sans', sans-serif\">\n<title>{escape(title)}</title>\n"
        f'<style>{STYLE}</style>\n<rect width="100%" height="100%" fill="#fff"/>\n'
        + "\n".join([*shapes, "</svg>\n"])
    )
