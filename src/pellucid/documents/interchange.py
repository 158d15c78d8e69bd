"""XLIFF and TMX: a text and its translation next to each other, with codes in both."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from pellucid.documents.escapes import REFERENCES, Strings
from pellucid.documents.markup.lexing import Token, TokenKind
from pellucid.documents.markup.segments import MARKUP, Maker, Piece, Segment, Syntax
from pellucid.documents.markup.split_messages import find_split_messages
from pellucid.documents.placeholders import add_text
from pellucid.documents.units import How, Mark, Source, Unit
from pellucid.documents.xml import Node, cut_xml, read_parts, read_xml
from pellucid.languages.codes import are_same_language, pick_codes

_ELEMENTS = frozenset(("g", "pc", "mrk", "hi"))
# Codes whose two ends are separate elements, so that what they span may cross.
_HALVES: Mapping[str, TokenKind] = {
    **dict.fromkeys(("bpt", "bx", "sc"), "start"),
    **dict.fromkeys(("ept", "ex", "ec"), "end"),
}
_STATE = re.compile(r"\s(?:state|state-qualifier|subState)\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_APPROVED = re.compile(r"(?<=\sapproved)(\s*=\s*[\"'])yes(?=[\"'])")
_OTHERS = "Take another file, or a model or recipe of these languages."
_TEXT = Strings(MARKUP, REFERENCES)


def _read_content(text: str, node: Node) -> Segment:
    """Read the content of an element as a segment.

    Elements that hold text are elements, other codes are copies if they have text, and points if
    they have none.
    """
    maker = Maker(_SYNTAX)
    _add(maker, text, node.nodes)
    return maker.take()


def _add(maker: Maker, text: str, nodes: Sequence[Node]) -> None:
    """Add nodes and what is in them; without recursion, as a file may nest them without bound."""
    waiting: list[Node | Token] = [*reversed(_join_messages(text, nodes))]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Token):
            maker.add_tag(node, [node.raw])
            continue
        raw = text[node.start : node.end]
        if not node.name and not raw.startswith("<"):
            add_text(maker, _TEXT.read(raw)[1], is_interface=True)
        elif node.name in _HALVES:
            own = node.attributes
            # The attribute that both ends share: i in TMX, rid or startRef in XLIFF, else the id.
            pair = next((own[name] for name in ("i", "rid", "startRef", "id") if name in own), "")
            maker.add_tag(Token(_HALVES[node.name], raw, f"pair {pair}"), [raw])
        elif _holds_text(node):
            maker.add_tag(Token("start", node.raw, node.name), [node.raw])
            waiting.append(Token("end", text[node.close : node.end], node.name))
            waiting += node.nodes[::-1]
        else:
            shown = "".join(one.raw for one in node.walk("") if not one.raw.startswith("<"))
            text_of_code = html.unescape(shown)
            is_tag = text_of_code.startswith("<")
            maker.add_copy([raw], "" if is_tag else text_of_code, node.name)


def _join_messages(text: str, nodes: Sequence[Node]) -> list[Node]:
    """Make one code of each message of ICU that codes cut."""
    joined = list(nodes)
    raws = [None if one.name else text[one.start : one.end] for one in nodes]
    # From the last one on, so that the numbers of the others stay.
    for first, start, last, end in reversed(find_split_messages(raws)):
        begin = nodes[first].start
        places = (begin, begin + start, nodes[last].start + end, nodes[last].end)
        parts = [
            Node("", text[one:other], one, other, other, other)
            for one, other in pairwise(places)
            if one < other
        ]
        message = parts[begin < places[1]]
        parts[parts.index(message)] = replace(message, name="message", nodes=[message])
        joined[first : last + 1] = parts
    return joined


def _holds_text(node: Node) -> bool:
    own = node.attributes
    is_kept = own.get("translate") == "no" or own.get("mtype") in ("protected", "x-dnt")
    return node.name in _ELEMENTS and node.close < node.end and not is_kept


def _again(written: str) -> Segment | None:
    root = cut_xml(written)
    return None if root is None else _read_content(written, root)


# An id may stand only once, so that a code that was closed is not opened again.
_SYNTAX = Syntax(MARKUP, reopens=False, read=_again)


def _has_text(node: Node | None) -> bool:
    return node is not None and any(one.raw.strip() for one in node.walk(""))


def _tag_name(tag: str) -> str:
    return re.split(r"[<\s/>]", tag)[1]


def _check_languages(source: Source, node: Node, names: tuple[str, str]) -> None:
    """Refuse a file that says that it is of other languages."""
    for name, wanted in zip(names, source.how.languages, strict=True):
        own = node.attributes.get(name, "")
        if own and wanted and not are_same_language(own, wanted):
            what = f"The language ({name}) must be {wanted}, but is {own}"
            source.refuse(node.start, what, _OTHERS)


def _marked(node: Node | None) -> list[Node]:
    """List the sentences that another program has marked in a text."""
    found = [] if node is None else [*node.walk("mrk")]
    return [one for one in found if one.attributes.get("mtype") == "seg"]


def _content(source: Source, holder: Node, target: Node | None) -> list[Piece]:
    """Read a text: each marked sentence without a translation is a segment, or all of it is one."""
    text = source.text
    marked = _marked(holder)
    if not marked:
        return [_read_content(text, holder)]
    old = {one.attributes.get("mid"): one for one in _marked(target) if _has_text(one)}
    pieces: list[Piece] = []
    place = holder.inner
    for one in marked:
        done = None if source.how.has_all else old.get(one.attributes.get("mid"))
        pieces.append(text[place : one.inner])
        pieces.append(_read_content(text, one) if done is None else text[done.inner : done.close])
        place = one.close
    return [*pieces, text[place : holder.close]]


def _target(
    source: Source,
    own: Node,
    place: int,
    target: Node | None,
    mark: str,
    holder: Node | None = None,
) -> list[Piece | Mark]:
    """Write a target from a place on; a missing one comes after its source."""
    text = source.text
    content = _content(source, holder or own, target)
    states = [Mark(' state="translated"', f' state="{mark}"')] if mark else []
    if target is not None:
        raw = _STATE.sub("", target.raw) if mark else target.raw
        start = raw.removesuffix(">").removesuffix("/").rstrip()
        # An empty element, <target/>, has no end tag yet.
        closing = text[target.close : target.end] or f"</{_tag_name(start)}>"
        return [text[place : target.start], start, *states, ">", *content, closing]
    # From the source's tag, to keep a prefix of its namespace.
    name = _tag_name(own.raw).replace("source", "target")
    before = f"{text[place : own.end]}{_gap(text, own.start)}<{name}"
    return [before, *states, ">", *content, f"</{name}>"]


def _is_done(source: Source, own: Node, target: Node | None, state: str) -> bool:
    """Tell whether a unit has its translation, so that it is left out.

    A state may say that a translation is needed; in a new unit a copy of the source is not one.
    """
    if source.how.has_all or target is None or not _has_text(target):
        return False
    if not all(map(_has_text, _marked(target))):
        return False
    if state in ("new", "initial"):
        texts = [_read_content(source.text, one).text.split() for one in (own, target)]
        return texts[0] != texts[1]
    return state != "needs-translation"


def _gap(text: str, place: int) -> str:
    """Return the white space before a place."""
    # By steps: a pattern that must end at a place would be tried at every place before it.
    start = place
    while start and text[start - 1].isspace():
        start -= 1
    return text[start:place]


def read_xliff(source: Source) -> Iterator[Unit]:
    """Find the units of XLIFF 1.2 and 2.x without a target, or with ``has_all`` all of them.

    Raises:
        DataError: it is not XML, or of other languages than the model.
    """
    top = read_xml(source).child("xliff")
    if top is None:
        source.refuse(0, "XLIFF must have the root xliff, but has another one", "Check the file.")
    is_first = top.attributes.get("version", "1").startswith("1")
    heads = list(top.walk("file")) if is_first else [top]
    names = ("source-language", "target-language") if is_first else ("srcLang", "trgLang")
    for head in heads:
        _check_languages(source, head, names)
    units = [*_units(source, top, is_first=is_first)]
    if not source.how.has_pairs:
        units += [one for head in heads for one in _named(source, head, names[1])]
    yield from sorted(units, key=lambda one: one.start)


def _named(source: Source, head: Node, name: str) -> Iterator[Unit]:
    """Let a file name the language of its targets, which programs that extract texts leave out."""
    language = source.how.languages[1]
    if name not in head.attributes and language and head.inner < head.end:
        # The empty segment makes it a unit: without one it would be copied.
        tag = f'{head.raw[:-1]} {name}="{language}">'
        yield Unit("", head.start, head.inner, [tag, Segment()])
    elif name == "trgLang" and not language:
        what = "XLIFF must name the language of its targets (trgLang), but does not"
        source.refuse(head.start, what, "Add the attribute.")


def _translatable(top: Node, name: str) -> Iterator[Node]:
    """Yield the elements of a name that are translated, as they say or what is around them."""
    waiting = [(one, True) for one in top.nodes[::-1]]
    while waiting:
        node, is_translated = waiting.pop()
        said = node.attributes.get("translate")
        if said in ("yes", "no"):
            is_translated = said == "yes"
        if node.name != name:
            waiting += [(one, is_translated) for one in node.nodes[::-1] if one.name]
        elif is_translated:
            yield node


def _units(source: Source, top: Node, *, is_first: bool) -> Iterator[Unit]:
    for unit in _translatable(top, "trans-unit" if is_first else "unit"):
        for node in [unit] if is_first else unit.walk("segment"):
            own = node.child("source")
            target = node.child("target")
            # Version 1 writes the state at the target, version 2 at the segment.
            stated = target if is_first else node
            state = stated.attributes.get("state", "") if stated else ""
            if own is None or _is_done(source, own, target, state):
                continue
            if source.how.has_pairs:
                yield _pair(source, own, target, state)
                continue
            found = (
                _first_version(source, node, own, target)
                if is_first
                else _second_version(source, unit, node, own, target)
            )
            notes = ("".join(one.raw for one in note.walk("")) for note in unit.walk("note"))
            found.comment = html.unescape("\n".join(notes))
            yield found


def _first_version(source: Source, node: Node, own: Node, target: Node | None) -> Unit:
    key = node.attributes.get("resname") or node.attributes.get("id", "")
    # A new target must come after seg-source, if the unit has one.
    last = target or node.child("seg-source") or own
    start = last.start if last is target else last.end
    tag = Mark(node.raw, _APPROVED.sub(r"\1no", node.raw))
    holder = node.child("seg-source")
    rest = _target(source, own, start, target, "needs-review-translation", holder)
    pieces = [tag, source.text[node.inner : start], *rest]
    return Unit(key, node.start, last.end, pieces, line=source.line(start))


def _second_version(source: Source, unit: Node, node: Node, own: Node, target: Node | None) -> Unit:
    key = "/".join(filter(None, (one.attributes.get("id") for one in (unit, node))))
    tag = _STATE.sub("", node.raw)[:-1].rstrip()
    state = Mark(' state="translated"', ' state="initial"')
    rest = _target(source, own, node.inner, target, "")
    return Unit(key, node.start, (target or own).end, [tag, state, ">", *rest])


def read_tmx(chunks: Iterable[str], how: How) -> Iterator[str | Unit]:
    """Read a TMX: units that have no translation, or with ``has_all`` all of them.

    Raises:
        DataError: it is not XML, or has no text in the source's language, or for pairs in the
            target's.
    """
    found: dict[str, None] = {}
    for source, root in read_parts(chunks, how, "tu"):
        yield from source.cut(_read_part(source, root, found))
    # All languages are known only at the end, since the file is read in parts.
    asked = how.languages[: 1 + how.has_pairs]
    if not all(pick_codes(one, found) for one in asked):
        own = ", ".join(found) or "none"
        wanted = " and ".join(filter(None, asked))
        what = f"A TMX must have texts in {wanted}, but its languages are {own}"
        if not all(asked):
            what = f"The languages of a TMX must be named, but are not; its own are {own}"
        how.refuse(1, what, _OTHERS if all(asked) else "Name those of source and target.")


def _read_part(source: Source, root: Node, found: dict[str, None]) -> Iterator[Unit]:
    """Find the units of a part of a TMX, and note its languages as it writes them."""
    how = source.how
    for unit in root.walk("tu"):
        variants = [(_language(one), one) for one in unit.children("tuv")]
        found |= dict.fromkeys(code for code, _ in variants)
        sources, targets = (_nearest(language, variants) for language in how.languages)
        own = sources[0][1] if sources else None
        text = own.child("seg") if own else None
        if own is None or text is None:
            continue
        key = unit.attributes.get("tuid", "")
        if how.has_pairs:
            yield from _variant_pairs(source, text, targets)
            continue
        target = targets[0][1] if targets else None
        old = target.child("seg") if target else None
        if old is not None and (how.has_all or not _has_text(old)):
            yield Unit(key, old.start, old.end, _target(source, text, old.start, old, ""))
        elif target is None:
            # As the file writes it elsewhere, such as fr-CA.
            code = next(iter(pick_codes(how.languages[1], found)), how.languages[1])
            tag = f'{_gap(source.text, own.start)}<tuv xml:lang="{code}"><seg>'
            segment = _read_content(source.text, text)
            # Nothing is replaced: the new element goes after the source's.
            yield Unit(key, own.end, own.end, [tag, segment, "</seg></tuv>"])


def _nearest(language: str, variants: Sequence[tuple[str, Node]]) -> list[tuple[str, Node]]:
    """Find the variants in a language: those of its own region or script if there are any."""
    near = pick_codes(language, (code for code, _ in variants))
    return [(code, node) for code, node in variants if code in near]


def _variant_pairs(
    source: Source, text: Node, targets: Sequence[tuple[str, Node]]
) -> Iterator[Unit]:
    """Pair a text with its translations; of two regions none is chosen, and both are counted."""
    codes = sorted({code for code, _ in targets})
    if len(codes) > 1:
        unit = _pair(source, text, None, "")
        unit.state = f"both {' and '.join(codes)}"
        yield unit
        return
    for node in [node.child("seg") for _, node in targets] or [None]:
        yield _pair(source, text, node, "")


def _pair(source: Source, own: Node, old: Node | None, state: str) -> Unit:
    """Make a unit of a text with its translation, whose state may say that it is a draft."""
    texts = (_read_content(source.text, one) for one in (own, old) if one is not None)
    pieces, *others = texts
    is_draft = state.startswith(("needs-", "new", "initial"))
    return Unit("", own.start, own.end, [pieces], old=others, state="fuzzy" if is_draft else "")


def _language(node: Node) -> str:
    own = node.attributes
    return own.get("xml:lang") or own.get("lang", "")
