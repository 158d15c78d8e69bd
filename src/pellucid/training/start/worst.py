"""Pairs that a model finds unlikely: a trained model as a filter of training text."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pellucid.check.scan import corpora
from pellucid.config import DataConfig
from pellucid.text.reading.sentence_pairs import SentencePair, read_pairs
from pellucid.translate.translator import Translator

AT_ONCE = 2000
"""Pairs that are scored together."""


@dataclass(frozen=True, order=True)
class WorstPair:
    """A pair of the training text, as the model judges it.

    Attributes:
        score: the log-probability of the target, divided by its tokens; ``</s>`` is one of them.
        source_where: ``FILE:LINE`` of the source, lines from 1.
        target_where: the same of the target.
        source: the source.
        target: the target.
    """

    score: float
    source_where: str
    target_where: str
    source: str
    target: str


@dataclass(frozen=True)
class WorstPairs:
    """The least likely pairs of the training text.

    Attributes:
        pairs: the worst first.
        num_scored: the number of pairs that were scored.
        num_left_out: the number that cannot be: a side is empty, or too long for the model.
    """

    pairs: tuple[WorstPair, ...]
    num_scored: int
    num_left_out: int


def find_worst(
    translator: Translator,
    data: DataConfig,
    base: Path,
    count: int,
    progress: Callable[[int], None] = lambda done: None,
) -> WorstPairs:
    """Score the training text with a model, and keep the pairs that it finds least likely.

    Lines that cannot be read are left out; the data check reports them.

    Args:
        translator: the model.
        data: the recipe's data section.
        base: the recipe's folder.
        count: the number of pairs to keep.
        progress: called with the number of pairs done so far.

    Raises:
        DataError: a file is empty, or parallel files differ in length.
        InputFileNotFoundError: a file is missing.
    """
    rows = _rows(data, base)
    worst: list[WorstPair] = []
    num_scored = num_left_out = 0
    while window := list(islice(rows, AT_ONCE)):
        usable = [row for row in window if row[0].source.strip() and row[0].target.strip()]
        results = translator.score(
            [pair.source for pair, _ in usable], [pair.target for pair, _ in usable]
        )
        scored = [
            WorstPair(
                result.log_probability / len(result.ids),
                source_where,
                target_where,
                pair.source,
                pair.target,
            )
            for (pair, (source_where, target_where)), result in zip(usable, results, strict=True)
            if result.error is None
        ]
        worst = heapq.nsmallest(count, [*worst, *scored], key=lambda row: row.score)
        num_scored += len(scored)
        num_left_out += len(window) - len(scored)
        progress(num_scored + num_left_out)
    return WorstPairs(tuple(worst), num_scored, num_left_out)


def _rows(data: DataConfig, base: Path) -> Iterator[tuple[SentencePair, tuple[str, str]]]:
    """Yield the training pairs with the places of both sides."""
    readable = data.model_copy(update={"on_bad_line": "skip"})
    for corpus in corpora(readable, "train"):
        for pair in read_pairs(corpus.data, "train", base):
            line = pair.where.rpartition(":")[2]
            yield pair, (f"{corpus.source}:{line}", f"{corpus.target}:{line}")
