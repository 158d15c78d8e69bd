"""XLIFF and TMX: a text and its translation next to each other, with codes in both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from pellucid.documents.escapes import REFERENCES, Strings
from pellucid.documents.markup.lexing import Token, TokenKind
from pellucid.documents.markup.segments import Maker, Piece, Segment, Spelled, Syntax
from pellucid.documents.placeholders import add_text
from pellucid.documents.units import How, Mark, Source, Unit
from pellucid.documents.xml import Node, cut_xml, read_parts, read_xml
from pellucid.languages.codes import short_code

Kind = Literal["element", "point", "copy"]

_KINDS: Mapping[str, Kind] = {"g": "element", "pc": "element", "mrk": "element", "hi": "element"}
_HALVES: Mapping[str, TokenKind] = {
    **{"bpt": "start", "ept": "end", "bx": "start", "ex": "end", "sc": "start", "ec": "end"},
}
_STATE = re.compile(r"\s(?:state|state-qualifier|subState)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_APPROVED = re.compile(r"(?<=\sapproved)(\s*=\s*[\"'])yes(?=[\"'])")
_OTHERS = "Take another file, or a model or recipe of these languages."
ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_TEXT = Strings(ESCAPES, REFERENCES)


def read_content(text: str, node: Node, syntax: Syntax, *, is_interface: bool = True) -> Segment:
    """Read the content of an element as a segment.

    Elements of XLIFF and TMX that hold text are elements, other codes are copies if they have
    text, and points if they have none. In other formats all elements hold text.
    """
    maker = Maker(syntax)
    _add(maker, text, node.nodes, is_interface=is_interface)
    return maker.take()


def _add(maker: Maker, text: str, nodes: Sequence[Node], *, is_interface: bool) -> None:
    for node in nodes:
        raw = text[node.start : node.end]
        if not node.name and not raw.startswith("<"):
            add_text(maker, read_references(raw), is_interface=is_interface)
        elif node.name in _HALVES:
            own = node.attributes
            pair = next((own[name] for name in ("i", "rid", "startRef", "id") if name in own), "")
            maker.add_tag(Token(_HALVES[node.name], raw, f"pair {pair}"), [raw])
        elif node.name and _kind(node) == "element":
            maker.add_tag(Token("start", node.raw, node.name), [node.raw])
            _add(maker, text, node.nodes, is_interface=is_interface)
            closing = text[node.close : node.end]
            maker.add_tag(Token("end", closing, node.name), [closing])
        else:
            shown = "".join(one.raw for one in node.walk("") if not one.raw.startswith("<"))
            text_of_code = read_references(shown).text
            is_word = _kind(node) == "copy" and not text_of_code.startswith("<")
            maker.add_copy([raw], text_of_code if is_word else "", node.name)


def _kind(node: Node) -> Kind:
    is_kept = node.attributes.get("translate") == "no" or node.attributes.get("mtype") in (
        "protected",
        "x-dnt",
    )
    if node.close == node.end or is_kept:
        return "copy"
    return _KINDS.get(node.name, "copy")


def read_references(raw: str) -> Spelled:
    """Read text with references such as ``&amp;``."""
    return _TEXT.read(raw)[1]


def _again(written: str) -> Segment | None:
    root = cut_xml(written)
    return None if root is None else read_content(written, root, _PLAIN)


_PLAIN = Syntax(ESCAPES, reopens=False)
SYNTAX = replace(_PLAIN, read=_again)


def _has_text(node: Node | None) -> bool:
    return node is not None and any(one.raw.strip() for one in node.walk(""))


def _tag_name(tag: str) -> str:
    return re.split(r"[<\s/>]", tag)[1]


def _check_languages(source: Source, node: Node, names: tuple[str, str]) -> None:
    """Refuse a file that says that it is of other languages."""
    for name, wanted in zip(names, source.how.languages, strict=True):
        own = node.attributes.get(name, "")
        if own and wanted and short_code(own) != short_code(wanted):
            what = f"The language ({name}) must be {wanted}, but is {own}"
            source.refuse(node.start, what, _OTHERS)


def _target(
    source: Source, own: Node, place: int, target: Node | None, mark: str
) -> list[Piece | Mark]:
    """Write a target from a place on; a missing one comes after its source."""
    text = source.text
    segment = read_content(text, own, SYNTAX)
    states = [Mark(' state="translated"', f' state="{mark}"')] if mark else []
    if target is not None:
        raw = _STATE.sub("", target.raw) if mark else target.raw
        start = re.sub(r"\s*/?>$", "", raw)
        closing = text[target.close : target.end] or f"</{_tag_name(start)}>"
        return [text[place : target.start], start, *states, ">", segment, closing]
    name = _tag_name(own.raw).replace("source", "target")
    before = f"{text[place : own.end]}{_gap(text, own.start)}<{name}"
    return [before, *states, ">", segment, f"</{name}>"]


def _is_done(source: Source, own: Node, target: Node | None, state: str) -> bool:
    """Tell whether a unit has its translation, so that it is left out.

    A state may say that a translation is needed; in a new unit a copy of the source is not one.
    """
    if source.how.has_all or target is None or not _has_text(target):
        return False
    if state in ("new", "initial"):
        texts = [read_content(source.text, one, SYNTAX).text.split() for one in (own, target)]
        return texts[0] != texts[1]
    return state != "needs-translation"


def _gap(text: str, place: int) -> str:
    """Return the white space before a place."""
    start = place
    while start and text[start - 1].isspace():
        start -= 1
    return text[start:place]


def read_xliff(source: Source) -> Iterator[Unit]:
    """Find the units of XLIFF 1.2 and 2.x without a target, or with ``has_all`` all of them.

    Raises:
        DataError: it is not XML, or of other languages than the model.
    """
    root = read_xml(source)
    top = root.child("xliff")
    if top is None:
        source.refuse(0, "XLIFF must have the root xliff, but has another one", "Check the file.")
    if top.attributes.get("version", "1").startswith("1"):
        for file in top.walk("file"):
            _check_languages(source, file, ("source-language", "target-language"))
            for node in file.walk("trans-unit"):
                yield from _first_version(source, node)
        return
    _check_languages(source, top, ("srcLang", "trgLang"))
    if "trgLang" not in top.attributes:
        what = "XLIFF must name the language of its targets (trgLang), but does not"
        source.refuse(top.start, what, "Add the attribute.")
    for node in top.walk("unit"):
        if node.attributes.get("translate") != "no":
            yield from _second_version(source, node)


def _first_version(source: Source, node: Node) -> Iterator[Unit]:
    own, target = node.child("source"), node.child("target")
    key = node.attributes.get("resname") or node.attributes.get("id", "")
    is_kept = node.attributes.get("translate") == "no"
    state = target.attributes.get("state", "") if target else ""
    if own is None or is_kept or _is_done(source, own, target, state):
        return
    if source.how.has_pairs:
        yield _pair(source, own, target, state)
        return
    last = node.child("seg-source") or own
    start, end = (last.end, last.end) if target is None else (target.start, target.end)
    tag = Mark(node.raw, _APPROVED.sub(r"\1no", node.raw))
    rest = _target(source, own, start, target, "needs-review-translation")
    pieces = [tag, source.text[node.inner : start], *rest]
    yield Unit(key, node.start, end, pieces, line=source.line(start))


def _second_version(source: Source, node: Node) -> Iterator[Unit]:
    for segment in node.walk("segment"):
        own, target = segment.child("source"), segment.child("target")
        name = segment.attributes.get("state", "")
        if own is None or _is_done(source, own, target, name):
            continue
        if source.how.has_pairs:
            yield _pair(source, own, target, name)
            continue
        key = "/".join(filter(None, (one.attributes.get("id") for one in (node, segment))))
        tag = _STATE.sub("", segment.raw)[:-1].rstrip()
        state = Mark(' state="translated"', ' state="initial"')
        rest = _target(source, own, segment.inner, target, "")
        end = own.end if target is None else target.end
        yield Unit(key, segment.start, end, [tag, state, ">", *rest])


def read_tmx(chunks: Iterable[str], how: How) -> Iterator[str | Unit]:
    """Read a TMX: units that have no translation, or with ``has_all`` all of them.

    Raises:
        DataError: it is not XML, or has no text in the source's language, or for pairs in the
            target's.
    """
    found: dict[str, None] = {}
    for source, root in read_parts(chunks, how, "tu"):
        yield from source.cut(_read_part(source, root, found))
    asked = how.languages[: 1 + how.has_pairs]
    if not all(short_code(one) in found for one in asked):
        own, wanted = ", ".join(found) or "none", " and ".join(filter(None, asked))
        what = f"A TMX must have texts in {wanted}, but its languages are {own}"
        if not all(asked):
            what = f"The languages of a TMX must be named, but are not; its own are {own}"
        how.refuse(1, what, _OTHERS if all(asked) else "Name those of source and target.")


def _read_part(source: Source, root: Node, found: dict[str, None]) -> Iterator[Unit]:
    """Find the units of a part of a TMX, and note its languages."""
    how = source.how
    for unit in root.walk("tu"):
        variants = {_language(one): one for one in unit.children("tuv")}
        found.update(dict.fromkeys(variants))
        own, target = (variants.get(short_code(one)) for one in how.languages)
        text = own.child("seg") if own else None
        if own is None or text is None:
            continue
        key = unit.attributes.get("tuid", "")
        old = target.child("seg") if target else None
        if how.has_pairs:
            yield _pair(source, text, old, "")
        elif old is not None and (how.has_all or not _has_text(old)):
            yield Unit(key, old.start, old.end, _target(source, text, old.start, old, ""))
        elif target is None:
            tag = f'{_gap(source.text, own.start)}<tuv xml:lang="{how.languages[1]}"><seg>'
            segment = read_content(source.text, text, SYNTAX)
            yield Unit(key, own.end, own.end, [tag, segment, "</seg></tuv>"])


def _pair(source: Source, own: Node, old: Node | None, state: str) -> Unit:
    """Make a unit of a text with its translation, whose state may say that it is a draft."""
    texts = (read_content(source.text, one, SYNTAX) for one in (own, old) if one is not None)
    pieces, *others = texts
    is_draft = state.startswith(("needs-", "new", "initial"))
    return Unit("", own.start, own.end, [pieces], old=others, state="fuzzy" if is_draft else "")


def _language(node: Node) -> str:
    own = node.attributes
    return short_code(own.get("xml:lang") or own.get("lang", ""))
