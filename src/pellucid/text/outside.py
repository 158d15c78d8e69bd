"""Text outside a vocabulary: how much, which words, and what the vocabulary has that is close."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple, final

import numpy as np

from pellucid.terminal.text import percent
from pellucid.text.learned import byte_or_unknown_ids
from pellucid.text.tokenizers.tokenizer import SPECIAL_TOKENS, Tokenizer
from pellucid.text.tokenizers.whole_words import JOINER, without_joiner, word_cutter

Side = Literal["source", "target"]

LOUD = 0.05
"""The share from which a model can hardly translate such text right."""

_SIDES: tuple[Side, Side] = ("source", "target")
_CHUNK = 1 << 16
_KEYS = ("tokens", "unknown_tokens")


class Outside(NamedTuple):
    """Tokens of both sides of a text, without ``</s>``, and those outside the vocabulary."""

    source_tokens: int
    source_outside: int
    target_tokens: int
    target_outside: int

    @property
    def source(self) -> float:
        """The share of the source tokens."""
        return self.source_outside / max(1, self.source_tokens)

    @property
    def target(self) -> float:
        """The share of the target tokens."""
        return self.target_outside / max(1, self.target_tokens)

    @property
    def is_loud(self) -> bool:
        """True if the share of a side is so large that translations suffer."""
        return max(self.source, self.target) > LOUD

    def describe(self) -> str:
        """Describe the shares: ``12 % of the source tokens and 0.04 % of the target tokens``."""
        source = percent(self.source)
        return f"{source} of the source tokens and {percent(self.target)} of the target tokens"

    def to_sides(self) -> dict[Side, dict[str, int]]:
        """Return the numbers of each side, as a manifest holds them."""
        return {
            "source": dict(zip(_KEYS, self[:2], strict=True)),
            "target": dict(zip(_KEYS, self[2:], strict=True)),
        }

    @classmethod
    def read(cls, counts: Mapping[str, Any]) -> Outside | None:
        """Read the numbers from a manifest's ``data.text``; None if it has none.

        Args:
            counts: that object, which earlier versions wrote without these numbers.
        """
        found = []
        for side in _SIDES:
            section = counts.get(side)
            values = section if isinstance(section, Mapping) else {}
            found += [values.get(key) for key in _KEYS]
        numbers = [number for number in found if isinstance(number, int)]
        return cls(*numbers) if len(numbers) == len(found) else None


@final
class OutsideCounter:
    """Counts the tokens outside a vocabulary, one pair at a time.

    Args:
        tokenizer: cuts the text.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._sides = [_Side(tokenizer, side) for side in _SIDES]

    def add(self, source_ids: Sequence[int], target_ids: Sequence[int]) -> None:
        """Count one pair, whose sides both end in ``</s>``."""
        for side, ids in zip(self._sides, (source_ids, target_ids), strict=True):
            side.add(ids)

    def total(self) -> Outside:
        """Return the counts so far."""
        (source, source_outside), (target, target_outside) = (one.total() for one in self._sides)
        return Outside(source, source_outside, target, target_outside)


def count_outside(tokenizer: Tokenizer, pairs: Iterable[tuple[str, str]]) -> Outside:
    """Count the tokens of some pairs that are outside a vocabulary.

    Args:
        tokenizer: cuts the text.
        pairs: source and target of each.
    """
    counter = OutsideCounter(tokenizer)
    for source, target in pairs:
        counter.add(tokenizer.encode_source(source), tokenizer.encode_target(target))
    return counter.total()


class _Side:
    """The counts of one side; tokens are looked up in large groups, which is fast."""

    def __init__(self, tokenizer: Tokenizer, side: Side) -> None:
        self._is_outside_V = np.zeros(len(tokenizer.vocabulary(side)), dtype=bool)
        self._is_outside_V[list(byte_or_unknown_ids(tokenizer, side))] = True
        self._ids: list[int] = []
        self._num_ends = self._tokens = self._outside = 0

    def add(self, ids: Sequence[int]) -> None:
        self._ids.extend(ids)
        self._num_ends += 1
        if len(self._ids) >= _CHUNK:
            self._count()

    def total(self) -> tuple[int, int]:
        self._count()
        # The one `</s>` of each line is not text.
        return self._tokens - self._num_ends, self._outside

    def _count(self) -> None:
        ids = np.array(self._ids, dtype=np.int64)
        self._tokens += len(ids)
        self._outside += int(np.count_nonzero(self._is_outside_V[ids]))
        self._ids = []


_MOST_CLOSE = 3
_STEM = 4
"""Letters at the beginning that two words of one stem share at least."""


