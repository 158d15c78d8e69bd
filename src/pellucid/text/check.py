"""The data check: odd features of parallel text, with examples and line numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Literal

from pellucid.config import DataConfig
from pellucid.text.corpus import Split
from pellucid.text.judging import Hit, judge, shared_pairs, shifted_stretches, unrelated_stretches
from pellucid.text.scan import Scan, read_texts, scan_text
from pellucid.text.shifts import Shift

__all__ = ["DataReport", "Example", "Finding", "Severity", "check_data"]

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")

NAMES: Mapping[Split, str] = {"train": "training", "validation": "validation", "test": "test"}

WIDTH = 100
MAX_BRIEF_LINES = 6


@dataclass(frozen=True)
class _Kind:
    """The wording of one kind of finding.

    Attributes:
        words: what such pairs are or have, as printed after "12 training pairs (0.1 %):".
        advice: the effect on a model, or what to do.
        warn_from: the share of pairs from which it is a warning; below, it is a note.
    """

    words: str
    advice: str
    warn_from: float


NEVER = 2.0
"""A share that is never reached: always a note."""

KINDS: Mapping[str, _Kind] = {
    "in training": _Kind("also in the training text", "BLEU will look better than it is.", 0.01),
    "empty": _Kind("an empty side", "They are left out.", 0.01),
    "equal": _Kind("source equal to target", "The model learns to copy.", 0.01),
    "source script": _Kind("source in another script", "It may be another language.", 0.005),
    "target script": _Kind("target in another script", "It may be another language.", 0.005),
    "mojibake": _Kind(
        "broken characters such as 'Ã©' or U+0092",
        "Convert the file from its true encoding, perhaps WINDOWS-1252.",
        0.001,
    ),
    "lost characters": _Kind("U+FFFD, the sign of a lost character", "Convert again.", 0.001),
    "control characters": _Kind("control characters", "Remove them.", 0.01),
    "carriage returns": _Kind(
        "carriage returns inside", r"If lines end so, convert the file with tr '\r' '\n'.", 0.001
    ),
    "markup": _Kind("markup such as <b>", "Remove it, or the model writes it too.", 0.01),
    "escapes": _Kind("escapes such as &amp;", "The model writes them too.", NEVER),
    "long source": _Kind("source far longer than others", "Lines may be joined there.", 0.01),
    "long target": _Kind("target far longer than others", "Lines may be joined there.", 0.01),
    "ratio": _Kind("lengths that do not fit", "They may not be translations.", 0.005),
    "copy": _Kind("exact copies of earlier ones", "They count twice.", 0.1),
    "several targets": _Kind("a source that had another target before", "", NEVER),
    "source in training": _Kind("source in the training text, with another target", "", NEVER),
}
"""Every kind of finding about single pairs, in the order of the report."""


@dataclass(frozen=True)
class Example:
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
    """

    severity: Severity
    kind: str
    split: Split
    count: int
    share: float
    sentence: str
    examples: tuple[Example, ...] = ()


@dataclass(frozen=True)
class DataReport:
    """The findings of the data check.

    Attributes:
        num_pairs: the number of pairs of each split.
        findings: errors, then warnings, then notes.
    """

    num_pairs: Mapping[Split, int]
    findings: tuple[Finding, ...]

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
            lines += textwrap.wrap(
                f"{finding.severity}: {finding.sentence}", WIDTH, subsequent_indent="  "
            )
            if finding.severity == "note":
                lines += _indented("; ".join(map(_place, finding.examples)))
                continue
            for example in finding.examples:
                lines += _indented(_place(example))
                lines += [_cut(f"    {line}") for line in (example.source, example.target)]
        return lines

    def brief(self) -> list[str]:
        """Format errors and warnings without examples, in at most six lines of 100 columns."""
        listed = [
            textwrap.shorten(f"{finding.severity}: {finding.sentence}", WIDTH, placeholder=" …")
            for finding in self.findings
            if finding.severity != "note"
        ]
        room = MAX_BRIEF_LINES - 1
        if len(listed) > room:
            left = len(listed) - (room - 1)
            listed = [*listed[: room - 1], f"and {left} more: see them with --check."]
        return [self._head(), *listed]

    def _head(self) -> str:
        numbers = [
            f"{number} {severity}{'' if number == 1 else 's'}"
            for severity in SEVERITIES
            if (number := sum(finding.severity == severity for finding in self.findings))
        ]
        counts = [f"{count:,} {NAMES[split]}" for split, count in self.num_pairs.items()]
        return (
            f"Data check: {', '.join(counts[:-1])} and {counts[-1]} pairs; "
            f"{', '.join(numbers) or 'nothing odd'}."
        )


