"""Automata that find a required phrase in a text, however the text is cut into tokens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import NamedTuple, final

from pellucid.languages.letters import is_word_letter
from pellucid.machine.turns import give_way

# The end of a text between two tokens.
_OPEN, _IN_WORD, _SPACE = range(3)

BEGINS_IN_WORD = 3
SILENT = 6
NUM_KINDS = 7
"""Kinds of tokens that have nothing of a phrase: by their first sign and their end, or silent."""

_CACHE_SIZE = 2**14
_SEPARATOR = b"\xff"  # No UTF-8 text holds this byte.


@dataclass(frozen=True)
class Automaton:
    """A finite automaton that reads tokens and counts a phrase.

    The last state is the whole phrase, whose end is not yet certain: the next token says whether
    a word ends there. So an occurrence is counted on the way out of it.

    Attributes:
        classes: a class for each token that has something of the phrase, from `NUM_KINDS`; the
            other tokens' class is their kind.
        next: the state after each class, for each state.
        gain: how many occurrences each class adds, for each state.
        wanted: tokens that continue the phrase from each state; -1 where there are fewer.
        units: how many of the phrase's tokens each state has.
        ends_word: True if the phrase counts only where a word ends.
    """

    classes: Mapping[int, int]
    next: tuple[tuple[int, ...], ...]
    gain: tuple[tuple[int, ...], ...]
    wanted: tuple[tuple[int, int], ...]
    units: tuple[int, ...]
    ends_word: bool

    @property
    def size(self) -> int:
        """The number of the phrase's tokens, which the last state has."""
        return self.units[-1]


def match_tokens(phrase: tuple[int, ...]) -> Automaton:
    """Make the automaton of a phrase that counts in this cut only: state d has d tokens.

    Source:
        Knuth, Morris and Pratt 1977, "Fast Pattern Matching in Strings".
    """
    classes = {token: NUM_KINDS + place for place, token in enumerate(dict.fromkeys(phrase))}
    width = NUM_KINDS + len(classes)
    last = len(phrase)
    borders = _list_borders(phrase, lambda start: True)
    rows: list[tuple[int, ...]] = []
    for state in range(last):
        # If the phrase does not continue, its longest border does, whose row is complete.
        row = list(rows[borders[state]]) if state else [0] * width
        row[classes[phrase[state]]] = state + 1
        rows.append(tuple(row))
    none = (0,) * width
    return Automaton(
        classes,
        # Occurrences do not overlap, so after the whole phrase it begins again.
        (*rows, rows[0] if rows else none),
        (*[none] * last, (1,) * width),
        (*((token, -1) for token in phrase), (phrase[0] if phrase else -1, -1)),
        tuple(range(last + 1)),
        ends_word=False,
    )


def _list_borders(phrase: Sequence[int], may_start: Callable[[int], bool]) -> list[int]:
    """Find the longest proper border of each beginning that may start where it stands."""
    plain = [0, 0]
    for place in range(1, len(phrase)):
        border = plain[place]
        while border and phrase[border] != phrase[place]:
            border = plain[border]
        plain.append(border + (phrase[border] == phrase[place]))
    found = [0, 0]
    for size in range(2, len(phrase) + 1):
        border = plain[size]
        while border and not may_start(size - border):
            border = plain[border]
        found.append(border)
    return found


class _Byte(NamedTuple):
    """One byte of a token: its value, whether a letter begins there, what precedes it there."""

    value: int
    is_letter: bool
    before: int


