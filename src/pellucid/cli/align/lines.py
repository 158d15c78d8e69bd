"""The pairs of a window of lines, from one file or from two, with words that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pellucid.inside.align.units import Given

__all__ = ["BETWEEN", "Lines", "take_lines"]

BETWEEN = " ||| "
"""What stands between source and target in a file of both."""


@dataclass(frozen=True)
class Lines:
    """Pairs of lines.

    Attributes:
        sources: one line each.
        targets: their translations.
        given: words of these lines, and lines that are no pair.
    """

    sources: Sequence[str]
    targets: Sequence[str]
    given: Given


def take_lines(columns: Mapping[str, Sequence[str]]) -> Lines:
    """Take the pairs from the lines of each file, by option."""
    given = (columns.get("--source-words"), columns.get("--target-words"))
    if "--pairs" not in columns:
        return Lines(columns["--source"], columns["--target"], Given(*given))
    sources, targets, faults = [], [], {}
    for number, line in enumerate(columns["--pairs"]):
        # An empty side has no word: `SOURCE |||` has no target.
        fields = f" {line} ".split(BETWEEN)
        if len(fields) == 2:
            source, target = (field.strip(" ") for field in fields)
        else:
            source, target = "", ""
            if line.strip():
                faults[number] = (
                    "A pair must be written SOURCE ||| TARGET, but has "
                    f"{'no |||' if len(fields) == 1 else f'{len(fields) - 1} times |||'}. "
                    "Put ||| with spaces around it between the two."
                )
        sources.append(source)
        targets.append(target)
    return Lines(sources, targets, Given(*given, faults))
