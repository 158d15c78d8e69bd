"""The tags of a segment, put into its translation by the links between words.

Every character of the translation gets the elements that its source word is in. Where the order of
words has changed, an element is closed and opened again. No tag is lost: an element whose words
have no translation is put, without text, after the translation of the word before it.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pellucid.serve.markup.reading import Element, Segment

_ID = re.compile(r"""\sid\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]+)""", re.IGNORECASE)

Chain = tuple[int, ...]


@dataclass(frozen=True)
class _Word:
    """A word in a text.

    Attributes:
        start: the place of its first character.
        first: the place of its first letter or digit; ``start`` if it has none.
        last: the place after its last letter or digit; ``end`` if it has none.
        end: the place after its last character.
    """

    start: int
    first: int
    last: int
    end: int


def place_tags_around(segment: Segment, translation: str) -> str:
    """Put the tags back that stand around the whole text, if no others are in it.

    Args:
        segment: does not need links.
        translation: of its text.
    """
    every = tuple(range(len(segment.elements)))
    chains = [every] * len(translation)
    return _Output(segment, translation, chains, [], []).write()


def place_tags(
    segment: Segment,
    translation: str,
    source_words: Sequence[str],
    target_words: Sequence[str],
    links: Sequence[tuple[int, int]],
) -> str:
    """Put the tags of a segment into its translation.

    Args:
        segment: the text and its tags.
        translation: of the text.
        source_words: the words of the text that links count, in order.
        target_words: those of the translation.
        links: pairs of a source word and a target word.

    Returns:
        The translation as HTML.
    """
    sources = _find_words(segment.text, source_words)
    targets = _find_words(translation, target_words)
    if sources is None or targets is None:
        sources, targets, links = [], [], ()
    chains_of_source = _chains_of_text(segment, sources)
    linked = _choose_links(links, len(targets), chains_of_source, sources)
    chains = _chains_of_translation(
        translation, sources, targets, linked, chains_of_source, segment
    )
    chains = _keep_one_copy(segment, chains)
    ends = _ends_of_sources(linked, targets, len(sources))
    return _Output(segment, translation, chains, ends, sources).write()


def _find_words(text: str, words: Sequence[str]) -> list[_Word] | None:
    """Find the words of a text in it; None if one is missing."""
    found, place = [], 0
    for word in words:
        start = text.find(word, place)
        if start < 0:
            return None
        place = start + len(word)
        letters = [start + k for k, character in enumerate(word) if character.isalnum()]
        first, last = (letters[0], letters[-1] + 1) if letters else (start, place)
        found.append(_Word(start, first, last, place))
    return found


def _chains_of_text(segment: Segment, words: Sequence[_Word]) -> list[Chain]:
    """Find the elements around each character of a segment's text.

    An element that holds less than half of every word that it touches gets the whole words.
    """
    chains: list[list[int]] = [[] for _ in segment.text]
    starts = [word.start for word in words]
    for number, one in enumerate(segment.elements):
        start, end = one.start, one.end
        place = max(0, bisect_right(starts, start) - 1)
        own = []
        while place < len(words) and words[place].start < end:
            if words[place].end > start:
                own.append(words[place])
            place += 1
        if own and not any(
            _overlap(word, start, end) * 2 >= word.last - word.first for word in own
        ):
            start, end = min(start, own[0].first), max(end, own[-1].last)
        for character in range(start, end):
            chains[character].append(number)
    known: dict[Chain, Chain] = {}
    for chain in map(tuple, chains):
        if chain not in known:
            known[chain] = _in_order(segment.elements, chain)
    return [known[tuple(chain)] for chain in chains]


def _overlap(word: _Word, start: int, end: int) -> int:
    return min(word.last, end) - max(word.first, start)


def _in_order(elements: Sequence[Element], chain: Sequence[int]) -> Chain:
    """Add the parents of each element, which come before it."""
    whole = {number for one in chain for number in (*elements[one].parents, one)}
    return tuple(sorted(whole, key=lambda number: (len(elements[number].parents), number)))


def _chain_of_word(chains: Sequence[Chain], word: _Word) -> Chain:
    """Return the elements that most of a word's letters are in."""
    counts = Counter(chains[word.first : word.last])
    return max(counts, key=lambda chain: (counts[chain], len(chain)), default=())


