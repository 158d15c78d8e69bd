"""What the data check found, as objects, text and JSON."""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from pellucid.config.data import Split
from pellucid.terminal.text import count_of, wrap

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

NAMES: Mapping[Split, str] = {"train": "training", "validation": "validation", "test": "test"}

WIDTH = 100
MAX_BRIEF_LINES = 12
MOST_STRETCHES = 12
"""Stretches of lines that are shown of one finding; JSON has all of them."""


@dataclass(frozen=True)
class FoundPlace:
    """One place where something was found.

    Attributes:
        source_where: ``FILE:LINE`` of the source, lines from 1.
        target_where: the same of the target.
        source: the source.
        target: the target.
        other: ``FILE:LINE`` of the source of the pair that this one is like, if any.
    """

    source_where: str
    target_where: str
    source: str
    target: str
    other: str = ""


@dataclass(frozen=True)
class Finding:
    """One kind of odd pairs in one split.

    Attributes:
        severity: ``error`` makes training useless, ``warning`` should be looked at, ``note`` is
            normal in small numbers.
        kind: a short name.
        split: the split it was found in.
        count: the number of such pairs.
        share: their share of the split.
        sentence: the finding in words, without examples.
        examples: at most three.
        lines: all of their lines, as ``FILE:FIRST-LAST``; empty where only the examples are known.
    """

    severity: Severity
    kind: str
    split: Split
    count: int
    share: float
    sentence: str
    examples: tuple[FoundPlace, ...] = ()
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataReport:
    """The findings of the data check.

    Attributes:
        num_pairs: the number of pairs of each split.
        findings: errors, then warnings, then notes.
        tags: the tags of the training sources, the most frequent first, and their shares.
    """

    num_pairs: Mapping[Split, int]
    findings: tuple[Finding, ...]
    tags: Mapping[str, float] = field(default_factory=dict)

    @property
    def has_errors(self) -> bool:
        """True if training on this text is useless."""
        return any(finding.severity == "error" for finding in self.findings)

    def lines(self) -> list[str]:
        """Format everything, for a terminal of 100 columns; one line if nothing is odd.

        Errors and warnings come with the text of their examples, notes only with the places.
        """
        lines = [self._head()]
        for finding in self.findings:
            sentence = f"{finding.severity}: {finding.sentence}"
            lines += wrap(sentence, WIDTH, later="  ", breaks_words=True)
            if finding.lines:
                lines += _indented(f"lines: {_shortened(finding.lines)}")
            if finding.severity == "note":
                lines += _indented("; ".join(map(_place, finding.examples)))
                continue
            for example in finding.examples:
                lines += _indented(_place(example))
                lines += [cut_line(f"    {line}") for line in (example.source, example.target)]
        return lines

    def with_findings(self, findings: Iterable[Finding]) -> DataReport:
        """Add findings of another check."""
        together = [*self.findings, *findings]
        together.sort(key=lambda finding: SEVERITIES.index(finding.severity))
        return replace(self, findings=tuple(together))

    def to_record(self) -> dict[str, Any]:
        """Write everything as JSON has it."""
        return {
            "pairs": dict(self.num_pairs),
            "findings": [asdict(finding) for finding in self.findings],
        }

    def brief(self) -> list[str]:
        """Format errors and warnings without examples, whole, in at most 12 lines of 100 columns.

        Their ends say what to do, so that sentences without room are counted instead of cut.
        """
        found = [finding for finding in self.findings if finding.severity != "note"]
        lines = [self._head()]
        for number, finding in enumerate(found):
            sentence = f"{finding.severity}: {finding.sentence}"
            more = wrap(sentence, WIDTH, later="  ", breaks_words=True)
            is_last = number == len(found) - 1
            if len(lines) + len(more) > MAX_BRIEF_LINES - (not is_last):
                left = len(found) - number
                return [*lines, f"and {left} more: see them with pellucid check."]
            lines += more
        return lines

    def _head(self) -> str:
        numbers = [
            count_of(number, severity)
            for severity in SEVERITIES
            if (number := sum(finding.severity == severity for finding in self.findings))
        ]
        counts = [f"{count:,} {NAMES[split]}" for split, count in self.num_pairs.items()]
        return (
            f"Data check: {', '.join(counts[:-1])} and {counts[-1]} pairs; "
            f"{', '.join(numbers) or 'nothing odd'}."
        )


@cache
def read_words() -> dict[str, dict[str, Any]]:
    """Read ``findings.toml``: the table of sentences, and a table for each kind of odd pairs."""
    text = files("pellucid.check").joinpath("findings.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def say(name: str, **values: object) -> str:
    """Fill in a sentence of ``findings.toml`` about a whole file or text."""
    sentence: str = read_words()["sentences"][name]
    return sentence.format(**values)


def _place(example: FoundPlace) -> str:
    other = f", like {example.other}" if example.other else ""
    both = dict.fromkeys((example.source_where, example.target_where))
    return f"{' | '.join(both)}{other}"


def _indented(text: str) -> list[str]:
    return wrap(text, WIDTH, first="  ")


def _shortened(lines: Sequence[str]) -> str:
    """List stretches of lines, naming each file only once in a row."""
    shown = []
    file = ""
    for stretch in lines[:MOST_STRETCHES]:
        here, _, numbers = stretch.rpartition(":")
        shown.append(numbers if here == file else stretch)
        file = here
    more = len(lines) - len(shown)
    return ", ".join(shown) + (f" and {more:,} more (see them with --json)" if more else "")


def cut_line(line: str) -> str:
    """Cut a line to the width; show spaces of all kinds as one, other invisible signs by number."""
    shown = "".join(letter if letter.isprintable() else _visible(letter) for letter in line)
    return shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 1]}…"


def _visible(letter: str) -> str:
    return " " if unicodedata.category(letter) == "Zs" else f"<U+{ord(letter):04X}>"
