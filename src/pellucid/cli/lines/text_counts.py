"""Counts of the texts of documents that should be looked at, and of the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from pellucid.terminal.text import count_of

TAKEN = "taken from the memory"
SIMILAR = "the memory has a similar text"
"""Beginnings of reasons that cast no doubt on a translation."""

TEXTS = "texts"
DOUBTFUL = "doubtful"
FROM_MEMORY = "from the memory"
_SUGGESTED = "with a similar text in the memory"
EQUAL = "in the memory"
ALIKE = "like one in the memory"
"""Also those that are doubtful."""
_KINDS = {TAKEN: FROM_MEMORY, SIMILAR: _SUGGESTED}


def count_reasons(reasons: Iterable[str]) -> Counter[str]:
    """Count the texts that a report has, by what their reasons mean; none without a reason."""
    return Counter(
        next((kind for begin, kind in _KINDS.items() if one.startswith(begin)), DOUBTFUL)
        for one in reasons
        if one
    )


def say_counts(counts: Mapping[str, int], report: str | None) -> str:
    """Write how many texts should be looked at, and in which file; empty for no texts.

    Args:
        counts: of `count_reasons`, and of all texts.
        report: the name of the report; None without one.
    """
    of_texts = f"of {count_of(counts.get(TEXTS, 0), 'text')}"
    kinds = {one: counts[one] for one in (DOUBTFUL, *_KINDS.values()) if counts.get(one)}
    if report and kinds:
        listed = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        total = sum(kinds.values())
        verb = "is" if total == 1 else "are"
        return f"{total:,} {of_texts} {verb} in {Path(report).name}: {listed}."
    if doubtful := kinds.get(DOUBTFUL):
        verb = "is" if doubtful == 1 else "are"
        return f"{doubtful:,} {of_texts} {verb} doubtful. --report FILE lists them."
    return ""


def say_memory(counts: Mapping[str, int]) -> str:
    """Say what a memory has of the texts."""
    texts = count_of(counts.get(TEXTS, 0), "text")
    return (
        f"The memory has {counts.get(EQUAL, 0):,} of {texts}, and similar ones for "
        f"{counts.get(ALIKE, 0):,}."
    )
