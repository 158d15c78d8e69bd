"""The content of a block of Markdown with its places, and the lines in it that are copied."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pellucid.documents.markup.markdown_lines import COPIED_LINE, TITLES, labels_in

_DEFINITION = re.compile(r"[ \t]*:[ \t]+(?=\S)")
"""The mark before what a term means, as PHP Markdown Extra and Pandoc have it."""


@dataclass(frozen=True)
class PlacedText:
    """The content of a block, and the place in the document of each of its characters."""

    content: str
    document: str
    places: Sequence[int]

    def raw(self, start: int, end: int) -> str:
        """Return a part as the document writes it."""
        return self.document[self.places[start] : self.places[end]]

    def part(self, start: int, end: int) -> PlacedText:
        """Return a part of the content."""
        return PlacedText(self.content[start:end], self.document, self.places[start : end + 1])


def cut_lines(text: PlacedText) -> Iterator[PlacedText]:
    """Cut a paragraph at lines that are copied; yield also the titles in these.

    Terms and their definitions are separate texts.
    """
    start = 0
    place = 0
    lines = text.content.splitlines(keepends=True)
    meanings = [number for number, line in enumerate(lines) if number and _DEFINITION.match(line)]
    for number, line in enumerate(lines):
        end = place + len(line)
        mark = _DEFINITION.match(line) if number in meanings else None
        if mark is not None or (meanings and number < meanings[0]):
            if text.content[start:place].strip():
                yield text.part(start, place - 1)
            start = place + (mark.end() if mark else 0)
        if (match := COPIED_LINE.fullmatch(line)) is not None:
            if text.content[start:place].strip():
                yield text.part(start, place - 1)
            spans = [match.span(name) for name in TITLES if match[name]]
            spans += labels_in(line) if "{{" in line else []
            for first, last in spans:
                yield text.part(place + first, place + last)
            start = end
        place = end
    if start < place:
        yield text.part(start, place)
