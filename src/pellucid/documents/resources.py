"""Texts of interfaces in XML: ``strings.xml`` of Android and ``.resx`` of .NET."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pellucid.documents.escapes import BACKSLASHES, QUOTED, REFERENCES, Strings
from pellucid.documents.interchange import ESCAPES
from pellucid.documents.markup.segments import Piece
from pellucid.documents.units import Source, Unit
from pellucid.documents.xml import Node, read_xml

_CDATA = "<![CDATA["


_ANDROID = Strings(
    {**ESCAPES, **QUOTED, "'": "\\'"}, f"{BACKSLASHES}|{REFERENCES}", '"', is_folded=True
)
_RESX = Strings(ESCAPES, REFERENCES)
_IN_CDATA = Strings({}, r"(?!)")


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
        for number, item in enumerate(items):
            name = own.get("name", "")
            key = name if item is node else f"{name}[{item.attributes.get('quantity', number)}]"
            yield _unit(source, key, item)


def _unit(source: Source, key: str, node: Node) -> Unit:
    start, end = node.inner, node.close
    raw = source.text[start:end]
    pieces: list[Piece]
    if raw.strip().startswith(_CDATA) and raw.count(_CDATA) == 1 and raw.strip().endswith("]]>"):
        start += raw.index(_CDATA) + len(_CDATA)
        end = start + source.text[start:end].rindex("]]>")
        pieces = _IN_CDATA.pieces(source.text[start:end])
    else:
        if re.fullmatch(r"\s*\".*(?<!\\)\"\s*", raw, re.DOTALL) and raw.count('"') > 1:
            start, end = start + raw.index('"') + 1, start + raw.rindex('"')
            raw = source.text[start:end]
        pieces = _ANDROID.pieces(raw)
    return Unit(key, start, end, pieces)


def read_resx(source: Source) -> Iterator[Unit]:
    """Find the texts of a ``.resx`` file; values with a type, such as images, are copied.

    Raises:
        DataError: it is not XML.
    """
    for node in read_xml(source).walk("data"):
        own, value = node.attributes, node.child("value")
        name = own.get("name", "")
        if value and not {"type", "mimetype"} & {*own} and not name.startswith(">>"):
            pieces = _RESX.pieces(source.text[value.inner : value.close])
            yield Unit(name, value.inner, value.close, pieces)
