"""YAML: the texts that are values, as PyYAML finds them, with their places."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any, NoReturn

import yaml

from pellucid.documents.escapes import QUOTED, Strings, find_pipes
from pellucid.documents.markup.segments import Piece, Segment, Spelled, Syntax, spell
from pellucid.documents.placeholders import make_segment
from pellucid.documents.strings import doubt_forms
from pellucid.documents.units import Source, Unit, join_path
from pellucid.languages.plurals import CATEGORIES, missing_categories

MOST_BRACKETS = 100
"""Lists and mappings in brackets inside each other."""

_TEXT_TAG = "tag:yaml.org,2002:str"
_STRINGS = {
    "'": Strings({"'": "''"}, "''", is_folded=True, is_piped=True),
    '"': Strings(QUOTED, breaks=r"\\\r?\n[ \t]*", is_folded=True, is_piped=True),
}
_BLOCK = Strings({}, r"(?!)", is_folded=True, is_piped=True)


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types.
    """Reads documents as nodes, and refuses what cannot be written as a text in its place."""

    def __init__(self, source: Source) -> None:
        super().__init__(source.text)
        self._source = source

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event: Any = self.peek_event()
        place = event.start_mark.index
        if event.anchor:
            what = "YAML must have no anchors and aliases, but has one"
            self._source.refuse(place, what, "Write the value out.")
        if event.tag:
            what = f"YAML must have no tags, but has {event.tag}"
            self._source.refuse(place, what, "Remove it.")
        return super().compose_node(parent, index)

    def fetch_flow_collection_start(self, kind: Any) -> None:
        # The time that PyYAML takes grows with the square of the depth, and more.
        if self.flow_level == MOST_BRACKETS:
            _refuse_depth(self._source, self.index)
        super().fetch_flow_collection_start(kind)


def read_yaml(source: Source) -> Iterator[Unit]:
    """Find the texts that are values; keys, numbers and the like are copied.

    Raises:
        DataError: it is not YAML, has tags or aliases, or has a key twice.
    """
    try:
        loader = _Loader(source)
        while loader.check_node():
            node = loader.get_node()
            yield from _root(source, node)
            yield from _units(source, node, (), is_flow=False)
    except yaml.YAMLError as error:
        # PyYAML's errors about single characters have neither a mark nor a problem.
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "a character is not allowed"
        what = f"YAML must be well-formed, but is not: {problem}"
        source.refuse(mark.index if mark else 0, what, "Correct it.")
    except RecursionError:
        _refuse_depth(source, 0)


def _root(source: Source, node: Any) -> Iterator[Unit]:
    """Let the only key of a file, as Rails has it, name the new language instead of the old one."""
    own, target = source.how.languages
    key = node.value[0][0] if isinstance(node, yaml.MappingNode) and len(node.value) == 1 else None
    if own and target and isinstance(key, yaml.ScalarNode) and key.value == own:
        place = key.start_mark.index
        raw = source.text[place : key.end_mark.index]
        # The empty segment makes it a unit: without one it would be copied.
        yield Unit(own, place, key.end_mark.index, [raw.replace(own, target), Segment()])


def _refuse_depth(source: Source, place: int) -> NoReturn:
    source.refuse(place, "YAML must not be nested so deeply, but is", "Make it flatter.")


def _units(source: Source, node: Any, path: tuple[str, ...], *, is_flow: bool) -> Iterator[Unit]:
    """Find the texts in a node, whose keys are its path."""
    if isinstance(node, yaml.ScalarNode):
        if node.tag == _TEXT_TAG and node.value.strip():
            yield _unit(source, node, join_path(path), is_flow=is_flow)
        return
    names: set[str] = set()
    for number, one in enumerate(node.value):
        key, value = one if isinstance(node, yaml.MappingNode) else (None, one)
        name = str(key.value if key else number)
        if name in names:
            what = f"A key must stand once in its mapping, but {name!r} stands twice"
            source.refuse(one[0].start_mark.index, what, "Remove one of them.")
        names.add(name)
        is_inside = is_flow or bool(node.flow_style)
        yield from _units(source, value, (*path, name), is_flow=is_inside)
        if key is not None and name == "other" and isinstance(value, yaml.ScalarNode):
            yield from _other_forms(source, node, key, value, path, is_flow=is_inside)


def _other_forms(
    source: Source,
    node: Any,
    key: yaml.ScalarNode,
    value: yaml.ScalarNode,
    path: tuple[str, ...],
    *,
    is_flow: bool,
) -> Iterator[Unit]:
    """Make the forms that plurals of the target's language need, as Rails has them."""
    there = [str(one.value) for one, _ in node.value]
    if not CATEGORIES.issuperset(there):
        return
    text = source.text
    end = value.end_mark.index
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = ", " if is_flow else " " * key.start_mark.column
    # The value of a block ends with its line.
    if not is_flow and text[end - 1] != "\n":
        gap = f"{newline}{gap}"
    for one in missing_categories(there, source.how.languages[1]):
        own = _unit(source, value, join_path((*path, one)), is_flow=is_flow)
        raw = text[key.start_mark.index : value.start_mark.index].replace("other", one, 1)
        own.line = source.line(own.start)
        own.pieces = [f"{gap}{raw}", *own.pieces]
        own.start = end
        own.end = end
        yield own


