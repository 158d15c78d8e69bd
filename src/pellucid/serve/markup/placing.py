"""The tags of a segment, put into its translation by the links between words.

Every character of the translation gets the elements that its source word is in. What is equal stays
equal: where a word, its signs or the gap between two words are the same in both texts, borders are
kept letter by letter. Where the order of words has changed, an element is closed and opened again.
No tag is lost: an element whose words have no translation is put, without text, after the
translation of the word before it. Everything is linear in the length of the texts.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from pellucid.serve.markup.segments import Segment
from pellucid.serve.markup.words import (
    Atom,
    cut_atoms,
    find_copies,
    find_letters,
    find_text,
    find_words,
    fold,
)
from pellucid.serve.markup.writing import Chain, Places, Writer, common

_MANY = 1000
"""Letters of a word that decide which elements it is in."""


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
        source_words: the words of the text that links count, in order; none if all tags stand
            around the text.
        target_words: those of the translation.
        links: pairs of a source word and a target word.

    Returns:
        The translation as HTML.
    """
    text = segment.text
    sources, targets = find_words(text, source_words), find_words(translation, target_words)
    by_source: list[list[int]] = [[] for _ in sources]
    by_target: list[list[int]] = [[] for _ in targets]
    for source, target in links:
        by_source[source].append(target)
        by_target[target].append(source)
    copies = find_copies(segment, translation, sources, targets, by_source)
    own = [(*find_text(text, one), n) for n, one in enumerate(segment.elements) if one.is_copy]
    source_atoms = cut_atoms(text, sources, own)
    found = sorted((start, end, number) for number, (start, end) in copies.items())
    target_atoms = cut_atoms(translation, targets, found)
    chains = _Chains(segment, source_atoms)
    chosen = [
        _choose(candidates, targets[number], sources, chains, translation)
        for number, candidates in enumerate(by_target)
    ]
    partners = _pair(text, translation, source_atoms, target_atoms, chosen)
    of_characters, reached = _Placing(chains, translation, target_atoms, partners).place()
    places = Places(text, translation, source_atoms, target_atoms, partners, reached)
    return Writer(segment, translation, of_characters, places, set(copies)).write()


class _Chains:
    """The elements around the characters and the atoms of a segment's text.

    Args:
        segment: the segment.
        atoms: of its text.
    """

    def __init__(self, segment: Segment, atoms: Sequence[Atom]) -> None:
        self.text = segment.text
        self.folded = fold(segment.text)
        self.atoms = atoms
        self.elements = segment.elements
        self.chains: list[Chain] = [()] * len(segment.text)
        for number, one in enumerate(segment.elements):  # Children come after their parents.
            self.chains[one.start : one.end] = [(*one.parents, number)] * (one.end - one.start)
        inner = self.chains[atoms[0].end : atoms[-1].start]
        self.around = inner[0] if inner else ()
        for chain, character in zip(inner, self.text[atoms[0].end :], strict=False):
            if chain is not self.around and character != " ":
                self.around = common(self.around, chain)
        self._small = self._find_small()

    def _find_small(self) -> dict[int, Chain]:
        """Find for atoms the element that holds less than half of each atom that it touches.

        It gets the whole atom if this is translated by another word.
        """
        found: dict[int, tuple[int, Chain]] = {}
        starts = [atom.start for atom in self.atoms]
        for number, one in enumerate(self.elements):
            first = max(0, bisect_right(starts, one.start) - 1)
            stop = bisect_right(starts, one.end - 1)
            if one.is_copy or one.name in ("sup", "sub") or stop - first > 2:
                continue
            sizes = {}
            for place in range(first, stop):
                start, end = self.atoms[place].start, self.atoms[place].end
                held = min(end, one.end) - max(start, one.start)
                sizes[place] = (held, 2 * held < end - start)
            if all(is_small for _, is_small in sizes.values()):
                for place, (held, _) in sizes.items():
                    if held > found.get(place, (0, ()))[0]:
                        found[place] = (held, (*one.parents, number))
        return {place: chain for place, (_, chain) in found.items()}

    def main(self, place: int, start: int, end: int) -> Chain:
        """Return the elements that most letters of a part of an atom are in."""
        if start >= end:
            start, end = self.atoms[place].start, self.atoms[place].end
        stop = min(end, start + _MANY)
        letters = [k for k in range(start, stop) if self.text[k].isalnum()] or range(start, stop)
        counts = Counter(map(self.chains.__getitem__, letters))
        chain = max(counts, key=lambda one: (counts[one], len(one)), default=self.around)
        small = self._small.get(place, ())
        return small if small[:-1] == chain and small else chain

    def is_border(self, place: int) -> bool:
        """Tell whether elements or letters begin or end between two characters."""
        one, other = self.text[place - 1], self.text[place]
        return self.chains[place - 1] != self.chains[place] or one.isalnum() != other.isalnum()


