"""Texts of interfaces in XML: ``strings.xml`` of Android and ``.resx`` of .NET."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pellucid.documents.escapes import BACKSLASHES, QUOTED, REFERENCES, Strings
from pellucid.documents.markup.segments import MARKUP
from pellucid.documents.units import Source, Unit
from pellucid.documents.xml import read_xml

# Android reads a plain apostrophe or quote as part of its syntax, and folds white space.
_ANDROID = Strings(
    {**MARKUP, **QUOTED, "'": "\\'"}, f"{BACKSLASHES}|{REFERENCES}", '"', is_folded=True
)
_RESX = Strings(MARKUP, REFERENCES)
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
        for number, item in enumerate(items):
            name = own.get("name", "")
            key = name if item is node else f"{name}[{item.attributes.get('quantity', number)}]"
            for pattern, strings in _FORMS:
                match = pattern.fullmatch(source.text, item.inner, item.close)
                if match is not None:
                    yield Unit(key, *match.span(1), strings.pieces(match[1]))
                    break


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
