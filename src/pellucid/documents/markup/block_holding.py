"""Elements that are written once: where they are in a translation, and what must stay in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from pellucid.documents.markup.linked_words import Chain, Span, common
from pellucid.documents.markup.segments import Element


class HeldBlocks:
    """Blocks of templates, each in one piece: another copy of one would be another condition.

    Args:
        chains: the elements around each character of a translation.
        elements: by number.

    Attributes:
        chains: with each block around its longest run of characters only.
        is_split: True if words of a block stand apart, so that some are outside now.
    """

    def __init__(self, chains: Sequence[Chain], elements: Mapping[int, Element]) -> None:
        self._elements = elements
        blocks = [number for number, one in elements.items() if one.is_block]
        self.chains = once_each(chains, blocks) if blocks else chains
        self.is_split = bool(blocks) and list(chains) != self.chains
        self._spans = dict[int, Span]()
        for place, chain in enumerate(self.chains if blocks else ()):
            for number in chain:
                start = self._spans.get(number, (place, place))[0]
                self._spans[number] = (start, place + 1)

    def block_of(self, parents: Chain) -> int:
        """Find the innermost block; -1 if there is none."""
        return next((one for one in reversed(parents) if self._elements[one].is_block), -1)

    def hold(self, target: int, start: int, parents: Chain) -> int:
        """Keep a part within the blocks that it is in, and out of others.

        Args:
            target: its place in the translation.
            start: its place in the text.
            parents: the elements around it.

        Returns:
            The place in the translation that it gets.
        """
        elements = self._elements
        for number in parents:
            if elements[number].is_block:
                first, last = self._spans.setdefault(number, (target, target))
                target = min(max(first, target), last)
        if 0 < target < len(self.chains):
            for number in common(self.chains[target - 1], self.chains[target]):
                if elements[number].is_block and number not in parents:
                    return self._spans[number][start > elements[number].start]
        return target


def once_each(chains: Sequence[Chain], numbers: Iterable[int]) -> list[Chain]:
    """Keep each element around its longest run of characters only."""
    runs = [(chain, len(list(same))) for chain, same in groupby(chains)]
    places: dict[int, list[int]] = {}
    for place, (chain, _) in enumerate(runs):
        for number in chain:
            places.setdefault(number, []).append(place)
    for number in numbers:
        spans: list[tuple[int, int, int]] = []
        last: Chain = ()
        for place in places.get(number, ()):
            chain, count = runs[place]
            own = chain[: chain.index(number) + 1]
            # Neighbors within the same elements are one run.
            if spans and spans[-1][2] == place and own == last:
                before, start, _ = spans.pop()
                spans.append((before + count, start, place + 1))
            else:
                spans.append((count, place, place + 1))
            last = own
        _, start, end = max(spans, default=(0, 0, 0))
        for place in places.get(number, ()):
            chain, count = runs[place]
            if not start <= place < end:
                runs[place] = (tuple(n for n in chain if n != number), count)
    return [chain for chain, count in runs for _ in range(count)]
