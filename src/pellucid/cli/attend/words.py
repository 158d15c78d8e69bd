"""Words that the tables and the sentences of a worked example share."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.by_hand.sheet import write_number

COMPARED = "Compared with the text"


def drop_backquotes(text: str) -> str:
    """Drop the code marks of Markdown, which the documentation pages use."""
    return text.replace("`", "")


def prefix_unless_empty(separator: str, text: str) -> str:
    """Put a separator before a text that is not empty."""
    return f"{separator}{text}" if text else ""


def format_numbers(values: Sequence[float]) -> list[str]:
    """Format numbers as the examples do."""
    return [write_number(value) for value in values]
