"""The way of texts through several models, and what their translations make together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import chain, groupby
from typing import Any

from pellucid.translate.results import (
    NO_NOTES,
    FixedCounts,
    ModelStep,
    Notes,
    TranslatedHypothesis,
    Translation,
)

Links = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Step:
    """Texts for one model of a chain.

    Attributes:
        number: of the model, from 0.
        texts: what it translates.
        rows: for each, the number of the chain's text that it comes from.
    """

    number: int
    texts: Sequence[str]
    rows: Sequence[int]


Following = Generator[Step, list[Translation], list[Translation]]


def follow(texts: Sequence[str], names: Sequence[str], most: int) -> Following:
    """Lead texts through models; whoever drives this translates each step.

    Every hypothesis of a model is translated by the next one. Of the ways to a translation the
    best are kept, by the sum of the scores of all models.

    Args:
        texts: what the first model reads.
        names: of the models.
        most: hypotheses of each text to keep.

    Yields:
        The texts for each model; it takes their translations.

    Returns:
        The translation of each text.
    """
    ways: list[tuple[int, Translation | None]] = [(row, None) for row in range(len(texts))]
    for number, name in enumerate(names):
        is_open = [way is None or way.error is None for _, way in ways]
        given = [one for one, still in zip(ways, is_open, strict=True) if still]
        # What could not be translated keeps its error.
        longer = [one for one, still in zip(ways, is_open, strict=True) if not still]
        found = yield Step(
            number,
            [texts[row] if way is None else way.text for row, way in given],
            [row for row, _ in given],
        )
        for (row, way), translation in zip(given, found, strict=True):
            longer += [(row, one) for one in _extend(way, translation, name)]
        longer.sort(key=lambda one: one[0])
        ways = []
        for row, own in groupby(longer, key=lambda one: one[0]):
            ways += [(row, one) for one in _best([way for _, way in own if way], most)]
    return [
        _together([way for _, way in own if way is not None])
        for _, own in groupby(ways, key=lambda one: one[0])
    ]


def _extend(way: Translation | None, found: Translation, name: str) -> list[Translation]:
    """Make the ways that lead through the hypotheses of the next model."""
    if found.error is not None:
        if way is None:
            return [found]
        return [replace(way, hypotheses=(), error=f"{name}: {found.error}")]
    longer = []
    for last in found.hypotheses:
        step = ModelStep(name, last.text, found.notes)
        if way is None:
            longer.append(replace(found, hypotheses=(last,), through=(step,)))
            continue
        first = way.best
        both = replace(
            last,
            log_probability=first.log_probability + last.log_probability,
            score=first.score + last.score,
            parts=(),
            alignment=join_links(first, found.source_words, last),
            middle=(*first.middle, first.text),
        )
        notes = join_notes((way.notes, found.notes))
        longer.append(replace(way, hypotheses=(both,), notes=notes, through=(*way.through, step)))
    return longer


def _best(ways: Sequence[Translation], most: int) -> list[Translation]:
    """Choose the ways with the best scores, one for each text; an error only without any."""
    whole = [one for one in ways if one.error is None]
    if not whole:
        return list(ways[:1])
    distinct: dict[str, Translation] = {}
    for one in sorted(whole, key=lambda way: -way.score):
        distinct.setdefault(one.text, one)
    return list(distinct.values())[:most]


def _together(ways: Sequence[Translation]) -> Translation:
    return replace(ways[0], hypotheses=tuple(chain.from_iterable(one.hypotheses for one in ways)))


def join_links(
    first: TranslatedHypothesis, middle_words: Sequence[str], last: TranslatedHypothesis
) -> Links | None:
    """Multiply the links into the middle text and those out of it, as matrices of 0 and 1.

    Args:
        first: the middle text.
        middle_words: its words as the next model's links count them.
        last: its translation.
    """
    if first.alignment is None or last.alignment is None:
        return None
    same = _shared(first.words, middle_words)
    out: dict[int, set[int]] = {}
    for middle, target in last.alignment:
        out.setdefault(middle, set()).add(target)
    found = {
        (source, target)
        for source, middle in first.alignment
        for other in same[middle]
        for target in out.get(other, ())
    }
    return tuple(sorted(found))


def _shared(words: Sequence[str], others: Sequence[str]) -> list[list[int]]:
    """Find for each word of a text those of another cut of it that share a letter with it."""
    if tuple(words) == tuple(others):
        return [[place] for place in range(len(words))]
    letters = [place for place, word in enumerate(others) for _ in "".join(word.split())]
    shared = []
    start = 0
    for word in words:
        end = start + len("".join(word.split()))
        shared.append(sorted(set(letters[start:end])))
        start = end
    return shared


def join_notes(each: Sequence[Notes]) -> Notes:
    """Join the notes of several models on a text: what is unusual to any of them."""
    if all(one is NO_NOTES for one in each):
        return NO_NOTES
    joined: dict[str, Any] = {}
    for one in fields(Notes):
        values = [getattr(notes, one.name) for notes in each]
        if isinstance(one.default, FixedCounts):
            counts: Counter[str] = Counter()
            for value in values:
                counts.update(value)
            joined[one.name] = counts
        elif isinstance(one.default, tuple):
            joined[one.name] = tuple(dict.fromkeys(chain.from_iterable(values)))
        else:
            # Text that is empty comes before any other, and False before True.
            joined[one.name] = max(values)
    return Notes(**joined)
