"""Texts of interfaces in XML: ``strings.xml`` of Android, ``.resx`` of .NET and ``.ts`` of Qt."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pellucid.documents.escapes import BACKSLASHES, QUOTED, REFERENCES, Strings
from pellucid.documents.markup.segments import MARKUP, Piece, Segment, spell
from pellucid.documents.units import Mark, Source, Unit, indent_before
from pellucid.documents.xml import Node, read_xml
from pellucid.languages.codes import are_same_language
from pellucid.languages.plurals import missing_categories

_OTHER = re.compile(r"(\squantity\s*=\s*[\"'])other(?=[\"'])")
_QUOTE = re.compile(r"(?P<tag><[^<>]*>)|(?P<form>\\.)|(?P<quote>\")|(?P<apostrophe>')", re.DOTALL)


def _finish_android(segment: Segment, written: str) -> str:
    """Leave out quotes within a text if some have lost their partner: they only keep spaces.

    The first sign must not make a reference of the text.
    """
    if written[:1] in ("@", "?") and not spell(segment.pieces).startswith(written[0]):
        written = f"\\{written}"
    own, found = (
        sum(one["quote"] is not None for one in _QUOTE.finditer(text))
        for text in (spell(segment.pieces), written)
    )
    if own == found:
        return written
    forms = {"quote": "", "apostrophe": "\\'"}
    return _QUOTE.sub(lambda one: forms.get(one.lastgroup or "", one[0]), written)


# Android reads a plain apostrophe or quote as part of its syntax, and folds white space.
_ANDROID = Strings(
    {**MARKUP, **QUOTED, "'": "\\'"},
    f"{BACKSLASHES}|{REFERENCES}",
    '"',
    is_folded=True,
    finish=_finish_android,
)
_RESX = Strings(MARKUP, REFERENCES)
_QT_TYPE = re.compile(r"\stype\s*=\s*(?:\"[^\"]*\"|'[^']*')")
_FORMS = (
    # Nothing in CDATA stands for another character: `(?!)` never matches.
    (re.compile(r"\s*<!\[CDATA\[((?:(?!<!\[CDATA\[).)*)\]\]>\s*", re.DOTALL), Strings({}, r"(?!)")),
    (re.compile(r"\s*\"(.*)(?<!\\)\"\s*", re.DOTALL), _ANDROID),
    (re.compile(r"(.*)", re.DOTALL), _ANDROID),
)
"""The forms of a text in ``strings.xml``: raw, in quotes, and plain."""


def read_android(source: Source) -> Iterator[Unit]:
    """Find the texts of ``strings.xml`` that are translatable.

    Raises:
        DataError: it is not XML, or has another root than ``resources``.
    """
    top = read_xml(source).child("resources")
    if top is None:
        what = "An XML file must have the root resources, as strings.xml of Android has"
        source.refuse(0, f"{what}, but has another one", "Other XML files cannot be translated.")
    for node in top.walk("string", "string-array", "plurals"):
        own = node.attributes
        if own.get("translatable") == "false" or own.get("translate") == "false":
            continue
        items = [node] if node.name == "string" else node.children("item")
        there = [item.attributes.get("quantity", "") for item in items]
        missing = missing_categories(there, source.how.languages[1])
        for number, item in enumerate(items):
            name = own.get("name", "")
            quantity = item.attributes.get("quantity", "")
            key = name if item is node else f"{name}[{quantity or number}]"
            found = _form_of(source.text, item)
            if found is None:
                continue
            text, strings = found
            yield Unit(key, *text.span(1), strings.pieces(text[1]))
            # The form for all other numbers has their number, as new ones must.
            for other in missing if quantity == "other" else ():
                yield _copy_of(source, item, text, strings, f"{name}[{other}]", other)


def _form_of(document: str, item: Node) -> tuple[re.Match[str], Strings] | None:
    """Find how a text is written: raw, in quotes, or plain."""
    for pattern, strings in _FORMS:
        match = pattern.fullmatch(document, item.inner, item.close)
        if match is not None:
            return match, strings
    return None


def _copy_of(
    source: Source, item: Node, text: re.Match[str], strings: Strings, key: str, quantity: str
) -> Unit:
    """Make a unit that stands after an item and is for another quantity."""
    before = _OTHER.sub(rf"\g<1>{quantity}", source.text[item.start : text.start(1)])
    after = source.text[text.end(1) : item.end]
    pieces: list[Piece | Mark] = [
        indent_before(source.text, item.start),
        before,
        *strings.pieces(text[1]),
        after,
    ]
    return Unit(key, item.end, item.end, pieces, source.line(item.start))


def read_resx(source: Source) -> Iterator[Unit]:
    """Find the texts of a ``.resx`` file; values with a type, such as images, are copied.

    Raises:
        DataError: it is not XML.
    """
    for node in read_xml(source).walk("data"):
        own = node.attributes
        value = node.child("value")
        name = own.get("name", "")
        # Names with >> hold what the form designer knows of a control, such as its class.
        if value and not {"type", "mimetype"} & {*own} and not name.startswith(">>"):
            pieces = _RESX.pieces(source.text[value.inner : value.close])
            yield Unit(name, value.inner, value.close, pieces)


def read_qt(source: Source) -> Iterator[Unit]:
    """Find the messages of Qt's ``.ts`` files without a translation.

    Raises:
        DataError: it is not XML, has another root than ``TS``, or is of other languages.
    """
    top = read_xml(source).child("TS")
    if top is None:
        what = "A .ts file must be of Qt, with the root TS, but has another one"
        source.refuse(0, what, "Other files of this name cannot be translated.")
    for name, wanted in zip(("sourcelanguage", "language"), source.how.languages, strict=True):
        own = top.attributes.get(name, "")
        if own and wanted and not are_same_language(own, wanted):
            what = f"The language ({name}) must be {wanted}, but is {own}"
            source.refuse(top.start, what, "Take another file, or a model of these languages.")
    for context in top.walk("context"):
        named = context.child("name")
        prefix = source.text[named.inner : named.close] if named else ""
        for message in context.children("message"):
            text = message.child("source")
            target = message.child("translation")
            if text is not None and target is not None:
                yield from _qt_message(source, prefix, text, target)


def _qt_message(source: Source, prefix: str, text: Node, target: Node) -> Iterator[Unit]:
    """Make a unit of a message that needs a translation: of each plural form if it has some."""
    state = target.attributes.get("type", "")
    forms = target.children("numerusform")
    is_filled = any(one.raw.strip() for one in target.walk(""))
    if state in ("vanished", "obsolete") or is_filled:
        return
    raw = source.text[text.inner : text.close]
    # Unfinished is what Qt calls a translation to look at.
    tag = _QT_TYPE.sub("", target.raw).removesuffix(">").removesuffix("/").rstrip()
    pieces: list[Piece | Mark] = [tag, Mark("", ' type="unfinished"'), ">"]
    for _ in forms:
        pieces += ["<numerusform>", *_RESX.pieces(raw), "</numerusform>"]
    pieces += ["</translation>"] if forms else [*_RESX.pieces(raw), "</translation>"]
    key = f"{prefix}|{raw}"
    yield Unit(key, target.start, target.end, pieces, source.line(text.start))
