"""Texts with their translations, out of the documents that hold both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from pellucid.documents.formats import Format
from pellucid.documents.markup.segments import Segment
from pellucid.documents.units import How


class Entry(NamedTuple):
    """A text and its translation, without tags and with placeholders.

    Attributes:
        source: the text, one line.
        target: its translation, one line.
        line: the number of its line, from 1.
        reason: why it is not one to learn from, in a word; empty if it is.
    """

    source: str
    target: str
    line: int
    reason: str = ""


def read_entries(form: Format, chunks: Iterable[str], how: How) -> Iterator[Entry]:
    """Read a document's texts with their translations.

    Texts of several lines are entries line by line if both sides have equally many.

    Raises:
        DataError: it is not of its format, or of other languages.
    """
    for unit in form.read(chunks, replace(how, has_pairs=True, has_all=True)):
        if isinstance(unit, str):
            continue
        sources, targets = _texts(unit.pieces), _texts(unit.old)
        if len(sources) != len(targets):
            sources, targets = [" ".join(sources)], [" ".join(targets)]
        reason = unit.state or ("" if any(targets) else "untranslated")
        if reason or all(one.is_blank for one in unit.pieces if isinstance(one, Segment)):
            yield Entry("", "", unit.line, reason or "without words")
            continue
        for source, target in zip(sources, targets, strict=True):
            yield Entry(source, target, unit.line)


def _texts(pieces: Sequence[object]) -> list[str]:
    found = (one.text.strip() for one in pieces if isinstance(one, Segment))
    return [one for one in found if one]
