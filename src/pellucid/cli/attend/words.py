"""Names and numbers fit for a cell of a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass
__all__ = [
    "align_right",
    "drop_backquotes",
    "format_number",
    "format_numbers",
    "make_printable",
    "prefix_unless_empty",
    "shorten_names",
]


_WIDEST_NAME = 16


def shorten_names(names: Sequence[str]) -> list[str]:
    """Names fit for a table: printable, and not too wide."""
    from rich.cells import cell_len, set_cell_size

    clean = [make_printable(name) for name in names]
    return [
        name if cell_len(name) <= _WIDEST_NAME else set_cell_size(name, _WIDEST_NAME - 1) + "…"
        for name in clean
    ]


def align_right(name: str, width: int) -> str:
    """Pad a name on the left to a width in cells."""
    from rich.cells import cell_len

    return " " * (width - cell_len(name)) + name


def make_printable(text: str) -> str:
    """Write control characters as escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def drop_backquotes(text: str) -> str:
    """Drop the marks of Markdown, which the pages have and a terminal does not show."""
    return text.replace("`", "")


def prefix_unless_empty(separator: str, text: str) -> str:
    """Put a separator before a text that is not empty."""
    return f"{separator}{text}" if text else ""


def format_number(value: float) -> str:
    """Format one number as the examples do."""
    from pellucid.by_hand.sheet import write_number

    return write_number(value)


def format_numbers(values: Sequence[float]) -> list[str]:
    """Format several numbers as the examples do."""
    return [format_number(value) for value in values]
