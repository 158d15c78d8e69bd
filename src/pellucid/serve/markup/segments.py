"""A sentence of a document: its text, and the tags in it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias, Union

from pellucid.serve.markup.lexing import Token

MOST_DEPTH = 64
"""Inline elements inside each other; deeper start tags are taken for tags without text."""

REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?)")
_SPECIAL = re.compile(rf"[ \t\n\r\f]+|{REFERENCE.pattern}|[<>&]")

Piece: TypeAlias = Union[str, "Segment"]
"""A part of a document: copied, or translated."""


@dataclass(frozen=True)
class Element:
    """An inline element, or a part of the text that is copied.

    Attributes:
        start: the place of its first character in the text.
        end: the place after its last one.
        opening: its start tag; for a copy everything.
        closing: its end tag.
        is_copy: True if its text is not translated.
        parents: the numbers of the elements around it, the outermost first.
        name: the name of its tag.
    """

    start: int
    end: int
    opening: tuple[Piece, ...]
    closing: str
    is_copy: bool
    parents: tuple[int, ...]
    name: str


@dataclass(frozen=True)
class Point:
    """A part without text: an image, a comment, a button, or a tag without its partner.

    Attributes:
        place: the number of characters before it.
        raw: as it is written.
        parents: as for `Element`.
        is_half: True for a tag without its partner, which must not pass another one.
    """

    place: int
    raw: tuple[Piece, ...]
    parents: tuple[int, ...]
    is_half: bool = False


@dataclass
class Segment:
    """A run of text between two block tags, or an attribute, which is translated as a whole.

    Attributes:
        text: what a reader sees, without tags.
        pieces: the same part of the document, as it is written.
        elements: the inline elements; parents come before their children.
        points: the parts without text, in order.
        spellings: for places in the text, how the document writes this character.
        quote: the sign around an attribute's value; ``=`` if there is none, empty for other text.
        written: the translation with its tags; None before there is one.
    """

    text: str = ""
    pieces: list[Piece] = field(default_factory=list)
    elements: list[Element] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    spellings: dict[int, str] = field(default_factory=dict)
    quote: str = ""
    written: str | None = None

    @property
    def raw(self) -> str:
        """This part of the document, with translations where parts of it have them."""
        return spell(self.pieces)

    @property
    def is_blank(self) -> bool:
        """True if nothing needs to be translated: no letter is outside of copies."""
        rest, place = [], 0
        for one in self.elements:
            if one.is_copy:
                rest.append(self.text[place : one.start])
                place = one.end
        return not any(map(str.isalpha, "".join((*rest, self.text[place:]))))

    @property
    def needs_links(self) -> bool:
        """True if a tag is inside the text, so that its place in the translation must be found."""
        first = len(self.text) - len(self.text.lstrip())
        last = len(self.text.rstrip())
        return any(
            one.is_copy or one.start > first or one.end < last for one in self.elements
        ) or any(first < point.place < last for point in self.points)


def spell(pieces: Iterable[Piece]) -> str:
    """Join parts of a document."""
    return "".join(
        one if isinstance(one, str) else one.raw if one.written is None else one.written
        for one in pieces
    )


def find_segments(pieces: Iterable[Piece]) -> Iterator[Segment]:
    """Find all segments in parts of a document; those inside the tags of others come first."""
    for piece in pieces:
        if isinstance(piece, Segment):
            for one in piece.elements:
                yield from find_segments(one.opening)
            for point in piece.points:
                yield from find_segments(point.raw)
            yield piece


class Maker:
    """Collects the parts of one segment after another."""

    def __init__(self, quote: str = "") -> None:
        self._quote = quote
        self._start()

    def _start(self) -> None:
        self._made = Segment(quote=self._quote)
        self._texts: list[str] = []
        self._length = 0
        # The number of each open element, its name, its start tag, and the points before it.
        self._opened: list[tuple[int, str, Point, int]] = []
        self._num_elements = 0
        self._elements: dict[int, Element] = {}
        self._space = -1
        self.last = ""
        self.has_letters = False

    def write(self, raw: str) -> None:
        """Add text; spaces next to each other are one."""
        self._made.pieces.append(raw)
        place = 0
        while match := _SPECIAL.search(raw, place):
            self._write(raw[place : match.start()])
            form, place = match[0], match.end()
            text = html.unescape(form)
            if text == form and form[0] == "&":  # No name follows the sign.
                form = text = "&"
                place = match.start() + 1
            if not text:
                self._add_point([form])
                self._space = -1
            elif text[0] in " \t\n\r\f":
                self._write_space(form)
            else:
                if len(text) == 1:
                    self._made.spellings[self._length] = form
                self._write(text)
        self._write(raw[place:])

    def _write(self, text: str) -> None:
        if text:
            self._texts.append(text)
            self._length += len(text)
            self.last = text[-1]
            self.has_letters = self.has_letters or any(map(str.isalpha, text))

    def _write_space(self, form: str) -> None:
        spellings, place = self._made.spellings, self._length - 1
        if self.last != " ":
            self._write(" ")
            self._space = len(self._made.pieces)
            spellings[place + 1] = form
        elif self._space == len(self._made.pieces):  # No tag is between.
            spellings[place] += form
        else:
            self._add_point([form])

    def add_copy(self, pieces: list[Piece], text: str, name: str) -> None:
        """Add an element that is copied."""
        text = text[1:] if self.last == " " and text.startswith(" ") else text
        if not text.strip():
            self.add_point(pieces)
            return
        self._made.pieces += pieces
        start = self._length
        self._write(text)
        self._elements[self._num_elements] = Element(
            start, self._length, tuple(pieces), "", True, self._parents(), name
        )
        self._num_elements += 1

    def add_point(self, pieces: list[Piece], *, is_half: bool = False) -> None:
        """Add a part without text."""
        self._made.pieces += pieces
        self._add_point(pieces, is_half=is_half)

    def _add_point(self, pieces: list[Piece], *, is_half: bool = False) -> None:
        self._made.points.append(Point(self._length, tuple(pieces), self._parents(), is_half))

    def add_tag(self, token: Token, pieces: list[Piece]) -> None:
        """Add an inline tag, a comment, or a part without text that begins with this tag."""
        is_open = any(name == token.name for _, name, _, _ in self._opened)
        if token.kind == "start" and len(self._opened) < MOST_DEPTH:
            self._made.pieces += pieces
            half = Point(self._length, tuple(pieces), self._parents(), is_half=True)
            self._opened.append((self._num_elements, token.name, half, len(self._made.points)))
            self._num_elements += 1
        elif token.kind == "end" and is_open:
            self._made.pieces += pieces
            self._close(token)
        else:
            self.add_point(pieces, is_half=token.kind in ("start", "end"))

    def _close(self, token: Token) -> None:
        points = self._made.points
        number, name, half, count = self._opened.pop()
        while name != token.name:  # A start tag without an end tag is a point.
            points.insert(count, half)
            number, name, half, count = self._opened.pop()
        if self._length > half.place:
            self._elements[number] = Element(
                half.place, self._length, half.raw, token.raw, False, half.parents, name
            )
        else:
            inner = [piece for point in points[count:] for piece in point.raw]
            whole = (*half.raw, *inner, token.raw)
            points[count:] = [Point(half.place, whole, half.parents)]

    @property
    def link_start(self) -> int:
        """The place of a link that is open; -1 if none is."""
        return next((half.place for _, name, half, _ in self._opened if name == "a"), -1)

    def take(self) -> Segment:
        """End the segment and return it."""
        segment = self._made
        for _, _, half, count in reversed(self._opened):
            segment.points.insert(count, half)
        segment.text = "".join(self._texts)
        order = {number: place for place, number in enumerate(sorted(self._elements))}

        def renumber(parents: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(order[number] for number in parents if number in order)

        made = map(self._elements.__getitem__, order)
        segment.elements = [replace(one, parents=renumber(one.parents)) for one in made]
        segment.points = [replace(one, parents=renumber(one.parents)) for one in segment.points]
        self._start()
        return segment

    def _parents(self) -> tuple[int, ...]:
        return tuple(number for number, *_ in self._opened)
