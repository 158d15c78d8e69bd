"""A worked example as sentences, for screen readers."""

from __future__ import annotations

from collections.abc import Iterator

from pellucid.by_hand.printed import WorkedNumber
from pellucid.by_hand.sheet import Example, Step, write_number
from pellucid.cli.attend.words import drop_backquotes, format_numbers, prefix_unless_empty
from pellucid.errors import make_printable

__all__ = ["say_example"]


def say_example(example: Example) -> Iterator[str]:
    """Write an example to be listened to: one thing a line, with a name for each number."""
    for line in _say_parts(example):
        # A screen reader would skip these signs.
        yield make_printable(line.replace("−∞", "minus infinity").replace("−", "-"))


def _say_parts(example: Example) -> Iterator[str]:
    yield f"{example.title}."
    if example.text:
        yield f"From: {example.text}."
    yield example.note
    for part in example.parts:
        yield ""
        yield f"{part.title}."
        if part.note:
            yield part.note
        for step in part.steps:
            yield from _say_step(step)


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
    yield from map(_say_number, step.printed)


def _say_number(number: WorkedNumber) -> str:
    """Compare a number that a text prints with what is computed."""
    cause = drop_backquotes(number.cause)
    start = f"{drop_backquotes(number.place)}: printed {', '.join(number.printed)}"
    if number.is_right:
        return f"{start}, which is right{prefix_unless_empty('; ', cause)}."
    computed = ", ".join(format_numbers(number.computed))
    difference = write_number(number.largest_difference)
    return f"{start}, computed {computed}: differs by up to {difference}, because {cause}."
