"""A worked example as sentences, for screen readers."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pellucid.by_hand.pages import Page
from pellucid.by_hand.printed import WorkedNumber
from pellucid.by_hand.sheet import Example, Step, write_number
from pellucid.cli.attend.words import COMPARED, drop_backquotes, format_numbers, prefix_unless_empty
from pellucid.errors import make_printable


def say_heading(example: Example) -> None:
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
            # A screen reader would skip these signs.
            speakable = line.replace("−∞", "minus infinity").replace("−", "-")
            sys.stdout.write(f"{make_printable(speakable)}\n")


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
