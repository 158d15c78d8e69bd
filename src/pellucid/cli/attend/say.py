"""A worked example as sentences, for screen readers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pellucid.by_hand.sheet import Example, Step
from pellucid.cli.attend.words import (
    drop_backquotes,
    format_number,
    format_numbers,
    prefix_unless_empty,
)

__all__ = [
    "make_speakable",
    "say_example",
]


def say_example(example: Example) -> Iterator[str]:
    """Write for people who listen: one thing a line, names beside numbers."""
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
    for number in step.printed:
        cause = drop_backquotes(number.cause)
        start = f"{drop_backquotes(number.place)}: printed {', '.join(number.printed)}"
        if number.is_right:
            yield f"{start}, which is right{prefix_unless_empty('; ', cause)}."
            continue
        computed = ", ".join(format_numbers(number.computed))
        apart = format_number(number.largest_difference)
        yield f"{start}, computed {computed}: differs by up to {apart}, because {cause}."


def make_speakable(line: str) -> str:
    """Spell out what a screen reader would skip."""
    return line.replace("−∞", "minus infinity").replace("−", "-")
