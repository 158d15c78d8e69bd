"""How much text there is: words, characters, different words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pellucid.config import DataConfig, TokenizerConfig
from pellucid.text.corpus import read_pairs
from pellucid.text.normalization import normalize
from pellucid.text.scan import corpora

__all__ = ["COMMON_COVERAGE", "TextCounts", "count_text"]

COMMON_COVERAGE = 0.9995
"""The share of a text that its common characters make up."""

CERTAINLY_TOO_LONG = 2
"""A line of so many times the words that it may have tokens is left out, whatever its script."""

_WORD = re.compile(r"[^\W\d_]{2,12}")
_ESCAPE = re.compile(r"&(?:apos|quot|amp|lt|gt|#\d{1,4});")
_MOST_DISTINCT = 100_000


@dataclass(frozen=True)
class TextCounts:
    """How much training text there is.

    Pairs that are sure to be left out, with an empty side or one far too long, count for their
    characters and different words alone.

    Attributes:
        pairs: of all corpora.
        source_words: words of the sources; where a script has no spaces, half its characters.
        target_words: the same of the targets.
        epoch_words: target words of one epoch, the weights of corpora taken into account.
        characters: distinct ones that a vocabulary must hold.
        common_characters: those of them that make up 99.95 % of the text.
        distinct_words: at least so many different words; counted up to 100,000.
        escapes: ``&apos;`` and its like, which text has that was tokenized before.
    """

    pairs: int
    source_words: int
    target_words: int
    epoch_words: float
    characters: int
    common_characters: int
    distinct_words: int
    escapes: int = 0


def count_text(data: DataConfig, tokenizer: TokenizerConfig, base: Path) -> TextCounts:
    """Count the training text, in one pass.

    Args:
        data: the recipe's data section.
        tokenizer: how text is normalized, and whether the sides share a vocabulary.
        base: where its relative names start.

    Raises:
        InputError: the text cannot be read.
    """
    form = tokenizer.normalization
    sides = (_SideCounts(), _SideCounts())
    pairs, source_words, target_words, epoch_words = 0, 0, 0, 0.0
    too_many = 1 + CERTAINLY_TOO_LONG * data.max_length
    parts = corpora(data, "train")
    for corpus, weight in zip(parts, data.train_weights or [1.0] * len(parts), strict=True):
        for pair in read_pairs(corpus.data, "train", base):
            in_source = sides[0].add(normalize(pair.source, form))
            in_target = sides[1].add(normalize(pair.target, form))
            if 0 < in_source < too_many and 0 < in_target < too_many:
                pairs += 1
                source_words += in_source
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


class _SideCounts:
    """Words and characters of one side."""

    _CHUNK = 1 << 20

    def __init__(self) -> None:
        self.escapes = 0
        self.distinct: set[str] = set()
        self._frequencies = np.zeros(0x110000, dtype=np.int64)
        self._waiting: list[str] = []
        self._num_waiting = 0

    def add(self, line: str) -> int:
        """Take a line in; the number of its words."""
        num_words = len(line.split())
        if len(line) > 12 * num_words:  # a script without spaces
            num_words = max(num_words, len(line) // 2)
        if len(self.distinct) < _MOST_DISTINCT:
            self.distinct.update(_WORD.findall(line))
        if "&" in line:
            self.escapes += len(_ESCAPE.findall(line))
        self._waiting.append(line)
        self._num_waiting += len(line)
        if self._num_waiting >= self._CHUNK:
            self._count()
        return num_words

    def finish(self) -> NDArray[np.int64]:
        """How often every character occurs."""
        self._count()
        self._frequencies[ord(" ")] = 0
        return self._frequencies

    def _count(self) -> None:
        text = "".join(self._waiting).encode("utf-32-le", "replace")
        points = np.frombuffer(text, dtype="<u4")
        self._frequencies += np.bincount(points, minlength=len(self._frequencies))
        self._waiting, self._num_waiting = [], 0


def _needed(frequencies: NDArray[np.int64], share: float) -> int:
    """How many of the most frequent characters make up so much of the text."""
    running = np.cumsum(np.sort(frequencies)[::-1])
    return int(np.searchsorted(running, share * int(running[-1]))) + 1
