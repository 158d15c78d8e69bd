"""The tags of a segment, put into its translation by the links between words.

Every character of the translation gets the elements that its source word is in. What is equal stays
equal: if a word, its signs or the gap between two words are the same in both texts, borders are
kept letter by letter. If the order of words has changed, an element is closed and opened again.
No tag is lost: an element whose words have no translation is put, without text, after the
translation of the word before it. Everything is linear in the length of the texts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import accumulate, pairwise

from pellucid.documents.markup.lexing import RAISED
from pellucid.documents.markup.linked_words import (
    Alignment,
    Atom,
    Chain,
    common,
    count_shared,
    find_letters,
)
from pellucid.documents.markup.segments import Segment
from pellucid.documents.markup.tag_writing import Placed, TagWriter

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
        The translation as the document writes it.
    """
    return write_placed(Alignment(segment, translation, source_words, target_words, links))[0]


def write_placed(found: Alignment) -> Placed:
    """Write a translation with its tags, as the document does."""
    return TagWriter(found, *_Placing(found).place()).write()


class _Placing:
    """Finds the elements around each character of a translation."""

    def __init__(self, found: Alignment) -> None:
        self._found = found
        inner = slice(found.sources[0].end, found.sources[-1].start)
        shown = zip(found.chains[inner], found.text[inner], strict=True)
        # Elements around all of the text stay around all of the translation.
        self._around: Chain = reduce(common, {own for own, sign in shown if sign != " "} or {()})
        self._chains = [self._around] * len(found.translation)
        self._reached: dict[int, int] = {}

    def place(self) -> tuple[list[Chain], dict[int, int]]:
        """Return the elements, and for equal characters of the text their places."""
        found = self._found
        own = [None if one is None else self._main(found.sources[one]) for one in found.partners]
        own[0] = own[-1] = self._around
        chains = _fill_gaps(own, self._around)
        for number, target in enumerate(found.targets):
            before = chains[max(0, number - 1)]
            after = chains[min(number + 1, len(chains) - 1)]
            partner = found.partners[number]
            source = None if partner is None else found.sources[partner]
            self._place_atom(source, target, before, chains[number], after)
        for number, (one, other) in enumerate(pairwise(found.targets)):
            first, second = found.partners[number : number + 2]
            if first is not None and second == first + 1:
                start = found.sources[first].end
                end = found.sources[second].start
                if found.text[start:end] == found.translation[one.end : other.start]:
                    self._keep(start, one.end, end - start)
                    continue
            self._set(one.end, other.start, common(chains[number], chains[number + 1]))
        return self._chains, self._reached

    def _main(self, atom: Atom, head: int = 0, tail: int = 0) -> Chain:
        """Return the elements that most letters of an atom are in, without its head and tail.

        An element that is a smaller part of the atom gets all of it, unless it is raised.
        """
        text = self._found.text
        elements = self._found.segment.elements
        places = range(atom.start + head, min(atom.end - tail, atom.start + head + _MANY))
        letters = [k for k in places if text[k].isalnum()] or places
        counts = Counter(map(self._found.chains.__getitem__, letters))
        chain = max(counts, key=lambda one: (counts[one], len(one)), default=self._around)
        for inner in counts:
            one = elements[inner[-1]] if inner and inner[:-1] == chain else None
            if one and atom.start <= one.start and one.end <= atom.end and one.name not in RAISED:
                return inner
        return chain

    def _set(self, start: int, end: int, chain: Chain) -> None:
        self._chains[start:end] = [chain] * (end - start)

    def _keep(self, source: int, target: int, count: int) -> None:
        """Keep the elements of equal characters letter by letter."""
        self._chains[target : target + count] = self._found.chains[source : source + count]
        for place in range(count):
            self._reached.setdefault(source + place, target + place)

    def _place_atom(
        self, atom: Atom | None, target: Atom, before: Chain, main: Chain, after: Chain
    ) -> None:
        """Find the elements of an atom from those of its partner in the text."""
        start = target.start
        end = target.end
        if atom is not None and atom.copy is not None:
            self._set(start, end, self._found.chains[atom.start])
            # Only its edges: parts without text may touch them, and none stands inside.
            self._reached |= {atom.start: start, atom.end - 1: end - 1}
            return
        if atom is not None:
            head, tail = self._count_equal(atom, target)
            self._keep(atom.start, start, head)
            self._keep(atom.end - tail, end - tail, tail)
            start = start + head
            end = end - tail
            before = self._chains[start - 1] if head else before
            after = self._chains[end] if tail else after
            # What is left of the word decides for what is left of its translation.
            if start < end and 0 < head + tail < atom.end - atom.start:
                main = self._main(atom, head, tail)
        first, last = find_letters(self._found.translation, start, end)
        self._set(start, first, common(before, main))
        self._set(first, last, main)
        self._set(last, end, common(main, after))

    def _count_equal(self, atom: Atom, target: Atom) -> tuple[int, int]:
        """Count the first and last characters that two atoms share, up to a border."""
        one = self._found.folded[atom.start : atom.end]
        other = self._found.folded_translation[target.start : target.end]
        head = count_shared(one, other)
        if head == len(one) == len(other):
            return head, 0
        tail = count_shared(one[head:][::-1], other[head:][::-1])
        # Within a word equal letters may be chance: only up to a border they are kept.
        while head and not self._is_border(atom, atom.start + head):
            head -= 1
        while tail and not self._is_border(atom, atom.end - tail):
            tail -= 1
        return head, tail

    def _is_border(self, atom: Atom, place: int) -> bool:
        """Tell whether elements or letters begin or end between two characters of an atom."""
        if not atom.start < place < atom.end:
            return False
        text = self._found.text
        chains = self._found.chains
        is_edge = text[place - 1].isalnum() != text[place].isalnum()
        return is_edge or chains[place - 1] != chains[place]


def _fill_gaps(of_words: Sequence[Chain | None], around: Chain) -> list[Chain]:
    """Give words without a link the elements that their neighbors on both sides share."""

    def keep(last: Chain, chain: Chain | None) -> Chain:
        return last if chain is None else chain

    # `accumulate` gives its initial value first, which belongs to no word.
    before = list(accumulate(of_words, keep, initial=around))[1:]
    after = list(accumulate(reversed(of_words), keep, initial=around))[:0:-1]
    return list(map(common, before, after))