@final
class TextAutomata:
    """Makes the automata of phrases that count by their text.

    A phrase counts wherever its text appears: also glued to other signs, and in any cut into
    tokens. If it begins (or ends) with a letter, digit or mark, no such character may precede
    (follow) it.

    States: the text ends in nothing of the phrase, and there with an open place, inside a word, or
    with a space; then one state for each byte of the phrase.
    """

    def __init__(self, tokens: Sequence[bytes]) -> None:
        """Index a vocabulary.

        Args:
            tokens: the text of each token, with the space in front of it; empty for tokens such
                as ``</s>``.
        """
        self._tokens = tokens
        self.match = lru_cache(_CACHE_SIZE)(self._match)

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        # From the end, so that of tokens with one text the first is kept.
        return {text: token for token, text in reversed(list(enumerate(self._tokens))) if text}

    @cached_property
    def _twins(self) -> dict[bytes, list[int]]:
        """Tokens that write the same text as an earlier one, such as a byte and its letter."""
        found: dict[bytes, list[int]] = {}
        for token, text in enumerate(self._tokens):
            if text and self._ids[text] != token:
                found.setdefault(text, []).append(token)
        return found

    @cached_property
    def _sorted(self) -> list[bytes]:
        return sorted(self._ids)

    @cached_property
    def _width(self) -> int:
        return max(map(len, self._tokens))

    @cached_property
    def _joined(self) -> bytes:
        # All tokens as one text, in which one `find` looks for a part in every token.
        return _SEPARATOR + _SEPARATOR.join(self._tokens) + _SEPARATOR

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((len(text) + 1 for text in self._tokens), initial=1))

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """The kind of each token, which is its class for phrases that it has nothing of."""
        return tuple(
            BEGINS_IN_WORD * is_word_letter(text.decode(errors="replace")[:1]) + _end_of(text)
            if text
            else SILENT
            for text in self._tokens
        )

    def text_of(self, phrase: Sequence[int]) -> bytes:
        """Return the text that some tokens write, without spaces around it."""
        return b"".join(self._tokens[token] for token in phrase).strip()

    def count(self, phrase: Sequence[int], text: Sequence[int]) -> int:
        """Count how often one phrase is in the text of another."""
        automaton = self.match(tuple(phrase))
        state = 0
        count = 0
        kinds = self.kinds
        for token in text:
            symbol = automaton.classes.get(token, kinds[token])
            count += automaton.gain[state][symbol]
            state = automaton.next[state][symbol]
        # A phrase at the very end is whole, but no token has counted it yet.
        return count + (state == len(automaton.next) - 1)

    def _match(self, phrase: tuple[int, ...]) -> Automaton:
        """Make the automaton of a phrase, given in the tokens that a search would write."""
        text = self.text_of(phrase)
        wanted, units = self._plan(phrase, _Reader(text))
        return replace(self.find(text), wanted=wanted, units=units)

    def find(self, text: bytes) -> Automaton:
        """Make the automaton of a phrase that is only found, not written."""
        reader = _Reader(text)
        last = len(text) + _SPACE
        rows: list[list[int]] = []
        gains: list[list[int]] = []
        found = sorted(self._find_relevant(reader))
        spelled = [_spell(self._tokens[token]) for token in found]
        # A letter or a sign, then the end of the text.
        others = [(is_letter, end) for is_letter in (False, True) for end in range(3)]
        for state in range(last + 1):
            give_way()  # A long phrase of a large vocabulary takes seconds.
            is_whole = state == last
            row = [end for _, end in others]
            gain = [int(is_whole and not (reader.ends and is_letter)) for is_letter, _ in others]
            results = [reader.read(state, token) for token in spelled]
            rows.append([*row, state, *(after for after, _ in results)])
            gains.append([*gain, 0, *(count for _, count in results)])
        return Automaton(
            {token: NUM_KINDS + place for place, token in enumerate(found)},
            tuple(map(tuple, rows)),
            tuple(map(tuple, gains)),
            (),
            (),
            ends_word=reader.ends,
        )

    def _find_relevant(self, reader: _Reader) -> set[int]:
        """Find the tokens with something of a phrase in them; all others interrupt it."""
        text = reader.text
        found = set[int]()
        for start in range(len(text)):
            rest = text[start : start + self._width]
            # Tokens that lie inside the phrase, or begin with its end.
            found.update(self._ids.get(rest[:size], -1) for size in range(1, len(rest) + 1))
            # Only near the end of the phrase can a token reach beyond it.
            if start and start + self._width >= len(text):
                found.update(self._ids_from(rest))
        for size in range(1, min(len(text), self._width) + 1):
            # Tokens that end with its beginning, or hold all of it.
            part = text[:size] + (_SEPARATOR if size < len(text) else b"")
            for token, place in self._places(part):
                before = self._tokens[token][:place]
                if not (reader.begins and _end_of(before) == _IN_WORD):
                    found.add(token)
        # Of tokens that write the same, each counts.
        found.discard(-1)
        return found | {token for one in found for token in self._twins.get(self._tokens[one], ())}

    def _ids_from(self, start: bytes) -> Iterator[int]:
        """Find the tokens that begin with some bytes."""
        for place in range(bisect_left(self._sorted, start), len(self._sorted)):
            if not self._sorted[place].startswith(start):
                return
            yield self._ids[self._sorted[place]]

    def _places(self, part: bytes) -> Iterator[tuple[int, int]]:
        """Find a part in all tokens, and yield each token with the place in it."""
        start = self._joined.find(part)
        while start >= 0:
            token = bisect_right(self._starts, start) - 1
            yield token, start - self._starts[token]
            start = self._joined.find(part, start + 1)

    def _plan(
        self, phrase: tuple[int, ...], reader: _Reader
    ) -> tuple[tuple[tuple[int, int], ...], tuple[int, ...]]:
        """List the tokens to write from each state, and the tokens that it has already."""
        text = reader.text
        # Places in the phrase after each of its tokens; a first token may be only a space.
        ends = list(accumulate(len(self._tokens[token]) for token in phrase))
        spaces = ends[-1] - len(text)
        ends = [end - spaces for end in ends]
        first = phrase[0]
        is_space = ends[0] == 0
        glued = self._longest(text) if self._tokens[first][:1] == b" " else -1
        in_word = (first, -1 if reader.begins else glued)
        if reader.begins and self._tokens[first][:1] != b" ":
            in_word = (self._ids.get(b" ", -1), -1)
        wanted = [
            (first, glued),
            in_word,
            (phrase[1] if is_space else first, glued),
        ]
        units = [0, 0, int(is_space)]
        for depth in range(1, len(text)):
            done = sum(end <= depth for end in ends)
            is_end = done > 0 and ends[done - 1] == depth
            wanted.append((phrase[done] if is_end else self._longest(text[depth:]), -1))
            units.append(done)
        # After the whole phrase it may have to appear again.
        return (*wanted, wanted[_end_of(text)]), (*units, len(phrase))

    def _longest(self, text: bytes) -> int:
        """Find the longest token that a text begins with; -1 if no token does."""
        sizes = range(len(text), 0, -1)
        return next((self._ids[text[:size]] for size in sizes if text[:size] in self._ids), -1)


