"""Documents: windows of units, their translations, and a report of those to look at."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pellucid.cli.ending import note, warn
from pellucid.cli.lines.chosen_keys import ChosenKeys
from pellucid.cli.lines.decoding_options import INPUT
from pellucid.cli.lines.document_report import Report, record_unit
from pellucid.cli.lines.streams import ParallelReader
from pellucid.cli.lines.text_counts import (
    ALIKE,
    DOUBTFUL,
    EQUAL,
    FROM_MEMORY,
    TAKEN,
    TEXTS,
    count_reasons,
    say_counts,
    say_memory,
)
from pellucid.cli.lines.translation_memory import Memory, Suggestion
from pellucid.documents.formats import Format
from pellucid.documents.markup.segments import Segment
from pellucid.documents.segment_writing import write_segment
from pellucid.documents.units import How, Unit
from pellucid.files import hash_bytes
from pellucid.terminal.text import count_of

if TYPE_CHECKING:
    from pellucid.cli.lines.translation_job import TranslationJob
    from pellucid.decode.constraints.terms import UsedTerm
    from pellucid.translate.links.document_texts import Key
    from pellucid.translate.results import Translation

Marks = Literal["all", "unsure", "none"]
Used = tuple["UsedTerm", ...]


class WrittenUnit(NamedTuple):
    """What is written for a row.

    Attributes:
        text: the output.
        translations: those of the model in it, each with the number of its line, from 0.
        unit: the unit of a document.
        number: of its row.
        terms: of a glossary, those of each text, with the number of its line.
        suggestion: a similar text of the memory.
    """

    text: str
    translations: Sequence[tuple[int, Translation]] = ()
    unit: Unit | None = None
    number: int = 0
    terms: Sequence[tuple[int, Used]] = ()
    suggestion: Suggestion | None = None


@dataclass(frozen=True)
class UnitRow:
    """What is copied before a unit, and the unit; the last row has none."""

    copied: str
    unit: Unit | None = None

    def __len__(self) -> int:
        return sum(len(one.text) for one in self.unit.segments) if self.unit else 0


class DocumentReader(ParallelReader):
    """Reads a document in windows of units, and hashes what it reads.

    Args:
        rows: of the document.
    """

    def __init__(self, rows: Iterator[UnitRow]) -> None:
        self.num_lines = 0
        self._files = {INPUT: ""}
        self._rows = rows
        self._digests = {INPUT: hashlib.sha256()}

    def _next_row(self) -> list[Any] | None:
        row = next(self._rows, None)
        if row is None:
            return None
        self._digests[INPUT].update(f"{row.copied}{row.unit or ''}".encode())
        self.num_lines += 1
        return [row]


@dataclass
class DocumentForm:
    """A document to translate, and the remarks on its units.

    Attributes:
        parts: reads the document.
        format: of the document.
        how: the way to read it.
        marks: the units that are marked.
        report: lists the units that should be looked at; None without the option.
        memory: gives translations; None without the option.
        report_name: of the report, for messages: that of a folder has another one at first.
        counts: how many texts were written, and how many of them should be looked at, by kind.
        num_fuzzy: how many messages have a translation that is fuzzy, and stay as they are.
        nothing: the sentence that the file is empty, which is then copied; empty for others.
        content: the bytes of an archive; empty for a text.
        keys: of the texts that are translated.
    """

    parts: Callable[[], Iterable[str]]
    format: Format
    how: How
    marks: Marks
    report: Report | None = None
    memory: Memory | None = None
    report_name: str | None = None
    counts: Counter[str] = field(default_factory=Counter)
    num_fuzzy: int = 0
    nothing: str = ""
    content: bytes = b""
    keys: ChosenKeys = field(default_factory=ChosenKeys)

    @property
    def packing(self) -> Callable[[str], bytes] | None:
        """What makes the file of the text that is written; None if the text is the file."""
        return partial(self.format.pack, self.content) if self.content else None

    def settings(self) -> dict[str, Any]:
        """Gather what the output depends on, by its name for users."""
        return {
            "--format": self.format.name,
            "the document": [*self.how.languages, self.how.has_all, self.how.column, self.how.into],
            "--keys": [*self.keys.keys],
            "--skip-keys": [*self.keys.skipped],
            "--mark": self.marks,
            "--memory": self.memory and self.memory.hash,
            "--report": self.report and str(self.report.path),
            # Parts that are not translated are taken from it at the end.
            **({"the archive": hash_bytes(self.content)} if self.content else {}),
        }

    def rows(self) -> Iterator[UnitRow]:
        """Read the document.

        Raises:
            DataError: it is not of its format.
        """
        copied = ""
        parts = self.parts() if self.nothing else self.format.read(self.parts(), self.how)
        for part in parts:
            if isinstance(part, Unit) and self.keys.has(part.key):
                yield UnitRow(copied, part)
                copied = ""
            else:
                # Before there is a translation, a unit is its own part of the document.
                copied += str(part)
        if copied:
            yield UnitRow(copied)

    def answer(
        self, job: TranslationJob, first: int, columns: Mapping[str, Sequence[UnitRow]]
    ) -> Iterator[WrittenUnit]:
        """Translate the units of a window.

        Args:
            job: how to translate.
            first: number of the first row, from 0.
            columns: copied strings and units, as the input's.
        """
        rows = columns[INPUT]
        segments = [one for row in rows if row.unit for one in row.unit.segments]
        if self.memory is not None:
            segments = [one for one in segments if not self.memory.write(one)]
        found = _translate(job, segments)
        for number, row in enumerate(rows, start=first):
            unit = row.unit
            if unit is None:
                yield WrittenUnit(row.copied)
                continue
            own = [one for one in unit.segments if not one.match]
            translations = [found[one.has_tags, *one.key] for one in own]
            terms = [
                _write(job, segment, one) for segment, one in zip(own, translations, strict=True)
            ]
            # What a memory gave was not made to have them.
            for one in unit.segments:
                if one.match and self.memory is not None:
                    terms.append(_use_terms(job, one, self.memory.targets[one.text.strip()], ()))
            is_unsure = bool(unit.reason or unit.match)
            unit.is_marked = self.marks == "all" or (self.marks == "unsure" and is_unsure)
            numbered = [(unit.line - 1, one) for one in translations]
            # A text is counted once, whatever number of plurals it has.
            used = tuple(chain.from_iterable(terms))
            counted = [(unit.line - 1, used)] if unit.has_text else []
            suggested = (self.memory.suggest(one.text.strip()) for one in own if self.memory)
            similar = max(filter(None, suggested), default=None)
            text = f"{row.copied}{unit}"
            yield WrittenUnit(text, numbered, unit, number, counted, similar)

    def add(self, answers: Sequence[WrittenUnit]) -> None:
        """Count the units of a window, and report those that should be looked at."""
        records = []
        for _, translations, unit, number, terms, similar in answers:
            if unit is None or not unit.has_text:
                continue
            found = TAKEN if unit.match else str(similar or "")
            reason = unit.reason or found
            self.counts[TEXTS] += 1
            self.counts[EQUAL] += unit.match == 1
            self.counts[ALIKE] += similar is not None
            self.counts += count_reasons([reason])
            used = [one.to_dict() for _, own in terms for one in own]
            if reason or used:
                record = record_unit(unit, number, found, [one for _, one in translations])
                record |= {"terms": used} if used else {}
                records.append(record | ({"memory": similar.to_dict()} if similar else {}))
        if self.report is not None:
            self.report.add(records)

    def begin(self, num_rows: int) -> None:
        """Begin the report, or continue it after so many rows."""
        if self.report is not None:
            self.counts = self.report.begin(num_rows)
            before = islice(self.rows(), num_rows)
            self.counts[TEXTS] = sum(row.unit is not None and row.unit.has_text for row in before)

    def end(self) -> None:
        """Say what is marked and what should be looked at, and finish the report."""
        if self.nothing:
            note(self.nothing)
        if self.memory is not None and self.report is None:
            note(say_memory(self.counts))
        if sentence := say_counts(self.counts, self.report_name):
            (warn if self.counts[DOUBTFUL] else note)(sentence)
        marked = {
            "all": self.counts[TEXTS],
            "unsure": self.counts[DOUBTFUL] + self.counts[FROM_MEMORY],
            "none": 0,
        }
        if self.format.has_marks and (count := marked[self.marks]):
            self._say_marked(count)
        if self.num_fuzzy:
            left = count_of(self.num_fuzzy, "fuzzy message was", "fuzzy messages were")
            were, them = ("it was", "it") if self.num_fuzzy == 1 else ("they were", "them")
            note(f"{left} left as {were}; --all translates {them}, and all others again.")
        if self.report is not None:
            self.report.finish(self.how.path)

    def _say_marked(self, count: int) -> None:
        is_po = self.format.name == "po"
        fuzzy = "; fuzzy messages are not used until you approve them" if is_po else ""
        if self.marks == "all":
            are = count_of(count, "text is", "texts are")
            choose = " Choose with --mark unsure or --mark none."
        else:
            verb = "is" if count == 1 else "are"
            are = f"{count:,} of {count_of(self.counts[TEXTS], 'text')} {verb}"
            choose = ""
        note(f"{are} marked for review{fuzzy}.{choose}")


def _translate(job: TranslationJob, segments: Sequence[Segment]) -> dict[Key, Translation]:
    """Translate texts, each once: with word links for tags, among several for placeholders.

    Words that the model does not know stay the source's.
    """
    from pellucid.translate.links.document_texts import DocumentText, translate_texts, wide_search

    asking = translate_texts(job.translator, map(DocumentText.of, segments))
    wide = wide_search(job.decoding)
    try:
        asked = next(asking)
        while True:
            choices = wide if asked.is_wide else {}
            columns = {INPUT: asked.texts}
            found = job.translate(columns, align=asked.is_linked, unknown="source-word", **choices)
            asked = asking.send(found)
    except StopIteration as end:
        translations: dict[Key, Translation] = end.value
        return translations


def _write(job: TranslationJob, segment: Segment, translation: Translation) -> Used:
    """Write a segment's translation, and say what became of its terms."""
    from pellucid.translate.links.document_texts import doubt_of, doubts_of

    if translation.error is not None:
        segment.reason = translation.error
        return _use_terms(job, segment, "", translation.terms)
    write_segment(segment, translation.hypotheses, translation.source_words)
    shown = "" if segment.written is None else translation.text
    terms = _use_terms(job, segment, shown, translation.terms)
    segment.reason = segment.reason or doubt_of(translation)
    segment.doubts += doubts_of(translation)
    return terms


def _use_terms(job: TranslationJob, segment: Segment, text: str, known: Used) -> Used:
    """Look for a segment's terms in what is written; one with a fault is its reason to be read.

    Args:
        job: with the glossary.
        segment: the segment.
        text: its translation; empty if the source stays.
        known: what a model said of the terms of its best translation, which may be another one.
    """
    from pellucid.decode.constraints.term_reports import doubts_about, find_used

    segment.doubts = [segment.reason] if segment.reason else []
    used = find_used(job.constraints.glossary, segment.text.strip(), text, known)
    segment.doubts += doubts_about(used)
    segment.reason = next(iter(segment.doubts), "")
    return used