def _choose_links(
    links: Sequence[tuple[int, int]],
    num_targets: int,
    chains: Sequence[Chain],
    sources: Sequence[_Word],
) -> list[int | None]:
    """Choose one source word for each target word: of several, one in the most common elements."""
    by_target: list[list[int]] = [[] for _ in range(num_targets)]
    for source, target in links:
        by_target[target].append(source)
    chosen: list[int | None] = []
    for candidates in by_target:
        counts = Counter(_chain_of_word(chains, sources[one]) for one in candidates)
        best = max(
            candidates,
            key=lambda one: (counts[_chain_of_word(chains, sources[one])], -one),
            default=None,
        )
        chosen.append(best)
    return chosen


def _common(first: Chain, second: Chain) -> Chain:
    """Return the elements that two places share, from the outermost on."""
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    return first[:shared]


def _chains_of_translation(
    translation: str,
    sources: Sequence[_Word],
    targets: Sequence[_Word],
    linked: Sequence[int | None],
    chains_of_source: Sequence[Chain],
    segment: Segment,
) -> list[Chain]:
    """Find the elements around each character of the translation."""
    inner = [
        chain
        for chain, character in zip(chains_of_source, segment.text, strict=True)
        if character != " "
    ]
    around = inner[0] if inner else tuple(range(len(segment.elements)))
    for chain in inner:
        around = _common(around, chain)
    of_words: list[Chain | None] = [
        None if one is None else _chain_of_word(chains_of_source, sources[one]) for one in linked
    ]
    _fill_gaps(of_words, around)
    chains: list[Chain] = [around] * len(translation)
    for number, word in enumerate(targets):
        chain = of_words[number] or ()
        before = of_words[number - 1] if number else around
        after = of_words[number + 1] if number + 1 < len(targets) else around
        gap = targets[number - 1].end if number else 0
        chains[gap : word.start] = [_common(before or (), chain)] * (word.start - gap)
        chains[word.first : word.last] = [chain] * (word.last - word.first)
        one = linked[number]
        head, tail = _edges(sources[one], chains_of_source) if one is not None else (None, None)
        opened = head if head is not None else _common(before or (), chain)
        closed = tail if tail is not None else _common(chain, after or ())
        chains[word.start : word.first] = [opened] * (word.first - word.start)
        chains[word.last : word.end] = [closed] * (word.end - word.last)
    return chains


def _edges(word: _Word, chains: Sequence[Chain]) -> tuple[Chain | None, Chain | None]:
    """Return the elements around the signs before and after a source word, if it has any."""
    head = chains[word.start] if word.start < word.first else None
    tail = chains[word.end - 1] if word.last < word.end else None
    return head, tail


def _fill_gaps(of_words: list[Chain | None], around: Chain) -> None:
    """Give words without a link the elements that their neighbors on both sides share."""
    before: list[Chain] = []
    last = around
    for chain in of_words:
        last = last if chain is None else chain
        before.append(last)
    following = around
    for place in reversed(range(len(of_words))):
        chain = of_words[place]
        if chain is None:
            of_words[place] = _common(before[place], following)
        else:
            following = chain


def _keep_one_copy(segment: Segment, chains: list[Chain]) -> list[Chain]:
    """Leave a copied element only around its longest run of characters."""
    runs: dict[int, list[tuple[int, int]]] = {}
    for place, chain in enumerate(chains):
        for number in chain:
            if segment.elements[number].is_copy:
                own = runs.setdefault(number, [])
                if own and own[-1][1] == place:
                    own[-1] = (own[-1][0], place + 1)
                else:
                    own.append((place, place + 1))
    for number, own in runs.items():
        longest = max(own, key=lambda run: run[1] - run[0])
        for start, end in own:
            if (start, end) != longest:
                for place in range(start, end):
                    chains[place] = tuple(one for one in chains[place] if one != number)
    return chains


