"""A moving picture of heads through a training: an SVG that needs no program to run."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import groupby

import numpy as np

from pellucid.inside.corpus.history import History
from pellucid.inside.show.colors import shade, to_hex

NAMED = ("#d9801f", "#08468b", "#3d3d3d")
"""Colors of the lines that have a name: of the heads that change most."""
FRAME_SECONDS, LEAST_SECONDS, STILL = 0.4, 6, 0.2
"""Seconds of a step, of the whole picture at least, and the share in which it rests at the end."""
LEFT, TOP, WIDTH, HEIGHT = 62, 64, 470, 230
CELL, GAP = 26, 3


def moving_picture(history: History, figure: str, *, title: str, meaning: str) -> str:
    """Draw one figure: a line for each head, and a map of heads that changes with the steps.

    A program that shows no movement shows the last step.

    Args:
        history: what to draw.
        figure: one of its figures.
        title: the heading.
        meaning: of the figure, in a sentence.
    """
    values_HN = history.table(figure).values
    low, high = (float(end(values_HN)) for end in (np.nanmin, np.nanmax))
    low, high = (0.0, 1.0) if low >= 0 and high <= 1 else (min(low, 0.0), high)
    spread = high - low or 1.0
    steps = np.array(history.steps, float)
    x_N = LEFT + WIDTH * (steps - steps[0]) / (steps[-1] - steps[0])
    y_HN = TOP + HEIGHT * (high - values_HN) / spread
    seconds = max(LEAST_SECONDS, FRAME_SECONDS * len(steps)) / (1 - STILL)
    times = ";".join(f"{(1 - STILL) * one:.4f}" for one in np.linspace(0, 1, len(steps))) + ";1"

    def moves(attribute: str, frames: Sequence[str], mode: str = "linear") -> str:
        return (
            f'<animate attributeName="{attribute}" dur="{seconds:g}s" repeatCount="indefinite" '
            f'calcMode="{mode}" keyTimes="{times}" values="{";".join([*frames, frames[-1]])}"/>'
        )

    shapes = []

    def write(x: float, y: float, words: str, style: str = "", more: str = "") -> None:
        shapes.append(f'<text x="{x:g}" y="{y:g}" {style}>{escape(words)}{more}</text>')

    write(16, 24, title, 'class="title"')
    write(16, 43, meaning, 'class="faint"')
    for share in (0, 0.25, 0.5, 0.75, 1):
        y = TOP + HEIGHT * (1 - share)
        shapes.append(f'<path d="M{LEFT} {y:g}h{WIDTH}" stroke="#e4e4e4"/>')
        write(LEFT - 8, y + 4, f"{low + share * spread:.3g}", 'text-anchor="end" class="faint"')
    for place, anchor in ((0, "start"), (-1, "end")):
        style = f'text-anchor="{anchor}" class="faint"'
        write(x_N[place], TOP + HEIGHT + 17, f"step {history.steps[place]:,}", style)
    change_H = np.nan_to_num(np.abs(values_HN[:, -1] - values_HN[:, 0]), nan=-1.0)
    named = np.argsort(-change_H, kind="stable")[: len(NAMED)].tolist()
    for row in [*(row for row in range(len(y_HN)) if row not in named), *reversed(named)]:
        if np.isnan(y_HN[row]).any():
            continue
        color, width = (NAMED[named.index(row)], 2.4) if row in named else ("#b9b9b9", 1)
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(x_N, y_HN[row], strict=True))
        shapes.append(
            f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="{width}"/>'
        )
        if row in named:
            frames = [f"{y:.1f}" for y in y_HN[row]]
            shapes.append(
                f'<circle cx="{x_N[-1]:g}" cy="{frames[-1]}" r="4" fill="{color}">'
                + moves("cx", [f"{x:.1f}" for x in x_N]) + moves("cy", frames) + "</circle>"
            )  # fmt: skip
    # Names at the end of lines, far enough from each other to be read.
    y = -np.inf
    for row in sorted((row for row in named if change_H[row] >= 0), key=lambda row: y_HN[row, -1]):
        y = max(y + 15, y_HN[row, -1])
        style = f'fill="{NAMED[named.index(row)]}"'
        write(LEFT + WIDTH + 10, y + 4, history.heads[row], style)
    frames = [f"{x:.1f}" for x in x_N]
    shapes.append(
        f'<rect x="{frames[-1]}" y="{TOP}" width="1" height="{HEIGHT}" fill="#d9801f">'
        + moves("x", frames) + "</rect>"
    )  # fmt: skip
    top = TOP + HEIGHT + 44
    for place, step in enumerate(history.steps):
        is_here = [str(int(one == place)) for one in range(len(steps))]
        style = f'class="step" opacity="{is_here[-1]}"'
        write(16, top, f"step {step:,}", style, moves("opacity", is_here, "discrete"))
    places = [head.split(".") for head in history.heads]
    left = LEFT
    rows = enumerate(zip(places, values_HN, strict=True))
    depth = 0
    for (part, kind), group in groupby(
        sorted(rows, key=lambda one: (one[1][0][0] == "decoder", one[1][0][2] == "cross")),
        key=lambda one: (one[1][0][0], one[1][0][2]),
    ):
        cells = [(int(layer), int(head), row) for _, ((_, layer, _, head), row) in group]
        write(left, top + 24, f"{part} {kind}", 'class="faint"')
        for layer in sorted({layer for layer, _, _ in cells}):
            place = top + 34 + (CELL + GAP) * layer + CELL / 2 + 4
            write(left - 6, place, str(layer), 'text-anchor="end" class="faint"')
        for layer, head, row in cells:
            x, y = left + (CELL + GAP) * head, top + 34 + (CELL + GAP) * layer
            fills = [
                "none" if np.isnan(one) else to_hex(shade((one - low) / spread)) for one in row
            ]
            moving = "" if np.isnan(row).any() else moves("fill", fills)
            shapes.append(
                f'<rect x="{x}" y="{y}" width="{CELL}" height="{CELL}" rx="3" stroke="#cccccc" '
                f'fill="{fills[-1]}">{moving}<title>{part}.{layer}.{kind}.{head}</title></rect>'
            )
        depth = max(depth, *(layer for layer, _, _ in cells))
        left += max(130, (CELL + GAP) * (1 + max(head for _, head, _ in cells)) + 24)
    bottom = top + 34 + (CELL + GAP) * (depth + 1)
    width = max(left, LEFT + WIDTH + 10 + 8 * max(map(len, history.heads)))
    write(
        16,
        bottom + 16,
        "A row of squares is a layer; yellow is high, blue is low.",
        'class="faint"',
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + 30}" '
        f'viewBox="0 0 {width} {bottom + 30}" role="img" font-family="\'DejaVu Sans\', sans-serif" '
        f'font-size="12">\n<title>{escape(title)}</title>\n<style>.title{{font-size:15px;'
        "font-weight:600}.faint{fill:#555;font-size:11px}.step{font-size:13px;font-weight:600}"
        '</style>\n<rect width="100%" height="100%" fill="#fff"/>\n'
        + "\n".join(shapes)
        + "\n</svg>\n"
    )
