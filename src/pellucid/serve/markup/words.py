"""The words of a text and of its translation, and where copied parts are in them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pellucid.serve.markup.segments import Element, Segment
from pellucid.text.letters import is_word_letter

Span = tuple[int, int]

_PARTS = re.compile("[^\u00a0\u2007\u202f]+")
_SIGN = re.compile(r"<[^<>\s]{1,20}>")
_LONG = 256
"""Characters of a word, and links of a word, that are looked at: more would take quadratic time."""

_MOST_TEXTS = 64
"""Different copied texts that are sought in a whole translation."""


@dataclass(frozen=True)
class Atom:
    """A word or a part of it: words are cut at copies, which are atoms, and at no-break spaces.

    Attributes:
        start: the place of its first character.
        end: the place after its last one.
        word: the number of its word; -1 for a copy and for the spaces around a text.
        copy: the number of the element, if it is a copy.
    """

    start: int
    end: int
    word: int = -1
    copy: int | None = None


def find_words(text: str, words: Iterable[str]) -> list[Span]:
    """Find the words of a text in it; one that is missing gets no character."""
    found, place = [], 0
    for word in words:
        start = text.find(word, place, place + len(word) + _LONG)
        place = place if start < 0 else start + len(word)
        found.append((place if start < 0 else start, place))
    return found


def find_letters(text: str, start: int, end: int) -> Span:
    """Find the letters and digits of a word between its signs; ``<unk>`` counts as letters."""
    first, last = start, end
    while first < end and not (text[first].isalnum() or _SIGN.match(text, first, end)):
        first += 1
    while last > first and not text[last - 1].isalnum():
        if text[last - 1] == ">" and _SIGN.fullmatch(
            text, max(first, text.rfind("<", first, last)), last
        ):
            break
        last -= 1
    return first, last


def cut_atoms(
    text: str, words: Sequence[Span], copies: Sequence[tuple[int, int, int]]
) -> list[Atom]:
    """Cut a text into atoms, in order; the first and the last are the spaces around it.

    Args:
        text: the text.
        words: its words.
        copies: the starts, ends and numbers of its copies, in order.
    """
    atoms = [Atom(0, len(text) - len(text.lstrip()))]
    number = 0
    for word, (start, end) in enumerate(words):
        while number < len(copies) and copies[number][0] < end:
            first, last, copy = copies[number]
            atoms += _cut(text, start, first, word)
            atoms.append(Atom(first, last, copy=copy))
            start, number = max(start, last), number + 1
        start = max(start, atoms[-1].end)
        atoms += _cut(text, start, end, word)
    atoms += [Atom(first, last, copy=copy) for first, last, copy in copies[number:]]
    return [*atoms, Atom(max(len(text.rstrip()), atoms[-1].end), len(text))]


def _cut(text: str, start: int, end: int, word: int) -> Iterator[Atom]:
    if start < end:
        for match in _PARTS.finditer(text, start, end):
            yield Atom(match.start(), match.end(), word)


def find_copies(
    segment: Segment,
    translation: str,
    sources: Sequence[Span],
    targets: Sequence[Span],
    by_source: Sequence[Sequence[int]],
) -> dict[int, Span]:
    """Find where copied elements go: their text, or words in its place.

    A copy's text is sought among the words that are linked to it, then in the whole translation.
    Where it is not there, the words that are linked to it give way.

    Args:
        segment: the text and its copies.
        translation: of the text.
        sources: words of the text.
        targets: words of the translation.
        by_source: for each word of the text those of the translation that are linked to it.
    """
    finder = _Finder(segment.text, translation, sources, targets, by_source)
    numbers = [number for number, one in enumerate(segment.elements) if one.is_copy]
    spans = {number: find_text(segment.text, segment.elements[number]) for number in numbers}
    in_words, everywhere = finder.seek_linked, finder.seek_everywhere
    for turn, seek in enumerate((in_words, everywhere, in_words, finder.seek_replaced)):
        if turn == 2:
            finder.fold()
        for number in numbers:
            if number not in finder.found:
                seek(number, *spans[number])
    return finder.found


def fold(text: str) -> str:
    """Return a text without capitals, of the same length."""
    lower = text.lower()
    same = (one.lower() if len(one.lower()) == 1 else one for one in text)
    return lower if len(lower) == len(text) else "".join(same)


def find_text(text: str, element: Element) -> Span:
    """Find the text of an element without the spaces at its ends."""
    own = text[element.start : element.end]
    return element.end - len(own.lstrip()), element.start + len(own.rstrip())


class _Finder:
    def __init__(
        self,
        text: str,
        translation: str,
        sources: Sequence[Span],
        targets: Sequence[Span],
        by_source: Sequence[Sequence[int]],
    ) -> None:
        self.found: dict[int, Span] = {}
        self._text = text
        self._translation = translation
        self._sources = sources
        self._targets = targets
        self._by_source = by_source
        self._starts = [start for start, _ in sources]
        self._taken = bytearray(len(translation))
        self._everywhere: dict[str, Iterator[int]] = {}

    def fold(self) -> None:
        """Ignore capitals from now on."""
        self._text, self._translation = fold(self._text), fold(self._translation)

    def seek_linked(self, number: int, start: int, end: int) -> None:
        """Seek a copy's text in the words that are linked to it, first at the same place."""
        own = self._text[start:end]
        word = max(0, bisect_right(self._starts, start) - 1)
        linked = self._linked(start, end)
        for target in linked:
            first, last = self._targets[target]
            from_end = last - (self._sources[word][1] - start)
            for place in (first + start - self._sources[word][0], from_end):
                is_there = place >= 0 and self._translation.startswith(own, place)
                if is_there and self._take(number, place, start, end):
                    return
        for target in linked:
            first, last = self._targets[target]
            stop = min(last, first + _LONG) + len(own) - 1
            place = self._translation.find(own, first, stop)
            while place >= 0:
                if self._take(number, place, start, end):
                    return
                place = self._translation.find(own, place + 1, stop)

    def seek_everywhere(self, number: int, start: int, end: int) -> None:
        """Seek a copy's text in the whole translation: the first place that is free."""
        own = self._text[start:end]
        if own not in self._everywhere and len(self._everywhere) < _MOST_TEXTS:
            places = (match.start() for match in re.finditer(re.escape(own), self._translation))
            self._everywhere[own] = places
        for place in self._everywhere.get(own, ()):
            if self._take(number, place, start, end):
                return

    def seek_replaced(self, number: int, start: int, end: int) -> None:
        """Seek words that stand for a copy: the longest run of those that are linked to it."""
        runs: list[list[int]] = []
        for target in self._linked(start, end):
            if any(self._taken[slice(*self._targets[target])]):
                continue
            if runs and runs[-1][-1] == target - 1:
                runs[-1].append(target)
            else:
                runs.append([target])
        if not runs:
            return
        run = max(runs, key=len)
        first, last = self._targets[run[0]][0], self._targets[run[-1]][1]
        word, other = (bisect_right(self._starts, place) - 1 for place in (start, end - 1))
        before = self._text[max(self._sources[word][0], start - _LONG) : start]
        after = self._text[end : min(self._sources[other][1], end + _LONG)]
        own = self._translation[first:last]
        if own.startswith(before) and own.endswith(after) and len(own) > len(before + after):
            first, last = first + len(before), last - len(after)
        elif any(map(str.isalnum, before + after)):
            return
        else:
            first, last = find_letters(self._translation, first, last)
        if first < last:
            self._mark(number, first, last)

    def _linked(self, start: int, end: int) -> list[int]:
        """List the words that are linked to those of a copy."""
        first = max(0, bisect_right(self._starts, start) - 1)
        words = range(first, bisect_right(self._starts, end - 1))
        return sorted({one for word in words for one in self._by_source[word][:_LONG]})

    def _take(self, number: int, place: int, start: int, end: int) -> bool:
        """Give a copy some characters, unless they are taken or only a part of a word."""
        stop = place + end - start
        text, translation = self._text, self._translation
        if any(self._taken[place:stop]):
            return False
        for inner, outer, source in ((place, place - 1, start - 1), (stop - 1, stop, end)):
            was_joined = 0 <= source < len(text) and is_word_letter(text[source])
            around = [translation[k] for k in (inner, outer) if 0 <= k < len(translation)]
            if len(around) == 2 and all(map(is_word_letter, around)) and not was_joined:
                return False
        self._mark(number, place, stop)
        return True

    def _mark(self, number: int, start: int, end: int) -> None:
        self._taken[start:end] = b"\1" * (end - start)
        self.found[number] = (start, end)