def _ends_of_sources(
    linked: Sequence[int | None], targets: Sequence[_Word], num_sources: int
) -> list[int]:
    """Return for each source word the place after its translation; 0 if it has none."""
    ends = [0] * num_sources
    for number, one in enumerate(linked):
        if one is not None:
            ends[one] = max(ends[one], targets[number].end)
    return ends


class _Output:
    """Writes characters with their elements, and tags without text between them."""

    def __init__(
        self,
        segment: Segment,
        translation: str,
        chains: Sequence[Chain],
        ends: Sequence[int],
        sources: Sequence[_Word],
    ) -> None:
        self._segment = segment
        self._translation = translation
        self._chains = chains
        self._ends = ends
        self._source_ends = [word.end for word in sources]
        self._parts: list[str] = []
        self._opened: Chain = ()
        self._written: set[int] = set()

    def write(self) -> str:
        """Return the translation as HTML."""
        points = self._find_points()
        place = 0
        number = 0
        while place <= len(self._translation):
            while number < len(points) and points[number][0] <= place:
                self._write_point(points[number][2], points[number][3])
                number += 1
            if place == len(self._translation):
                break
            end = place + 1
            limit = points[number][0] if number < len(points) else len(self._translation)
            while end < limit and self._chains[end] == self._chains[place]:
                end += 1
            self._write_run(place, end)
            place = end
        self._go_to(())
        return "".join(self._parts)

    def _find_points(self) -> list[tuple[int, int, Chain, str]]:
        """Find where tags without text go: place, order in the source, elements, text."""
        used = {number for chain in self._chains for number in chain}
        found = [
            (self._target_of(point.place), point.place, point.parents, point.raw)
            for point in self._segment.points
        ]
        held = {number for _, _, parents, _ in found for number in parents}
        held |= used | {number for one in self._segment.elements for number in one.parents}
        for number, one in enumerate(self._segment.elements):
            if number not in held:
                raw = one.opening + one.closing
                found.append((self._target_of(one.start), one.start, one.parents, raw))
                self._written.add(number)
        return sorted(found, key=lambda point: point[:2])

    def _target_of(self, place: int) -> int:
        """Find the place in the translation that belongs to one in the text."""
        text = self._segment.text
        if not text[place:].strip():
            return len(self._translation)
        if not text[:place].strip():
            return 0
        number = bisect_right(self._source_ends, place) - 1
        while number >= 0 and not self._ends[number]:
            number -= 1
        found = self._ends[number] if number >= 0 else 0
        # A space before the tag stays before it.
        is_after_space = text[place - 1] == " " and self._translation[found : found + 1] == " "
        return found + is_after_space

    def _write_run(self, start: int, end: int) -> None:
        chain = self._chains[start]
        copied = next((one for one in chain if self._segment.elements[one].is_copy), None)
        if copied is None:
            self._go_to(chain)
            self._parts.append(html.escape(self._translation[start:end], quote=False))
        elif copied not in self._written:
            self._go_to(self._segment.elements[copied].parents)
            self._parts.append(self._segment.elements[copied].opening)
            self._written.add(copied)

    def _write_point(self, chain: Chain, raw: str) -> None:
        # Stay inside elements that are open, if these are the point's own or it has none.
        shared = _common(self._opened, chain)
        if len(shared) < len(chain) or len(shared) < len(self._opened):
            self._go_to(chain)
        self._parts.append(raw)

    def _go_to(self, chain: Chain) -> None:
        """Close and open elements until exactly these are open."""
        elements = self._segment.elements
        shared = len(_common(self._opened, chain))
        for number in reversed(self._opened[shared:]):
            self._parts.append(elements[number].closing)
        for number in chain[shared:]:
            tag = elements[number].opening
            self._parts.append(_ID.sub("", tag) if number in self._written else tag)
            self._written.add(number)
        self._opened = chain
