"""The data check: odd features of parallel text, with examples and line numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pellucid.check.findings import (
    NAMES,
    SEVERITIES,
    DataReport,
    Finding,
    FoundPlace,
    Severity,
    read_words,
    say,
)
from pellucid.check.foreign_text import (
    ForeignFile,
    ForeignLines,
    find_foreign,
    learn_languages,
    line_stretches,
    sample_text,
)
from pellucid.check.odd_pairs import (
    FEW,
    Hit,
    find_doubtful,
    judge_split,
    shared_pairs,
    shifted_stretches,
    unrelated_stretches,
)
from pellucid.check.scan import MOST_EXAMPLES, Scan, read_pairs_again, scan_text
from pellucid.check.shifts import Shift
from pellucid.check.tags import find_tags, without_tags
from pellucid.config import DataConfig
from pellucid.languages.codes import release_identifier
from pellucid.terminal.text import count_of, percent
from pellucid.text.reading.joining import CUT_KINDS
from pellucid.text.reading.row_sides import is_source_name
from pellucid.text.reading.sentence_pairs import find_aside


@dataclass(frozen=True)
class _Rule:
    """An entry of ``findings.toml``: the words of a finding, and when it is a warning."""

    words: str
    advice: str = ""
    warn_from: float = math.inf


MOST_NAMED = 5
"""Characters that are named in one finding."""

_FOR_FRENCH = ": correct French needs some."
"""The end of advice that holds only for French."""

MANY_BAD = 0.01
"""The share of lines left out from which it is a warning."""


@cache
def _rules() -> dict[str, _Rule]:
    """Make the rules of ``findings.toml``, which has one for all ways to cut words into pieces."""
    rules = {}
    for name, entry in read_words().items():
        if name == "sentences":
            continue
        if "{name}" not in name:
            rules[name] = _Rule(**entry)
            continue
        for cut, kind in CUT_KINDS.items():
            values = {"name": cut, "example": kind.example}
            rules[name.format(**values)] = _Rule(
                words=entry["words"].format(**values),
                advice=entry["advice"].format(**values),
                warn_from=entry["warn_from"],
            )
    return rules


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
    samples = sample_text(data, base)
    tags = find_tags(*samples["train"])
    for sources, _ in samples.values():
        sources[:] = [without_tags(source, tags) for source in sources]
    found: dict[str, Any] = {"languages": learn_languages(data, samples), "tags": tags}
    scans = [scan_text(data, split, base, **found) for split in ("validation", "test")]
    others = [scan for scan in scans if scan.corpora]
    train = scan_text(data, "train", base, known=others, **found)
    findings: list[Finding] = []
    for scan in (train, *others):
        # With data.split all splits are read from the same files, and fail for the same reason.
        said = {finding.sentence for finding in findings} if data.split else set[str]()
        findings += [one for one in _unreadable(scan, data) if one.sentence not in said]
        findings += _headers(scan, data, base)
        findings += [*_shifts(scan, base), *_unrelated(scan)]
        foreign = list(find_foreign(scan))
        if tags and not (data.source_language and data.target_language):
            foreign = []  # a tag may say in which language a line is
        findings += _foreign_files(foreign, scan, base)
        hits = [*judge_split(scan, train), *shared_pairs(scan), *_foreign_lines(foreign)]
        hits += _doubtful(scan, foreign, hits, base, data)
        findings += _describe(hits, scan, train, base)
    if not train.errors:
        findings += _set_aside(train, base, data)
    release_identifier()
    findings.sort(key=lambda finding: SEVERITIES.index(finding.severity))
    num_pairs = {scan.split: len(scan) for scan in (train, *others)}
    shares = {tag: count / len(train) for tag, count in train.tags.most_common()}
    return DataReport(num_pairs, tuple(findings), shares)


def _unreadable(scan: Scan, data: DataConfig) -> Iterator[Finding]:
    """Report files that cannot be read to their end, and lines that cannot be used."""
    for sentence in scan.errors:
        yield Finding("error", "unreadable", scan.split, 1, 0.0, sentence)
    if scan.bad.entries:
        said = f"of the documents of the {NAMES[scan.split]} text, {scan.bad.about_entries()}"
        count = scan.bad.entries.total()
        share = count / (len(scan) + count)
        yield Finding("note", "entries left out", scan.split, count, share, said)
    count = scan.bad.count
    if not count:
        return
    share = count / (len(scan) + count)
    if data.on_bad_line == "stop":
        yield Finding("error", "unreadable", scan.split, count, share, scan.bad.sentence(len(scan)))
        return
    lines = count_of(count, "line")
    yield Finding(
        "warning" if share >= MANY_BAD else "note",
        "left out",
        scan.split,
        count,
        share,
        f"{lines} of the {NAMES[scan.split]} text cannot be used and will be left out: "
        f"{scan.bad.listed()}.",
    )


def _set_aside(train: Scan, base: Path, data: DataConfig) -> Iterator[Finding]:
    """Report pairs that training leaves out because their target is set aside."""
    # A bad line that would stop the training is reported already.
    readable = data.model_copy(update={"on_bad_line": "skip"})
    aside = find_aside(readable, base)
    count = aside.num_same_target
    if count:
        share = count / (len(train) + count)
        severity: Severity = "warning" if share >= MANY_BAD else "note"
        sentence = say(
            "set aside", pairs=count_of(count, "pair leaves", "pairs leave"), share=percent(share)
        )
        yield Finding(severity, "set aside", "train", count, share, sentence)


def _headers(scan: Scan, data: DataConfig, base: Path) -> Iterator[Finding]:
    """Report first lines that name the columns but are read as a pair."""
    texts = read_pairs_again(scan, base, scan.headers)
    for index in scan.headers:
        source, target = texts[index]
        where = scan.where(index)
        is_table = where[0] == where[1]
        names = (data.columns or (source, target)) if is_table else ()
        advice = "Remove that line from both files."
        if is_table:
            order = names if is_source_name(source, data) else (target, source)
            advice = f"To leave it out, set data.columns = {json.dumps(list(order))}."
        yield Finding(
            "warning",
            "header",
            scan.split,
            1,
            1 / len(scan),
            f"the first line of {where[0].rpartition(':')[0]} names the two sides, "
            f"{source!r} and {target!r}, and is read as a pair. {advice}",
            (_found_place(scan, index, texts[index]),),
        )


def _foreign_files(
    foreign: Sequence[ForeignFile | ForeignLines], scan: Scan, base: Path
) -> Iterator[Finding]:
    """Report files that are in another language as a whole."""
    files = [found for found in foreign if isinstance(found, ForeignFile)]
    texts = read_pairs_again(
        scan, base, [int(i) for file in files for i in file.indices[:MOST_EXAMPLES]]
    )
    languages = scan.languages
    for file in files:
        assert languages is not None
        indices = [int(index) for index in file.indices[:MOST_EXAMPLES]]
        names = [place.rpartition(":")[0] for place in scan.where(indices[0])]
        counted = f"{file.count:,} of {file.judged:,}"
        if file.kind == "swapped":
            both = names[0] if names[0] == names[1] else f"{names[0]} and {names[1]}"
            sentence = (
                f"the two sides of {both} are exchanged: {counted} sources are in "
                f"{languages.codes[1]!r} and their targets in {languages.codes[0]!r}. "
            )
            sentence += (
                "Exchange its columns."
                if names[0] == names[1]
                else "Exchange the two files in the recipe."
            )
            is_declared = True
        else:
            place = file.kind == "target"
            is_declared = languages.are_declared[place]
            key = f" (data.{file.kind}_language)" if is_declared else ""
            sentence = (
                f"the {file.kind}s of {names[place]} are in {file.language!r}, not in "
                f"{languages.codes[place]!r}{key}: {counted} clear lines. Is it the right file?"
            )
        yield Finding(
            "error" if is_declared else "warning",
            "swapped" if file.kind == "swapped" else f"{file.kind} language",
            scan.split,
            file.count,
            file.count / len(scan),
            sentence,
            tuple(_found_place(scan, i, texts[i]) for i in indices if i in texts),
            line_stretches(scan, file.indices) if file.count < file.judged else (),
        )


def _foreign_lines(foreign: Sequence[ForeignFile | ForeignLines]) -> Iterator[Hit]:
    """Turn pairs in another language into hits, in the order of their lines."""
    for found in foreign:
        if not isinstance(found, ForeignLines):
            continue
        names = ", ".join(f"{count:,} in {code!r}" for code, count in found.languages.most_common())
        yield Hit(
            found.kind if found.kind == "swapped" else f"{found.kind} language",
            len(found.indices),
            tuple(found.indices[:MOST_EXAMPLES].tolist()),
            places=found.indices,
            detail="" if found.kind == "swapped" else names,
        )


def _doubtful(
    scan: Scan,
    foreign: Sequence[ForeignFile | ForeignLines],
    hits: Sequence[Hit],
    base: Path,
    data: DataConfig,
) -> Iterator[Hit]:
    """Look at the pairs of a small text one by one."""
    if len(scan) > FEW or any(isinstance(found, ForeignFile) for found in foreign):
        return
    known = [int(index) for found in foreign for index in found.indices]
    known += [index for hit in hits if hit.kind == "ratio" for index in hit.indices]
    yield from find_doubtful(read_pairs_again(scan, base, range(len(scan))), data, known)


def _shifts(scan: Scan, base: Path) -> Iterator[Finding]:
    """Report an error for each shifted stretch."""
    stretches = list(shifted_stretches(scan))
    # One example of each stretch, from its middle: a source and the target that translates it.
    texts = read_pairs_again(scan, base, [index for shift in stretches for index in _places(shift)])
    ends = [end for _, end in scan.stretches()]
    for shift in stretches:
        index, other = _places(shift)
        count = shift.last - shift.first + 1
        examples: tuple[FoundPlace, ...] = ()
        if index in texts and other in texts:
            source_where, _ = scan.where(index)
            _, target_where = scan.where(other)
            source, _ = texts[index]
            _, target = texts[other]
            examples = (FoundPlace(source_where, target_where, source, target),)
        until = f"to line {scan.where(shift.last)[0].rpartition(':')[2]}"
        # The last lines of a shifted corpus have no counterpart, so no stretch reaches its end.
        if any(0 < end - shift.last <= abs(shift.offset) + 1 for end in ends):
            until = "to its end"
        lines = count_of(abs(shift.offset), "line")
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
        files = dict.fromkeys(where.rpartition(":")[0] for where in scan.where(start))
        own, given = ("lines", "files") if len(files) > 1 else ("columns", "columns")
        yield Finding(
            "warning",
            "unrelated",
            scan.split,
            end - start,
            (end - start) / len(scan),
            f"the {own} of {' and '.join(files)} do not belong together: neither lengths nor "
            f"numbers and names agree. Are they the right {given}, in the same order?",
        )


def _found_place(scan: Scan, index: int, text: tuple[str, str], other: str = "") -> FoundPlace:
    source_where, target_where = scan.where(index)
    source, target = text
    return FoundPlace(source_where, target_where, source, target, other)


def _places(shift: Shift) -> tuple[int, int]:
    """Choose a source in the middle of a shifted stretch, and the target that it belongs to."""
    index = (shift.first + shift.last) // 2
    return index, index + shift.offset


def _describe(hits: list[Hit], scan: Scan, train: Scan, base: Path) -> Iterator[Finding]:
    """Describe hits in words, with the texts of their examples."""
    rules = _rules()
    order = list(rules)
    hits = sorted((hit for hit in hits if hit.count), key=lambda hit: order.index(hit.kind))
    texts = read_pairs_again(scan, base, [index for hit in hits for index in hit.indices])
    for hit in hits:
        rule = rules[hit.kind]
        share = hit.count / len(scan)
        elsewhere = train if hit.kind.endswith("in training") else scan
        others = [elsewhere.where(index)[0] for index in hit.others]
        examples = tuple(
            _found_place(scan, index, texts[index], other)
            for index, other in zip_longest(hit.indices, others, fillvalue="")
            if index in texts
        )
        pairs = count_of(hit.count, f"{NAMES[scan.split]} pair")
        detail = hit.detail or _characters(scan.characters[hit.kind])
        words = f"{rule.words} ({detail})" if detail else rule.words
        has_french = scan.languages is None or "fr" in scan.languages.codes
        advice = rule.advice if has_french else rule.advice.replace(_FOR_FRENCH, ".")
        severity: Severity = "warning" if share >= rule.warn_from else "note"
        # Training refuses a text without a single pair.
        severity = "error" if hit.kind == "empty" and share == 1 else severity
        severity = "error" if hit.kind == "several languages" else severity
        yield Finding(
            severity,
            hit.kind,
            scan.split,
            hit.count,
            share,
            f"{pairs} ({percent(share)}): {words}. {advice}",
            examples,
            line_stretches(scan, hit.places) if hit.places is not None else (),
        )


def _characters(counts: Mapping[str, int]) -> str:
    """Name characters by their numbers, the most frequent first."""
    order = sorted(counts, key=lambda letter: (-counts[letter], letter))
    named = [f"U+{ord(letter):04X}" for letter in order[:MOST_NAMED]]
    return ", ".join(named) + (" and others" if len(order) > MOST_NAMED else "")
