"""Writes a translation with its tags: characters in their elements, and parts between them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from itertools import chain as join
from typing import NamedTuple

from pellucid.documents.markup.block_holding import HeldBlocks, once_each
from pellucid.documents.markup.lexing import Token, unescape
from pellucid.documents.markup.linked_words import (
    Alignment,
    Chain,
    Span,
    count_shared,
    find_letters,
)
from pellucid.documents.markup.segments import ACCELERATOR, REFERENCE, spell

_Point = tuple[int, int, Chain, str, str | None, Sequence[tuple[str, int]]]
"""A part without text, as `TagWriter` writes it."""

_OPENING = frozenset("([{«“‘„¿¡'’\"-。、，：；！？「『（【")
"""Signs that take no space after them."""
_CLOSING = frozenset(".,;:!?…)]}»”'’\"-/%。、，：；！？」』）】")
"""Signs that take no space before them."""


class WrittenTag(NamedTuple):
    """A tag of a template: what it says, the block that it is of or -1, its place in the text."""

    raw: str
    block: int
    place: int


class Placed(NamedTuple):
    """A translation as its document writes it.

    Attributes:
        written: with its tags.
        shown: its text, with the copies.
        blocks: the tags of templates in it, in order.
        is_split: True if words of a block stand apart, so that some are outside.
    """

    written: str
    shown: str
    blocks: Sequence[WrittenTag]
    is_split: bool


class TagWriter:
    """Writes characters with their elements, and parts without text between them.

    Args:
        found: the segment, its translation and their atoms.
        chains: the elements around each character of the translation.
        reached: for characters of the text that are equal in the translation their places there.
    """

    def __init__(
        self, found: Alignment, chains: Sequence[Chain], reached: Mapping[int, int]
    ) -> None:
        self._found = found
        self._segment = found.segment
        self._translation = found.translation
        reopens = self._segment.syntax.reopens
        # Where a tag may stand only once, an element keeps its longest run of characters.
        elements = self._segment.elements
        self._chains = chains if reopens else once_each(chains, elements)
        self._held = HeldBlocks(self._chains, elements)
        self._chains = self._held.chains
        self._blocks: list[WrittenTag] = []
        self._reached = reached
        self._parts: list[str] = []
        self._shown: list[str] = []
        self._opened: Chain = ()
        self._written: set[int] = set()
        self._last = ""
        self._origins = {target: source for source, target in reached.items()}
        # Where what was written last ends in the text, and whether it is a copy that was lost.
        self._source = 0
        self._is_lost = False
        self._syntax = self._segment.syntax
        self._final, self._forms = self._find_forms()
        special = re.escape("".join({*self._syntax.escapes, *self._forms}))
        outside = "\x80-\U0010ffff" if self._syntax.outside_ascii else ""
        # Without a special character nothing must match.
        self._special = re.compile(f"[{special}{outside}]" if special or outside else "(?!)")
        self._starts = [atom.start for atom in found.sources]
        self._begins, self._ends = self._find_ends()

    def _find_ends(self) -> tuple[dict[int, int], list[Span]]:
        """Find the beginnings of translations, and the ends of them and of their letters.

        An atom without a translation gets the end of the atom before it.
        """
        found = self._found
        begins = dict[int, int]()
        ends = dict[int, Span]()
        for atom, one in zip(found.targets, found.partners, strict=True):
            if one is not None:
                begins.setdefault(found.sources[one].start, atom.start)
                last = find_letters(found.translation, atom.start, atom.end)[1]
                ends[one] = max(ends.get(one, (0, 0)), (atom.end, last))
        filled = [ends[0]]
        for number in range(1, len(found.sources)):
            filled.append(ends.get(number, filled[-1]))
        return begins, filled

    def _find_place(self, place: int) -> int:
        """Find the place in the translation that belongs to one in the text."""
        sources = self._found.sources
        targets = self._found.targets
        text = self._found.text
        if place in (sources[0].end, sources[-1].start):
            return targets[0].end if place == sources[0].end else targets[-1].start
        before = self._reached.get(place - 1)
        after = self._reached.get(place)
        is_after_space = text[place - 1 : place] == " "
        joins_next = is_after_space and text[place : place + 1] not in ("", " ")
        if after is not None and (before is None or joins_next):
            return after
        if before is not None:
            return before + 1
        if joins_next and place in self._begins:
            return self._begins[place]
        number = bisect_right(self._starts, max(0, place - 1)) - 1
        end, letters_end = self._ends[number]
        sign = text[min(place, self._found.sources[number].end) - 1]
        target = letters_end if sign.isalnum() else end
        # A space before the tag stays before it.
        return target + (is_after_space and self._translation[target : target + 1] == " ")

    def _find_forms(self) -> tuple[str | None, dict[str, Iterator[str]]]:
        """Find how the document writes a last space, and the other characters in turn."""
        text = self._segment.text
        spellings = self._segment.spellings
        # The last space is often a line's end before a tag: no other space may be written so.
        final = spellings.get(len(text) - 1) if text.endswith(" ") else None
        forms: dict[str, list[str]] = {text[place]: [] for place in spellings}
        for place in range(len(text) - (final is not None)):
            sign = text[place]
            if sign in forms and not self._is_copy(self._found.chains[place]):
                forms[sign].append(spellings.get(place, self._syntax.escape(sign)))
        return final, {character: iter(own) for character, own in forms.items()}

    def _is_copy(self, chain: Chain) -> bool:
        return bool(chain) and self._segment.elements[chain[-1]].is_copy

    def write(self) -> Placed:
        """Return the translation as the document writes it, its text, and its blocks."""
        points = self._find_points()
        place = 0
        number = 0
        length = len(self._translation)
        while place <= length:
            while number < len(points) and points[number][0] <= place:
                self._write_point(*points[number][1:], place)
                number += 1
            if place == length:
                break
            chain = self._chains[place]
            end = place + 1
            is_copy = self._is_copy(chain)
            limit = points[number][0] if number < len(points) and not is_copy else length
            while end < limit and self._chains[end] == chain:
                end += 1
            if is_copy:
                self._write_copy(chain)
            else:
                if self._is_lost:
                    self._add_space(chain, self._origins.get(place, -1), self._translation[place])
                self._go_to(chain)
                self._parts.append(self._spell(place, end))
                self._shown.append(self._translation[place:end])
                # -9 is next to no place, for characters that no place of the text gave.
                self._note(self._translation[end - 1], self._origins.get(end - 1, -9) + 1)
            place = end
        self._go_to(())
        written = "".join(self._parts)
        if self._syntax.finish is not None:
            written = self._syntax.finish(self._segment, written)
        places = list(accumulate(map(len, self._shown), initial=0))
        blocks = [one._replace(place=places[one.place]) for one in self._blocks]
        return Placed(written, "".join(self._shown), blocks, is_split=self._held.is_split)

    def _find_points(self) -> list[_Point]:
        """Find where parts without text go.

        Returns:
            For each its place, its place in the text, its elements, what it writes, the text of a
            copy; None for a part that needs a space before it; and its tags of templates.
        """
        elements = self._segment.elements
        found: list[_Point] = []
        least = 0
        last = (-1, 0)
        for point in self._segment.points:
            if point.name == ACCELERATOR:
                target = find_accelerator(self._segment.text, point.start, self._translation)
            else:
                target = self._find_place(point.start)
            # A tag without its partner must not pass another one, which may be its own.
            if point.is_half:
                target = max(least, target)
            target = self._held.hold(target, point.start, point.parents)
            if point.is_half:
                least = max(least, target)
            raw = spell(point.opening)
            start = point.start
            is_apart = (
                not (point.is_half or point.name == ACCELERATOR or raw.isspace())
                and self._syntax.has_markup
                and self._segment.text[start - 1 : start] == " "
                and self._translation[target : target + 1] in ("", *_CLOSING)
            )
            group = self._held.block_of(point.parents)
            blocks: Sequence[tuple[str, int]] = ((raw, group),) if point.is_block else ()
            found.append((target, start, point.parents, raw, None if is_apart else "", blocks))
        inner = (one.parents for one in (*self._segment.points, *elements.values()))
        held = set(join.from_iterable({*self._chains, *(inner if self._syntax.reopens else ())}))
        for number, one in elements.items():
            is_lost_copy = one.is_copy and number not in self._found.copies
            if number not in held or is_lost_copy:
                raw = spell(one.opening) + one.closing
                where = one.end if is_lost_copy else one.start
                text = self._segment.text[one.start : one.end] if is_lost_copy else ""
                target = self._find_place(one.start)
                if is_lost_copy:  # It stays after the one that it touches.
                    target = max(target, last[1]) if last[0] == one.start else target
                    last = (one.end, target)
                target = self._held.hold(target, where, one.parents)
                pair = ((spell(one.opening), number), (one.closing, number))
                blocks = pair if one.is_block else ()
                found.append((target, where, one.parents, raw, text, blocks))
                self._written.add(number)
        return sorted(found, key=lambda point: point[:2])

    def _note_block(self, raw: str, number: int) -> None:
        """Note a tag of a template, the block that it is of, and what was written before it."""
        self._blocks.append(WrittenTag(raw, number, len(self._shown)))

    def _write_copy(self, chain: Chain) -> None:
        # A copy may have several runs of characters, but is written at the first.
        if chain[-1] not in self._written:
            element = self._segment.elements[chain[-1]]
            if self._is_lost:
                self._add_space(chain[:-1], element.start, "")
            self._go_to(chain[:-1])
            self._parts.append(spell(element.opening))
            self._shown.append(self._segment.text[element.start : element.end])
            self._written.add(chain[-1])
            self._note(self._segment.text[element.end - 1], element.end)

    def _note(self, last: str, source: int, *, is_lost: bool = False) -> None:
        """Note the last character of what was written, and where it ends in the text."""
        self._last = last
        self._source = source
        self._is_lost = is_lost

    def _add_space(self, chain: Chain, start: int, sign: str) -> None:
        """Put a space before a part that a place of the text gave, unless they touch there."""
        touches = self._source == start or sign in _CLOSING or sign.isspace()
        if self._last and not (touches or self._last in _OPENING or self._last.isspace()):
            self._go_to(chain[: count_shared(self._opened, chain)])
            self._parts.append(" ")

    def _write_point(
        self,
        where: int,
        chain: Chain,
        raw: str,
        text: str | None,
        blocks: Sequence[tuple[str, int]],
        place: int,
    ) -> None:
        following = self._translation[place : place + 1]
        if raw.isspace() and not (self._last.isspace() or following.isspace()):
            return  # It would cut a word, or a word from its sign.
        if text is None or text:
            around = chain if self._syntax.reopens else self._opened
            self._add_space(around, where - len(text) if text else -1, text or raw)
        if self._opened != chain and self._syntax.reopens:
            self._go_to(chain)
        for block in blocks:
            self._note_block(*block)
        self._parts.append(raw)
        self._shown.append(text or "")
        if text:
            self._note(text[-1], where, is_lost=True)

    def _spell(self, start: int, end: int) -> str:
        """Write some characters as the document does, those that it has, in their order."""
        return self._special.sub(
            lambda match: self._form(match[0], start + match.start()), self._translation[start:end]
        )

    def _form(self, character: str, place: int) -> str:
        plain = self._syntax.escape(character)
        if self._final is not None and place == len(self._translation) - 1 and character == " ":
            return self._final
        form = next(self._forms.get(character, iter(())), plain)
        # What follows may turn a sign that is written as it is into a tag or a character.
        following = self._translation[place + 1 : place + 2]
        if form == "<" and (following.isalpha() or following in ("!", "?", "/")):
            return plain
        if form == "&" and (match := REFERENCE.match(self._translation, place)):
            return form if unescape(match[0]) == match[0] else plain
        return form

    def _go_to(self, chain: Chain) -> None:
        """Close and open elements until exactly these are open."""
        elements = self._segment.elements
        shared = count_shared(self._opened, chain)
        for number in reversed(self._opened[shared:]):
            self._parts.append(elements[number].closing)
            if elements[number].is_block:
                self._note_block(elements[number].closing, number)
        for number in chain[shared:]:
            tag = spell(elements[number].opening)
            is_again = number in self._written and tag.startswith("<")
            self._parts.append(_without_id(tag) if is_again else tag)
            if elements[number].is_block:
                self._note_block(tag, number)
            self._written.add(number)
        self._opened = chain


def _without_id(tag: str) -> str:
    """Leave out an attribute that must be written once."""
    name = re.match(r"<[^\s/>]+", tag)
    found = Token("start", tag, name[0][1:] if name else "").attributes().get("id")
    return tag if found is None else tag[: found.start()] + tag[found.end() :]


def find_accelerator(text: str, place: int, translation: str) -> int:
    """Find the letter of a translation that gets a text's accelerator: the same, or the first."""
    key = re.escape(text[place : place + 1])
    if text == translation:
        return place
    for pattern in (rf"(?<![^\W_]){key}", rf"(?i)(?<![^\W_]){key}", r"(?<![^\W_])(?=[^\W\d_])"):
        if found := re.search(pattern, translation):
            return found.start()
    return 0
