"""One map as plain HTML without a script: for notebooks, and for pages without scripts."""

from __future__ import annotations

import math
from html import escape

import numpy as np

from pellucid.inside.show.colors import ground_and_ink
from pellucid.inside.show.view import View, number_in_cell

MOST_CELLS = 10_000
"""The most cells of a map; the rest is cut off, and a note says so."""

_TURNED = ' class="pellucid-turned"'


def static_map(view: View) -> str:
    """Make a table with a label for each row and column, a number in each cell, and the caption.

    Args:
        view: the array to show; rows beyond `MOST_CELLS` cells are cut off.
    """
    num_rows, num_columns = view.cells.shape
    shown = min(num_rows, max(1, MOST_CELLS // max(1, num_columns)))
    heads = [*(["reads", "predicts"] if view.predicted else ["token"]), *view.columns]
    sides = 2 if view.predicted else 1
    head = "".join(
        f'<th scope="col"{"" if index < sides else _TURNED}>{escape(word)}</th>'
        for index, word in enumerate(heads)
    )
    forbidden_LM = view.forbidden
    body = "\n".join(_row(view, row, forbidden_LM[row]) for row in range(shown))
    notes = list(view.caption())
    if shown < num_rows:
        notes.append(
            f"The first {shown} of {num_rows} rows are shown; a file of the trace has all."
        )
    caption = "".join(f"<div>{escape(note)}</div>" for note in notes)
    return (
        '<figure class="pellucid-map"><div class="pellucid-scroll"><table>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
        f"<figcaption>{caption}</figcaption></figure>"
    )


def isolated(word: str) -> str:
    """Isolate a word, so that right-to-left letters do not reorder its surroundings."""
    return f"\u2068{word}\u2069"


def _row(view: View, row: int, forbidden_M: np.ndarray) -> str:
    limit = view.largest if view.is_signed else None
    words = [view.rows[row], *([view.predicted[row]] if view.predicted else [])]
    sides = "".join(f'<th scope="row">{escape(word)}</th>' for word in words)
    edge = " → ".join(map(isolated, words))
    cells = []
    for word, value, is_forbidden in zip(
        view.columns, view.cells[row].tolist(), forbidden_M, strict=True
    ):
        what = escape(f"{edge}: {isolated(word)}", quote=True)
        if is_forbidden or not math.isfinite(value):
            cells.append(f'<td class="pellucid-masked" title="{what}: may not be seen">−∞</td>')
            continue
        ground, ink = ground_and_ink(value, limit)
        style = f"background:{ground};color:{ink}"
        number = number_in_cell(value, limit)
        cells.append(f'<td style="{style}" title="{what} {value:.6g}">{number}</td>')
    return f"<tr>{sides}{''.join(cells)}</tr>"
