"""Two forms of a worked example: tables to look at, and sentences to listen to."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from pellucid.by_hand.pages import Page, correction_groups
from pellucid.by_hand.printed import WorkedNumber
from pellucid.by_hand.sheet import NamedMatrix, Step, WorkedExample, write_number
from pellucid.errors import make_printable
from pellucid.inside.show.colors import ground_and_ink
from pellucid.terminal.grid import blocks_of_columns, fit, speakable
from pellucid.terminal.printing import Printer

COMPARED = "Compared with the text"

_WIDEST_NAME = 16


def draw_heading(example: WorkedExample) -> None:
    """Print the title of an example, its source, and what is given."""
    printer = Printer()
    printer.paragraph(example.title, "bold")
    if example.text:
        printer.paragraph(f"From: {example.text}")
    printer.paragraph(example.note)


def draw_opening(page: Page) -> None:
    """Print the title of a page and its explanation."""
    printer = Printer()
    part = page.part
    printer.line()
    printer.paragraph(f"Page {page.number} of {page.count}: {part.title}", "bold underline")
    if part.note:
        printer.paragraph(part.note)


def draw_comparison(page: Page) -> None:
    """Print the numbers that are right, those that differ with their cause, and remarks."""
    if not page.printed and not page.part.corrections:
        return
    printer = Printer()
    printer.line()
    printer.paragraph(COMPARED, "bold")
    for number in page.printed:
        if number.is_right:
            verdict = f"printed {' '.join(number.printed)} ({drop_backquotes(number.place)}): right"
            cause = prefix_unless_empty("; ", drop_backquotes(number.cause))
            printer.paragraph(verdict + cause, first="  ", later="      ")
    for cause, numbers in correction_groups(page):
        for number in numbers:
            _draw_number(printer, number)
        printer.paragraph(f"why: {drop_backquotes(cause)}", first="      ", later="          ")
    for sentence in page.part.corrections:
        printer.paragraph(sentence, first="  ")


def draw_text(text: str) -> None:
    """Print a sentence that wraps, after an empty line."""
    printer = Printer()
    printer.line()
    printer.paragraph(text)


def draw_step(step: Step) -> None:
    """Print one step, with aligned tables, and with colors if the terminal has them."""
    if not (step.tables or step.lines or step.note or step.formula):
        return  # It only holds printed numbers, which the comparison shows.
    printer = Printer()
    printer.line()
    printer.paragraph(Text.assemble((step.name, "bold"), prefix_unless_empty("  ", step.formula)))
    if step.note:
        printer.paragraph(step.note, first="  ")
    for line in step.lines:
        printer.paragraph(line, first="  ", later="      ")
    for table in step.tables:
        if table.title:
            printer.paragraph(table.title, first="  ")
        for line_text in _draw_table(table, printer.width - 2, is_shaded=step.name == "weights"):
            printer.line(Text("  ") + line_text)


def _draw_number(printer: Printer, number: WorkedNumber) -> None:
    """Print a number from a text, the computed one, and their difference."""
    place = drop_backquotes(number.place)
    printer.paragraph(
        Text.assemble(("differs ", "bold yellow"), f"({place})"), first="  ", later="      "
    )
    rows = (number.printed, format_numbers(number.computed), differences(number))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, texts in zip(("printed", "computed", "off by"), rows, strict=True):
        cells = (text.rjust(width) for text, width in zip(texts, widths, strict=True))
        printer.paragraph(f"{name:<9} {' '.join(cells)}", first="      ", later="          ")


def differences(number: WorkedNumber) -> list[str]:
    """Subtract the computed from the printed numbers."""
    return format_numbers(
        [float(text) - value for text, value in zip(number.printed, number.computed, strict=True)]
    )


def _draw_table(table: NamedMatrix, width: int, *, is_shaded: bool) -> Iterator[Text]:
    """Draw the lines of a table, in blocks of columns that fit into the width."""
    rows = _shorten(table.rows)
    columns = _shorten(table.columns)
    values = table.values_LX.tolist()
    cells = format_cells(values)
    label = max(map(cell_len, rows))
    # A column begins with two spaces.
    widths = [2 + max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
    for block in blocks_of_columns(widths, width - label):
        head = "".join(
            " " * (widths[index] - cell_len(columns[index])) + columns[index] for index in block
        )
        yield Text(" " * label + head, "bold")
        for name, row, numbers in zip(rows, cells, values, strict=True):
            line = Text(fit(name, label))
            for index in block:
                line.append("  ")
                style = ""
                if is_shaded:
                    ground, ink = ground_and_ink(numbers[index], None)
                    style = f"{ink} on {ground}"
                line.append(row[index].rjust(widths[index] - 2), style)
            if not is_shaded:
                line.rstrip()
            yield line


def _shorten(names: Sequence[str]) -> list[str]:
    """Make names printable, and not too wide for a table."""
    clean = [make_printable(name) for name in names]
    return [fit(name, min(cell_len(name), _WIDEST_NAME)) for name in clean]


def format_cells(values: Sequence[Sequence[float]]) -> list[list[str]]:
    """Format numbers with the same number of decimals, so that their points are aligned."""
    written = [[write_number(value) for value in row] for row in values]
    has_exponents = any("e" in text for row in written for text in row)
    decimals = max(
        6 if "e" in text else len(text.partition(".")[2]) for row in written for text in row
    )
    # With decimals, numbers this large would take many columns.
    if has_exponents and any(abs(v) >= 1e9 for row in values for v in row if math.isfinite(v)):
        return written
    return [[_format_cell(value, decimals=decimals) for value in row] for row in values]


def _format_cell(value: float, *, decimals: int) -> str:
    """Format a number with fixed decimals, which stay blank for zero and infinity."""
    if value == 0 or math.isinf(value):
        return write_number(value) + " " * (decimals + 1 if decimals else 0)
    return f"{value:.{decimals}f}".replace("-", "−")


def say_heading(example: WorkedExample) -> None:
    """Print the title of an example, its source, and what is given."""
    source = [f"From: {example.text}."] if example.text else []
    _say(f"{example.title}.", *source, example.note)


def say_opening(page: Page) -> None:
    """Print the title of a page and its explanation."""
    _say("", f"Page {page.number} of {page.count}: {page.part.title}.", page.part.note)


def say_step(step: Step) -> None:
    """Print one step, with a name for each number."""
    if step.tables or step.lines or step.note or step.formula:
        _say(*_say_step(step))


def say_comparison(page: Page) -> None:
    """Print how the page compares with its text."""
    if page.printed or page.part.corrections:
        _say(f"{COMPARED}.", *map(_say_number, page.printed), *page.part.corrections)


def say_text(text: str) -> None:
    """Print a sentence after an empty line."""
    _say("", text)


def _say(*lines: str) -> None:
    for index, line in enumerate(lines):
        if line or index == 0:
            sys.stdout.write(f"{make_printable(speakable(line))}\n")


def _say_step(step: Step) -> Iterator[str]:
    yield f"{step.name}{prefix_unless_empty(': ', step.formula)}."
    if step.note:
        yield step.note
    yield from step.lines
    for table in step.tables:
        for name, row in zip(table.rows, table.values_LX.tolist(), strict=True):
            pairs = zip(table.columns, format_numbers(row), strict=True)
            numbers = "; ".join(f"{column} {number}".strip() for column, number in pairs)
            yield f"{step.name}{prefix_unless_empty(' ', table.title)}, {name}: {numbers}."


def _say_number(number: WorkedNumber) -> str:
    """Compare a number that a text prints with what is computed."""
    cause = drop_backquotes(number.cause)
    start = f"{drop_backquotes(number.place)}: printed {', '.join(number.printed)}"
    if number.is_right:
        return f"{start}, which is right{prefix_unless_empty('; ', cause)}."
    computed = ", ".join(format_numbers(number.computed))
    difference = write_number(number.largest_difference)
    return f"{start}, computed {computed}: differs by up to {difference}, because {cause}."


@dataclass(frozen=True)
class Renderer:
    """Functions that print the pieces of an example to standard output.

    Attributes:
        heading: the title, its source, and what is given.
        opening: the title of a page, and its explanation.
        step: one step.
        comparison: how a page compares with its text.
        text: a sentence.
    """

    heading: Callable[[WorkedExample], None]
    opening: Callable[[Page], None]
    step: Callable[[Step], None]
    comparison: Callable[[Page], None]
    text: Callable[[str], None]

    def page(self, page: Page) -> None:
        """Print a whole page."""
        self.opening(page)
        for step in page.part.steps:
            self.step(step)
        self.comparison(page)


def drop_backquotes(text: str) -> str:
    """Drop the code marks of Markdown, which the documentation pages use."""
    return text.replace("`", "")


def prefix_unless_empty(separator: str, text: str) -> str:
    """Put a separator before a text that is not empty."""
    return f"{separator}{text}" if text else ""


def format_numbers(values: Sequence[float]) -> list[str]:
    """Format numbers as the examples do."""
    return [write_number(value) for value in values]


DRAWN = Renderer(
    draw_heading,
    draw_opening,
    draw_step,
    draw_comparison,
    draw_text,
)
SPOKEN = Renderer(say_heading, say_opening, say_step, say_comparison, say_text)
