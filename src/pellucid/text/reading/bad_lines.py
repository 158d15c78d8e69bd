"""Lines of a text that cannot be used, counted and listed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pellucid.terminal.text import count_of
from pellucid.text.reading.row_sides import Fault

MOST_LISTED = 10
"""Bad lines that a message lists."""


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that cannot be used.

    Attributes:
        where: ``FILE:LINE``, lines from 1.
        number: the number of the line.
        fault: the reason.
    """

    where: str
    number: int
    fault: Fault


class BadLines:
    """Lines that cannot be used: their number, by kind, and the first ten.

    Entries of documents that should not be learned from, such as fuzzy ones, are counted apart.
    """

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self.first: list[BadLine] = []
        self.entries: Counter[str] = Counter()

    @property
    def count(self) -> int:
        """The number of lines."""
        return self.kinds.total()

    def add(self, line: BadLine) -> None:
        """Count a line."""
        # An entry of a document that should not be learned from is not a mistake.
        if not line.fault.sentence:
            self.entries[line.fault.kind] += 1
            return
        self.kinds[line.fault.kind] += 1
        if len(self.first) < MOST_LISTED:
            self.first.append(line)

    def extend(self, other: BadLines) -> None:
        """Add the lines of another collection."""
        self.kinds += other.kinds
        self.entries += other.entries
        self.first = (self.first + other.first)[:MOST_LISTED]

    def listed(self) -> str:
        """List the first ten with their kinds: ``a.tsv:2 (1 column), 7 (empty)``."""
        shown = []
        file = ""
        # A single kind is named once, at the end.
        only = next(iter(self.kinds)) if len(self.kinds) == 1 else ""
        for line in self.first:
            here, _, number = line.where.rpartition(":")
            place = number if here == file else line.where
            shown.append(place if only else f"{place} ({line.fault.kind})")
            file = here
        more = self.count - len(self.first)
        listed = ", ".join(shown) + (f" and {more:,} more" if more else "")
        return f"{listed} ({only})" if only else listed

    def about_entries(self) -> str:
        """Say how many entries of documents were left out; empty if none was."""
        kinds = ", ".join(f"{kind}: {count:,}" for kind, count in self.entries.most_common())
        left = count_of(self.entries.total(), "entry was", "entries were")
        return f"{left} left out ({kinds})." if kinds else ""

    def sentence(self, num_good: int) -> str:
        """Say what is wrong and what to do: one line's fault, or a list of lines.

        Args:
            num_good: the lines that can be used. If they are fewer, the rest cannot be left out.
        """
        skip = ', or leave such lines out with data.on_bad_line = "skip".'
        if num_good < self.count:
            skip = "."
        if self.count == 1:
            return f"{self.first[0].fault.sentence.removesuffix('.')}{skip}"
        advice = self.first[0].fault.advice or "Correct or remove them"
        if all(kind == "not UTF-8" for kind in self.kinds):
            advice = "Convert the file, for instance with iconv -f WINDOWS-1252 -t UTF-8"
        first = self.first[0].fault.sentence.removesuffix(f" {advice}.")
        example = "" if num_good else f" The first: {first}"
        return f"{self.count:,} lines cannot be used: {self.listed()}. {advice}{skip}{example}"