def _unit(source: Source, node: yaml.ScalarNode, key: str, *, is_flow: bool) -> Unit:
    start = node.start_mark.index
    end = node.end_mark.index
    raw = source.text[start:end]
    target = source.how.languages[1]
    if node.style in _STRINGS:
        pieces = [raw[0], *_STRINGS[node.style].pieces(raw[1:-1], target), raw[-1]]
    elif node.style in ("|", ">"):
        pieces = _read_block(raw, node.style, target)
    else:
        pieces = _read_parts(raw, is_flow=is_flow)
    unit = Unit(key, start, end, pieces)
    unit.doubt = doubt_forms(unit, target)
    return unit


def _read_parts(raw: str, *, is_flow: bool) -> list[Piece]:
    """Read a text without quotes: as a whole, or the forms of a plural, which get none."""
    read = partial(_read_plain, is_flow=is_flow)
    pipes = find_pipes(raw)
    if not pipes:
        syntax = Syntax({}, finish=partial(_quote, is_flow=is_flow), read=read)
        return [make_segment(Spelled(raw), syntax)]
    pieces: list[Piece] = [make_segment(Spelled(raw[: pipes[0]]), Syntax({}, read=read))]
    inner = Syntax({}, read=partial(_read_inner, is_flow=is_flow))
    for pipe, end in pairwise([*pipes, len(raw)]):
        pieces += ["|", make_segment(Spelled(raw[pipe + 1 : end]), inner)]
    return pieces


def _read_block(raw: str, style: str, target: str) -> list[Piece]:
    """Read the lines of a block, or its paragraphs if lines are folded."""
    head, newline, body = raw.partition("\n")
    pieces: list[Piece] = [head + newline]
    end_of_part = r"[^\S\n]*+\n" if style == "|" else r"\s*\n[ \t]*+\r?\n"
    # Only a run of white space as a whole is tried, for the time to be linear.
    for part in re.split(rf"((?<!\s)(?={end_of_part})\s++)", body):
        start, own, end = part.partition(part.strip()) if part.strip() else (part, "", "")
        pieces += [start, *_BLOCK.pieces(own, target), end]
    return pieces


def _load(written: str, *, is_flow: bool) -> str | None:
    """Read a written scalar; None if it is not one text."""
    try:
        # Between brackets a comma or a bracket ends a text; elsewhere it does not. Only composed:
        # what looks like a date need not be one.
        found = yaml.compose(f"[{written}]" if is_flow else f"- {written}", yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    own = found.value if isinstance(found, yaml.SequenceNode) else []
    is_text = len(own) == 1 and isinstance(own[0], yaml.ScalarNode) and own[0].tag == _TEXT_TAG
    return own[0].value if is_text else None


def _read_plain(written: str, *, is_flow: bool) -> Segment | None:
    text = _load(written, is_flow=is_flow)
    return None if text is None else make_segment(Spelled(text), Syntax({}))


def _read_inner(written: str, *, is_flow: bool) -> Segment | None:
    """Read what is not the beginning of a text, which other signs may begin."""
    text = _load(f"x|{written}", is_flow=is_flow)
    return None if text is None else make_segment(Spelled(text[2:]), Syntax({}))


def _quote(segment: Segment, written: str, *, is_flow: bool) -> str:
    """Put quotes around a text that would be something else without them."""
    text = " ".join(written.split())
    if written == spell(segment.pieces) or _load(written, is_flow=is_flow) == text:
        return written
    # A string of JSON is one of YAML as well.
    return json.dumps(text, ensure_ascii=False)
