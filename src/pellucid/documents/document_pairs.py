"""Texts with their translations, out of the documents that hold both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from pellucid.documents.formats import Format
from pellucid.documents.markup.segments import Segment
from pellucid.documents.units import How


def read_document_pairs(
    form: Format, chunks: Iterable[str], how: How
) -> Iterator[tuple[int, str, Sequence[tuple[str, str]]]]:
    """Read a document's texts with their translations, without tags and with placeholders.

    Texts of several lines are pairs line by line if both sides have equally many.

    Yields:
        The number of a unit's line, from 1, and its pairs; if they are not to learn from, the
        reason in a word or two, and no pairs.

    Raises:
        DataError: it is not of its format, or of other languages.
    """
    for unit in form.read(chunks, replace(how, has_pairs=True, has_all=True)):
        if isinstance(unit, str):
            continue
        sources = _texts(unit.pieces)
        targets = _texts(unit.old)
        if len(sources) != len(targets):
            # The lines do not belong to each other one by one; the texts do as a whole.
            sources = [" ".join(sources)]
            targets = [" ".join(targets)]
        reason = unit.state or ("" if any(targets) else "untranslated")
        if not reason and all(one.is_blank for one in unit.pieces if isinstance(one, Segment)):
            reason = "without words"
        yield unit.line, reason, [] if reason else list(zip(sources, targets, strict=True))


def _texts(pieces: Sequence[object]) -> list[str]:
    found = (one.text.strip() for one in pieces if isinstance(one, Segment))
    return [one for one in found if one]
