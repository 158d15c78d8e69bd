"""Texts of interfaces in XML: ``strings.xml`` of Android and ``.resx`` of .NET."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from pellucid.documents.escapes import (
    BACKSLASHES,
    NOTHING,
    REFERENCES,
    line_segments,
    read_escapes,
    reader_of,
)
from pellucid.documents.interchange import ESCAPES, read_references
from pellucid.documents.markup.segments import Piece, Spelled, Syntax
from pellucid.documents.units import Source, Unit
from pellucid.documents.xml import Node, read_xml

_CDATA = "<![CDATA["


def _read_android(raw: str) -> tuple[str, Spelled]:
    return read_escapes(raw, breaks='"', escapes=f"{BACKSLASHES}|{REFERENCES}")


def _read_resx(raw: str) -> tuple[str, Spelled]:
    return "", read_references(raw)


def _read_cdata(raw: str) -> tuple[str, Spelled]:
    return read_escapes(raw, escapes=NOTHING)


_ANDROID = Syntax({**ESCAPES, "'": "\\'", '"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"})
_RESX, _CDATA_TEXT = Syntax(ESCAPES), Syntax({"]": "]"})
ANDROID = replace(_ANDROID, read=reader_of(_read_android, _ANDROID, is_folded=True))
RESX = replace(_RESX, read=reader_of(_read_resx, _RESX))
CDATA_TEXT = replace(_CDATA_TEXT, read=reader_of(_read_cdata, _CDATA_TEXT))


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
        pieces = [*line_segments(source.text[start:end], CDATA_TEXT, _read_cdata)]
    else:
        if re.fullmatch(r"\s*\".*(?<!\\)\"\s*", raw, re.DOTALL) and raw.count('"') > 1:
            start, end = start + raw.index('"') + 1, start + raw.rindex('"')
            raw = source.text[start:end]
        pieces = [*line_segments(raw, ANDROID, _read_android, is_folded=True)]
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
            raw = source.text[value.inner : value.close]
            yield Unit(name, value.inner, value.close, [*line_segments(raw, RESX, _read_resx)])
