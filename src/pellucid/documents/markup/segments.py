"""A sentence of a document: its text, and the tags in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TypeAlias, Union

from pellucid.documents.markup.lexing import Token, unescape

MOST_DEPTH = 64
"""Inline elements inside each other; deeper start tags are taken for tags without text."""

REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[^\t\n\f <&#;]{1,32};?)")
_SPACE = re.compile("[ \\t\\n\\r\\f]+")
_SPECIAL = re.compile(rf"[ \t\n\r\f]+|{REFERENCE.pattern}|[<>&]")

Piece: TypeAlias = Union[str, "Segment"]
"""A part of a document: copied, or translated."""


@dataclass(frozen=True)
class Syntax:
    """The way in which a format writes the characters of a text.

    Attributes:
        escapes: the forms of characters that are not written as they are.
        outside_ascii: writes a character outside ASCII; None writes it as it is.
        all_signs: the forms of signs that may become markup, for a second try.
        has_markup: True if tags and references within its texts are codes. HTML has read its own.
        reopens: True if an element may be closed and opened again.
        finish: changes a segment that was written.
        read: reads a written segment again; None trusts what is written.
    """

    escapes: Mapping[str, str]
    outside_ascii: Callable[[str], str] | None = None
    all_signs: Mapping[str, str] = field(default_factory=dict)
    has_markup: bool = True
    reopens: bool = True
    finish: Callable[[Segment, str], str] | None = None
    read: Callable[[str], Segment | None] | None = None

    def escape(self, character: str) -> str:
        """Return the usual form of a character."""
        if self.outside_ascii and not character.isascii():
            return self.outside_ascii(character)
        return self.escapes.get(character, character)


MARKUP = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
"""The forms of signs in HTML and XML."""

_BARE = re.compile(r"""[^\s"'=<>`/]+""")


def _quote(_: Segment, written: str) -> str:
    # Without quotes a value ends at its first space, which a translation may have.
    return written if _BARE.fullmatch(written) else f'"{written}"'


HTML = Syntax(MARKUP, has_markup=False)
QUOTED: Mapping[str, Syntax] = {
    "'": replace(HTML, escapes=MARKUP | {"'": "&#39;"}),
    '"': replace(HTML, escapes=MARKUP | {'"': "&quot;"}),
    "=": replace(HTML, escapes=MARKUP | {'"': "&quot;"}, finish=_quote),
}
"""The values of attributes, by the sign around them; ``=`` stands for a value without one."""

BLOCKS = ("{", "<", "[")
"""What the names of blocks of templates start with."""

MIDDLE = "{middle}"
"""The name of a tag between the branches of a block, and of one that has none."""

ACCELERATOR = "&"
"""The name of a point that must stand before a letter."""


@dataclass
class Spelled:
    """A text, and how its document writes it.

    Attributes:
        text: the text.
        forms: the forms of characters by their places; others are written as they are.
    """

    text: str = ""
    forms: dict[int, str] = field(default_factory=dict)

    def raw(self, start: int = 0, end: int | None = None) -> str:
        """Return a part of the text as it is written."""
        stop = len(self.text) if end is None else end
        if not self.forms:
            return self.text[start:stop]
        return "".join(self.forms.get(k, self.text[k]) for k in range(start, stop))


@dataclass(frozen=True)
class Element:
    """An inline element, a part of the text that is copied, or a part without text.

    Parts without text are images, comments, buttons, and tags without their partners.

    Attributes:
        start: the place of its first character in the text.
        end: the place after its last one; the same for a part without text.
        opening: its start tag; for a copy or a part without text everything.
        parents: the numbers of the elements around it, the outermost first.
        closing: its end tag.
        name: the name of its tag.
        is_copy: True if its text is not translated.
        is_half: True for a tag without its partner, which must not pass another one.
    """

    start: int
    end: int
    opening: tuple[Piece, ...]
    parents: tuple[int, ...]
    closing: str = ""
    name: str = ""
    is_copy: bool = False
    is_half: bool = False

    @property
    def is_block(self) -> bool:
        """True for a block of a template, or a tag of one, which must be written once."""
        return self.name.startswith(BLOCKS)


