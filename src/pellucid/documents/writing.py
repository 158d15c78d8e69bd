"""Writes the translation of a segment, and reads it again: copied parts and codes must be equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from pellucid.documents.markup.placing import write_placed
from pellucid.documents.markup.segments import Element, Segment, spell
from pellucid.documents.placeholders import keeps_copies, without_surplus


class Answer(Protocol):
    """A translation of a text with its word links, if they are known."""

    @property
    def text(self) -> str:
        """The translation."""

    @property
    def words(self) -> Sequence[str]:
        """The words that links count."""

    @property
    def alignment(self) -> Sequence[tuple[int, int]] | None:
        """Pairs of a source word and a word of the translation."""


BY_LINKS = "placeholders were lost, and stand where word links put them"
BY_ORDER = "placeholders were lost, and stand after the word before them"
SOURCE = "its codes were lost in the translation, so that the source stays"
EMPTY = "the translation is empty, so that the source stays"


def needs_links(segment: Segment, answers: Sequence[Answer]) -> bool:
    """Tell whether word links are needed to write one of some translations of a segment."""
    return segment.has_tags or not any(keeps_copies(segment, one.text) for one in answers)


def write_segment(
    segment: Segment, answers: Sequence[Answer], source_words: Sequence[str] = ()
) -> None:
    """Write the translation of a segment, or keep its source; say why it should be looked at.

    Args:
        segment: the segment.
        answers: the translations of its text without white space at its edges, the best first.
        source_words: the words of the text that links count.
    """
    answer, text = answers[0], answers[0].text
    if segment.syntax.has_placeholders:
        fitting = next((one for one in answers if keeps_copies(segment, one.text)), None)
        if fitting is None:
            segment.reason = BY_ORDER if answer.alignment is None else BY_LINKS
            text = without_surplus(segment, text)
        else:
            answer, text = fitting, fitting.text
    if not text.strip():
        segment.reason = EMPTY
        return
    own = segment.text
    whole = f"{own[: len(own) - len(own.lstrip())]}{text}{own[len(own.rstrip()) :]}"
    links = answer.alignment
    words = ((), ()) if links is None else (source_words, answer.words)
    for one in _ways(segment):
        written, shown = write_placed(one, whole, *words, links or ())
        if written == spell(segment.pieces) or _is_same(segment, written, shown):
            segment.written = written
            return
    segment.reason = SOURCE


def _ways(segment: Segment) -> Iterator[Segment]:
    """Yield the segment as it is; then with all signs escaped; then also on one line."""
    yield segment
    if segment.syntax.read is None:
        return
    syntax = segment.syntax
    harsh = replace(syntax, escapes={**syntax.escapes, **syntax.all_signs})
    spaces = {
        place: form for place, form in segment.spellings.items() if segment.text[place].isspace()
    }
    if syntax.all_signs:
        yield replace(segment, syntax=harsh, spellings=spaces)
    yield replace(segment, syntax=harsh, spellings={})


def _is_same(segment: Segment, written: str, shown: str) -> bool:
    """Tell whether a written segment reads as its translation, with the codes of its source."""
    if segment.syntax.read is None:
        return True
    again = segment.syntax.read(written)
    if again is None or "".join(again.text.split()) != "".join(shown.split()):
        return False
    return _codes(again) == _codes(segment)


def _codes(segment: Segment) -> tuple[object, ...]:
    """Gather the codes of a segment: its elements, and how often it has each copy and point."""

    def spelled(one: Element) -> str:
        return "".join(f"{spell(one.opening)}\0{one.closing}".split())

    own = [spelled(one) for one in segment.elements.values() if not one.is_copy]
    copies = (spelled(one) for one in segment.elements.values() if one.is_copy)
    points = (spelled(one) for one in segment.points if not spell(one.opening).isspace())
    return set(own) if segment.syntax.reopens else Counter(own), Counter(copies), Counter(points)
