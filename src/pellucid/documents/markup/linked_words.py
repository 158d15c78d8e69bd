"""The words of a text and of its translation, with the copied parts in them, by their links."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pellucid.documents.markup.segments import Element, Segment
from pellucid.languages.letters import is_word_letter

Span = tuple[int, int]
Chain = tuple[int, ...]
"""The numbers of the elements around a character, the outermost first."""

_PARTS = re.compile("[^\u00a0\u2007\u202f]+")
_LETTERS = re.compile(r"<[^<>\s]{1,20}>|[^\W_]")
_LONG = 256
"""Characters and links of a word that are looked at: more would take quadratic time."""

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


def count_shared(first: Sequence[object], second: Sequence[object]) -> int:
    """Count the first entries that two sequences share."""
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))


def common(first: Chain, second: Chain) -> Chain:
    """Return the elements that two places share, from the outermost on."""
    return first if first == second else first[: count_shared(first, second)]


def locate_words(text: str, words: Iterable[str]) -> list[Span]:
    """Find the words of a text in it; one that is missing gets no character."""
    found = []
    place = 0
    for word in words:
        # A bound: words that are missing would each be sought to the end of the text.
        start = text.find(word, place, place + len(word) + _LONG)
        found.append((max(start, place), place if start < 0 else start + len(word)))
        place = found[-1][1]
    return found


def find_letters(text: str, start: int, end: int) -> Span:
    """Find the letters and digits of a word between its signs; ``<unk>`` counts as letters."""
    found = [match.span() for match in _LETTERS.finditer(text, start, end)]
    return (found[0][0], found[-1][1]) if found else (end, end)


def fold(text: str) -> str:
    """Return a text without capitals, of the same length."""
    lower = text.lower()
    # One letter may become two, as Turkish İ does, and would move all places after it.
    same = (one.lower() if len(one.lower()) == 1 else one for one in text)
    return lower if len(lower) == len(text) else "".join(same)


def _cut(text: str, words: Sequence[Span], copies: Iterable[tuple[int, int, int]]) -> list[Atom]:
    """Cut a text into atoms, in order; the first and the last are the spaces around it."""
    atoms = [Atom(0, len(text) - len(text.lstrip()))]
    # In reverse, as the next copy is taken from the end.
    rest = sorted(copies, reverse=True)

    def add(start: int, end: int, word: int) -> None:
        parts = _PARTS.finditer(text, start, max(start, end))
        atoms.extend(Atom(part.start(), part.end(), word) for part in parts)

    for word, (start, end) in enumerate(words):
        while rest and rest[-1][0] < end:
            first, last, copy = rest.pop()
            add(max(start, atoms[-1].end), first, word)
            atoms.append(Atom(first, last, copy=copy))
        add(max(start, atoms[-1].end), end, word)
    atoms += [Atom(first, last, copy=copy) for first, last, copy in reversed(rest)]
    return [*atoms, Atom(max(len(text.rstrip()), atoms[-1].end), len(text))]


class Alignment:
    """A segment, its translation, and which atom of one belongs to which of the other.

    A copy's text is sought among the words that are linked to it, then in the whole translation.
    If it is not there, the words that are linked to it give way.

    Args:
        segment: the text and its tags.
        translation: of the text.
        source_words: words of the text.
        target_words: words of the translation.
        links: pairs of a source word and a target word.

    Attributes:
        chains: the elements around each character of the text.
        copies: where copied elements are in the translation.
        sources: atoms of the text.
        targets: atoms of the translation.
        partners: for each atom of the translation that of the text.
    """

    def __init__(
        self,
        segment: Segment,
        translation: str,
        source_words: Iterable[str],
        target_words: Iterable[str],
        links: Iterable[tuple[int, int]],
    ) -> None:
        self.segment = segment
        self.text = segment.text
        self.translation = translation
        self.folded = fold(segment.text)
        self.folded_translation = fold(translation)
        self._sources = locate_words(segment.text, source_words)
        self._targets = locate_words(translation, target_words)
        self._starts = [start for start, _ in self._sources]
        self._by_source: list[list[int]] = [[] for _ in self._sources]
        self._by_target: list[list[int]] = [[] for _ in self._targets]
        for source, target in links:
            self._by_source[source].append(target)
            self._by_target[target].append(source)
        self.chains: list[Chain] = [()] * len(segment.text)
        for number, one in segment.elements.items():  # Children come after their parents.
            self.chains[one.start : one.end] = [(*one.parents, number)] * (one.end - one.start)
        self._taken = bytearray(len(translation))
        self._everywhere: dict[str, Iterator[Span]] = {}
        own = {n: self._span(one) for n, one in segment.elements.items() if one.is_copy}
        self.copies = self._find_copies(own)
        self.sources = _cut(self.text, self._sources, ((*span, n) for n, span in own.items()))
        found = ((*span, number) for number, span in self.copies.items())
        self.targets = _cut(translation, self._targets, found)
        self.partners = self._pair()

    def _span(self, element: Element) -> Span:
        own = self.text[element.start : element.end]
        return element.end - len(own.lstrip()), element.start + len(own.rstrip())

    def _find_copies(self, spans: dict[int, Span]) -> dict[int, Span]:
        copies: dict[int, Span] = {}
        # Each way for all copies before the next, so that a guess takes no place of a sure one.
        for seek in (self._seek_in_words, self._seek_everywhere, self._seek_instead):
            for number, span in spans.items():
                if number in copies:
                    continue
                found = next((one for one in seek(*span) if self._is_free(one, span)), None)
                if found is not None:
                    copies[number] = found
                    self._taken[slice(*found)] = b"\1" * (found[1] - found[0])
        return copies

    def _seek_in_words(self, start: int, end: int) -> Iterator[Span]:
        """Seek a copy's text in the words that are linked to it, first at the same place."""
        own = self.folded[start:end]
        length = end - start
        word = bisect_right(self._starts, start) - 1
        linked = [self._targets[one] for one in self._linked(start, start + 1)]
        for first, last in linked:
            from_start = start - self._sources[word][0]
            from_end = start - self._sources[word][1]
            for place in (first + from_start, max(0, last + from_end)):
                yield from self._find(own, place, place + length)
        for first, last in linked:
            yield from self._find(own, first, min(last, first + _LONG) + length - 1)

    def _seek_everywhere(self, start: int, end: int) -> Iterator[Span]:
        """Seek a copy's text in the whole translation, the first place that is free."""
        own = self.folded[start:end]
        if own not in self._everywhere and len(self._everywhere) < _MOST_TEXTS:
            self._everywhere[own] = self._find(own, 0, len(self.translation))
        yield from self._everywhere.get(own, ())  # Shared by all copies of this text.

    def _find(self, own: str, start: int, end: int) -> Iterator[Span]:
        found = re.compile(re.escape(own)).finditer(self.folded_translation, start, end)
        return map(re.Match.span, found)

    def _seek_instead(self, start: int, end: int) -> Iterator[Span]:
        """Seek words that stand for a copy: the longest run of those that are linked to it."""
        runs: list[Span] = []
        last = -2
        for target in self._linked(start, end):
            span = self._targets[target]
            runs.append((runs.pop()[0], span[1]) if target == last + 1 else span)
            last = target
        if runs:
            first, last = max(runs, key=lambda run: run[1] - run[0])
            word, other = (bisect_right(self._starts, place) - 1 for place in (start, end - 1))
            before = self.text[max(self._sources[word][0], start - _LONG) : start]
            after = self.text[end : min(self._sources[other][1], end + _LONG)]
            own = self.translation[first:last].strip()
            first = self.translation.find(own, first)
            last = first + len(own)
            # A stop that the copy does not have stays outside of it.
            after = after or own[len(own.rstrip(".,;:!?…")) :]
            if own.startswith(before) and own.endswith(after):
                yield first + len(before), last - len(after)
            elif not any(map(str.isalnum, before + after)):
                yield find_letters(self.translation, first, last)

    def _linked(self, start: int, end: int) -> list[int]:
        """List the words that are linked to those of a copy."""
        first = max(0, bisect_right(self._starts, start) - 1)
        words = range(first, bisect_right(self._starts, end - 1))
        return sorted({one for word in words for one in self._by_source[word][:_LONG]})

    def _is_free(self, span: Span, own: Span) -> bool:
        """Tell whether a copy may take some characters: not those of others or half a word's."""
        start, end = span
        for inner, outer, source in ((start, start - 1, own[0] - 1), (end - 1, end, own[1])):
            was_joined = 0 <= source < len(self.text) and is_word_letter(self.text[source])
            around = [self.translation[k] for k in (inner, outer) if 0 <= k < len(self.translation)]
            if len(around) == 2 and all(map(is_word_letter, around)) and not was_joined:
                return False
        return start < end and not any(self._taken[start:end])

    def _choose(self, target: int) -> int | None:
        """Choose a source word: an equal one, or one in the most common elements."""
        candidates = self._by_target[target]
        if len(candidates) < 2:
            return candidates[0] if candidates else None
        text = self.translation[slice(*self._targets[target])]
        equal = (one for one in candidates if self.text[slice(*self._sources[one])] == text)
        middles = {one: sum(self._sources[one]) // 2 for one in candidates}
        around = {one: tuple(self.chains[place : place + 1]) for one, place in middles.items()}
        counts = Counter(around.values())
        return next(equal, max(candidates, key=lambda one: (counts[around[one]], -one)))

    def _pair(self) -> list[int | None]:
        """Find for each atom of the translation the atom of the text that it translates."""
        partners: list[int | None] = [0, *[None] * (len(self.targets) - 2), len(self.sources) - 1]
        of_words: dict[tuple[int, int | None], list[int]] = {}
        for place, atom in enumerate(self.sources):
            of_words.setdefault((atom.word, atom.copy), []).append(place)
        groups: dict[tuple[int, int | None], list[int]] = {}
        for place, atom in enumerate(self.targets[1:-1], start=1):
            word = -1 if atom.copy is not None else self._choose(atom.word)
            if word is not None:
                groups.setdefault((word, atom.copy), []).append(place)
        for key, places in groups.items():
            own = of_words.get(key, [])
            equal = {self.folded[self.sources[k].start : self.sources[k].end]: k for k in own}
            for number, place in enumerate(places if own else ()):
                # With other numbers of parts on both sides, each gets its share of the others.
                one = own[number * len(own) // len(places)]
                if len(own) != len(places):
                    atom = self.targets[place]
                    one = equal.get(self.folded_translation[atom.start : atom.end], one)
                partners[place] = one
        return partners