@dataclass
class Segment:
    """A run of text between two block tags, or an attribute, which is translated as a whole.

    Attributes:
        text: what a reader sees, without tags.
        is_blank: True if nothing needs to be translated: no letter is outside of copies.
        pieces: the same part of the document, as it is written.
        elements: the inline elements and copies by number; parents come before their children.
        points: the parts without text, in order.
        blocks: the tags of templates, in order, each with its place in the text.
        spellings: for places in the text, how the document writes this character.
        syntax: how the format writes characters.
        written: the translation with its tags; None before there is one, or if the source stays.
        reason: why the translation should be looked at; empty if its codes are surely right.
        doubts: each reason to look at it, the first one first; a report lists them.
        match: the similarity of the text whose translation a memory gave; 0 if it gave none.
    """

    text: str = ""
    is_blank: bool = True
    pieces: list[Piece] = field(default_factory=list)
    elements: dict[int, Element] = field(default_factory=dict)
    points: list[Element] = field(default_factory=list)
    blocks: list[tuple[str, int]] = field(default_factory=list)
    spellings: dict[int, str] = field(default_factory=dict)
    syntax: Syntax = HTML
    written: str | None = None
    reason: str = ""
    doubts: list[str] = field(default_factory=list)
    match: float = 0.0

    def __str__(self) -> str:
        """Return the translation; before there is one, this part of the document as it is."""
        return spell(self.pieces) if self.written is None else self.written

    @property
    def has_tags(self) -> bool:
        """True if a tag is inside the text."""
        first = len(self.text) - len(self.text.lstrip())
        last = len(self.text.rstrip())
        own = (one for one in self.elements.values() if not one.is_copy)
        inner = (point for point in self.points if point.name != ACCELERATOR)
        return any(one.start > first or one.end < last for one in own) or any(
            first < point.start < last for point in inner
        )

    @property
    def copies(self) -> list[str]:
        """The texts of its copies, in order."""
        own = (one for one in self.elements.values() if one.is_copy)
        return [self.text[one.start : one.end].strip() for one in own]

    @property
    def is_wide(self) -> bool:
        """True if several translations are searched, of which one must keep copies or blocks."""
        return bool(self.copies or self.blocks)

    @property
    def key(self) -> tuple[object, ...]:
        """The text to translate and the places of its copies: what a translation depends on."""
        own = (one for one in self.elements.values() if one.is_copy)
        return self.text.strip(), *((one.start, one.end) for one in own)


def spell(pieces: Iterable[Piece]) -> str:
    """Join parts of a document, with translations for those that have one."""
    return "".join(map(str, pieces))


def find_segments(pieces: Iterable[Piece]) -> Iterator[Segment]:
    """Find all segments in parts of a document; those inside the tags of others come first."""
    for piece in pieces:
        if isinstance(piece, Segment):
            # A label in a tag must have its translation before the tag is written.
            yield from find_segments(piece.pieces)
            yield piece


