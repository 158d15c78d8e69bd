"""Pairs and files in another language than they should be: swapped sides, foreign text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pellucid.check.line_languages import (
    ABSENT,
    UNKNOWN,
    LanguageJudge,
    TextLanguages,
    are_kindred,
    identify_surely,
    known_code,
)
from pellucid.check.scan import Scan
from pellucid.config import DataConfig
from pellucid.config.data import Split
from pellucid.errors import PellucidError
from pellucid.text.reading.sentence_pairs import read_pairs

SAMPLE: Mapping[Split, int] = {"train": 4000, "validation": 1000, "test": 1000}
"""The most pairs of each split that are given to the identifier."""

SURE_SHARE = 0.5
"""The share of a side's lines of which the identifier must be sure for the side to have a
language."""

MAIN_SHARE = 0.6
"""The share of these lines that must be in that language."""

WHOLE_SHARE = 0.6
"""The share of a file's clear lines from which the file is foreign as a whole."""

FEWEST = 8
"""With fewer clear lines, a file is not judged as a whole."""


@dataclass(frozen=True)
class ForeignFile:
    """A corpus of which most lines are in another language.

    Attributes:
        kind: ``swapped`` if each side has the other's language, else ``source`` or ``target``.
        language: the language of most lines of that side.
        count: the number of such lines.
        judged: the number of lines whose language is clear.
        indices: their pairs.
    """

    kind: str
    language: str
    count: int
    judged: int
    indices: NDArray[np.int64]


@dataclass(frozen=True)
class ForeignLines:
    """Pairs in another language, in files that are mostly right.

    Attributes:
        kind: ``swapped``, ``source`` or ``target``.
        indices: the pairs.
        languages: the number of lines in each other language.
    """

    kind: str
    indices: NDArray[np.int64]
    languages: Counter[str]


def learn_languages(
    data: DataConfig, samples: Mapping[Split, tuple[list[str], list[str]]]
) -> TextLanguages | None:
    """Learn which languages a recipe's text is in, from a sample of it.

    Args:
        data: the recipe's data section.
        samples: those of `sample_text`, without tags.

    Returns:
        None if neither side has a language that the identifier knows.
    """
    declared = tuple(
        known_code(code) if code else None for code in (data.source_language, data.target_language)
    )
    identified = {
        split: [[(line, identify_surely(line)) for line in side] for side in sides]
        for split, sides in samples.items()
    }
    codes = [
        code or _main_language([found for _, found in side])
        for code, side in zip(declared, identified["train"], strict=True)
    ]
    everything = [line for sides in identified.values() for side in sides for line in side]
    judge = LanguageJudge(everything, [code for code in codes if code])
    usual = [_number(judge.names, code) for code in codes]
    if not judge.names or usual == [UNKNOWN, UNKNOWN]:
        return None
    return TextLanguages(
        judge,
        (usual[0], usual[1]),
        (codes[0] or "", codes[1] or ""),
        (declared[0] is not None, declared[1] is not None),
    )


def main_language(lines: Iterable[str]) -> str | None:
    """Tell the language of most lines; None if it is not clear."""
    return _main_language([identify_surely(line) for line in lines])


def sample_text(data: DataConfig, base: Path) -> dict[Split, tuple[list[str], list[str]]]:
    """Read a sample of each split that a recipe names: sources and targets."""
    readable = data.model_copy(update={"on_bad_line": "skip"})
    return {
        split: _sample(readable, split, base, most)
        for split, most in SAMPLE.items()
        if any(data.names(split))
    }


def _sample(data: DataConfig, split: Split, base: Path, most: int) -> tuple[list[str], list[str]]:
    """Read pairs spread over a whole split, at most so many."""
    kept: list[tuple[int, str, str]] = []
    bound = 1 << 32
    try:
        for number, pair in enumerate(read_pairs(data, split, base)):
            # Multiples of this number modulo 2^32 are spread evenly, also those of every nth line.
            place = number * 2654435761 & 0xFFFFFFFF
            if place < bound:
                kept.append((place, pair.source, pair.target))
                if len(kept) > most:
                    bound //= 2
                    kept = [row for row in kept if row[0] < bound]
    except PellucidError:
        pass  # The check itself reports it; what came before counts.
    return [row[1] for row in kept], [row[2] for row in kept]


def _main_language(codes: Sequence[str]) -> str | None:
    """Find the language of most lines, if the identifier is sure of enough of them."""
    sure = Counter(code for code in codes if code)
    if sure.total() < max(FEWEST, SURE_SHARE * len(codes)):
        return None
    code, count = sure.most_common(1)[0]
    kindred = sum(number for other, number in sure.items() if are_kindred(code, other))
    return code if max(count, kindred) >= MAIN_SHARE * sure.total() else None


