"""Tables of texts: JSON with ARB, ``.properties`` of Java, and ``.strings`` of Apple."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pellucid.documents.escapes import BACKSLASHES, QUOTED, Strings, as_utf16
from pellucid.documents.markup.segments import Piece, Segment
from pellucid.documents.units import Mark, Source, Unit, indent_before, join_path
from pellucid.languages.codes import are_same_language, short_code
from pellucid.languages.plurals import CATEGORIES, missing_categories, num_forms

FORMS = "a plural of two forms may need others"
_COUNT = re.compile(r"[:%{ ]*(?:count|n)[%} ]*")
_RANGE = re.compile(r"\{\d|\[\d")
_STATE = Mark("translated", "needs_review")
_JSON_PART = re.compile(
    r"\"(?P<text>(?:[^\"\\]|\\.)*)\"|[{}\[\],:]|[^\s{}\[\],:\"]+|\s+", re.DOTALL
)
_ESCAPES = {**QUOTED, "\b": "\\b", "\f": "\\f"}
_ONE_IS_SECOND = ("ar", "sl")
"""Languages whose form for one has the number 1 in i18next 3; for all others it has 0."""
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
# The backslash of a name that Swift fills in escapes nothing.
_NO_SWIFT = rf"(?!\\\((?:[^()\n]|\([^()\n]*+\))++\))(?:{BACKSLASHES})"
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
    name = 0
    strings = replace(_strings(source, _ESCAPES), is_piped=True)
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
            name = match.start()
            is_key = False
        elif match["text"] is not None:
            key = join_path(path)
            if path == ["@@locale"] and target and are_same_language(match["text"], own):
                # The empty segment makes it a unit: without one it would be copied.
                yield Unit(key, *match.span("text"), [target, Segment()])
            elif not any(isinstance(one, str) and one.startswith("@") for one in path):
                unit = Unit(key, *match.span("text"), strings.pieces(match["text"], target))
                unit.doubt = doubt_forms(unit, target)
                about = described.get(f"@{key}")
                unit.comment = str(about.get("description", "")) if isinstance(about, dict) else ""
                yield unit
                suffix, names = _missing(described, path, target)
                yield from _copies(source, unit, names, suffix, name, strings)


def doubt_forms(unit: Unit, target: str) -> str:
    """Say that a plural of two forms, ``:count dog|:count dogs``, needs others in a language.

    Laravel and Vue read three forms in different ways, so that none can be added.
    """
    parts = unit.segments
    piped = [one for one in unit.pieces if isinstance(one, str) and one == "|"]
    copies = [copy for one in parts for copy in one.copies]
    is_plural = any(map(_COUNT.fullmatch, copies)) and not any(map(_RANGE.match, copies))
    if len(parts) == 2 and piped and is_plural and num_forms(target) not in (0, 2):
        return f"{FORMS}: {num_forms(target)} in {target}"
    return ""


def _copies(
    source: Source,
    unit: Unit,
    names: Sequence[tuple[str, str | None]],
    suffix: str,
    key: int,
    strings: Strings,
) -> Iterator[Unit]:
    """Make units that stand after another one, for the other forms of its plural.

    Args:
        source: the document.
        unit: the last form there.
        names: what stands for its suffix in each new key, and the text if that is another one.
        suffix: of its key.
        key: the place of its key.
        strings: reads its text.
    """
    gap = indent_before(source.text, key)
    for name, text in names:
        # A key may have "other" twice, as see_other_other.
        begin, _, end = source.text[key : unit.start].rpartition(suffix)
        raw = source.text[unit.start : unit.end] if text is None else json.dumps(text)[1:-1]
        pieces = [f",{gap or ' '}{begin}{name}{end}", *strings.pieces(raw), '"']
        place = unit.end + 1
        own = f"{unit.key.removesuffix(suffix)}{name}"
        yield Unit(own, place, place, pieces, source.line(key))


def _missing(
    document: Mapping[str, Any], path: Sequence[str | int], target: str
) -> tuple[str, list[tuple[str, str | None]]]:
    """Find the keys that the target's plurals need next to one, and that are not there.

    Returns:
        The end of the key, and what stands there in each new one; with the text of a new one if
        that is not the text of the key.
    """
    key = path[-1]
    if not isinstance(key, str) or not target:
        return "", []
    inside: Any = document
    for one in path[:-1]:
        inside = inside[one]
    if not isinstance(inside, dict):
        return "", []
    stem, _, suffix = key.rpartition("_")
    if suffix == "plural" and isinstance(inside.get(stem), str):
        # Of i18next until version 3, where forms have numbers unless there are two.
        numbers = range(num_forms(target))
        first = 1 if short_code(target) in _ONE_IS_SECOND else 0
        # The only form of a language is that for all numbers.
        own = None if len(numbers) == 1 else inside[stem]
        forms = [(str(one), own if one == first else None) for one in numbers]
        there = {f"{stem}_{one}" for one in numbers} & {*inside}
        return suffix, [] if len(forms) == 2 or there else forms
    name = key.removesuffix("other")
    # A plural of i18next has its forms next to others, that of i18n-js its own object.
    is_own = not name and CATEGORIES.issuperset(inside)
    if name == key or name.endswith("_ordinal_") or not (is_own or name.endswith("_")):
        return "", []
    there = {one.removeprefix(name) for one in inside if one.startswith(name)}
    return "other", [(one, None) for one in missing_categories(there, target)]


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
        # The line says little if everything is on one. Some sentences of Python end with "at".
        fault = f"{error.msg.removesuffix(' at')} at column {error.colno}"
        what = f"JSON must be well-formed, but is not: {fault}"
        source.refuse(error.pos, what, "Correct it.")
    except RecursionError:
        source.refuse(0, "JSON must not be nested so deeply, but is", "Make it flatter.")
    return found if isinstance(found, dict) else {}


@dataclass
class _Value:
    """A value of JSON and its place; ``members`` are those of an object, in order."""

    start: int
    end: int = 0
    members: dict[str, _Value] = field(default_factory=dict)

    def get(self, *path: str) -> _Value | None:
        """Follow keys to a value."""
        found: _Value | None = self
        for key in path:
            found = found and found.members.get(key)
        return found


def read_xcstrings(source: Source) -> Iterator[Unit]:
    """Find the texts of Xcode's ``.xcstrings`` that the target's language lacks.

    Each gets a localization with the form of the source's, whose state says if it was looked at.

    Raises:
        DataError: it is not JSON, has no texts, or is of another language.
    """
    document = _check_json(source)
    text = source.text
    own, target = source.how.languages
    named = str(document.get("sourceLanguage", ""))
    if own and named and not are_same_language(named, own):
        what = f"The language (sourceLanguage) must be {own}, but is {named}"
        source.refuse(0, what, "Use a model of this language.")
    if not target:
        what = "The language of the translations must be known, but the model names none"
        source.refuse(0, what, "Use a model with languages.")
    texts = _values(text).get("strings")
    if texts is None:
        what = "An .xcstrings file must have strings, but has none"
        source.refuse(0, what, "Take the file that Xcode made.")
    strings = _strings(source, _ESCAPES)
    for key, entry in texts.members.items():
        should = entry.get("shouldTranslate")
        there = entry.get("localizations") or _Value(0)
        is_there = any(are_same_language(one, target) for one in there.members)
        if is_there or not key.strip() or (should and text[should.start : should.end] == "false"):
            continue
        model = next((one for name, one in there.members.items() if name == named), None)
        if model is None:
            raw = json.dumps(key, ensure_ascii=False)[1:-1]
            localization: list[Piece | Mark] = ['{ "stringUnit" : { "state" : "', _STATE]
            localization += ['", "value" : "', *strings.pieces(raw), '" } }']
        else:
            localization = _localization(text, model, strings, target)
        place, end, before, after = _room(text, there if there.end else entry)
        if not there.end:
            before += '"localizations" : { '
            after = f" }}{after}"
        comment = entry.get("comment")
        pieces = [f'{before}"{target}" : ', *localization, after]
        unit = Unit(key, place, end, pieces, source.line(entry.start))
        unit.comment = json.loads(text[comment.start : comment.end]) if comment else ""
        yield unit


def _localization(text: str, model: _Value, strings: Strings, target: str) -> list[Piece | Mark]:
    """Write a localization in the form of another one, with the plurals of its language."""
    pieces: list[Piece | Mark] = []
    place = model.start

    def write(value: _Value) -> None:
        nonlocal place
        unit = value.members if {"state", "value"} <= {*value.members} else {}
        for name, one in sorted(unit.items(), key=lambda pair: pair[1].start):
            if name in ("state", "value"):
                pieces.append(text[place : one.start + 1])
                inside = text[one.start + 1 : one.end - 1]
                pieces.extend([_STATE] if name == "state" else strings.pieces(inside))
                place = one.end - 1
        for name, one in value.members.items() if not unit else ():
            write(one)
            missing = missing_categories(one.members, target) if name == "plural" else ()
            for category in missing:
                other = one.members["other"]
                # The form for all other numbers stands for the one that the source lacks.
                last = max(one.members.values(), key=lambda form: form.end)
                pieces.append(f'{text[place : last.end]}, "{category}" : ')
                place = other.start
                write(other)
                pieces.append(text[place : other.end])
                place = last.end

    write(model)
    return [*pieces, text[place : model.end]]


def _room(text: str, value: _Value) -> tuple[int, int, str, str]:
    """Find the place for another member of an object, and what stands before and after it."""
    line = text[text.rfind("\n", 0, value.start) + 1 : value.start]
    indent = line[: len(line) - len(line.lstrip())]
    newline = "\r\n" if "\r\n" in text[: value.start] else "\n"
    if value.members:
        last = max(one.end for one in value.members.values())
        return last, last, f",{newline}{indent}  ", ""
    return value.start + 1, value.end - 1, f"{newline}{indent}  ", f"{newline}{indent}"


def _values(text: str) -> _Value:
    """Find the places of the values of JSON that is well-formed; items of lists have no names."""
    top = _Value(0)
    opened = [top]
    key: list[str | None] = [""]
    for match in _JSON_PART.finditer(text):
        part = match[0]
        if part in ("}", "]"):
            opened.pop().end = match.end()
            key.pop()
        elif part == ",":
            key[-1] = None
        elif match["text"] is not None and key[-1] is None and text[opened[-1].start] == "{":
            key[-1] = json.loads(part, strict=False)
        elif part != ":" and not part.isspace():
            value = _Value(match.start(), match.end())
            opened[-1].members[key[-1] or ""] = value
            if part in ("{", "["):
                opened.append(value)
                key.append(None)
    return top.members.get("", top)


def read_properties(source: Source) -> Iterator[Unit]:
    """Find the texts of a ``.properties`` file.

    Of equal keys Java reads the last one: each is translated, and those after the first reported.
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
            form = messages if _MESSAGE.fullmatch(match["text"]) else strings
            target = source.how.languages[1]
            unit = Unit(key, *match.span("text"), form.pieces(match["text"], target))
            unit.doubt = _doubt_key(source, seen, unit)
            unit.comment = "\n".join(comment)
            comment.clear()
            yield unit


def read_strings(source: Source) -> Iterator[Unit]:
    """Find the texts of a ``.strings`` file.

    Raises:
        DataError: a line is not a pair of a key and a text.
    """
    strings = Strings(QUOTED, _NO_SWIFT)
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
            unit = Unit(key, *match.span("text"), strings.pieces(match["text"]))
            unit.doubt = _doubt_key(source, seen, unit)
            yield unit
        place = match.end()


def _doubt_key(source: Source, seen: dict[str, int], unit: Unit) -> str:
    """Say that a key stands twice, of which programs read the last one."""
    line = source.line(unit.start)
    first = seen.setdefault(unit.key, line)
    return "" if first == line else f"its key stands twice: also in line {first}"