class Maker:
    """Collects the parts of a segment.

    Args:
        syntax: as for a `Segment`.

    Attributes:
        last: the last character of the text so far.
        has_letters: True if there are letters in it.
    """

    def __init__(self, syntax: Syntax = HTML) -> None:
        self._made = Segment(syntax=syntax)
        self._texts: list[str] = []
        self._length = 0
        self._numbers = count()
        # Open elements: the number, the start tag as if it had no end tag, and the points before.
        self._opened: list[tuple[int, Element, int]] = []
        self._space = -1
        self._space_forms: list[str] = []
        self._space_place = -1
        self._is_border = False
        self.last = ""
        self.has_letters = False

    def write(self, raw: str) -> None:
        """Add text; spaces next to each other are one."""
        self._part(raw[:1])
        self._made.pieces.append(raw)
        place = 0
        while match := _SPECIAL.search(raw, place):
            self._write(raw[place : match.start()])
            form = match[0]
            place = match.end()
            text = unescape(form)
            if text == form and form[0] == "&":  # No name follows the sign.
                form = text = "&"
                place = match.start() + 1
            # A reference to a character that HTML forbids shows nothing.
            if not text:
                self._made.points.append(self._element([form]))
                self._space = -1
            elif text[0] in " \t\n\r\f":
                self._write_space(form)
            else:
                # Some names stand for two characters, neither of which has a name by itself.
                if len(text) == 1:
                    self._made.spellings[self._length] = form
                self._write(text)
        self._write(raw[place:])

    def add(self, spelled: Spelled, start: int, end: int) -> None:
        """Add a part of a text with the forms of its characters."""
        if start < end:
            self._part(spelled.text[start])
            self._made.pieces.append(spelled.raw(start, end))
        place = start
        for match in _SPACE.finditer(spelled.text, start, end):
            self._add(spelled, place, match.start())
            self._write_space(spelled.raw(*match.span()))
            place = match.end()
        self._add(spelled, place, end)

    def _part(self, following: str) -> None:
        """Put a space between words that only tags of a template part."""
        if self._is_border and self.last.isalnum() and following.isalnum():
            self._write_space(" ")
        self._is_border &= not following

    def add_space(self) -> None:
        """Add a space that the document has not."""
        if self.last != " ":
            self._write_space(" ")

    def _add(self, spelled: Spelled, start: int, end: int) -> None:
        text = spelled.text[start:end]
        forms = spelled.forms
        syntax = self._made.syntax
        for k, character in enumerate(text, start=start):
            if k in forms or syntax.escape(character) != character:
                self._made.spellings[self._length + k - start] = forms.get(k, character)
        self._write(text)

    def _write(self, text: str, *, is_copy: bool = False) -> None:
        if text:
            self._texts.append(text)
            self._length += len(text)
            self.last = text[-1]
            if any(map(str.isalpha, text)):
                self.has_letters = True
                self._made.is_blank &= is_copy

    def _write_space(self, form: str) -> None:
        spellings = self._made.spellings
        place = self._length - 1
        if self.last != " ":
            self._spell_space()
            self._write(" ")
            self._space = len(self._made.pieces)
            self._space_forms = [form]
            spellings[place + 1] = form
        elif self._space == len(self._made.pieces):  # No tag is between.
            self._space_forms.append(form)
            self._space_place = place
        else:
            self._made.points.append(self._element([form]))

    def _spell_space(self) -> None:
        """Join the forms of the last space, once, for the time to be linear."""
        if len(self._space_forms) > 1:
            self._made.spellings[self._space_place] = "".join(self._space_forms)
        self._space_forms = []

    def add_copy(self, pieces: list[Piece], text: str, name: str) -> None:
        """Add an element that is copied."""
        self._made.pieces += pieces
        text = text[1:] if self.last == " " and text.startswith(" ") else text
        if text.strip():
            copy = self._element(pieces, name)
            self._write(text, is_copy=True)
            copy = replace(copy, end=self._length, is_copy=True)
            self._made.elements[next(self._numbers)] = copy
        else:
            self._made.points.append(self._element(pieces))

    def _element(
        self, pieces: Sequence[Piece], name: str = "", *, is_half: bool = False
    ) -> Element:
        """Make an element that begins, and may end, at the end of the text so far."""
        parents = tuple([number for number, _, _ in self._opened])
        place = self._length
        return Element(place, place, tuple(pieces), parents, name=name, is_half=is_half)

    def add_tag(self, token: Token, pieces: list[Piece]) -> None:
        """Add an inline tag, a comment, or a part without text that begins with this tag."""
        self._made.pieces += pieces
        if token.name.startswith(BLOCKS):
            before = self._made.blocks[-1:]
            # Between two branches, or two blocks that touch, words end.
            self._is_border |= token.name == MIDDLE
            self._is_border |= bool(before) and before[0][1] == self._length
            self._made.blocks.append((spell(pieces), self._length))
        found = self._element(pieces, token.name, is_half=token.kind in ("start", "end"))
        if token.kind == "start" and len(self._opened) < MOST_DEPTH:
            self._opened.append((next(self._numbers), found, len(self._made.points)))
        elif token.kind == "end" and any(one.name == token.name for _, one, _ in self._opened):
            self._close(token)
        else:
            self._made.points.append(found)

    def _close(self, token: Token) -> None:
        points = self._made.points
        number, half, before = self._opened.pop()
        while half.name != token.name:  # A start tag without an end tag is a point.
            points.insert(before, half)
            number, half, before = self._opened.pop()
        whole = replace(half, end=self._length, closing=token.raw, is_half=False)
        if whole.start < whole.end:
            self._made.elements[number] = whole
        elif whole.is_block:
            points.insert(before, half)
            points.append(self._element([token.raw], token.name, is_half=True))
        else:
            inner = [piece for point in points[before:] for piece in point.opening]
            opening = (*half.opening, *inner, token.raw)
            points[before:] = [replace(whole, opening=opening, closing="")]

    @property
    def is_open(self) -> bool:
        """True if an element has begun and not ended."""
        return bool(self._opened)

    @property
    def link_start(self) -> int:
        """The place of a link that is open; -1 if none is."""
        return next((half.start for _, half, _ in self._opened if half.name == "a"), -1)

    def take(self) -> Segment:
        """End the segment and return it."""
        self._spell_space()
        made = self._made
        for _, half, before in reversed(self._opened):
            made.points.insert(before, half)
        made.text = "".join(self._texts)
        known = made.elements

        # A start tag without an end tag has become a point, which is around nothing.
        def checked(one: Element) -> Element:
            return replace(one, parents=tuple(filter(known.__contains__, one.parents)))

        # By number, as a parent ends after its children but must come before them.
        made.elements = {number: checked(one) for number, one in sorted(known.items())}
        made.points = [checked(point) for point in made.points]
        return made
