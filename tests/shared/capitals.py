"""A translator that writes capitals, for documents in tests."""

from __future__ import annotations

from pellucid.documents.formats import FORMATS
from pellucid.documents.markup.segments import Segment
from pellucid.documents.segment_writing import GivenTranslation, write_segment
from pellucid.documents.units import How, Unit


def to_capitals(segment: Segment) -> str:
    """Write a text in capitals, all but its placeholders."""
    text = segment.text.strip().upper()
    for copied in segment.copies:
        text = text.replace(copied.upper(), copied)
    return text


def translate(
    name: str, document: str, *, target: str = "fr", column: str = "", marked: bool = False
) -> tuple[str, dict[str, str]]:
    """Translate a document from English.

    Returns:
        The document, and the reasons to look at texts by their key.
    """
    how = How("f", ("en", target), column=column)
    parts = list(FORMATS[name].read(document, how))
    units = [one for one in parts if isinstance(one, Unit)]
    for unit in units:
        unit.is_marked = marked
        for segment in unit.segments:
            text = to_capitals(segment)
            words = segment.text.split()
            links = [(k, k) for k in range(len(words))]
            write_segment(segment, [GivenTranslation(text, text.split(), links)], words)
    return "".join(map(str, parts)), {one.key: one.reason for one in units if one.reason}
