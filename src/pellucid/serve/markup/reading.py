"""From a document to the sentences in it: what is copied, and where the inline tags are."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field, replace

from pellucid.serve.markup.lexing import Token, match_tags, read_tokens

_NAMES = (
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark nobr q rb rp "
    "rt ruby s samp small span strike strong sub sup time tt u var img wbr"
)
_INLINE = frozenset(_NAMES.split())
_COPIED_NAMES = "code kbd samp svg math script style textarea xmp iframe"
_COPIED = frozenset(_COPIED_NAMES.split())
_NOT_TRANSLATED = re.compile(
    r"""\stranslate\s*=\s*(?:"no"|'no'|no(?=[\s/>]))|\sclass\s*=\s*(?:"[^"]*\bnotranslate\b[^"]*"|"""
    r"""'[^']*\bnotranslate\b[^']*'|notranslate(?=[\s/>]))""",
    re.IGNORECASE,
)
MOST_DEPTH = 64
"""Inline elements inside each other; deeper start tags are taken for tags without text."""

_SPACES = re.compile(r"[ \t\n\r\f]+")


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
    """

    start: int
    end: int
    opening: str
    closing: str
    is_copy: bool
    parents: tuple[int, ...]


@dataclass(frozen=True)
class Point:
    """A tag without text: an image, a comment, or a tag without its partner.

    Attributes:
        place: the number of characters before it.
        raw: as it is written.
        parents: as for `Element`.
    """

    place: int
    raw: str
    parents: tuple[int, ...]


@dataclass
class Segment:
    """A run of text between two block tags, which is translated as a whole.

    Attributes:
        text: what a reader sees, without tags.
        raw: the same part of the document, as it is written.
        elements: the inline elements; parents come before their children.
        points: the tags without text, in order.
    """

    text: str = ""
    raw: str = ""
    elements: list[Element] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)

    @property
    def is_blank(self) -> bool:
        """True if nothing needs to be translated."""
        copied = sorted((one.start, one.end) for one in self.elements if one.is_copy)
        rest, place = [], 0
        for start, end in copied:
            rest.append(self.text[place:start])
            place = max(place, end)
        return not any(map(str.isalnum, "".join((*rest, self.text[place:]))))

    @property
    def needs_links(self) -> bool:
        """True if a tag is inside the text, so that its place in the translation must be found."""
        first = len(self.text) - len(self.text.lstrip())
        last = len(self.text.rstrip())
        return any(
            one.is_copy or one.start > first or one.end < last for one in self.elements
        ) or any(first < point.place < last for point in self.points)


def read_segments(document: str) -> list[str | Segment]:
    """Cut a document into what is copied and what is translated, in order.

    Block tags and ``<br>`` end a segment. ``code``, ``kbd``, ``samp`` and elements with
    ``translate="no"`` are copied.
    """
    tokens = list(read_tokens(document))
    pairs = match_tags(tokens)
    found: list[str | Segment] = []
    maker = _Maker()
    place, num_pre = 0, 0
    while place < len(tokens):
        token = tokens[place]
        stop = place
        if token.kind == "start" and _is_copied(token) and place in pairs:
            stop = pairs[place]
        raw = "".join(one.raw for one in tokens[place : stop + 1])
        if stop > place and token.name in _INLINE:
            maker.copy(raw, _text_of(tokens[place : stop + 1]))
        elif stop > place or (token.name and token.name not in _INLINE):
            found += [maker.take(), raw]
            if token.name == "pre":
                num_pre = max(0, num_pre + (1 if token.kind == "start" else -1))
        elif token.kind == "text" and num_pre:
            for number, line in enumerate(token.raw.split("\n")):
                if number:
                    found += [maker.take(), "\n"]
                maker.write(line)
        elif token.kind == "text":
            maker.write(token.raw)
        else:
            maker.tag(token)
        place = stop + 1
    found.append(maker.take())
    return found


def visible_text(document: str) -> str:
    """Return a document's text without tags, scripts and comments."""
    return _text_of(list(read_tokens(document)))


def _text_of(tokens: list[Token]) -> str:
    parts = [
        html.unescape(token.raw)
        if token.kind == "text"
        else (" " if token.name and token.name not in _INLINE else "")
        for token in tokens
    ]
    return _SPACES.sub(" ", "".join(parts))


def _is_copied(token: Token) -> bool:
    return token.name in _COPIED or _NOT_TRANSLATED.search(token.raw) is not None


class _Maker:
    """Collects the parts of one segment after another."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._texts: list[str] = []
        self._raw: list[str] = []
        self._length = 0
        self._ends_in_space = False
        self._opened: list[tuple[int, Token, int]] = []
        self._num_elements = 0
        self._made: dict[int, Element] = {}
        self._points: list[Point] = []

    def write(self, raw: str) -> None:
        """Add text; a space next to a space is one."""
        self._raw.append(raw)
        self._write(html.unescape(raw))

    def copy(self, raw: str, text: str) -> None:
        """Add an element that is copied."""
        start = self._length
        self._raw.append(raw)
        self._write(text)
        self._made[self._num_elements] = Element(
            start, self._length, raw, "", True, self._parents()
        )
        self._num_elements += 1

    def tag(self, token: Token) -> None:
        """Add an inline tag, a comment, or a void element."""
        place = self._length
        self._raw.append(token.raw)
        if token.kind == "start" and len(self._opened) < MOST_DEPTH:
            self._opened.append((self._num_elements, token, place))
            self._num_elements += 1
            return
        if token.kind == "end" and any(one.name == token.name for _, one, _ in self._opened):
            while True:
                number, opening, start = self._opened.pop()
                parents = self._parents()
                if opening.name == token.name:
                    break
                # A start tag without an end tag counts as a tag without text.
                self._points.append(Point(start, opening.raw, parents))
            self._made[number] = Element(start, place, opening.raw, token.raw, False, parents)
            return
        self._points.append(Point(place, token.raw, self._parents()))

    def take(self) -> Segment:
        """End the segment and return it."""
        while self._opened:
            _, opening, start = self._opened.pop()
            self._points.append(Point(start, opening.raw, self._parents()))
        segment = Segment("".join(self._texts), "".join(self._raw))
        order = {number: place for place, number in enumerate(sorted(self._made))}

        def renumber(parents: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(order[number] for number in parents if number in order)

        for number in sorted(self._made):
            one = self._made[number]
            segment.elements.append(replace(one, parents=renumber(one.parents)))
        points = [replace(one, parents=renumber(one.parents)) for one in self._points]
        segment.points = sorted(points, key=lambda point: point.place)
        self._start()
        return segment

    def _write(self, text: str) -> None:
        # Line breaks would split the sentence: entities can spell them.
        text = _SPACES.sub(" ", text)
        if self._ends_in_space and text.startswith(" "):
            text = text[1:]
        if text:
            self._texts.append(text)
            self._length += len(text)
            self._ends_in_space = text.endswith(" ")

    def _parents(self) -> tuple[int, ...]:
        return tuple(number for number, _, _ in self._opened)
