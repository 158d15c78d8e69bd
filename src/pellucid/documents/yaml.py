"""YAML: the texts that are values, as PyYAML finds them, with their places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import yaml

from pellucid.documents.escapes import BACKSLASHES, NOTHING, line_segments, read_escapes, reader_of
from pellucid.documents.markup.segments import Piece, Segment, Spelled, Syntax, spell
from pellucid.documents.placeholders import make_segment
from pellucid.documents.units import Source, Unit

_TEXT_TAG = "tag:yaml.org,2002:str"
_DOUBLE = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


@dataclass
class _Level:
    """A mapping or a sequence that is being read."""

    is_mapping: bool
    is_flow: bool
    key: str = ""
    count: int = 0
    keys: set[str] = field(default_factory=set)

    @property
    def is_at_key(self) -> bool:
        return self.is_mapping and self.count % 2 == 0


def read_yaml(source: Source) -> Iterator[Unit]:
    """Find the texts that are values; keys, numbers and the like are copied.

    Raises:
        DataError: it is not YAML, has tags or aliases, or has a key twice.
    """
    levels: list[_Level] = []
    resolver = yaml.SafeLoader("")
    for event in _read_events(source):
        if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
            is_mapping = isinstance(event, yaml.MappingStartEvent)
            levels.append(_Level(is_mapping, bool(event.flow_style)))
        elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
            levels.pop()
            if levels:
                levels[-1].count += 1
        elif isinstance(event, yaml.ScalarEvent):
            level = levels[-1] if levels else _Level(False, False)
            if level.is_at_key:
                if event.value in level.keys:
                    what = f"A key must stand once in its mapping, but {event.value!r} stands twice"
                    source.refuse(event.start_mark.index, what, "Remove one of them.")
                level.keys.add(event.value)
                level.key = event.value
            else:
                tag = resolver.resolve(yaml.ScalarNode, event.value, event.implicit)
                if tag == _TEXT_TAG and event.value.strip():
                    names = (one.key if one.is_mapping else str(one.count) for one in levels)
                    is_flow = any(one.is_flow for one in levels)
                    yield _unit(source, event, ".".join(names), is_flow=is_flow)
            level.count += 1


def _read_events(source: Source) -> Iterator[Any]:
    try:
        for event in yaml.parse(source.text, Loader=yaml.SafeLoader):
            place = event.start_mark.index
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                what = "YAML must have no anchors and aliases, but has one"
                source.refuse(place, what, "Write the value out.")
            if getattr(event, "tag", None):
                what = f"YAML must have no tags, but has {event.tag}"
                source.refuse(place, what, "Remove it.")
            yield event
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "a character is not allowed"
        what = f"YAML must be well-formed, but is not: {problem}"
        source.refuse(mark.index if mark else 0, what, "Correct it.")
    except RecursionError:
        source.refuse(0, "YAML must not be nested so deeply, but is", "Make it flatter.")


def _unit(source: Source, event: yaml.ScalarEvent, key: str, *, is_flow: bool) -> Unit:
    start, end = event.start_mark.index, event.end_mark.index
    raw = source.text[start:end]
    pieces: list[Piece]
    if event.style in ("'", '"'):
        is_single = event.style == "'"
        escapes = "''" if is_single else BACKSLASHES
        read = partial(
            _read_text, breaks=NOTHING if is_single else r"\\\r?\n[ \t]*", escapes=escapes
        )
        plain = Syntax({"'": "''"} if is_single else _DOUBLE)
        syntax = replace(plain, read=reader_of(read, plain, is_folded=True))
        inner = line_segments(raw[1:-1], syntax, read, is_folded=True)
        pieces = [event.style, *inner, event.style]
    elif event.style in ("|", ">"):
        pieces = _read_block(raw, event.style)
    else:
        read_again = partial(_read_plain, is_flow=is_flow)
        syntax = Syntax({}, finish=partial(_quote, is_flow=is_flow), read=read_again)
        pieces = [make_segment(Spelled(raw), syntax, is_interface=True)]
    return Unit(key, start, end, pieces)


def _read_text(raw: str, breaks: str, escapes: str) -> tuple[str, Spelled]:
    return read_escapes(raw, breaks, escapes)


def _read_block(raw: str, style: str) -> list[Piece]:
    """Read the lines of a block, or its paragraphs if lines are folded."""
    head, newline, body = raw.partition("\n")
    pieces: list[Piece] = [head + newline]
    plain = Syntax({})
    syntax = replace(plain, read=lambda raw: make_segment(Spelled(raw), plain))
    pattern = r"(\s*\n[ \t\r\n]*)" if style == "|" else r"(\s*\n[ \t]*\r?\n[ \t\r\n]*)"
    for part in re.split(pattern, body):
        own = part.strip()
        if own:
            start, _, end = part.partition(own)
            pieces += [start, make_segment(Spelled(own), syntax, is_interface=True), end]
        else:
            pieces.append(part)
    return pieces


def _load(written: str, *, is_flow: bool) -> str | None:
    """Read a written scalar; None if it is not one text."""
    try:
        found = yaml.safe_load(f"[{written}]" if is_flow else f"- {written}")
    except yaml.YAMLError:
        return None
    is_text = isinstance(found, list) and len(found) == 1 and isinstance(found[0], str)
    return found[0] if is_text else None


def _read_plain(written: str, *, is_flow: bool) -> Segment | None:
    text = _load(written, is_flow=is_flow)
    return None if text is None else make_segment(Spelled(text), Syntax({}), is_interface=True)


def _quote(segment: Segment, written: str, *, is_flow: bool) -> str:
    """Put quotes around a text that would be something else without them."""
    text = " ".join(written.split())
    if written == spell(segment.pieces) or _load(written, is_flow=is_flow) == text:
        return written
    return json.dumps(text, ensure_ascii=False)
