"""The pairs of a window of lines, from one file or from two, with words that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pellucid.inside.align.units import Given
from pellucid.text.reading.lines import not_a_line

MAY_BE_DAMAGED = ("--source", "--target", "--pairs")
"""Files in which a line that is too long or not text costs only its own pair."""

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
    faults: dict[int, str] = {}
    if "--pairs" not in columns:
        sides = [_usable(columns[name], faults) for name in ("--source", "--target")]
        return Lines(sides[0], sides[1], Given(*given, faults))
    sources, targets = [], []
    for number, line in enumerate(_usable(columns["--pairs"], faults)):
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


def _usable(lines: Sequence[str], faults: dict[int, str]) -> list[str]:
    """Empty the lines that are too long or not text, and note the fault of each."""
    found = []
    for number, line in enumerate(lines):
        if (fault := not_a_line(line)) is not None:
            faults.setdefault(number, fault)
        found.append("" if fault is not None else line)
    return found
