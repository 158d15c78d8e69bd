"""Messages of ICU: ``{n, plural, =1 {the dog <x/> eats} other {…}}``, also if codes cut them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from pellucid.documents.markup.placeholder_shapes import match_braces

_BEGIN = re.compile(r"\{\s*+[\w.-]{1,60}\s*,\s*(plural|select|selectordinal)\s*,")
_WHOLE = re.compile(rf"\s*+{_BEGIN.pattern}(?:\s*offset\s*:\s*\d+)?+")
_ARM = re.compile(r"\s*+(=\d+|[\w-]++)\s*+\{")
_END = re.compile(r"\s*+\}\s*+")
_BRACE = re.compile(r"[{}]")


class SplitMessage(NamedTuple):
    """A message over several parts of a text.

    Attributes:
        first: the number of the part that it begins in.
        start: its place there.
        last: the number of the part that it ends in, a later one.
        end: the place after it there.
    """

    first: int
    start: int
    last: int
    end: int


def find_split_messages(texts: Sequence[str | None]) -> list[SplitMessage]:
    """Find the messages that begin in one text and end in another, in order.

    Args:
        texts: the parts; None is a code.
    """
    if not any(text and _BEGIN.search(text) for text in texts):
        return []
    opened = list[tuple[int, int]]()
    found = list[SplitMessage]()
    for number, text in enumerate(texts):
        for brace in _BRACE.finditer(text or ""):
            if brace[0] == "{":
                opened.append((number, brace.start()))
            elif opened:
                first, start = opened.pop()
                begun = texts[first] or ""
                if first < number and _BEGIN.match(begun, start):
                    found.append(SplitMessage(first, start, number, brace.end()))
    # The outermost ones: those within begin later and end earlier.
    outermost = list[SplitMessage]()
    for one in reversed(found):
        if not outermost or one[2:] <= outermost[-1][:2]:
            outermost.append(one)
    return outermost[::-1]


class Arm(NamedTuple):
    """A text within a message.

    Attributes:
        start: its place in the message.
        end: the place after it.
        name: what it is for, such as ``other``.
        siblings: the names of all texts next to it in a plural; none in another choice.
    """

    start: int
    end: int
    name: str = ""
    siblings: Sequence[str] = ()


def has_message(text: str) -> bool:
    """Tell whether a message begins in a text."""
    return "{" in text and _BEGIN.search(text) is not None


def find_arms(text: str) -> list[Arm]:
    """Find the texts of a message, also of messages that are one of them, in order.

    None if there are words around the message, or if its braces do not match.
    """
    if not has_message(text):
        return []
    closings = match_braces(text)
    waiting = [Arm(0, len(text))]
    found: list[Arm] = []
    while waiting:
        outer = waiting.pop()
        inner = _arms_in(text, outer, closings)
        waiting += inner
        found += [] if inner else [outer]
    # Without a name it is the whole text.
    return sorted(one for one in found if one.name)


def _arms_in(text: str, outer: Arm, closings: dict[int, int]) -> list[Arm]:
    begin = _WHOLE.match(text, outer.start, outer.end)
    if begin is None:
        return []
    arms: list[Arm] = []
    place = begin.end()
    while (arm := _ARM.match(text, place, outer.end)) and arm.end() - 1 in closings:
        place = closings[arm.end() - 1]
        arms.append(Arm(arm.end(), place - 1, arm[1]))
    if not _END.fullmatch(text, place, outer.end):
        return []
    names = [one.name for one in arms] if begin[1] == "plural" else ()
    return [one._replace(siblings=names) for one in arms]
