"""Fluent: messages, their attributes and variants; what stands in braces is copied."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pellucid.documents.escapes import Strings
from pellucid.documents.markup.segments import Segment
from pellucid.documents.units import Source, Unit
from pellucid.languages.plurals import missing_categories

_NO_TEXT = re.compile(r"\n[ \t]*[.*\[}]")
"""The beginning of a line that is no text."""
_START = re.compile(
    r"(?P<key>-?[a-zA-Z][\w-]*)[ \t]*=[ \t]*|[ \t]+\.(?P<attribute>[a-zA-Z][\w-]*)[ \t]*=[ \t]*"
)
_VARIANT = re.compile(r"[ \t]*\*?\[[^\]\n]*\][ \t]*")
_SELECT = re.compile(r"\{[^{}\n]*->[ \t]*\r?\Z")
_END = re.compile(r"[ \t]*\}")


class _Strings(Strings):
    """Refuses a translation with a line that Fluent would not read as text: it gets one line."""

    def _again(self, written: str) -> Segment | None:
        return None if _NO_TEXT.search(written) else super()._again(written)


# In a text a brace begins code, so that one that a model writes is a code of that sign.
_STRINGS = _Strings({"{": '{"{"}', "}": '{"}"}'}, r"(?!)", is_folded=True)


def read_fluent(source: Source) -> Iterator[Unit]:
    """Find the texts of messages; terms, such as ``-brand``, are names and copied."""
    key = ""
    name = ""
    span: list[int] = []
    missing = _MissingVariants(source)
    place = 0
    for line in source.text.splitlines(keepends=True):
        end = place + len(line)
        start = _START.match(line)
        is_start = start is not None
        match = start or (_VARIANT.match(line) if key else None)
        is_more = bool(key) and line[:1] in " \t" and bool(line.strip()) and not _END.match(line)
        if match is not None or not is_more:
            yield from missing.take(name, span)
            yield from _take(source, name, span)
            span = []
            missing.note(line if start is None else "", place)
        if start is not None and start["key"]:
            key = start["key"]
            name = key
        elif is_start and start is not None:
            name = f"{key}.{start['attribute']}"
        elif line.strip() and line[:1] not in " \t}":
            key = ""
        is_text = bool(key) and not key.startswith("-") and (match is not None or is_more)
        if is_text:
            first = place + (match.end() if match else 0)
            own = line[first - place :].rstrip("\r\n")
            head = _SELECT.search(own)
            last = first + (head.start() if head else len(own.rstrip()))
            span = [span[0] if span else first, last]
            if head:
                yield from _take(source, name, span)
                span = []
                missing.begin()
        place = end
    yield from missing.take(name, span)
    yield from _take(source, name, span)


class _MissingVariants:
    """The variants that plurals of the target's language need, put before the default one.

    Args:
        source: the document.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._names: list[str] = []
        self._default = -1

    def begin(self) -> None:
        """Begin a choice."""
        self._names = []

    def note(self, line: str, place: int) -> None:
        """Look at a line, which may begin a variant."""
        variant = _VARIANT.match(line)
        self._default = -1
        if variant is not None:
            self._names.append(variant[0].strip(" \t*[]"))
            if "*" in variant[0]:
                self._default = place

    def take(self, name: str, span: list[int]) -> Iterator[Unit]:
        """Make the variants that are missing if these are the text of the default one."""
        if self._default < 0 or not span or self._names[-1] != "other":
            return
        text = self._source.text
        head = text[self._default : span[0]].replace("*", " ", 1)
        newline = "\r\n" if "\r\n" in text else "\n"
        for one in missing_categories(self._names, self._source.how.languages[1]):
            pieces = [head.replace("other", one), *_STRINGS.pieces(text[slice(*span)]), newline]
            yield Unit(f"{name}[{one}]", self._default, self._default, pieces)


def _take(source: Source, name: str, span: list[int]) -> Iterator[Unit]:
    if span and source.text[span[0] : span[1]].strip():
        raw = source.text[slice(*span)]
        start = span[0] + len(raw) - len(raw.lstrip())
        yield Unit(name, start, span[1], _STRINGS.pieces(source.text[start : span[1]]))
