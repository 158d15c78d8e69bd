"""Fluent: messages, their attributes and variants; what stands in braces is copied."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pellucid.documents.escapes import Strings
from pellucid.documents.markup.segments import Segment
from pellucid.documents.units import Source, Unit

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
    place = 0
    for line in source.text.splitlines(keepends=True):
        end = place + len(line)
        start = _START.match(line)
        is_start = start is not None
        match = start or (_VARIANT.match(line) if key else None)
        is_more = bool(key) and line[:1] in " \t" and bool(line.strip()) and not _END.match(line)
        if match is not None or not is_more:
            yield from _take(source, name, span)
            span = []
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
        place = end
    yield from _take(source, name, span)


def _take(source: Source, name: str, span: list[int]) -> Iterator[Unit]:
    if span and source.text[span[0] : span[1]].strip():
        raw = source.text[slice(*span)]
        start = span[0] + len(raw) - len(raw.lstrip())
        yield Unit(name, start, span[1], _STRINGS.pieces(source.text[start : span[1]]))