def _choose(
    candidates: Sequence[int],
    target: tuple[int, int],
    sources: Sequence[tuple[int, int]],
    chains: _Chains,
    translation: str,
) -> int | None:
    """Choose a source word for a target word: an equal one, or one in the most common elements."""
    if len(candidates) < 2:
        return candidates[0] if candidates else None
    text = translation[slice(*target)]
    own: list[Chain] = []
    for one in candidates:
        start, end = sources[one]
        if end - start == len(text) and chains.text.startswith(text, start):
            return one
        own.append(chains.chains[(start + end) // 2] if start < end else ())
    counts = Counter(own)
    return max(zip(candidates, own, strict=True), key=lambda one: (counts[one[1]], -one[0]))[0]


def _pair(
    text: str,
    translation: str,
    sources: Sequence[Atom],
    targets: Sequence[Atom],
    chosen: Sequence[int | None],
) -> list[int | None]:
    """Find for each atom of a translation the atom of the text that it translates."""
    partners: list[int | None] = [None] * len(targets)
    partners[0], partners[-1] = 0, len(sources) - 1
    of_copies = {atom.copy: place for place, atom in enumerate(sources) if atom.copy is not None}
    of_words: dict[int, list[int]] = {}
    for place, atom in enumerate(sources):
        of_words.setdefault(atom.word, []).append(place)
    groups: dict[int, list[int]] = {}
    for place, atom in enumerate(targets[1:-1], start=1):
        if atom.copy is not None:
            partners[place] = of_copies[atom.copy]
        elif (word := chosen[atom.word]) is not None:
            groups.setdefault(word, []).append(place)
    for word, places in groups.items():
        own = of_words.get(word, [])
        equal = {text[sources[one].start : sources[one].end]: one for one in reversed(own)}
        for number, place in enumerate(places if own else ()):
            one = own[number * len(own) // len(places)]
            wanted = translation[targets[place].start : targets[place].end]
            is_equal = len(own) == len(places) and text.startswith(wanted, sources[one].start)
            partners[place] = one if is_equal else equal.get(wanted, one)
    return partners


class _Placing:
    """Finds the elements around each character of a translation.

    Args:
        source: the elements around those of the text.
        translation: the translation.
        targets: its atoms.
        partners: for each the number of the text's atom that it translates.
    """

    def __init__(
        self,
        source: _Chains,
        translation: str,
        targets: Sequence[Atom],
        partners: Sequence[int | None],
    ) -> None:
        self._source = source
        self._translation = translation
        self._folded = fold(translation)
        self._targets = targets
        self._partners = partners
        self._chains: list[Chain] = [source.around] * len(translation)
        self._reached: dict[int, int] = {}

    def place(self) -> tuple[list[Chain], dict[int, int]]:
        """Return the elements, and for equal characters of the text their places."""
        own = [None if one is None else self._source.main(one, 0, 0) for one in self._partners]
        own[0] = own[-1] = around = self._source.around
        _fill_gaps(own, around)
        filled = [one or () for one in own]
        for number, target in enumerate(self._targets):
            before, after = filled[max(0, number - 1)], filled[min(number + 1, len(filled) - 1)]
            partner = self._partners[number]
            if partner is None:
                first, last = find_letters(self._translation, target.start, target.end)
                self._set(target.start, first, common(before, filled[number]))
                self._set(first, last, filled[number])
                self._set(last, target.end, common(filled[number], after))
            else:
                self._place_atom(partner, target, before, after)
        for number, (one, other) in enumerate(pairwise(self._targets)):
            self._place_gap(
                number, one.end, other.start, common(filled[number], filled[number + 1])
            )
        return self._chains, self._reached

    def _set(self, start: int, end: int, chain: Chain) -> None:
        self._chains[start:end] = [chain] * (end - start)

    def _keep(self, source: int, target: int, count: int) -> None:
        """Keep the elements of equal characters letter by letter."""
        self._chains[target : target + count] = self._source.chains[source : source + count]
        for place in range(count):
            self._reached.setdefault(source + place, target + place)

    def _place_gap(self, number: int, start: int, end: int, chain: Chain) -> None:
        """Find the elements of what stands between two atoms."""
        one, other = self._partners[number : number + 2]
        if one is not None and other == one + 1:
            first, last = self._source.atoms[one].end, self._source.atoms[other].start
            if self._source.text[first:last] == self._translation[start:end]:
                self._keep(first, start, end - start)
                return
        self._set(start, end, chain)

    def _place_atom(self, partner: int, target: Atom, before: Chain, after: Chain) -> None:
        """Find the elements of an atom from those of its partner."""
        atom, text, chains = self._source.atoms[partner], self._source.text, self._source.chains
        start, end = target.start, target.end
        if atom.copy is not None:
            self._set(start, end, chains[atom.start])
            self._reached |= {atom.start: start, atom.end - 1: end - 1}
            return
        head, tail = self._count_equal(atom, target)
        self._keep(atom.start, start, head)
        self._keep(atom.end - tail, end - tail, tail)
        source, stop = atom.start + head, atom.end - tail
        before = self._chains[start + head - 1] if head else before
        after = self._chains[end - tail] if tail else after
        start, end = start + head, end - tail
        if start == end:
            return
        if atom.word < 0:
            self._set(start, end, self._source.around)
            return
        main = self._source.main(partner, source, stop)
        first, last = find_letters(self._translation, start, end)
        letters = find_letters(text, source, min(stop, source + _MANY))
        has_head, has_tail = source < letters[0], letters[1] < stop
        self._set(start, first, chains[source] if has_head else common(before, main))
        self._set(first, last, main)
        self._set(last, end, chains[stop - 1] if has_tail else common(main, after))

    def _count_equal(self, atom: Atom, target: Atom) -> tuple[int, int]:
        """Count the first and last characters that two atoms share, up to a border."""
        one, other = self._source.folded, self._folded
        length, most = atom.end - atom.start, min(atom.end - atom.start, target.end - target.start)
        head = tail = 0
        while head < most and one[atom.start + head] == other[target.start + head]:
            head += 1
        if head == length == target.end - target.start:
            return head, 0
        while tail < most - head and one[atom.end - 1 - tail] == other[target.end - 1 - tail]:
            tail += 1
        while head and (head == length or not self._source.is_border(atom.start + head)):
            head -= 1
        while tail and (tail == length or not self._source.is_border(atom.end - tail)):
            tail -= 1
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
            of_words[place] = common(before[place], following)
        else:
            following = chain
