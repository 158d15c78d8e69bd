"""Counts of the training text: words, characters, different words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from itertools import compress, islice, repeat
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pellucid.check.scan import corpora
from pellucid.config import DataConfig, TokenizerConfig
from pellucid.documents.placeholder_masks import lost_copies, mask_lesson, maskable
from pellucid.text.normalization import normalize
from pellucid.text.reading.sentence_pairs import read_lessons, read_pairs

COMMON_COVERAGE = 0.9995
"""The share of a text that consists of its common characters."""

_WORD = re.compile(r"[^\W\d_]{2,12}")
_ESCAPE = re.compile(r"&(?:apos|quot|amp|lt|gt|#\d{1,4});")
_MAX_DISTINCT = 100_000


@dataclass(frozen=True)
class TextCounts:
    """The size of the training text, of which only the pairs that are kept count.

    Attributes:
        pairs: pairs of all corpora that are kept.
        source_words: words of the sources; in scripts without spaces, half the characters.
        target_words: words of the targets, counted in the same way.
        epoch_words: target words of one epoch, with the weights of the corpora.
        characters: different characters that a vocabulary must hold.
        common_characters: the fewest of them that make up 99.95 % of the text.
        distinct_words: different words, counted up to 100,000.
        escapes: ``&apos;`` and the like, which show that the text was tokenized before.
    """

    pairs: int
    source_words: int
    target_words: int
    epoch_words: float
    characters: int
    common_characters: int
    distinct_words: int
    escapes: int = 0


def count_text(
    data: DataConfig, tokenizer: TokenizerConfig, base: Path, kept: bytes | None = None
) -> TextCounts:
    """Count the training text, in one pass.

    Args:
        data: the recipe's data section.
        tokenizer: its normalization, and whether the sides share a vocabulary.
        base: the recipe's folder, where relative names start.
        kept: a byte for each pair, 0 for those that do not count; None counts all.

    Raises:
        InputError: the text cannot be read.
    """
    form = tokenizer.normalization
    sides = (_SideCounts(), _SideCounts())
    pairs = 0
    source_words = 0
    target_words = 0
    epoch_words = 0.0
    counted = repeat(1) if kept is None else iter(kept)
    parts = corpora(data, "train")
    for corpus, weight in zip(parts, data.train_weights or [1.0] * len(parts), strict=True):
        for pair in compress(
            read_lessons(corpus.data, "train", base, symbols=tokenizer.symbols), counted
        ):
            in_target = sides[1].add(normalize(pair.target, form))
            pairs += 1
            source_words += sides[0].add(normalize(pair.source, form))
            target_words += in_target
            epoch_words += weight * in_target
    per_side = [side.finish() for side in sides]
    joint = tokenizer.sharing == "joint"
    frequencies = [per_side[0] + per_side[1]] if joint else per_side
    distinct = [len(side.distinct) for side in sides]
    return TextCounts(
        pairs=pairs,
        source_words=source_words,
        target_words=target_words,
        epoch_words=epoch_words,
        characters=max(int(np.count_nonzero(found)) for found in frequencies),
        common_characters=max(_needed(found, COMMON_COVERAGE) for found in frequencies),
        distinct_words=max(distinct) if joint else min(distinct),
        escapes=sum(side.escapes for side in sides),
    )


@dataclass(frozen=True)
class PlaceholderCounts:
    """Pairs with placeholders, among the first ones of the training text.

    Attributes:
        pairs: all pairs that were looked at.
        masked: those whose sides have a placeholder in common.
        lacking: those whose source has one that the target lacks.
        example: what targets lack most often.
    """

    pairs: int
    masked: int
    lacking: int
    example: str


def count_placeholders_of_pairs(
    data: DataConfig, base: Path, most: int, symbols: Collection[str]
) -> PlaceholderCounts:
    """Count the first training pairs with placeholders.

    Args:
        data: the recipe's data section.
        base: the recipe's folder.
        most: the pairs to look at.
        symbols: those of the tokenizer, which are not placeholders.

    Raises:
        InputError: the text cannot be read.
    """
    wanted = maskable(symbols)
    pairs = [*islice(read_pairs(data, "train", base), most)]
    masked = 0
    lacking = 0
    examples = Counter[str]()
    for pair in pairs:
        sides = (pair.source, pair.target)
        masked += mask_lesson(*sides, wanted=wanted) != sides
        lost = lost_copies(*sides, wanted=wanted)
        lacking += bool(lost)
        examples.update(lost)
    example = examples.most_common(1)[0][0] if examples else ""
    return PlaceholderCounts(len(pairs), masked, lacking, example)


def count_words(line: str) -> int:
    """Count the words of a line; in scripts without spaces, half its characters."""
    num_words = len(line.split())
    return max(num_words, len(line) // 2) if len(line) > 12 * num_words else num_words


class _SideCounts:
    """Counts words and characters of one side."""

    _CHUNK = 1 << 20

    def __init__(self) -> None:
        self.escapes = 0
        self.distinct: set[str] = set()
        self._frequencies = np.zeros(0x110000, dtype=np.int64)
        self._waiting: list[str] = []
        self._num_waiting = 0

    def add(self, line: str) -> int:
        """Count a line; return the number of its words."""
        if len(self.distinct) < _MAX_DISTINCT:
            self.distinct.update(_WORD.findall(line))
        if "&" in line:
            self.escapes += len(_ESCAPE.findall(line))
        self._waiting.append(line)
        self._num_waiting += len(line)
        if self._num_waiting >= self._CHUNK:
            self._count()
        return count_words(line)

    def finish(self) -> NDArray[np.int64]:
        """Return how often every character occurs, spaces not counted."""
        self._count()
        self._frequencies[ord(" ")] = 0
        return self._frequencies

    def _count(self) -> None:
        text = "".join(self._waiting).encode("utf-32-le", "replace")
        points = np.frombuffer(text, dtype="<u4")
        self._frequencies += np.bincount(points, minlength=len(self._frequencies))
        self._waiting = []
        self._num_waiting = 0


def _needed(frequencies: NDArray[np.int64], share: float) -> int:
    """Count the fewest characters that make up a share of the text."""
    running = np.cumsum(np.sort(frequencies)[::-1])
    return int(np.searchsorted(running, share * int(running[-1]))) + 1
