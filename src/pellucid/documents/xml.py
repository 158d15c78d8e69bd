"""XML with the places of its parts: checked by expat, cut by one pattern."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

from pellucid.documents.units import Source

_PART = re.compile(
    r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|<!DOCTYPE[^<>\[]*(?:\[.*?\]\s*)?>"
    r"|<(?P<end>/?)(?P<name>[^\s<>/!?]+)(?P<rest>(?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>|[^<]+",
    re.DOTALL,
)
_ATTRIBUTE = re.compile(r"([^\s=]+)\s*=\s*(\"[^\"]*\"|'[^']*')")
_UNKNOWN = re.compile(r"&(?!#|amp;|lt;|gt;|quot;|apos;)\w+;")


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

    @property
    def attributes(self) -> Mapping[str, str]:
        """The values of the attributes."""
        found = _ATTRIBUTE.finditer(self.raw)
        return {one[1]: html.unescape(one[2][1:-1]) for one in found}

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
    _check(source)
    root = cut_xml(source.text)
    if root is None or "<!DOCTYPE" not in source.text:
        return root or Node("", "", 0, 0)
    for node in root.walk(""):
        unknown = None if node.raw.startswith("<") else _UNKNOWN.search(node.raw)
        if unknown:
            what = f"XML must not use entities of other files, but uses {unknown[0]}"
            source.refuse(node.start + unknown.start(), what, "Replace the entity by its text.")
    return root


def cut_xml(text: str) -> Node | None:
    """Cut a document or a part of one into a tree; None if tags are not in pairs."""
    root = Node("", "", 0, 0, len(text), len(text))
    opened = [root]
    for match in _PART.finditer(text):
        name = match["name"] or ""
        if match["end"]:
            node = opened.pop()
            if not opened or node.raw[1 : len(name) + 1] != name:
                return None
            node.close, node.end = match.span()
            continue
        node = Node(local(name), match[0], match.start(), match.end(), match.end(), match.end())
        opened[-1].nodes.append(node)
        if name and not match["rest"].endswith("/"):
            opened.append(node)
    return root if len(opened) == 1 else None


def _check(source: Source) -> None:
    text = source.text
    declared = re.match(r"<\?xml[^>]*encoding\s*=\s*[\"']([\w.-]+)[\"']", text)
    if declared and declared[1].lower() not in ("utf-8", "us-ascii"):
        what = f"The encoding must be UTF-8, but the first line names {declared[1]}"
        source.refuse(0, what, "Convert the file, and correct the line.")
    parser = expat.ParserCreate("UTF-8")

    def refuse_entity(name: str, *_: object) -> None:
        what = f"XML must not declare entities, but declares {name!r}"
        line = parser.CurrentLineNumber
        source.refuse(_place_of(text, line), what, "Replace the entity by its text.")

    parser.EntityDeclHandler = refuse_entity
    try:
        parser.Parse(text.encode("utf-8", "surrogatepass"), True)
    except expat.ExpatError as error:
        what = f"XML must be well-formed, but is not: {expat.ErrorString(error.code)}"
        source.refuse(_place_of(text, error.lineno), what, "Correct it.")


def _place_of(text: str, line: int) -> int:
    place = 0
    for _ in range(line - 1):
        place = text.find("\n", place) + 1
    return place
