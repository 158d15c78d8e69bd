"""Worked examples by name or from a file: in pages, as sentences, as JSON or as a quiz."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import Any

from pellucid.by_hand.examples.by_name import EXAMPLES
from pellucid.by_hand.examples.not_on_your_life import not_on_your_life
from pellucid.by_hand.examples.show_me_the_money import show_me_the_money
from pellucid.by_hand.matrices import read_example
from pellucid.by_hand.pages import Page, choose_page, correction_groups, pages_of
from pellucid.by_hand.printed import WorkedNumber
from pellucid.by_hand.row import follow_row_of, name_rows
from pellucid.by_hand.sheet import NamedMatrix, Step, WorkedExample
from pellucid.by_hand.small_translator import NUM_STEPS
from pellucid.cli.attend import rendering
from pellucid.cli.attend.quiz import has_reader, run_quiz, turn_pages
from pellucid.cli.attend.rendering import DRAWN, SPOKEN
from pellucid.cli.lines.streams import to_json_line
from pellucid.cli.outputs import TERMINAL, Outputs, write_outputs
from pellucid.errors import InputError, make_printable
from pellucid.inside.show.colors import ground_and_ink
from pellucid.page.plain_page import html_page, scrolling
from pellucid.terminal.text import wants_sentences

_MOST_ROWS_NAMED = 8


@dataclass(frozen=True)
class AttendOptions:
    """The options of ``pellucid attend``.

    Attributes:
        row: the row to follow number by number, or None for the whole example.
        page: the page, from 1; None for all.
        has_pauses: True to wait after each page, if there is a terminal.
        d_key: d_k of the example ``not-on-your-life``.
        is_quiz: True to ask for the numbers.
        outputs: the files, and what standard output gets.
    """

    row: int | None = None
    page: int | None = None
    has_pauses: bool = True
    d_key: int | None = None
    is_quiz: bool = False
    outputs: Outputs = TERMINAL


def show_example(name: str, wanted: AttendOptions) -> None:
    """Write a worked example.

    Args:
        name: the name of an example, or a file.
        wanted: the options.

    Raises:
        InputError: the row or the page is not there, or a quiz has no terminal.
    """
    if wanted.is_quiz and not has_reader():
        raise InputError(
            "--quiz must have a terminal to ask in, but standard input or output is not one. "
            "Leave --quiz out, or run it in a terminal."
        )
    whole = _find(name, wanted.d_key)
    example = whole if wanted.row is None else follow_row_of(whole, wanted.row)
    pages = pages_of(example) if wanted.page is None else (choose_page(example, wanted.page),)

    def make(form: str) -> str:
        if form == "html":
            return example_page(example, pages)
        whole_or_page = example
        if wanted.page is not None:
            whole_or_page = replace(example, parts=(pages[0].part,))
        return to_json_line(example_to_record(whole_or_page))

    is_shown = wanted.outputs.standard == "text"
    # The terminal's form is not a text: it may wait for its reader.
    write_outputs(replace(wanted.outputs, standard=None) if is_shown else wanted.outputs, make)
    if is_shown:
        _show_pages(example, whole, pages, wanted)


def _show_pages(
    example: WorkedExample, whole: WorkedExample, pages: tuple[Page, ...], wanted: AttendOptions
) -> None:
    form = SPOKEN if wants_sentences() else DRAWN
    if wanted.is_quiz:
        run_quiz(example, pages, form, is_row=wanted.row is not None)
        return
    if wanted.page is None and wanted.has_pauses and has_reader():
        if not turn_pages(example, form):
            return
    else:
        form.heading(example)
        for page in pages:
            form.page(page)
    if hint := _hint(whole, wanted):
        form.text(hint)


def _hint(example: WorkedExample, wanted: AttendOptions) -> str:
    """Say what else can be asked for."""
    if wanted.page is not None:
        row = ""
        shown = example
        if wanted.row is not None:
            row = f" --row {wanted.row}"
            shown = follow_row_of(example, wanted.row)
        last = len(pages_of(shown))
        command = f"pellucid attend {example.name}{row} --page"
        return f"Next: {command} {wanted.page + 1} of {last}." if wanted.page < last else ""
    names = name_rows(example)
    if wanted.row is not None or wants_sentences() or not names:
        return ""
    rows = [f"{index} {name}" for index, name in enumerate(names[:_MOST_ROWS_NAMED])]
    rows += ["…"] if len(names) > len(rows) else []
    return f"Number by number: pellucid attend {example.name} --row N ({', '.join(rows)})."


def _find(name: str, d_key: int | None) -> WorkedExample:
    if name not in EXAMPLES:
        return read_example(Path(name))
    if name == "not-on-your-life" and d_key is not None:
        return not_on_your_life(d_key)
    if name == "show-me-the-money" and sys.stderr is not None and sys.stderr.isatty():

        def watch(step: int, loss: float) -> None:
            sys.stderr.write(f"\rTraining: step {step} of {NUM_STEPS}, loss {loss:.4f} ")
            sys.stderr.flush()

        example = show_me_the_money(watch)
        sys.stderr.write("\r" + " " * 50 + "\r")
        return example
    return EXAMPLES[name]()


def example_to_record(example: WorkedExample) -> dict[str, Any]:
    """Turn an example into plain dictionaries."""
    parts = [
        {
            **_pick(part, "title", "note", "corrections"),
            "steps": [_step_to_record(step) for step in part.steps],
        }
        for part in example.parts
    ]
    return {**_pick(example, "name", "title", "text", "note"), "parts": parts}


def _step_to_record(step: Step) -> dict[str, Any]:
    number_fields = ("place", "printed", "computed", "is_right", "largest_difference", "cause")
    return {
        **_pick(step, "name", "formula", "note"),
        "tables": [
            {**_pick(table, "title", "rows", "columns"), "values": table.values_LX.tolist()}
            for table in step.tables
        ],
        "lines": step.lines,
        "printed": [_pick(number, *number_fields) for number in step.printed],
    }


def _pick(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


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