def unknown_words(tokenizer: Tokenizer, text: str) -> tuple[str, ...]:
    """List the words of a source text that a vocabulary of whole words lacks, in their order.

    A word that is known, but not joined to the sign before it, is listed with that sign:
    ``"pizza`` in ``The "pizza" is good.`` A model of subwords cuts every word into pieces that it
    knows: the list is empty.
    """
    if tokenizer.config.kind != "words":
        return ()
    known = _known(tokenizer)
    text = tokenizer.normalized(text)
    cut = word_cutter(tokenizer.config)
    unknown = []
    for before, token in pairwise(["", *cut(text)]):
        if token not in known:
            word = without_joiner(token)
            unknown.append(without_joiner(before) + word if word in known else word)
    return tuple(dict.fromkeys(word.strip() for word in unknown if word.strip()))


def close_words(word: str, vocabulary: Sequence[str]) -> list[str]:
    """Find the words of a vocabulary that are most like a word.

    A word that differs only in its capitals comes first, then those of the same stem, then those
    that one or two changed letters make.

    Args:
        word: the word.
        vocabulary: the words to choose from.

    Returns:
        Three words at most, the closest first.
    """
    lowered = word.lower()
    # A word in capitals does not show whether it begins with one otherwise.
    begins_upper = word[0].isupper() and (len(word) == 1 or not word.isupper())
    # To a letter or a number every other is close, which is no help.
    is_short = sum(map(str.isalpha, lowered)) < 2
    scores: dict[str, tuple[float, str]] = {}
    for other in vocabulary:
        near = other.lower()
        if other == word or (not near.isascii() and lowered.isascii()):
            continue
        if is_short and near != lowered:
            continue
        if near == lowered:
            score = 0.0
        elif _has_stem_of(lowered, near):
            score = 1 + abs(len(near) - len(lowered)) / 10
        else:
            distance = _distance(lowered, near, most=1 if len(word) < 5 else 2)
            if distance is None:
                continue
            # At least 2.5: behind every word of one stem, which scores 1.3 at most.
            score = 1.5 + distance
        # Of two spellings that differ in capitals, the one written like the word is closer.
        score += 0.05 * (other[0].isupper() != begins_upper)
        if near not in scores or (score, other) < scores[near]:
            scores[near] = score, other
    return [other for _, other in sorted(scores.values())[:_MOST_CLOSE]]


def say_unknown_words(
    words: Sequence[str], tokenizer: Tokenizer, *, most: int | None = None
) -> str:
    """Word what the vocabulary lacks: *"kitten" (close: "bitten"), "zebra" (nothing close)*.

    Args:
        words: from `unknown_words`.
        tokenizer: has the vocabulary.
        most: the most words to name; the others are counted.
    """
    known = _known(tokenizer)
    vocabulary = sorted({without_joiner(token) for token in known})
    said = []
    for word in words[:most]:
        mark = "'" if '"' in word else '"'
        said.append(f"{mark}{word}{mark} ({_say_close(word, known, vocabulary)})")
    if len(said) < len(words):
        said.append(f"and {len(words) - len(said)} more")
    shouted = [word for word in words if len(word) > 1 and word.isupper()]
    num_folded = sum(not known.isdisjoint((one.lower(), one.capitalize())) for one in shouted)
    # One word in capitals may be an abbreviation; several are a habit of the text.
    is_shouted = num_folded > 1 and 2 * num_folded >= len(words)
    return ", ".join(said) + (_SHOUTED if is_shouted else "")


_SHOUTED = "; text in capitals is unlike the text that the model learned from: use small letters"


def _say_close(word: str, known: frozenset[str], vocabulary: Sequence[str]) -> str:
    """Word what the vocabulary has instead of a word."""
    if JOINER + word in known:
        return "known without the space before it"
    bare = re.sub(r"^[\W_]+", "", word)
    if bare in known:
        return f'known with a space before it: "{bare}"'
    # To a sign every other sign is close, which is no help.
    close = close_words(word, vocabulary) if bare else []
    near = ", ".join(f'"{other}"' for other in close)
    return f"close: {near}" if near else "nothing close"


def _known(tokenizer: Tokenizer) -> frozenset[str]:
    return frozenset(tokenizer.vocabulary("source")) - set(SPECIAL_TOKENS)


def _has_stem_of(word: str, other: str) -> bool:
    """Tell whether two words begin alike and differ only in a short ending."""
    shared = 0
    for one, two in zip(word, other, strict=False):
        if one != two:
            break
        shared += 1
    longest = max(len(word), len(other))
    return shared >= _STEM and longest - shared <= 3 and min(len(word), len(other)) - shared <= 2


def _distance(word: str, other: str, *, most: int) -> int | None:
    """Count the letters to add, drop, change or exchange; None if there are more than ``most``."""
    if abs(len(word) - len(other)) > most:
        return None
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, start=1):
        last = before
        before = row
        row = [i]
        for j, found in enumerate(other, start=1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != found))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == found:
                best = min(best, last[j - 2] + 1)
            row.append(best)
        # Later rows have no smaller distances. Most words of a vocabulary are given up early.
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None
