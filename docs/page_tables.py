"""Replace tables of a page, and find the anchors of its headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def renew_table(text: str, heading: str, rows: Iterable[Sequence[str]]) -> str:
    """Put other rows below the heading of a table."""
    body = "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |") for row in rows)
    return put(text, rf"(?<=\n)({re.escape(heading)}.*\n\|[-| :]+\|\n)(?:\|.*\n)+", body, keep=True)


def put(text: str, pattern: str, new: str, *, keep: bool = False) -> str:
    """Replace the one place that has a pattern; its first group stays before it with ``keep``."""
    text, count = re.subn(pattern, lambda match: f"{match[1] if keep else ''}{new}", text)
    if count != 1:
        raise SystemExit(f"The page must have one place such as {pattern}, but has {count}.")
    return text


def anchor_of(heading: str) -> str:
    """Return the anchor that a host of pages gives a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")
