"""A study as a page: every figure as a map in the model's shape, in one file without a network.

The page has no script. A cell of a map links to the lines that lose most without its head, which
a browser unfolds when it goes there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from pellucid.inside.show.colors import ground_and_ink, scale_end
from pellucid.inside.show.view import number_in_cell
from pellucid.inside.studies.head_study import FIGURES, Study, StudyTable, write_figure
from pellucid.page.plain_page import html_page, html_table, scrolling
from pellucid.terminal.grid import decimals_of
from pellucid.terminal.text import count_of

MEANINGS = {
    "previous": "Weight on the position before the row's own.",
    "same": "Weight on the row's own position.",
    "next": "Weight on the position after the row's own.",
    "first": "Weight on the first position.",
    "end": "Weight on the source's </s>.",
    "entropy": "Entropy of a row's weights, in nats.",
    "confidence": "Largest weight of a row.",
    "distance": "Mean distance between a row and what it attends to, in tokens.",
    "error_predicts": "Alignment error if a row counts for the token that it predicts.",
    "error_reads": "Alignment error if a row counts for the token that it reads.",
    "cut_log_probability": "Change of a target's log-probability without the head, in nats a line.",
    "cut_bleu": "Change of BLEU without the head.",
    "cut_lines": "Lines whose greedy translation changes without the head.",
}
"""The meaning of each figure; a page orders them so."""


def describe_lines(study: Study, *, has_targets: bool) -> str:
    """Say what a study is of, and how good the model is on it."""
    lines = count_of(study.num_lines, "line")
    # Against its own translations every model has a BLEU of 100.
    own = "with the model's own translations as targets"
    return (
        f"{lines}, BLEU {study.bleu:.2f} against the targets" if has_targets else f"{lines}, {own}"
    )


def study_page(study: Study, *, title: str, sort: str, has_targets: bool = True) -> str:
    """Make the page of a study.

    Args:
        study: the study. Its texts are escaped.
        title: the name of the model.
        sort: the figure to begin with.
        has_targets: False if the targets are the model's own translations.
    """
    assert tuple(MEANINGS) == FIGURES
    about = f"{describe_lines(study, has_targets=has_targets)}."
    parts = [_paragraph(" ".join([about, *study.notes, *study.left_out]))]
    for figure in (sort, *(name for name in MEANINGS if name != sort)):
        # Without gold links there are no alignment errors, for instance.
        if not np.isnan(study.heads.column(figure)).all():
            summary = f"<summary>{figure}. {escape(MEANINGS[figure])}</summary>"
            is_open = " open" if figure == sort else ""
            parts.append(f"<details{is_open}>{summary}{_map(study.heads, figure)}</details>")
    parts += ["<h2>Without a head</h2>", _paragraph("The lines that lose most without it.")]
    parts += [_telling(head, study.telling[head]) for head in study.heads.rows]
    order = study.heads.order(sort)
    parts += ["<h2>All heads</h2>", _table(study.heads.cells(order))]
    if study.lens.rows:
        parts += [
            "<h2>Targets that are first after so many decoder layers</h2>",
            _table(study.lens.cells()),
        ]
    if study.measures.rows:
        parts += ["<h2>Measures</h2>", _table(study.measures.cells())]
    return html_page(f"A study of the heads of {title}", *parts)


def _map(heads: StudyTable, figure: str) -> str:
    """Make a table of one figure: a row for each attention, a column for each head."""
    values = heads.column(figure)
    finite = values[np.isfinite(values)]
    is_share = bool(((finite >= 0) & (finite <= 1)).all())
    # Shares have the scale of weights, all other figures the signed one.
    limit = None if is_share else scale_end(values)
    decimals = decimals_of(values.tolist(), 3)
    sites: dict[str, dict[str, str]] = {}
    for name, value in zip(heads.rows, values.tolist(), strict=True):
        site, _, number = name.rpartition(".")
        written = write_figure(value, decimals)
        sites.setdefault(site, {})[number] = _cell(f"{name}: {written}", value, limit)
    numbers = sorted({number for cells in sites.values() for number in cells}, key=int)
    head = "".join(f'<th scope="col">head {number}</th>' for number in numbers)
    body = "\n".join(
        f'<tr><th scope="row">{site}</th>'
        + "".join(cells.get(number, "<td></td>") for number in numbers)
        + "</tr>"
        for site, cells in sites.items()
    )
    table = f"<table><thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return scrolling(table, figure)


def _cell(title: str, value: float, limit: float | None) -> str:
    if np.isnan(value):
        return '<td class="number">–</td>'
    ground, ink = ground_and_ink(value, limit)
    name = title.partition(":")[0]
    link = f'<a href="#{name}" style="color: {ink}" title="{title}">'
    number = number_in_cell(value, limit)
    return f'<td class="number" style="background: {ground}">{link}{number}</a></td>'


def _telling(head: str, lines: Sequence[Mapping[str, Any]]) -> str:
    """Make the lines of one head, folded; the link to them leads inside, which unfolds them."""
    tables = "".join(_table(list(_describe(line))) for line in lines)
    return f'<details><summary>{head}</summary><div id="{head}">{tables}</div></details>'


def _describe(line: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    effect = write_figure(line["effect"])
    most = write_figure(line["token_effect"])
    yield f"line {line['line'] + 1}", line["source"]
    yield "target", line["target"]
    yield "translation", line["own"]
    yield "without the head", line["cut"]
    yield "effect", f"{effect} nats, most at “{line['token']}” ({most})"


def _table(cells: Sequence[Sequence[str]]) -> str:
    return html_table(cells[0], cells[1:])


def _paragraph(text: str) -> str:
    return f"<p>{escape(text)}</p>"
