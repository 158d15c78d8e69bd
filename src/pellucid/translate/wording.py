"""The texts of lines, as they were given and as they are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from pellucid.errors import InputError
from pellucid.translate.results import Scored, Translation

Result = TypeVar("Result", Translation, Scored)


def with_sources(results: list[Result], texts: Sequence[str], to: str | None) -> list[Result]:
    """Put the given texts into results of texts that got a code."""
    if to is None:
        return results
    return [replace(one, source=text) for one, text in zip(results, texts, strict=True)]


def one_line(text: str) -> str:
    """Cut the edges of a line, and refuse several lines."""
    text = text.strip()
    if "\n" in text:
        raise InputError(
            "A text to look at must be one line, but has line breaks. Look at its lines one by one."
        )
    return text