def check_data(data: DataConfig, base: Path) -> DataReport:
    """Look for text that harms training: shifted files, broken or foreign text, copies, leaks.

    Lengths, ratios and scripts are compared with what is usual in the same text. The files are
    read twice, the second time only for the examples; memory holds some 50 bytes a pair.

    Args:
        data: the recipe's data section.
        base: the recipe's folder.

    Raises:
        InputFileNotFoundError: a file is missing.
        ConfigurationError: a file's kind is unknown.
    """
    scans = [scan_text(data, split, base) for split in ("validation", "test")]
    others = [scan for scan in scans if scan.corpora]
    train = scan_text(data, "train", base, known=others)
    findings: list[Finding] = []
    for scan in (train, *others):
        findings += [
            Finding("error", "unreadable", scan.split, 1, 0.0, sentence) for sentence in scan.errors
        ]
        findings += [*_shifts(scan, base), *_unrelated(scan)]
        hits = [*judge(scan, train), *shared_pairs(scan)]
        findings += _describe(hits, scan, train, base)
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    num_pairs = {scan.split: len(scan) for scan in (train, *others)}
    return DataReport(num_pairs, tuple(findings))


def _shifts(scan: Scan, base: Path) -> Iterator[Finding]:
    """Report an error for each shifted stretch."""
    stretches = list(shifted_stretches(scan))
    # One example of each stretch, from its middle: a source and the target that translates it.
    texts = read_texts(scan, base, [index for shift in stretches for index in _places(shift)])
    ends = [end for _, end in scan.stretches()]
    for shift in stretches:
        index, other = _places(shift)
        count = shift.last - shift.first + 1
        examples: tuple[Example, ...] = ()
        if index in texts and other in texts:
            examples = (
                Example(
                    scan.where(index)[0], scan.where(other)[1], texts[index][0], texts[other][1]
                ),
            )
        until = f"to line {scan.where(shift.last)[0].rpartition(':')[2]}"
        # The last lines of a shifted corpus have no counterpart, so no stretch reaches its end.
        if any(0 < end - shift.last <= abs(shift.offset) + 1 for end in ends):
            until = "to its end"
        lines = "1 line" if abs(shift.offset) == 1 else f"{abs(shift.offset)} lines"
        yield Finding(
            "error",
            "shifted",
            scan.split,
            count,
            count / len(scan),
            f"from about {scan.where(shift.first)[0]} {until} every source belongs to the target "
            f"{lines} {'later' if shift.offset > 0 else 'earlier'}. Check for missing or extra "
            "lines where that begins.",
            examples,
        )


def _unrelated(scan: Scan) -> Iterator[Finding]:
    """Report a warning for each corpus whose sides do not belong together."""
    for start, end in unrelated_stretches(scan):
        files = " and ".join(where.rpartition(":")[0] for where in scan.where(start))
        yield Finding(
            "warning",
            "unrelated",
            scan.split,
            end - start,
            (end - start) / len(scan),
            f"the lines of {files} do not belong together: neither lengths nor numbers and names "
            "agree. Are they the right files, in the same order?",
        )


def _places(shift: Shift) -> tuple[int, int]:
    """Choose a source in the middle of a shifted stretch, and the target that it belongs to."""
    index = (shift.first + shift.last) // 2
    return index, index + shift.offset


def _describe(hits: list[Hit], scan: Scan, train: Scan, base: Path) -> Iterator[Finding]:
    """Describe hits in words, with the texts of their examples."""
    order = list(KINDS)
    hits = sorted((hit for hit in hits if hit.count), key=lambda hit: order.index(hit.kind))
    texts = read_texts(scan, base, [index for hit in hits for index in hit.indices])
    for hit in hits:
        kind, share = KINDS[hit.kind], hit.count / len(scan)
        elsewhere = train if hit.kind.endswith("in training") else scan
        others = [elsewhere.where(index)[0] for index in hit.others]
        examples = tuple(
            Example(*scan.where(index), *texts[index], other)
            for index, other in zip_longest(hit.indices, others, fillvalue="")
            if index in texts
        )
        pairs = f"{hit.count:,} {NAMES[scan.split]} {'pair' if hit.count == 1 else 'pairs'}"
        percent = f"{100 * share:.{2 if share < 0.1 else 0}f} %"
        yield Finding(
            "warning" if share >= kind.warn_from else "note",
            hit.kind,
            scan.split,
            hit.count,
            share,
            f"{pairs} ({percent}): {kind.words}. {kind.advice}",
            examples,
        )


def _place(example: Example) -> str:
    other = f", like {example.other}" if example.other else ""
    return f"{example.source_where} | {example.target_where}{other}"


def _indented(text: str) -> list[str]:
    margin = "  "
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=margin,
        subsequent_indent=margin,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _cut(line: str) -> str:
    """Cut a line to the width, and replace characters that cannot be printed."""
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in line)
    return shown if len(shown) <= WIDTH else f"{shown[: WIDTH - 1]}…"
