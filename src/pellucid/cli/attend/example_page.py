"""A worked example as a page for a browser or a printer, with the numbers of the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from pellucid.by_hand.pages import Page, correction_groups
from pellucid.by_hand.printed import WorkedNumber
from pellucid.by_hand.sheet import NamedMatrix, Step, WorkedExample
from pellucid.cli.attend import rendering
from pellucid.errors import make_printable
from pellucid.inside.show.colors import ground_and_ink
from pellucid.page.plain_page import html_page, scrolling


def example_page(example: WorkedExample, pages: Sequence[Page]) -> str:
    """Make a page of some pages of an example."""
    opening = [f"From: {example.text}", example.note] if example.text else [example.note]
    return html_page(
        make_printable(example.title),
        *map(_paragraph, opening),
        *(line for page in pages for line in _page(page)),
        f'<p class="note">Computed in float64 by <code>pellucid attend {_text(example.name)}</code>'
        ", which writes the same in a terminal.</p>",
    )


def _page(page: Page) -> Iterator[str]:
    yield f"<h2>Page {page.number} of {page.count}: {_text(page.part.title)}</h2>"
    yield _paragraph(page.part.note)
    for step in page.part.steps:
        if step.tables or step.lines or step.note or step.formula:
            yield from _step(step)
    if page.printed or page.part.corrections:
        yield f"<h3>{rendering.COMPARED}</h3>"
        yield from _comparison(page)


def _step(step: Step) -> Iterator[str]:
    formula = f" <code>{_text(step.formula)}</code>" if step.formula else ""
    yield f"<h3>{_text(step.name)}{formula}</h3>"
    yield _paragraph(step.note)
    if step.lines:
        yield f"<pre>{_text(chr(10).join(step.lines))}</pre>"
    for table in step.tables:
        yield _table(table, step.name, is_shaded=step.name == "weights")


def _table(table: NamedMatrix, name: str, *, is_shaded: bool) -> str:
    values = table.values_LX.tolist()
    head = "".join(f'<th scope="col" class="number">{_text(word)}</th>' for word in table.columns)
    body = []
    for word, row, cells in zip(table.rows, values, rendering.format_cells(values), strict=True):
        numbers = []
        for value, cell in zip(row, cells, strict=True):
            ground, ink = ground_and_ink(value, None)
            style = f' style="background: {ground}; color: {ink}"' if is_shaded else ""
            numbers.append(f'<td class="number"{style}>{cell.strip()}</td>')
        body.append(f'<tr><th scope="row">{_text(word)}</th>{"".join(numbers)}</tr>')
    caption = f"<caption>{_text(table.title)}</caption>" if table.title else ""
    rows = "\n".join(body)
    return scrolling(
        f"<table>{caption}<thead><tr><td></td>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>",
        f"{name}{rendering.prefix_unless_empty(', ', table.title)}",
    )


def _comparison(page: Page) -> Iterator[str]:
    """Yield the numbers that are right, those that differ with their cause, and remarks."""
    for number in filter(lambda one: one.is_right, page.printed):
        place, cause = map(rendering.drop_backquotes, (number.place, number.cause))
        cause = rendering.prefix_unless_empty("; ", cause)
        yield _paragraph(f"printed {' '.join(number.printed)} ({place}): right{cause}")
    for cause, numbers in correction_groups(page):
        yield "".join(map(_difference, numbers))
        yield _paragraph(f"why: {rendering.drop_backquotes(cause)}")
    yield from map(_paragraph, page.part.corrections)


def _difference(number: WorkedNumber) -> str:
    rows = {
        "printed": number.printed,
        "computed": rendering.format_numbers(number.computed),
        "off by": rendering.differences(number),
    }
    body = "".join(
        f'<tr><th scope="row">{name}</th>'
        + "".join(f'<td class="number">{cell}</td>' for cell in cells)
        + "</tr>"
        for name, cells in rows.items()
    )
    place = _text(rendering.drop_backquotes(number.place))
    return scrolling(f"<table><caption>differs ({place})</caption>{body}</table>", number.place)


def _paragraph(text: str) -> str:
    return f"<p>{_text(text)}</p>" if text else ""


def _text(text: str) -> str:
    """Escape text, and replace what cannot be printed."""
    return escape("\n".join(map(make_printable, text.split("\n"))))
