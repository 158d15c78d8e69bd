"""Masks: symbols that a model reads and writes in the place of placeholders such as ``%s``.

A model that never sees a placeholder cannot spell it wrongly. The k-th placeholder of a line is the
k-th symbol, and what the model writes gets its placeholders back. A symbol that a text has itself
is a placeholder as well, so that no text gets lost.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from zlib import crc32

from pellucid.config.config_json import MASKS
from pellucid.documents.markup.placeholder_shapes import fills_in_order, find_placeholders
from pellucid.documents.markup.segments import Segment

Wanted = Callable[[str], bool]
"""Tells whether a placeholder gets a symbol."""

SYMBOL = re.compile(f"[{''.join(MASKS)}]")


def has_no_space(copy: str) -> bool:
    """Tell whether a placeholder is a part of a word, so that a symbol leaves words as they are."""
    return re.search(r"\s", copy) is None


def maskable(symbols: Collection[str], *, words_only: bool = False) -> Wanted | None:
    """Choose the placeholders that get a symbol.

    Args:
        symbols: those of the tokenizer. Its own, such as the tag of a domain, are text.
        words_only: True to leave placeholders with white space, so that words can be counted.

    Returns:
        Tells which; None for all.
    """
    own = {*symbols} - {*MASKS}
    if not own:
        return has_no_space if words_only else None
    return lambda copy: copy not in own and (not words_only or has_no_space(copy))


def mask(line: str, *, start: int = 0, wanted: Wanted | None = None) -> tuple[str, dict[str, str]]:
    """Write a symbol in the place of each placeholder; of more than 20 the others stay.

    Placeholders that touch are one, so that a model cannot lose the second.

    Args:
        line: the line.
        start: the symbol to start with if there are enough after it.
        wanted: tells which placeholders; all unless given.

    Returns:
        The line with symbols, and the placeholder of each symbol, in their order.
    """
    places = _find(line, wanted)
    if len(places) > len(MASKS):
        return _mask_first(line, places)
    symbols = MASKS[start if start + len(places) <= len(MASKS) else 0 :]
    copies = {symbol: line[slice(*place)] for symbol, place in zip(symbols, places, strict=False)}
    return _write(line, zip(places, copies, strict=True)), copies


def _mask_first(line: str, places: Sequence[tuple[int, int]]) -> tuple[str, dict[str, str]]:
    """Mask as many placeholders as there are symbols that the line does not have itself."""
    # Its own symbols stay, also those within what stays, so they stand for themselves.
    own = {*SYMBOL.findall(line)}
    free = [symbol for symbol in MASKS if symbol not in own]
    plain = [place for place in places if SYMBOL.search(line[slice(*place)]) is None]
    chosen = list(zip(plain, free, strict=False))
    copies = {symbol: line[slice(*place)] for place, symbol in chosen}
    return _write(line, chosen), {symbol: symbol for symbol in MASKS if symbol in own} | copies


def mask_with(text: str, copies: Mapping[str, str], *, wanted: Wanted | None = None) -> str:
    """Write symbols for the placeholders of a text that have one, each once."""
    left = dict(copies)
    chosen = []
    for place in _find(text, wanted) if left else ():
        symbol = next((one for one, copy in left.items() if copy == text[slice(*place)]), None)
        if symbol is not None:
            del left[symbol]
            chosen.append((place, symbol))
    return _write(text, chosen)


def mask_copies(segment: Segment, wanted: Wanted | None = None) -> tuple[str, dict[str, str]]:
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
    places = _joined(places)
    symbols = (symbol for symbol in MASKS if symbol not in text)
    copies = {symbol: text[slice(*place)] for symbol, place in zip(symbols, places, strict=False)}
    text = _write(text, zip(places, copies, strict=False)).strip()
    return text, {symbol: symbol for symbol in MASKS if symbol in text} | copies


def mask_pair(source: str, target: str, *, wanted: Wanted | None = None) -> tuple[str, str]:
    """Write symbols for the placeholders of a source, and for equal ones of its translation."""
    masked, copies = mask(source, wanted=wanted)
    return masked, mask_with(target, copies, wanted=wanted)


def mask_lesson(source: str, target: str, *, wanted: Wanted | None = None) -> tuple[str, str]:
    """Mask a pair to learn from: only what both sides have, so that no symbol gets lost.

    Every second pair starts with any symbol, so that all are learned.
    """
    lost = Counter(lost_copies(source, target, wanted=wanted))
    kept = list[str]()
    # From the end: of equal ones the first have a counterpart.
    for copy in reversed(mask(source, wanted=wanted)[1].values()):
        if lost[copy]:
            lost[copy] -= 1
        else:
            kept.insert(0, copy)
    free = [one for one in MASKS if one in kept or one not in f"{source}{target}"]
    # Python's own hash of a text differs from process to process; a run must be repeatable.
    number = crc32(source.encode("utf-8", "replace"))
    start = number // 2 % max(1, len(free) + 1 - len(kept)) if number % 2 else 0
    copies = dict(zip(free[start:], kept, strict=False))
    return mask_with(source, copies, wanted=wanted), mask_with(target, copies, wanted=wanted)


def lost_copies(source: str, target: str, *, wanted: Wanted | None = None) -> list[str]:
    """List the placeholders of a source that its translation lacks.

    A model reads a symbol for each, but learns none.
    """
    found = Counter(mask(source, wanted=wanted)[1].values())
    return list((found - Counter(mask(target, wanted=wanted)[1].values())).elements())


def has_only_symbols(line: str) -> bool:
    """Tell whether nothing but symbols and white space is in a line, so that it needs no model."""
    return not line.isascii() and bool(line.strip()) and not SYMBOL.sub("", line).strip()


def is_reordered(masked: str, copies: Mapping[str, str]) -> bool:
    """Tell whether placeholders that programs fill in by their order have another one.

    Only the symbols tell, because ``%s`` and ``%s`` are equal once they are back.

    Args:
        masked: a translation with symbols.
        copies: the placeholder of each symbol, in the order of the source.
    """
    found = [one for one in SYMBOL.findall(masked) if fills_in_order(copies.get(one, ""))]
    wanted = [one for one in copies if one in found]
    return found != wanted and sorted(found) == sorted(wanted)


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


def _find(line: str, wanted: Wanted | None = None) -> list[tuple[int, int]]:
    """Find the places of placeholders and symbols, in order; those that touch are one."""
    places = [(one.start, one.end) for one in find_placeholders(line) if one.token is None]
    if not line.isascii():
        ends = [end for _, end in places]
        for symbol in [found.span() for found in SYMBOL.finditer(line)]:
            # A symbol within a placeholder is a part of it, and gets no second mask.
            after = bisect_right(ends, symbol[0])
            if after == len(ends) or symbol[0] < places[after][0]:
                places.append(symbol)
    kept = [place for place in places if wanted is None or wanted(line[slice(*place)])]
    return _joined(sorted(kept))


def _joined(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join the places that touch."""
    joined: list[tuple[int, int]] = []
    for start, end in places:
        if joined and joined[-1][1] == start:
            start = joined.pop()[0]
        joined.append((start, end))
    return joined


def _write(line: str, places: Iterable[tuple[tuple[int, int], str]]) -> str:
    parts = []
    last = 0
    for (start, end), symbol in places:
        parts += [line[last:start], symbol]
        last = end
    return "".join((*parts, line[last:]))
