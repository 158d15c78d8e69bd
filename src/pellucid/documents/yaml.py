"""YAML: the texts that are values, as PyYAML finds them, with their places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import yaml

from pellucid.documents.escapes import QUOTED, Strings
from pellucid.documents.markup.segments import Piece, Segment, Spelled, Syntax, spell
from pellucid.documents.placeholders import make_segment
from pellucid.documents.units import Source, Unit

_TEXT_TAG = "tag:yaml.org,2002:str"
_STRINGS = {
    "'": Strings({"'": "''"}, "''", is_folded=True),
    '"': Strings(QUOTED, breaks=r"\\\r?\n[ \t]*", is_folded=True),
}
_BLOCK = Strings({}, r"(?!)", is_folded=True)


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
    if event.style in _STRINGS:
        pieces = [raw[0], *_STRINGS[event.style].pieces(raw[1:-1]), raw[-1]]
    elif event.style in ("|", ">"):
        pieces = _read_block(raw, event.style)
    else:
        read = partial(_read_plain, is_flow=is_flow)
        syntax = Syntax({}, finish=partial(_quote, is_flow=is_flow), read=read)
        pieces = [make_segment(Spelled(raw), syntax)]
    return Unit(key, start, end, pieces)


def _read_block(raw: str, style: str) -> list[Piece]:
    """Read the lines of a block, or its paragraphs if lines are folded."""
    head, newline, body = raw.partition("\n")
    pieces: list[Piece] = [head + newline]
    lines = r"(\s*\n\s*)" if style == "|" else r"(\s*\n[ \t]*\r?\n\s*)"
    for part in re.split(lines, body):
        start, own, end = part.partition(part.strip()) if part.strip() else (part, "", "")
        pieces += [start, *_BLOCK.pieces(own), end]
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
    return None if text is None else make_segment(Spelled(text), Syntax({}))


def _quote(segment: Segment, written: str, *, is_flow: bool) -> str:
    """Put quotes around a text that would be something else without them."""
    text = " ".join(written.split())
    if written == spell(segment.pieces) or _load(written, is_flow=is_flow) == text:
        return written
    return json.dumps(text, ensure_ascii=False)
