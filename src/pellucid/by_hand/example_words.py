"""The words of our examples, which stand in a TOML file next to each."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

from pydantic import Field

from pellucid.by_hand.sheet import AttentionByHand, Part, Step, WorkedExample
from pellucid.config.base import Strict


class PartWords(Strict):
    """The words of one part of an example."""

    title: str = ""
    note: str = ""
    corrections: list[str] = Field(default_factory=list)


class _Words(Strict):
    """The words of an example, and of its parts by their names."""

    title: str
    text: str = ""
    note: str
    parts: dict[str, PartWords]


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
    title, note, *corrections = (
        text.format(**values) for text in (words.title, words.note, *words.corrections)
    )
    return Part(title, note, steps, attention, tuple(corrections))


def write_example(name: str, *parts: Part, **values: object) -> WorkedExample:
    """Make an example with its title, source and note; values stand for names in braces."""
    words = _read_words(name)
    title, note = words.title.format(**values), words.note.format(**values)
    return WorkedExample(name, title, words.text, note, parts)


@cache
def _read_words(name: str) -> _Words:
    source = files("pellucid.by_hand.examples").joinpath(f"{name}.toml")
    return _Words.model_validate(tomllib.loads(source.read_text(encoding="utf-8")))
