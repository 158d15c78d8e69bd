"""Words that a vocabulary of whole words lacks, and what it has that is close."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.text.tokenizers.tokenizer import SPECIAL_TOKENS, Tokenizer
from pellucid.text.tokenizers.words import bare_words, split_words, without_joiner

_MOST_CLOSE = 3
_STEM = 4
"""Letters at the beginning that two words of one stem share at least."""


def unknown_words(tokenizer: Tokenizer, text: str) -> tuple[str, ...]:
    """List the words of a source text that a vocabulary of whole words lacks, in their order.

    A model of subwords cuts every word into pieces that it knows: the list is empty.
    """
    if tokenizer.config.kind != "words":
        return ()
    known = _known(tokenizer)
    text = tokenizer.normalized(text)
    cut = bare_words if tokenizer.config.drop_punctuation else split_words
    unknown = [without_joiner(token) for token in cut(text) if token not in known]
    return tuple(dict.fromkeys(word for word in unknown if word.strip()))


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
    scores: dict[str, tuple[float, str]] = {}
    for other in vocabulary:
        near = other.lower()
        if other == word or (not near.isascii() and lowered.isascii()):
            continue
        if near == lowered:
            score = 0.0
        elif _has_stem_of(lowered, near):
            score = 1 + abs(len(near) - len(lowered)) / 10
        else:
            distance = _distance(lowered, near, most=1 if len(word) < 5 else 2)
            if distance is None:
                continue
            score = 1.5 + distance
        # Of two spellings that differ in capitals, the one written like the word is closer.
        score += 0.05 * (other[0].isupper() != word[0].isupper())
        if near not in scores or (score, other) < scores[near]:
            scores[near] = score, other
    return [other for _, other in sorted(scores.values())[:_MOST_CLOSE]]


def say_unknown_words(words: Sequence[str], tokenizer: Tokenizer) -> str:
    """Word what the vocabulary lacks: *"kitten" (close: "bitten"), "zebra" (nothing close)*."""
    vocabulary = sorted({without_joiner(token) for token in _known(tokenizer)})
    said = []
    for word in words:
        close = close_words(word, vocabulary)
        near = ", ".join(f'"{other}"' for other in close)
        said.append(f'"{word}" ({f"close: {near}" if near else "nothing close"})')
    return ", ".join(said)


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
        last, before, row = before, row, [i]
        for j, found in enumerate(other, start=1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != found))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == found:
                best = min(best, last[j - 2] + 1)
            row.append(best)
        if min(row) > most:
            return None
    return row[-1] if row[-1] <= most else None
