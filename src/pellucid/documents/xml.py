"""XML with the places of its parts: checked by expat, cut by one pattern."""

from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from xml.parsers import expat

from pellucid.documents.units import How, Source

_PART = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>"
    r"|<!DOCTYPE(?:[^<>\[\"']|\"[^\"]*+\"|'[^']*+')*+"
    r"(?:\[(?:<!--.*?-->|<\?.*?\?>|\"[^\"]*+\"|'[^']*+'|[^\]\"'])*+\]\s*+)?+>"
    r"|<(?P<end>/?)(?P<name>[^\s<>/!?]++)(?P<rest>(?:[^<>\"']|\"[^\"]*+\"|'[^']*+')*+)>|[^<]++",
    re.DOTALL,
)
_NAME = re.compile(r"<[^\s<>/!?]++")
_ATTRIBUTE = re.compile(r"\s++([^\s=]++)\s*+=\s*+(\"[^\"]*+\"|'[^']*+')")


@dataclass
class Node:
    """An element of a document, or a part without a tag.

    Attributes:
        name: of the tag; empty for text, comments and the like.
        raw: its start tag; the whole of a part without a tag.
        start: the place of its first character.
        inner: the place after its start tag.
        close: the place of its end tag; `inner` if it has none.
        end: the place after its last character.
        nodes: what is in it.
    """

    name: str
    raw: str
    start: int
    inner: int
    close: int = 0
    end: int = 0
    nodes: list[Node] = field(default_factory=list)

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """The values of the attributes."""
        found: dict[str, str] = {}
        match = _NAME.match(self.raw)
        while match and (match := _ATTRIBUTE.match(self.raw, match.end())):
            found[match[1]] = html.unescape(match[2][1:-1])
        return found

    def children(self, name: str) -> list[Node]:
        """List the elements in it that have a name."""
        return [one for one in self.nodes if one.name == name]

    def child(self, name: str) -> Node | None:
        """Return the first of them."""
        return next(iter(self.children(name)), None)

    def walk(self, *names: str) -> Iterator[Node]:
        """Yield the outermost parts with one of some names, in order."""
        waiting = self.nodes[::-1]
        while waiting:
            node = waiting.pop()
            if node.name in names:
                yield node
            else:
                waiting += node.nodes[::-1]


def local(name: str) -> str:
    """Return a name without its namespace."""
    return name.rpartition(":")[2]


def read_xml(source: Source) -> Node:
    """Read a document as a tree whose leaves are all of it.

    Raises:
        DataError: it is not well-formed, declares entities or uses those of other files, or names
            another encoding than UTF-8.
    """
    # Only the check counts here, not the bytes that it hands out.
    deque(_check((source.text,), source.how), maxlen=0)
    return cut_xml(source.text) or Node("", "", 0, 0)


def read_parts(chunks: Iterable[str], how: How, name: str) -> Iterator[tuple[Source, Node]]:
    """Read a large document in parts, which begin where elements of a name do.

    Raises:
        DataError: as for `read_xml`.
    """
    # Bytes, because expat counts places in bytes.
    waiting = bytearray()
    begin = 0
    line = 1
    for data, start in _check(chunks, how, name):
        waiting += data
        # The last part is what is left.
        size = len(waiting) if not data else max(0, start - begin)
        part = waiting[:size].decode()
        del waiting[:size]
        yield Source(part, how, line), _cut(part)[0]
        begin = begin + size
        line = line + part.count("\n")


def cut_xml(text: str) -> Node | None:
    """Cut a document or a part of one into a tree; None if tags are not in pairs."""
    root, is_whole = _cut(text)
    return root if is_whole else None


def _cut(text: str) -> tuple[Node, bool]:
    """Cut a text into a tree, and tell whether its tags are in pairs."""
    root = Node("", "", 0, 0, len(text), len(text))
    opened = [root]
    is_whole = True
    place = 0
    while place < len(text):
        match = _PART.match(text, place)
        if match is None:  # A part that was written, and is no XML.
            return root, False
        place = match.end()
        name = match["name"] or ""
        if match["end"]:
            if opened[-1].raw[1 : len(name) + 1] == name:
                node = opened.pop()
                node.close, node.end = match.span()
            else:
                is_whole = False
            continue
        node = Node(local(name), match[0], match.start(), match.end(), match.end(), match.end())
        opened[-1].nodes.append(node)
        if name and not match["rest"].endswith("/"):
            opened.append(node)
    return root, is_whole and len(opened) == 1


def _check(chunks: Iterable[str], how: How, name: str = "") -> Iterator[tuple[bytes, int]]:
    """Check a document with expat.

    Yields:
        Its bytes, with the place of the last start of an element of a name; at the end none.
    """
    # Whatever the first line names: the text was decoded already.
    parser = expat.ParserCreate("UTF-8")
    start = 0

    def refuse_encoding(_: str, encoding: str | None, __: int) -> None:
        if encoding and encoding.lower() not in ("utf-8", "us-ascii"):
            what = f"The encoding must be UTF-8, but the first line names {encoding}"
            how.refuse(1, what, "Convert the file, and correct the line.")

    def refuse(must: str, name: str, *_: object) -> None:
        line = parser.CurrentLineNumber
        how.refuse(line, f"XML must not {must} {name}", "Replace the entity by its text.")

    def note(tag: str, _: object) -> None:
        nonlocal start
        if local(tag) == name:
            start = parser.CurrentByteIndex

    parser.XmlDeclHandler = refuse_encoding
    # Entities can grow without bound, or read other files.
    parser.EntityDeclHandler = partial(refuse, "declare entities, but declares")
    parser.SkippedEntityHandler = partial(refuse, "use entities of other files, but uses")
    parser.StartElementHandler = note
    try:
        for data in (one.encode("utf-8", "surrogatepass") for one in chunks if one):
            parser.Parse(data, False)
            yield data, start
        parser.Parse(b"", True)
    except expat.ExpatError as error:
        what = f"XML must be well-formed, but is not: {expat.ErrorString(error.code)}"
        how.refuse(error.lineno, what, "Correct it.")
    yield b"", start
