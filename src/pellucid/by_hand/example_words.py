"""The words of our examples, which stand in a TOML file next to each."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import Field

from pellucid.by_hand.example_numbers import read_example_file
from pellucid.by_hand.sheet import AttentionByHand, Part, Step, WorkedExample
from pellucid.config.base import Strict


class PartWords(Strict):
    """The words of one part of an example."""

    title: str = ""
    note: str = ""
    corrections: list[str] = Field(default_factory=list)


class _Words(Strict):
    """The file of an example: its words, those of its parts by their names, and its numbers."""

    title: str
    text: str = ""
    note: str
    parts: dict[str, PartWords]
    numbers: dict[str, list[Any]] = Field(default_factory=dict)


def write_part(
    name: str,
    *steps: Step,
    attention: AttentionByHand | None = None,
    **values: object,
) -> Part:
    """Make a part of an example with its words.

    Args:
        name: of the example and of the part: ``pizza.given``.
        steps: what it computes.
        attention: the attention that the steps write down, if they do.
        values: what the names in braces of the words stand for.
    """
    example, _, part = name.partition(".")
    words = _read_words(example).parts[part]
    return Part(
        words.title.format(**values),
        words.note.format(**values),
        steps,
        attention,
        tuple(text.format(**values) for text in words.corrections),
    )


def write_example(name: str, *parts: Part, **values: object) -> WorkedExample:
    """Make an example with its title, source and note; values stand for names in braces."""
    words = _read_words(name)
    title = words.title.format(**values)
    note = words.note.format(**values)
    return WorkedExample(name, title, words.text, note, parts)


@cache
def _read_words(name: str) -> _Words:
    return _Words.model_validate(read_example_file(name))
