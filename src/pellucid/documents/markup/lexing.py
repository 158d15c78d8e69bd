"""HTML as a list of texts and tags that spell the document when they are joined.

Parsers that build a tree write another document than they read: they change capitals and quotes,
add ``html`` and ``body``, and move what is out of place. Here each tag stays as it was written.
Everything is linear in the length of the document, whatever it holds.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["text", "start", "end", "void", "other", "copy"]

_TAG = re.compile(
    r"""<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)"""
    r"""(?P<rest>(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+)>"""
)
_OTHER = re.compile(r"<!--(?:-?>|.*?--!?>|.*)|<\?(?:php\b|=).*?(?:\?>|\Z)|<[!?][^>]*>?", re.DOTALL)
"""A comment, a part of a program in PHP, or a declaration."""
_NEXT = re.compile(r"<(?=[a-zA-Z!?]|/[a-zA-Z])")
_ATTRIBUTE = re.compile(
    # Never from within spaces: starting at each of many would take quadratic time.
    r"""(?<!\s)\s*+([^\s/>=]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|(?:[^\s>/]|/(?!>))++))?+"""
)
_RAW_NAMES = frozenset(("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes"))
_NUMBER = re.compile(r"&#(?:0++(?=[0-9]))?+([0-9]{1,8})[0-9]*+")
"""A reference by a number; one of more than eight digits is of no character."""
_TITLE = "title"
"""An element whose content is text, whatever signs it has."""
_VOIDS = "area base br col embed hr img input link meta param source track wbr"
_VOID_NAMES = frozenset(_VOIDS.split())
RAISED = frozenset(("sup", "sub"))
_RUBY_NAMES = frozenset(("rb", "rt", "rp", "rtc"))


@dataclass(frozen=True)
class Token:
    """A part of a document.

    Attributes:
        kind: ``other`` is a comment, a declaration, the content of a script, or a tag that is cut;
            ``copy`` is a message with tags in it.
        raw: as it is written.
        name: of a tag, in lower case.
    """

    kind: TokenKind
    raw: str
    name: str = ""

    def attributes(self) -> dict[str, re.Match[str]]:
        """Find the attributes of a tag by name; group 2 is the value as it is written."""
        found: dict[str, re.Match[str]] = {}
        for match in _ATTRIBUTE.finditer(self.raw, len(self.name) + 1):
            # Of equal attributes the first counts, as in browsers.
            found.setdefault(match[1].lower(), match)
        return found


def unescape(text: str) -> str:
    """Read references; Python refuses numbers of more than 4,300 digits."""
    return html.unescape(_NUMBER.sub(r"&#\1", text))


def cut_html(document: str) -> Iterator[Token]:
    """Cut a document into texts and tags, as browsers do.

    A tag that never ends is not text, nor is anything after it.
    """
    place = 0
    while place < len(document):
        match = _NEXT.search(document, place)
        stop = len(document) if match is None else match.start()
        if stop > place:
            yield Token("text", document[place:stop])
        if match is None:
            return
        token = _read_tag(document, stop)
        yield token
        place = stop + len(token.raw)
        # Only its own end tag ends such an element, whatever its text looks like.
        if token.kind == "start" and token.name in (*_RAW_NAMES, _TITLE):
            end = re.compile(rf"</{token.name}(?=[\s/>])", re.IGNORECASE).search(document, place)
            stop = len(document) if end is None else end.start()
            if stop > place:
                yield Token("text" if token.name == _TITLE else "other", document[place:stop])
            place = stop


def _read_tag(document: str, place: int) -> Token:
    """Read the tag, comment or declaration at a place; if it never ends, everything after it."""
    other = _OTHER.match(document, place)
    match = _TAG.match(document, place)
    if other or match is None:
        return Token("other", other[0] if other else document[place:])
    name = match["name"].lower()
    if match["end"]:
        return Token("end", match[0], name)
    is_void = name in _VOID_NAMES or match["rest"].endswith("/")
    return Token("void" if is_void else "start", match[0], name)


def match_tags(tokens: list[Token]) -> dict[int, int]:
    """Find the last token of each element: the places of it and of the start tag.

    Readings of ruby text may leave out their end tags; any other element without one is not listed.
    """
    # A stack for each name: also elements that cross, as browsers allow, find their ends.
    opened: dict[str, list[int]] = {}
    pairs: dict[int, int] = {}
    reading = -1
    for place, token in enumerate(tokens):
        is_start = token.kind == "start"
        ends_reading = token.name in _RUBY_NAMES if is_start else token.name == "ruby"
        if reading >= 0 and ends_reading:
            pairs[opened[tokens[reading].name].pop()] = place - 1
        if is_start:
            opened.setdefault(token.name, []).append(place)
        elif token.kind == "end" and opened.get(token.name):
            pairs[opened[token.name].pop()] = place
        if ends_reading or (token.kind == "end" and token.name in _RUBY_NAMES):
            reading = place if is_start and token.name != "rb" else -1
    return pairs
