"""Markdown: blocks and inline marks as markdown-it finds them, with their places."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token as InlineToken

from pellucid.documents.markup.front_matter import FRONT_MATTER, NOT_READ, read_front_matter
from pellucid.documents.markup.lexing import Token, cut_html
from pellucid.documents.markup.markdown_lines import (
    COPIED_BLOCK,
    MARKS,
    plain_lines,
    read_labels,
)
from pellucid.documents.markup.placed_text import PlacedText, cut_lines
from pellucid.documents.markup.reading import read_segments
from pellucid.documents.markup.segments import Maker, Piece, Segment, Spelled, Syntax
from pellucid.documents.markup.template_blocks import as_block
from pellucid.documents.placeholders import add_text
from pellucid.documents.units import Source, Unit

# Marks of callouts, tasks and footnotes, which are plain text for CommonMark.
_COPIED_START = re.compile(r"(?:\[![A-Za-z]+\][+-]?|\[[ xX]\](?=\s)|\[\^[^\]\s]+\]:|:(?=[ \t]))\s*")
_SIGNS = {sign: f"\\{sign}" for sign in "\\`*_{}[]<>()#+-.!|~&=:$^"}
_PAIRED = re.compile(r"(em|strong|s|link)_(open|close)")
_CELLS = ("th_open", "td_open")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r|\Z)")


class _Places(StateInline):
    """Notes where each inline token begins: markdown-it itself knows only the lines of blocks."""

    _start = 0

    def _note(self) -> None:
        if not self.pending:
            self._start = self.pos

    def append_pending(self, text: str) -> None:
        self._note()
        super().append_pending(text)

    # Rules also write `state.pending += …`, which calls no method that could note the place.
    def __setattr__(self, name: str, value: Any) -> None:
        if name == "pending" and value:
            self._note()
        super().__setattr__(name, value)

    def pushPending(self) -> InlineToken:  # noqa: N802
        token = super().pushPending()
        token.meta = {"place": self._start}
        return token

    def push(self, ttype: str, tag: str, nesting: Any) -> InlineToken:
        before = self.tokens[-1] if self.tokens else None
        token = super().push(ttype, tag, nesting)
        place = self.pos
        if before is not None and before.meta.get("run") == self.pos and before.type == ttype:
            place = int(before.meta["place"]) + len(before.content)  # one of several signs
        token.meta = {"place": place, "run": self.pos}
        return token


@cache
def _parser() -> MarkdownIt:
    made = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    # Inline rules run in `_read_items`, which notes places; joined fragments would lose theirs.
    made.core.ruler.enableOnly(["normalize", "block"])
    made.inline.ruler2.disable("fragments_join")
    return made


def read_markdown(source: Source) -> Iterator[Unit]:
    """Find the texts of headings, paragraphs, cells, HTML and front matter; code is copied.

    A block with words that cannot be read is copied and reported.
    """
    found = [*read_front_matter(source), *_read_body(source)]
    yield from sorted(found, key=lambda unit: unit.start)


def _read_body(source: Source) -> Iterator[Unit]:
    text = source.text
    lines = [match.start() for match in _LINE.finditer(text)] + [len(text)] * 2
    front = FRONT_MATTER.match(text)
    head = text[: front.end()] if front else ""
    env: dict[str, Any] = {}
    # Front matter becomes empty lines, so that all others keep their numbers.
    blank = re.sub(r"[^\r\n]", "", head) + text[len(head) :]
    plain = [*plain_lines(re.split(r"\r\n|\n|\r", blank))]
    tokens = _parser().parse("\n".join(line for line, _ in plain), env)
    yield from read_labels(text, lines, [is_tag for _, is_tag in plain])
    cursor = 0
    for before, token in zip([None, *tokens], tokens, strict=False):
        if token.map is None or token.type not in ("inline", "html_block"):
            continue
        begin, end = (lines[number] for number in token.map)
        key = f"line {token.map[0] + 1}"
        if token.type == "html_block":
            # Lines in a quote or a list begin with marks that are no HTML: they are copied.
            if re.sub(r"\r\n?", "\n", text[begin:end]).strip() == token.content.strip():
                yield Unit(key, begin, end, read_segments(text[begin:end], source.how.languages))
            elif any(map(str.isalpha, re.sub(r"<[^<>]*>", "", token.content))):
                yield Unit(key, begin, end, [text[begin:end]], fault=NOT_READ)
            continue
        kind = before.type if before else ""
        found = _find(text, lines, token, kind, cursor)
        if COPIED_BLOCK.match(token.content):
            continue
        if found is None:
            # The cells of a row have one line.
            if kind not in _CELLS and any(map(str.isalpha, token.content)):
                yield Unit(key, begin, end, [text[begin:end]], fault=NOT_READ)
            continue
        start = _COPIED_START.match(token.content)
        found = found.part(start.end() if start else 0, len(token.content))
        cursor = found.places[-1]
        for part in cut_lines(found) if kind == "paragraph_open" else [found]:
            pieces = _Reader(part, env, kind).read()
            if pieces is not None:
                yield Unit(key, part.places[0], part.places[-1], pieces)
            elif any(map(str.isalpha, part.content)):
                own = text[part.places[0] : part.places[-1]]
                yield Unit(key, part.places[0], part.places[-1], [own], fault=NOT_READ)


def _find(
    text: str, lines: list[int], token: InlineToken, kind: str, cursor: int
) -> PlacedText | None:
    """Find the content of a block: lines of paragraphs end as those of the document do."""
    places: list[int] = []
    place = 0
    for number, own in enumerate(token.content.split("\n"), start=(token.map or [0])[0]):
        start = lines[number]
        line = text[lines[number] : lines[number + 1]]
        # Marks of quotes and lists stand before the content, which ends where its line does.
        first = len(line.rstrip()) - len(own.rstrip())
        written = own
        if kind in _CELLS:
            written = own.replace("|", "\\|")
            # Equal cells of a row are found one after the other.
            first = line.find(written, max(0, cursor - start))
        elif not line.startswith(own.rstrip(), max(0, first)):
            # A heading may have signs after its text, which close it.
            first = -1 if kind == "paragraph_open" else line.find(own)
        if first < 0 or not own:
            return None
        if places:
            places.append(place)
        place = start + first
        for character in own:
            places.append(place)
            place += 2 if character == "|" and written is not own and "|" in own else 1
    return PlacedText(token.content, text, [*places, place])


@dataclass
class _Item:
    """An inline token with its places in the content."""

    kind: str
    start: int
    end: int
    shown: str = ""


def _read_items(content: str, env: dict[str, Any]) -> list[_Item] | None:
    """Read inline tokens in order; None if the places of some cannot be found."""
    parser = _parser()
    state = _Places(content, parser, env, [])
    parser.inline.tokenize(state)
    for rule in parser.inline.ruler2.getRules(""):
        rule(state)
    items: list[_Item] = []
    for token in state.tokens:
        place = int(token.meta["place"])
        kind = token.type
        if kind in ("softbreak", "hardbreak"):
            # The spaces before a line's end are a part of the break, but not those before a sign.
            is_sign = content[place : place + 1] == "\\"
            place = place if is_sign else len(content[:place].rstrip(" "))
        elif kind == "link_open":
            place, kind = (place, "autolink") if token.markup else (place - 1, kind)
        if items:
            items[-1].end = place
        items.append(_Item(kind, place, len(content), token.content))
    if any(one.end < one.start for one in items) or (items and items[0].start):
        return None
    return _joined(items, content)


def _joined(items: list[_Item], content: str) -> list[_Item]:
    """Join both signs of strong emphasis, and the tokens of links that are copied."""
    found: list[_Item] = []
    copied: _Item | None = None
    for number, item in enumerate(items):
        following = items[number + 1] if number + 1 < len(items) else None
        is_sign = item.kind == "text" and not item.shown
        if item.kind in ("link_open", "autolink") and copied is None:
            following_items = map(items.__getitem__, range(number, len(items)))
            last = next((one for one in following_items if one.kind == "link_close"), item)
            # The text of a shortcut is the name of its target: translated, it would lead nowhere.
            if item.kind == "autolink" or content[last.start : last.end] in ("]", "][]"):
                copied = last
                found.append(_Item("copy", item.start, last.end, content[item.start : last.end]))
        if copied is not None:
            copied = None if item is copied else copied
        elif is_sign and following is not None and following.kind == "strong_open":
            following.start = item.start
        elif is_sign and found:
            found[-1].end = item.end
        else:
            found.append(item)
    return found


class _Reader:
    """Reads the content of a block as segments.

    Args:
        text: the content.
        env: what markdown-it knows of the document, such as its references.
        kind: of the block.
    """

    def __init__(self, text: PlacedText, env: dict[str, Any], kind: str) -> None:
        self._text = text
        self._env = env
        self._kind = kind
        escapes = {"|": "\\|"} if kind in _CELLS else {}
        self._syntax = Syntax(escapes, all_signs=_SIGNS, read=self._again)
        self._pieces: list[Piece] = []
        self._letters: list[str] = []
        self._forms: dict[int, str] = {}
        self._maker = Maker(self._syntax)

    def read(self) -> list[Piece] | None:
        """Return the parts of the block; None if the places of its marks cannot be found."""
        items = _read_items(self._text.content, self._env)
        if items is None or not all(map(self._add, items)):
            return None
        self._take()
        return self._pieces

    def _add(self, item: _Item) -> bool:
        """Add a token; return False if it is not what stands at its place."""
        own = self._text.content[item.start : item.end]
        raw = self._text.raw(item.start, item.end)
        if item.kind == "softbreak" or (item.kind == "hardbreak" and self._maker.is_open):
            self._add_letter(" ", raw)
        elif item.kind in ("text", "text_special") and own == item.shown:
            for place, letter in enumerate(own, start=item.start):
                self._add_letter(letter, self._text.raw(place, place + 1))
        elif item.kind == "text_special" and len(item.shown) == 1:
            self._add_letter(item.shown, raw)
        elif item.kind == "text":
            return False
        elif item.kind == "hardbreak":
            self._take()
            self._pieces.append(raw)
        else:
            self._flush()
            self._add_mark(item, raw)
        return True

    def _add_mark(self, item: _Item, raw: str) -> None:
        mark = _PAIRED.fullmatch(item.kind)
        if mark:
            self._maker.add_tag(Token("start" if mark[2] == "open" else "end", raw, mark[1]), [raw])
        elif item.kind == "html_inline":
            tokens = [*cut_html(raw)]
            tag = tokens[0] if len(tokens) == 1 else Token("other", raw)
            self._maker.add_tag(as_block(tag), [raw])
        elif item.kind == "image":
            start = item.start + 2
            end = item.start + 2 + len(item.shown)
            label = _Reader(self._text.part(start, end), self._env, self._kind).read()
            around = self._text.raw(item.start, start), self._text.raw(end, item.end)
            is_text = label is not None and len(label) == 1 and isinstance(label[0], Segment)
            pieces: list[Piece] = [around[0], *label, around[1]] if label and is_text else [raw]
            self._maker.add_tag(Token("void", raw, "img"), pieces)
        else:
            self._maker.add_copy([raw], item.shown, "")

    def _add_letter(self, letter: str, raw: str) -> None:
        if raw != letter:
            self._forms[len(self._letters)] = raw
        self._letters.append(letter)

    def _flush(self) -> None:
        text = "".join(self._letters)
        place = 0
        for mark in MARKS.finditer(text):
            self._add_text(text, place, mark.start())
            place = mark.end()
            if mark["keys"]:
                self._maker.add_copy([mark[0]], mark[0], "")
                continue
            sign = mark["sign"]
            self._maker.add_tag(Token("start", sign, sign), [sign])
            self._add_text(text, mark.start() + len(sign), mark.end() - len(sign))
            self._maker.add_tag(Token("end", sign, sign), [sign])
        self._add_text(text, place, len(text))
        self._letters = []
        self._forms = {}

    def _add_text(self, text: str, start: int, end: int) -> None:
        forms = {k - start: form for k, form in self._forms.items() if start <= k < end}
        if start < end:
            add_text(self._maker, Spelled(text[start:end], forms))

    def _take(self) -> None:
        self._flush()
        segment = self._maker.take()
        if segment.pieces:
            self._pieces.append(segment)
        self._maker = Maker(self._syntax)

    def _again(self, written: str) -> Segment | None:
        """Read a written segment; None if it is more than one, or another block."""
        if re.search(r"(?<!\\)(?:\\\\)*\\\Z", written):
            return None  # It would escape what follows.
        # The lines of a quote or a list begin with marks that the content does not have.
        content = re.sub(r"\r?\n[ \t>]*", "\n", written)
        if self._kind in _CELLS:
            if re.search(r"(?<!\\)\||\n", content):
                return None
            content = content.replace("\\|", "|")
        elif self._kind == "paragraph_open":
            for start in ("", "a\n"):  # The segment may follow a line.
                blocks = _parser().parse(start + content.strip(), dict(self._env))
                if [one.type for one in blocks] != ["paragraph_open", "inline", "paragraph_close"]:
                    return None
        # At the end of a heading the sign would close it, and vanish.
        elif re.search(r"(?<!\\)#\s*\Z", content):
            return None
        plain = PlacedText(content, content, range(len(content) + 1))
        found = _Reader(plain, self._env, self._kind).read() or []
        return found[0] if len(found) == 1 and isinstance(found[0], Segment) else None