def _number(names: Sequence[str], code: str | None) -> int:
    if code is None:
        return UNKNOWN
    if code in names:
        return names.index(code) + 1
    return next((n for n, name in enumerate(names, start=1) if are_kindred(name, code)), ABSENT)


def find_foreign(scan: Scan) -> Iterator[ForeignFile | ForeignLines]:
    """Find files and lines whose language is not that of their side."""
    languages = scan.languages
    if languages is None:
        return
    sides = [np.asarray(side.languages, dtype=np.int64) for side in (scan.source, scan.target)]
    is_clear = [side != UNKNOWN for side in sides]
    is_foreign = [
        clear & (side != usual) if usual != UNKNOWN else np.zeros_like(clear)
        for side, clear, usual in zip(sides, is_clear, languages.usual, strict=True)
    ]
    is_swapped = _swapped(sides, languages)
    rest = [foreign & ~is_swapped for foreign in is_foreign]
    for start, end in scan.stretches():
        part = slice(start, end)
        found = _whole_file(part, sides, is_clear, is_swapped, is_foreign, languages)
        yield from found
        for file in found:
            for is_it in (
                (is_swapped, *rest) if file.kind == "swapped" else (rest[file.kind == "target"],)
            ):
                is_it[part] = False
    for kind, is_it, side in (
        ("swapped", is_swapped, sides[0]),
        ("source", rest[0], sides[0]),
        ("target", rest[1], sides[1]),
    ):
        indices = np.flatnonzero(is_it)
        if len(indices):
            numbers = Counter(side[indices].tolist())
            names = {languages.names[n - 1]: count for n, count in numbers.most_common()}
            yield ForeignLines(kind, indices, Counter(names))


def _swapped(sides: Sequence[NDArray[np.int64]], languages: TextLanguages) -> NDArray[np.bool_]:
    """Find pairs of which each side is in the language of the other."""
    source, target = languages.usual
    if ABSENT in (source, target) or UNKNOWN in (source, target) or source == target:
        return np.zeros(len(sides[0]), dtype=bool)
    in_target = sides[0] == target
    in_source = sides[1] == source
    is_swapped: NDArray[np.bool_] = in_target & in_source
    # If whole pairs are exchanged, so are those with one side too short to be clear.
    on_one_side = (in_target & (sides[1] == UNKNOWN)) | ((sides[0] == UNKNOWN) & in_source)
    if is_swapped.sum() >= on_one_side.sum():
        is_swapped |= on_one_side
    return is_swapped


def _whole_file(
    part: slice,
    sides: Sequence[NDArray[np.int64]],
    is_clear: Sequence[NDArray[np.bool_]],
    is_swapped: NDArray[np.bool_],
    is_foreign: Sequence[NDArray[np.bool_]],
    languages: TextLanguages,
) -> list[ForeignFile]:
    """Judge a corpus as a whole."""
    both = is_clear[0][part] & is_clear[1][part]
    swapped = np.flatnonzero(is_swapped[part]) + part.start
    judged = int((both | is_swapped[part]).sum())
    if _are_most(len(swapped), judged):
        return [ForeignFile("swapped", "", len(swapped), judged, swapped)]
    found = []
    for kind, side, clear, foreign in zip(
        ("source", "target"), sides, is_clear, is_foreign, strict=True
    ):
        indices = np.flatnonzero(foreign[part]) + part.start
        if _are_most(len(indices), int(clear[part].sum())):
            number, _ = Counter(side[indices].tolist()).most_common(1)[0]
            name = languages.names[number - 1]
            found.append(ForeignFile(kind, name, len(indices), int(clear[part].sum()), indices))
    return found


def _are_most(count: int, judged: int) -> bool:
    return judged >= FEWEST and count >= WHOLE_SHARE * judged


def line_stretches(scan: Scan, indices: NDArray[np.int64]) -> tuple[str, ...]:
    """Name the lines of some pairs as ``FILE:FIRST-LAST``.

    Only lines between them that are in the right language end a stretch.
    """
    assert scan.languages is not None
    is_right = np.zeros(len(scan), dtype=bool)
    for side, usual in zip((scan.source, scan.target), scan.languages.usual, strict=True):
        if usual != UNKNOWN:
            is_right |= np.asarray(side.languages, dtype=np.int64) == usual
    right_before = np.concatenate([[0], np.cumsum(is_right)])
    corpus = np.searchsorted(np.asarray(scan.starts), indices, side="right")
    is_first = np.ones(len(indices), dtype=bool)
    is_first[1:] = (np.diff(right_before[indices]) > 0) | (np.diff(corpus) > 0)
    firsts = indices[is_first]
    lasts = indices[np.append(np.flatnonzero(is_first)[1:] - 1, len(indices) - 1)]
    named = []
    for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
        place = scan.where(first)[0]
        end = scan.where(last)[0].rpartition(":")[2]
        named.append(place if first == last else f"{place}-{end}")
    return tuple(named)
