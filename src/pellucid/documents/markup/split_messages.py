"""ICU messages that inline codes cut: ``{n, plural, =1 {the dog <x/> eats} other {…}}``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

_BEGIN = re.compile(r"\{\s*+[\w.-]{1,60}\s*,\s*(?:plural|select|selectordinal)\s*,")
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
