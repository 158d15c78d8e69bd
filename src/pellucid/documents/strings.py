"""Tables of texts: JSON with ARB, ``.properties`` of Java, and ``.strings`` of Apple."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pellucid.documents.escapes import QUOTED, Strings, as_utf16
from pellucid.documents.markup.segments import Segment
from pellucid.documents.units import Source, Unit, join_path
from pellucid.languages.codes import are_same_language

_JSON_PART = re.compile(
    r"\"(?P<text>(?:[^\"\\]|\\.)*)\"|[{}\[\],:]|[^\s{}\[\],:\"]+|\s+", re.DOTALL
)
_CONTINUED = r"\\(?:\r\n?|\n)[ \t\f]*+"
_GAP = rf"(?:[ \t\f]|{_CONTINUED})*+"
# As in Java each line fits, so that the time is linear: no place is tried twice. A backslash at the
# end of the file belongs to no text.
_PROPERTY = re.compile(
    rf"{_GAP}(?:[#!][^\r\n]*+|(?P<key>(?:[^ \t\f\r\n:=\\]|\\(?:\r\n|.))*+)"
    rf"{_GAP}(?:[:=]{_GAP})?+"
    r"(?P<text>(?:[^\\\r\n]|\\(?:\r\n|.))*+))(?:\r\n?|\n|\\?\Z)",
    re.DOTALL,
)
_MESSAGE = re.compile(r"(?=.*(?:''|\{\d))(?:[^']|'')*", re.DOTALL)
_STRING = re.compile(
    r"\s+|//[^\n]*|/\*.*?\*/"
    r"|(?:\"(?P<key>(?:[^\"\\]|\\.)*)\"|(?P<word>[\w.-]+))\s*=\s*\"(?P<text>(?:[^\"\\]|\\.)*)\"\s*;",
    re.DOTALL,
)


def _strings(
    source: Source, escapes: dict[str, str], breaks: str = r"(?!)", *, is_latin: bool = False
) -> Strings:
    """Write characters outside ASCII as the file does: with escapes if it has only these.

    Programs may read such a file as Latin-1 (``is_latin``), so that one in ASCII gets escapes, too.
    """
    has_escapes = source.text.isascii() and (is_latin or "\\u" in source.text)
    return Strings(escapes, breaks=breaks, outside_ascii=as_utf16 if has_escapes else None)


def read_json(source: Source) -> Iterator[Unit]:
    """Find the texts that are values in JSON.

    In ARB those of keys with ``@`` are copied, but its language becomes that of the translation.

    Raises:
        DataError: it is not JSON, or an object has a key twice.
    """
    described = _check_json(source)
    strings = _strings(source, {**QUOTED, "\b": "\\b", "\f": "\\f"})
    own, target = source.how.languages
    path: list[str | int] = []
    is_key = False
    for match in _JSON_PART.finditer(source.text):
        part = match[0]
        if part in ("{", "["):
            path.append(0 if part == "[" else "")
            is_key = part == "{"
        elif part in ("}", "]"):
            path.pop()
        elif part == ",":
            last = path.pop()
            path.append(last + 1 if isinstance(last, int) else "")
            is_key = isinstance(last, str)
        elif match["text"] is not None and is_key:
            # Not strict: a tab or a line end within a string is read like any other sign.
            path[-1] = json.loads(part, strict=False)
            is_key = False
        elif match["text"] is not None:
            key = join_path(path)
            if path == ["@@locale"] and target and are_same_language(match["text"], own):
                # The empty segment makes it a unit: without one it would be copied.
                yield Unit(key, *match.span("text"), [target, Segment()])
            elif not any(isinstance(one, str) and one.startswith("@") for one in path):
                unit = Unit(key, *match.span("text"), strings.pieces(match["text"]))
                about = described.get(f"@{key}")
                unit.comment = str(about.get("description", "")) if isinstance(about, dict) else ""
                yield unit


def _check_json(source: Source) -> Mapping[str, Any]:
    """Refuse what is not JSON; return what it holds by key, empty if it is no object."""

    def check(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                # No place is told here, and the key may be written with escapes or without.
                place = max(source.text.rfind(one) for one in (json.dumps(key), f'"{key}"'))
                what = f"A key must stand once in its object, but {key!r} stands twice"
                source.refuse(max(place, 0), what, "Remove one of them.")
            found[key] = value
        return found

    try:
        # Numbers are copied, and Python refuses those of more than 4,300 digits.
        found = json.loads(source.text, object_pairs_hook=check, parse_int=str, strict=False)
    except json.JSONDecodeError as error:
        what = f"JSON must be well-formed, but is not: {error.msg}"
        source.refuse(error.pos, what, "Correct it.")
    except RecursionError:
        source.refuse(0, "JSON must not be nested so deeply, but is", "Make it flatter.")
    return found if isinstance(found, dict) else {}


def read_properties(source: Source) -> Iterator[Unit]:
    """Find the texts of a ``.properties`` file.

    Raises:
        DataError: a key stands twice.
    """
    # No quotes stand around these texts, so that one inside is a sign like others.
    escapes = {sign: form for sign, form in QUOTED.items() if sign != '"'}
    strings = _strings(source, escapes, _CONTINUED, is_latin=True)
    # Java's MessageFormat, which fills in {0}, reads two apostrophes as one.
    messages = replace(strings, escapes={**escapes, "'": "''"}, forms=rf"''|{strings.forms}")
    seen: dict[str, int] = {}
    comment = list[str]()
    for match in _PROPERTY.finditer(source.text):
        line = match[0].strip()
        if line.startswith(("#", "!")):
            comment.append(line[1:].strip())
        elif not match["key"] and not match["text"]:
            comment.clear()
        else:
            key = strings.read(match["key"])[1].text
            _check_once(source, seen, key, match.start("key"))
            form = messages if _MESSAGE.fullmatch(match["text"]) else strings
            unit = Unit(key, *match.span("text"), form.pieces(match["text"]))
            unit.comment = "\n".join(comment)
            comment.clear()
            yield unit


def read_strings(source: Source) -> Iterator[Unit]:
    """Find the texts of a ``.strings`` file.

    Raises:
        DataError: a line is not a pair of a key and a text, or a key stands twice.
    """
    strings = Strings(QUOTED)
    seen: dict[str, int] = {}
    place = 0
    while place < len(source.text):
        match = _STRING.match(source.text, place)
        if match is None:
            line = source.text[place:].split("\n", 1)[0]
            what = f'A line must be "key" = "text";, but is {line[:60]!r}'
            source.refuse(place, what, "Correct it, for instance with plutil -lint.")
        if match["text"] is not None:
            key = match["key"] or match["word"] or ""
            _check_once(source, seen, key, place)
            yield Unit(key, *match.span("text"), strings.pieces(match["text"]))
        place = match.end()


def _check_once(source: Source, seen: dict[str, int], key: str, place: int) -> None:
    if key in seen:
        what = f"A key must stand once, but {key!r} is that of line {source.line(seen[key])} again"
        source.refuse(place, what, "Remove one of them.")
    seen[key] = place
