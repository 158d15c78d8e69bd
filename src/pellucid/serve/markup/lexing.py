"""HTML as a list of texts and tags that spell the document when they are joined.

Parsers that build a tree write another document than they read: they change capitals and quotes,
add ``html`` and ``body``, and move what is out of place. Here each tag stays as it was written.
Everything is linear in the length of the document, whatever it holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

TokenKind = Literal["text", "start", "end", "void", "other"]

_TAG = re.compile(
    r"""<(?P<end>/?)(?P<name>[a-zA-Z][^\s/>]*+)"""
    r"""(?P<rest>(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+)*+)>"""
)
_NEXT = re.compile(r"<(?=[a-zA-Z!?]|/[a-zA-Z])")
_RAW_NAMES = frozenset(("script", "style", "textarea", "xmp", "iframe", "noembed", "noframes"))
_VOIDS = "area base br col embed hr img input link meta param source track wbr"
_VOID_NAMES = frozenset(_VOIDS.split())


@dataclass(frozen=True)
class Token:
    """A part of a document.

    Attributes:
        kind: ``other`` is a comment, a declaration, or the content of a script.
        raw: as it is written.
        name: of a tag, in lower case.
    """

    kind: TokenKind
    raw: str
    name: str = ""


def read_tokens(html: str) -> Iterator[Token]:
    """Cut a document into texts and tags, as browsers do.

    A tag that never ends is text, and so is everything after it.
    """
    place = 0
    while place < len(html):
        match = _NEXT.search(html, place)
        if match is None:
            yield Token("text", html[place:])
            return
        if match.start() > place:
            yield Token("text", html[place : match.start()])
        place = match.start()
        token = _read_tag(html, place)
        if token is None:
            yield Token("text", html[place:])
            return
        yield token
        place += len(token.raw)
        if token.kind == "start" and token.name in _RAW_NAMES:
            end = re.compile(rf"</{token.name}(?=[\s/>])", re.IGNORECASE).search(html, place)
            stop = len(html) if end is None else end.start()
            if stop > place:
                yield Token("other", html[place:stop])
            place = stop


def _read_tag(html: str, place: int) -> Token | None:
    """Read the tag, comment or declaration at a place; None if it never ends."""
    if html.startswith("<!--", place):
        end = html.find("-->", place + 4)
        return Token("other", html[place:] if end < 0 else html[place : end + 3])
    if html[place + 1] in "!?":
        end = html.find(">", place)
        return Token("other", html[place:] if end < 0 else html[place : end + 1])
    match = _TAG.match(html, place)
    if match is None:
        return None
    name = match["name"].lower()
    if match["end"]:
        return Token("end", match[0], name)
    is_void = name in _VOID_NAMES or match["rest"].endswith("/")
    return Token("void" if is_void else "start", match[0], name)


def match_tags(tokens: list[Token]) -> dict[int, int]:
    """Find the end tag of each start tag: the places of both, for those that have one."""
    opened: dict[str, list[int]] = {}
    pairs = {}
    for place, token in enumerate(tokens):
        if token.kind == "start":
            opened.setdefault(token.name, []).append(place)
        elif token.kind == "end" and opened.get(token.name):
            pairs[opened[token.name].pop()] = place
    return pairs
