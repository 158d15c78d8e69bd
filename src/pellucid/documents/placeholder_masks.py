"""Masks: symbols that a model reads and writes in the place of placeholders such as ``%s``.

A model that never sees a placeholder cannot spell it wrongly. The k-th placeholder of a line is the
k-th symbol, and what the model writes gets its placeholders back. A symbol that a text has itself
is a placeholder as well, so that no text gets lost.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from zlib import crc32

from pellucid.config.config_json import MASKS
from pellucid.documents.markup.segments import Segment
from pellucid.documents.placeholders import find_placeholders

SYMBOL = re.compile(f"[{''.join(MASKS)}]")


def has_no_space(copy: str) -> bool:
    """Tell whether a placeholder is a part of a word, so that a symbol leaves words as they are."""
    return re.search(r"\s", copy) is None


def mask(
    line: str, *, start: int = 0, wanted: Callable[[str], bool] | None = None
) -> tuple[str, dict[str, str]]:
    """Write a symbol in the place of each placeholder; of more than 20 the others stay.

    Args:
        line: the line.
        start: the symbol to start with if there are enough after it.
        wanted: tells which placeholders; all unless given.

    Returns:
        The line with symbols, and the placeholder of each symbol, in their order.
    """
    places = [place for place in _find(line) if wanted is None or wanted(line[slice(*place)])]
    if len(places) > len(MASKS):  # Symbols of the text first: else they look like masks.
        first = sorted(places, key=lambda place: line[slice(*place)] not in MASKS)
        places = sorted(first[: len(MASKS)])
    symbols = MASKS[start if start + len(places) <= len(MASKS) else 0 :]
    copies = {symbol: line[slice(*place)] for symbol, place in zip(symbols, places, strict=False)}
    return _write(line, zip(places, copies, strict=True)), copies


def mask_with(text: str, copies: Mapping[str, str]) -> str:
    """Write symbols for the placeholders of a text that have one, each once."""
    left = dict(copies)
    chosen = []
    for place in _find(text) if left else ():
        symbol = next((one for one, copy in left.items() if copy == text[slice(*place)]), None)
        if symbol is not None:
            del left[symbol]
            chosen.append((place, symbol))
    return _write(text, chosen)


def mask_copies(
    segment: Segment, wanted: Callable[[str], bool] | None = None
) -> tuple[str, dict[str, str]]:
    """Write a symbol in the place of each copy of a segment, as `mask` does for a line.

    Args:
        segment: the segment.
        wanted: tells which copies; all unless given.

    Returns:
        The text without white space at its edges, and the copy of each symbol; a symbol of the text
        is its own copy.
    """
    text = segment.text
    places = list[tuple[int, int]]()
    for one in segment.elements.values():
        written = text[one.start : one.end]
        copy = written.strip()
        if one.is_copy and copy and (wanted is None or wanted(copy)):
            start = one.start + written.index(copy)
            places.append((start, start + len(copy)))
    symbols = (symbol for symbol in MASKS if symbol not in text)
    copies = {symbol: text[slice(*place)] for symbol, place in zip(symbols, places, strict=False)}
    text = _write(text, zip(places, copies, strict=False)).strip()
    return text, {symbol: symbol for symbol in MASKS if symbol in text} | copies


def mask_pair(
    source: str, target: str, *, wanted: Callable[[str], bool] | None = None
) -> tuple[str, str]:
    """Write symbols for the placeholders of a source, and for equal ones of its translation."""
    masked, copies = mask(source, wanted=wanted)
    return masked, mask_with(target, copies)


def mask_lesson(
    source: str, target: str, *, wanted: Callable[[str], bool] | None = None
) -> tuple[str, str]:
    """Mask a pair to learn from: only what both sides have, so that no symbol gets lost.

    Every second pair starts with any symbol, so that all are learned.
    """
    left = Counter(mask(target, wanted=wanted)[1].values())
    kept = list[str]()
    for copy in mask(source, wanted=wanted)[1].values():
        if left[copy]:
            left[copy] -= 1
            kept.append(copy)
    free = [one for one in MASKS if one in kept or one not in f"{source}{target}"]
    # Python's own hash of a text differs from process to process; a run must be repeatable.
    number = crc32(source.encode("utf-8", "replace"))
    start = number // 2 % max(1, len(free) + 1 - len(kept)) if number % 2 else 0
    copies = dict(zip(free[start:], kept, strict=False))
    return mask_with(source, copies), mask_with(target, copies)


def unmask(text: str, copies: Mapping[str, str]) -> str:
    """Write placeholders in the place of their symbols; a symbol without one goes.

    A word of such symbols goes with a space, so that all other words stay words.
    """
    # No symbol is in ASCII.
    if text.isascii():
        return text
    if gone := "".join(one for one in MASKS if one in text and one not in copies):
        text = re.sub(rf"^(?:[{gone}]+ )+|(?: |^)[{gone}]+(?= |$)|[{gone}]", "", text)
    return SYMBOL.sub(lambda found: copies[found[0]], text)


def _find(line: str) -> list[tuple[int, int]]:
    """Find the places of placeholders and symbols, in order."""
    places = [found.span() for found, token in find_placeholders(line) if token is None]
    if not line.isascii():
        ends = [end for _, end in places]
        for symbol in [found.span() for found in SYMBOL.finditer(line)]:
            # A symbol within a placeholder is a part of it, and gets no second mask.
            after = bisect_right(ends, symbol[0])
            if after == len(ends) or symbol[0] < places[after][0]:
                places.append(symbol)
    return sorted(places)


def _write(line: str, places: Iterable[tuple[tuple[int, int], str]]) -> str:
    parts = []
    last = 0
    for (start, end), symbol in places:
        parts += [line[last:start], symbol]
        last = end
    return "".join((*parts, line[last:]))