@final
class _Reader:
    """Reads tokens byte by byte in search of one phrase."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        letters = text.decode(errors="replace")
        self.begins = is_word_letter(letters[0])
        self.ends = is_word_letter(letters[-1])
        # The end of each beginning of the phrase.
        self._end = [_end_of(text[:depth]) for depth in range(len(text) + 1)]
        self._borders = _list_borders(
            text, lambda start: not self.begins or self._end[start] != _IN_WORD
        )

    def read(self, state: int, token: Sequence[_Byte]) -> tuple[int, int]:
        """Return the state after a token, and the number of occurrences that ended before it."""
        text = self.text
        whole = len(self.text)
        count = 0
        depth = max(0, state - _SPACE)
        before = self._end[depth] if depth else state
        for place, (value, is_letter, inside) in enumerate(token):
            before = inside if place else before
            if depth == whole:
                is_there = not (self.ends and is_letter)
                count += is_there
                depth = 0 if is_there else self._borders[whole]
            while depth and text[depth] != value:
                depth = self._borders[depth]
            # Only its first byte must not stand inside a word; the others follow it.
            if text[depth] == value and (depth or not self.begins or before != _IN_WORD):
                depth += 1
        return (depth + _SPACE if depth else _end_of(bytes(byte.value for byte in token))), count


def _spell(token: bytes) -> list[_Byte]:
    """List the bytes of a token."""
    found: list[_Byte] = []
    for place, value in enumerate(token):
        # In UTF-8 bytes of the form 10xxxxxx continue a character, which has at most 4 bytes.
        is_start = value & 0xC0 != 0x80
        first = token[place : place + 4].decode(errors="replace")[:1] if is_start else ""
        found.append(_Byte(value, bool(first) and is_word_letter(first), _end_of(token[:place])))
    return found


def _end_of(text: bytes) -> int:
    """Classify the last character; half a character is an open place, like nothing."""
    last = text[-4:].decode(errors="replace")[-1:]
    return _SPACE if last == " " else _IN_WORD if last and is_word_letter(last) else _OPEN
