"""A trace as plain HTML without a script: for notebooks, and for pages without scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape as escape_html

import numpy as np

from pellucid.errors import InputError
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.show.colors import ground_and_ink, scale_end
from pellucid.inside.show.view import HeadView, default_view, number_in_cell
from pellucid.terminal.grid import decimals_of, write_fixed
from pellucid.text.tokenizers.whole_words import without_joiners

MOST_CELLS = 10_000
"""The most cells of a map; the rest is cut off, and a note says so."""


def escape(text: str) -> str:
    """Write a text as a reader sees it, without signs of joined tokens, for HTML."""
    return escape_html(without_joiners(text))


_TURNED = ' class="pellucid-turned"'


def static_map(view: HeadView) -> str:
    """Make a table with a label for each row and column, a number in each cell, and the caption.

    Args:
        view: the array to show; rows beyond `MOST_CELLS` cells are cut off.
    """
    num_rows, num_columns = view.cells.shape
    # One row is shown in any case.
    shown = min(num_rows, max(1, MOST_CELLS // max(1, num_columns)))
    heads = [*(["reads", "predicts"] if view.predicted else ["token"]), *view.columns]
    # These headings are read across; the words of the columns are turned.
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


def static_table(
    numbers: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    caption: str,
    *,
    is_colored: bool = True,
) -> str:
    """Make a table of any numbers with their labels as safe HTML, in the look of a trace's map.

    Args:
        numbers: ``(rows, columns)``; NaN leaves a cell empty.
        rows: the labels of the rows; those beyond `MOST_CELLS` cells are cut off.
        columns: the labels of the columns.
        caption: one line below.
        is_colored: False if the columns' scales differ.
    """
    finite = numbers[np.isfinite(numbers)]
    # Numbers from 0 to 1 get the scale of weights, all others the signed one.
    is_share = bool(((finite >= 0) & (finite <= 1)).all())
    limit = None if is_share else scale_end(numbers)
    shown = min(len(rows), max(1, MOST_CELLS // max(1, len(columns))))
    head = "".join(f'<th scope="col"{_TURNED}>{escape(word)}</th>' for word in columns)
    decimals = [decimals_of(column, 3) for column in numbers.T.tolist()]
    body = []
    for word, values in zip(rows[:shown], numbers[:shown].tolist(), strict=True):
        cells = []
        for value, digits in zip(values, decimals, strict=True):
            style = ""
            number = write_fixed(value, digits) if math.isfinite(value) else "–"
            if is_colored and math.isfinite(value):
                ground, ink = ground_and_ink(value, limit)
                style = f"background:{ground};color:{ink}"
                number = number_in_cell(value, limit)
            cells.append(f'<td style="{style}" title="{value:.6g}">{number}</td>')
        body.append(f'<tr><th scope="row">{escape(word)}</th>{"".join(cells)}</tr>')
    note = f" The first {shown} of {len(rows)} rows." if shown < len(rows) else ""
    return (
        f'<div class="pellucid"><style>{_STYLE}</style><figure class="pellucid-map">'
        f'<div class="pellucid-scroll"><table><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(body)}</tbody></table></div>"
        f"<figcaption>{escape(caption)}{note}</figcaption></figure></div>"
    )


def isolated(word: str) -> str:
    """Isolate a word, so that right-to-left letters do not reorder its surroundings."""
    return f"\u2068{word}\u2069"


def _row(view: HeadView, row: int, forbidden_M: np.ndarray) -> str:
    limit = view.largest if view.is_signed else None
    words = [view.rows[row], *([view.predicted[row]] if view.predicted else [])]
    sides = "".join(f'<th scope="row">{escape(word)}</th>' for word in words)
    edge = " → ".join(map(isolated, words))
    cells = []
    for word, value, is_forbidden in zip(
        view.columns, view.cells[row].tolist(), forbidden_M, strict=True
    ):
        # The title of a cell says its place, for the mouse and for a screen reader.
        what = escape(f"{edge}: {isolated(word)}")
        if is_forbidden or not math.isfinite(value):
            cells.append(f'<td class="pellucid-masked" title="{what}: may not be seen">−∞</td>')
            continue
        ground, ink = ground_and_ink(value, limit)
        style = f"background:{ground};color:{ink}"
        number = number_in_cell(value, limit)
        cells.append(f'<td style="{style}" title="{what} {value:.6g}">{number}</td>')
    return f"<tr>{sides}{''.join(cells)}</tr>"


_STYLE = """
.pellucid { font: 13px/1.45 system-ui, sans-serif }
.pellucid .pellucid-map { margin: .5em 0 } .pellucid .pellucid-scroll { overflow-x: auto }
.pellucid table { border-collapse: collapse; border: 0; font-size: 11px; margin: 0 }
.pellucid th { font-weight: 400; text-align: right; padding: 0 .5em; white-space: nowrap; border: 0;
               background: none; vertical-align: bottom }
.pellucid th.pellucid-turned { writing-mode: vertical-rl; transform: rotate(180deg);
                               text-align: left; padding: .3em 0 }
.pellucid td { min-width: 2.5em; height: 1.5em; padding: 0; text-align: center;
               border: 1px solid #fff; font-variant-numeric: tabular-nums }
.pellucid td.pellucid-masked { color: #555; background: repeating-linear-gradient(135deg, #d9d9d9,
                               #d9d9d9 3px, #c4c4c4 3px, #c4c4c4 4px) }
.pellucid figcaption { opacity: .8; max-width: 60em; margin-top: .4em }
.pellucid .pellucid-problem { color: #fff; background: #a01010; padding: .3em .6em }
"""


def fragment(trace: TraceData) -> str:
    """Show a trace as safe HTML: its words, one head's map, its checks; no script, no loading.

    Args:
        trace: the trace to show. The map is the first head of the last layer's cross-attention if
            the trace holds it.
    """
    parts = [f'<p class="pellucid-problem">{escape(problem)}</p>' for problem in trace.problems]
    parts.append(
        f"<p><b>{escape(' '.join(trace.source_tokens))}</b><br>"
        f"{escape(' '.join(trace.predicted_tokens))}</p>"
    )
    try:
        parts.append(static_map(default_view(trace)))
    except InputError:
        parts.append(f"<p>{len(trace.arrays)} arrays, none of them a head's.</p>")
    checks = "; ".join(f"{name} {value:.1e}" for name, value in trace.checks.items())
    if checks:
        parts.append(f"<p>Checks, largest differences: {escape(checks)}.</p>")
    return f'<div class="pellucid"><style>{_STYLE}</style>{"".join(parts)}</div>'
