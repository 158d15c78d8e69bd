"""HTML as a document: each segment is a unit."""

from __future__ import annotations

from collections.abc import Iterator

from pellucid.documents.markup.reading import read_segments
from pellucid.documents.markup.segments import Segment, spell
from pellucid.documents.units import Source, Unit


def read_html(source: Source) -> Iterator[str | Unit]:
    """Read a page; strings may differ from the page's, since they name the new language."""
    place = 0
    line = 1
    for piece in read_segments(source.text, source.how.languages):
        # Before the unit is handed out: once its labels are translated, it spells something else.
        raw = piece if isinstance(piece, str) else spell(piece.pieces)
        if isinstance(piece, Segment):
            yield Unit(f"line {line}", place, place + len(raw), [piece], line)
        else:
            yield piece
        place = place + len(raw)
        line = line + raw.count("\n")
