"""Paragraphs of office files and books: runs of text that are formatted alike, as one text.

Office programs cut a sentence into runs, each with its formatting and none inside another. Here the
most frequent formatting of a sentence is its plain text. A run with another one is an element,
whose tags close the plain run and open it again, so that tags are placed as in HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pellucid.documents.escapes import REFERENCES, Strings
from pellucid.documents.markup.lexing import unescape
from pellucid.documents.markup.segments import MARKUP, MOST_DEPTH, Piece, Spelled
from pellucid.documents.office.runs import Item, Level, Tags, make_runs
from pellucid.documents.office.zip_files import EDGE
from pellucid.documents.units import Source, Unit
from pellucid.documents.web import read_html
from pellucid.documents.xml import Node, read_xml
from pellucid.languages.codes import are_same_language, read_tag


@dataclass(frozen=True)
class _Kind:
    """The names of elements in a kind of XML, without their namespaces.

    Attributes:
        paragraphs: hold a text.
        texts: only text in these counts; without one all text in a paragraph does.
        runs: hold texts and begin with their formatting.
        around: may stand around a part of a sentence.
        fences: as these, but no sentence goes over their ends.
        breaks: end a sentence.
        spaces: are a space.
        ignored: need not stay if the text changes.
        shown: are computed by the program; the model sees what they show.
        skipped: elements that are copied, if their start tag has this.
    """

    paragraphs: str
    texts: str = ""
    runs: str = ""
    around: str = ""
    fences: str = ""
    breaks: str = ""
    spaces: str = ""
    ignored: str = ""
    shown: str = ""
    skipped: Mapping[str, str] = field(default_factory=dict)

    def has(self, role: str, name: str) -> bool:
        """Tell whether an element plays a role."""
        return name in getattr(self, role).split()


_OFFICE_OPEN = _Kind(
    paragraphs="p si is",
    texts="t",
    runs="r",
    around="hyperlink ins moveTo smartTag customXml dir bdo",
    fences="sdt sdtContent",
    breaks="br cr tab ptab pPr",
    ignored="proofErr lastRenderedPageBreak",
    shown="fld fldSimple",
)
_OPEN_DOCUMENT = _Kind(
    paragraphs="p h",
    around="span a",
    breaks="tab line-break",
    spaces="s",
    ignored="soft-page-break",
    shown="page-number page-count date time sequence chapter bookmark-ref reference-ref "
    "note-ref variable-get user-field-get title author-name file-name",
    # Comments and what was deleted; cells whose text is computed from a number or a formula.
    skipped={
        "tracked-changes": "",
        "annotation": "",
        "table-cell": r"\sformula=|:formula=|value-type=\"(?!string)",
    },
)
_BOOK = _Kind(paragraphs="title description text")
_KINDS = {
    "document-content": _OPEN_DOCUMENT,
    "document-styles": _OPEN_DOCUMENT,
    "package": _BOOK,
    "ncx": _BOOK,
}
"""The kinds by the root of a part; all others are Office Open XML."""

_ROOT = re.compile(r"<(?:[\w.-]+:)?([a-zA-Z][\w.-]*)")
_PROPERTIES = "rPr"
_FIELD = "fldChar"
# What a program checks or noted of a run, and not how it looks.
_NOISE = re.compile(r"\s(?:dirty|err|smtClean|w:rsid\w*)=\"[^\"]*\"")
_LANGUAGE = re.compile(
    r"(<w:lang\s+w:val=\"|\s(?:xml:)?lang=\"|<dc:language(?:\s[^<>]{0,200})?>)([\w-]{2,20})(?=[\"<])"
    r"|(\sfo:language=\")(\w{2,8})(\"\s+fo:country=\")(\w{2,8})(?=\")"
)
_COLUMN = re.compile(r"<(?:tableColumn|cacheField)\s[^<>]*?\bname=\"([^\"]*)\"")
_TEXT = Strings(MARKUP, REFERENCES)
_LINE_END = re.compile(r"(?:\r?\n)+")
_LONGEST_SHOWN = 40
_MOST_INSIDE = 8
"""Paragraphs inside each other, as of text boxes and notes; deeper ones are copied."""


def read_office(source: Source) -> Iterator[str | Unit]:
    """Find the paragraphs of an unpacked office file or book; its language becomes the target's.

    Raises:
        DataError: a part is not XML.
    """
    before, *texts = source.text.split(EDGE)
    if before:
        source.refuse(0, "An office file must be a zip archive, but is a text", "Take the archive.")
    parts = [one.partition("\n")[::2] for one in texts]
    columns = {unescape(name) for _, text in parts for name in _COLUMN.findall(text)}
    for name, text in parts:
        yield f"{EDGE}{name}\n"
        how = replace(source.how, path=f"{source.how.path}, {name}")
        root = _ROOT.search(text)
        if root and root[1].lower() == "html":
            for one in read_html(Source(text, how)):
                if isinstance(one, Unit):
                    one.key = f"{name} {one.key}"
                yield one
            continue
        own = Source(_name_language(text, how.languages), how)
        kind = _KINDS.get(root[1] if root else "", _OFFICE_OPEN)
        yield from own.cut(_Part(own, kind, columns).units(name))


def _name_language(text: str, languages: tuple[str, str]) -> str:
    """Let the settings for spelling name the new language where they name the old one."""
    target = read_tag(languages[1])

    def change(found: re.Match[str]) -> str:
        if found[2]:
            is_own = are_same_language(found[2], languages[0])
            return f"{found[1]}{target}" if is_own else found[0]
        if not are_same_language(found[4], languages[0]):
            return found[0]
        return f"{found[3]}{target.language}{found[5]}{target.region or 'none'}"

    return _LANGUAGE.sub(change, text) if all(languages) else text


class _Part:
    """Reads a part of a file.

    Args:
        source: its text.
        kind: the names of its elements.
        kept: texts that must stay as they are.
    """

    def __init__(self, source: Source, kind: _Kind, kept: set[str]) -> None:
        self._source = source
        self._text = source.text
        self._kind = kind
        self._kept = kept

    def units(self, name: str) -> Iterator[Unit]:
        """Find the paragraphs; those inside others belong to these."""
        for number, node in enumerate(self._paragraphs(read_xml(self._source)), start=1):
            pieces = self._read(node, _MOST_INSIDE)
            yield Unit(f"{name} {number}", node.inner, node.close, pieces, number)

    def _paragraphs(self, top: Node) -> Iterator[Node]:
        waiting = top.nodes[::-1]
        while waiting:
            node = waiting.pop()
            if self._kind.has("paragraphs", node.name):
                yield node
                continue
            rule = self._kind.skipped.get(node.name)
            if rule is None or not re.search(rule, node.raw):
                waiting += node.nodes[::-1]

    def _inner(self, node: Node, depth: int) -> list[Piece]:
        """Read an element that is no part of a text, with the paragraphs in it."""
        pieces: list[Piece] = []
        place = node.start
        is_skipped = node.name in self._kind.skipped
        for one in () if is_skipped or not depth else self._paragraphs(node):
            pieces += [self._text[place : one.inner], *self._read(one, depth - 1)]
            place = one.close
        return [*pieces, self._text[place : node.end]]

    def _read(self, node: Node, depth: int) -> list[Piece]:
        """Cut a paragraph into sentences and what is copied."""
        items = _join_fields(self._text, self._items(node, depth))
        shown = "".join(one.spelled.text for one in items if one.spelled)
        if shown in self._kept:
            items = [one for one in items if one.role != "text"]
        pieces: list[Piece] = []
        done = node.inner
        edge: tuple[int, Sequence[Level]] = (done, ())
        held: list[Item] = []
        for item in (*items, Item("break", node.close, node.close)):
            if item.role == "text" or (held and item.role == "point"):
                held.append(item)
                continue
            # Parts without text at the end stay behind the sentence.
            count = max((k for k, one in enumerate(held, start=1) if one.spelled), default=0)
            rest = [*held[count:], item]
            if count:
                stop = (rest[0].start, rest[0].levels)
                pieces.append(self._text[done : edge[0]])
                pieces.append(make_runs(self._text, held[:count], edge, stop))
                done = rest[0].start
            for one in rest:
                pieces += [self._text[done : one.start], *one.pieces]
                done = one.end
            edge = (item.end, item.after or ())
            held = []
        return pieces

    def _items(self, paragraph: Node, depth: int) -> list[Item]:
        """List the texts of a paragraph, what ends a sentence, and all else."""
        kind = self._kind
        items: list[Item] = []
        opened: list[Level] = []
        has_lines = paragraph.name in ("si", "is")
        waiting: list[Node | Level] = [*reversed(paragraph.nodes)]
        while waiting:
            node = waiting.pop()
            if isinstance(node, Level):
                if node.is_fence:
                    levels = tuple(opened)
                    items.append(self._copied("break", node.close, node.end, levels, levels[:-1]))
                opened.pop()
                continue
            name = node.name
            levels = tuple(opened)
            if not name:
                is_text = not kind.texts or any(kind.has("texts", one.name) for one in opened)
                if is_text and not node.raw.startswith("<"):
                    items += self._lines(node, levels, has_lines=has_lines)
            elif kind.has("spaces", name):
                spelled = Spelled(" ", {0: self._text[node.start : node.end]})
                items.append(Item("text", node.start, node.end, levels, levels, spelled))
            elif (level := self._level(node, opened)) is not None:
                opened.append(level)
                if level.is_fence:
                    after = tuple(opened)
                    items.append(self._copied("break", node.start, node.inner, levels, after))
                waiting.append(level)
                waiting += [one for one in node.nodes[::-1] if one.name != _PROPERTIES]
            elif kind.has("breaks", name):
                items.append(self._copied("break", node.start, node.end, levels, levels))
            elif not kind.has("ignored", name):
                item = self._copied("point", node.start, node.end, levels, levels)
                items.append(
                    replace(
                        item, pieces=self._inner(node, depth), shown=self._shown(node), node=node
                    )
                )
        return items

    def _copied(
        self,
        role: str,
        start: int,
        end: int,
        levels: tuple[Level, ...],
        after: tuple[Level, ...],
    ) -> Item:
        return Item(role, start, end, levels, after, pieces=[self._text[start:end]])

    def _lines(self, node: Node, levels: tuple[Level, ...], *, has_lines: bool) -> Iterator[Item]:
        """Cut a text at its line ends if they are shown."""
        raw = node.raw
        place = 0
        for match in (*(_LINE_END.finditer(raw) if has_lines else ()), None):
            stop = len(raw) if match is None else match.start()
            start = node.start + place
            if place < stop:
                spelled = _TEXT.read(raw[place:stop])[1]
                yield Item("text", start, node.start + stop, levels, levels, spelled)
            if match is not None:
                place = match.end()
                yield self._copied("break", node.start + stop, node.start + place, levels, levels)

    def _level(self, node: Node, opened: Sequence[Level]) -> Level | None:
        """Enter an element that holds text; None if it does not, or stands too deep."""
        kind = self._kind
        name = node.name
        roles = [one for one in ("runs", "texts", "around", "fences") if kind.has(one, name)]
        if not roles or len(opened) >= MOST_DEPTH or node.close == node.end:
            return None
        closing = self._text[node.close : node.end]
        opening = node.raw
        tag = closing[2:].rstrip("> \t\r\n")
        is_run = roles[0] in ("runs", "texts")
        # A text without a run, as of a cell, must stay the only one.
        is_fence = roles[0] == "fences" or (roles[0] == "texts" and not opened)
        if roles[0] == "runs":
            own = node.child(_PROPERTIES)
            inner = "" if own is None else self._text[own.start : own.end]
            opening = f"<{tag}>{_NOISE.sub('', inner)}"
        elif is_run and not is_fence:
            # The text of drawings keeps its spaces, and has no attribute that says so.
            space = "" if tag.startswith("a:") else ' xml:space="preserve"'
            opening = f"<{tag}{space}>"
        return Level(
            name, Tags(opening, closing), node.close, node.end, is_run and not is_fence, is_fence
        )

    def _shown(self, node: Node) -> str:
        if not self._kind.has("shown", node.name):
            return ""
        text = "".join(one.raw for one in node.walk("") if not one.raw.startswith("<"))
        return unescape(text) if len(text) <= _LONGEST_SHOWN else ""


def _join_fields(text: str, items: list[Item]) -> list[Item]:
    """Join the parts of each field, as Word has them: what it shows is computed, but for links."""
    ends: dict[int, tuple[int, int]] = {}
    begun: list[int] = []
    middle = -1
    for place, item in enumerate(items):
        is_field = item.node is not None and item.node.name == _FIELD
        kind = item.node.attributes.get("w:fldCharType") if item.node and is_field else None
        if kind == "begin":
            begun.append(place)
        elif kind == "separate" and len(begun) == 1:
            middle = place
        elif kind == "end" and begun:
            first = begun.pop()
            if not begun:
                ends[first] = (middle if middle > first else place, place)
    joined: list[Item] = []
    place = 0
    closing: dict[int, Item] = {}
    while place < len(items):
        item = closing.get(place, items[place])
        if place in ends:
            middle, last = ends[place]
            code = text[item.start : items[middle].start]
            is_link = "HYPERLINK" in code and middle < last
            until = items[middle if is_link else last]
            raw = text[item.start : until.end]
            shown = "".join(one.spelled.text for one in items[middle:last] if one.spelled)
            item = replace(
                item,
                end=until.end,
                after=until.levels,
                pieces=[raw],
                shown="" if is_link else shown[:_LONGEST_SHOWN],
                half="start" if is_link else "void",
            )
            if is_link:
                closing[last] = replace(items[last], half="end")
            place = middle if is_link else last
        joined.append(item)
        place += 1
    return joined
