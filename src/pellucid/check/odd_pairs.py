"""Odd pairs of a scanned split, compared with what is usual in the same text."""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pellucid.check.line_languages import (
    FEWEST_LETTERS,
    UNKNOWN,
    are_kindred,
    identify_language,
    known_code,
)
from pellucid.check.scan import MOST_EXAMPLES, Scan, Side
from pellucid.check.shifts import Shift, find_shifts, is_unrelated
from pellucid.config import DataConfig
from pellucid.terminal.text import count_of, percent

COMMON_SHARE = 0.999
"""A length or ratio is extreme if it is beyond those of this share of the lines, and beyond a
factor."""

MIN_EXTREME = 5
"""Lines that may be beyond the others in short texts too."""

LENGTH_FACTOR = 8
"""Times the usual length, beyond which a line is too long."""

RATIO_FACTOR = 6
"""Times the usual ratio of lengths, beyond which two lines do not fit."""

ADDED_LENGTH = 10
"""Added to both lengths before they are divided, so that two words for one are not extreme."""

USUAL_SHARE = 0.15
"""The share of a side's lines from which a script is usual."""

MIN_LINES = 20
"""With fewer lines, nothing is usual."""


FEW = 200
"""The most pairs that are looked at one by one."""

SURE = 0.8
"""The least probability with which one line is in another language."""

BOTH_SURE = 0.2
"""The same for the product of the two lines of an exchanged pair."""

SHORTEST_SWAPPED = 10
"""The fewest characters of these lines."""

FEWEST_MIXED = 8
MIXED_SHARE = 0.2
"""Sources with targets in two languages: so many, and this share of those with several targets; of
a text in two languages, the lines in the second one."""

DOUBTFUL_FACTOR = 2.5
"""Times the usual ratio of lengths, beyond which one side is far too short, maybe."""

FEWEST_CHARACTERS = 20
"""Characters that one of the two must have for that."""


@dataclass(frozen=True)
class Hit:
    """One kind of oddity.

    Attributes:
        kind: its name.
        count: the number of pairs.
        indices: the first of them.
        others: the pair that each of these is like, if any.
        places: all of them, if they are to be listed.
        detail: what exactly was found, in a few words.
    """

    kind: str
    count: int
    indices: tuple[int, ...]
    others: tuple[int, ...] = ()
    places: NDArray[np.int64] | None = None
    detail: str = ""


def judge_split(scan: Scan, usual: Scan) -> Iterator[Hit]:
    """Find everything except shifts and pairs that two splits share.

    Args:
        scan: the split.
        usual: the training text, whose scripts are the usual ones.
    """
    for name, count in scan.counts.items():
        yield Hit(name, count, tuple(scan.examples[name]))
    for name in ("source", "target"):
        side = getattr(scan, name)
        model = getattr(usual, name)
        yield _hit(f"{name} script", _places(_in_other_script(side, scan, model, usual)))
        yield _hit(f"long {name}", _places(_too_long(side)))
    yield _hit("ratio", _places(_unbalanced(scan)))
    yield from _repeated(scan)


def shared_pairs(scan: Scan) -> Iterator[Hit]:
    """Find pairs that are also in the training text, and those of which only the source is."""
    pairs = dict(sorted(scan.shared.items()))
    sources = {a: b for a, b in sorted(scan.shared_sources.items()) if a not in pairs}
    for kind, found in (("in training", pairs), ("source in training", sources)):
        yield _hit(kind, list(found), list(found.values()))


def shifted_stretches(scan: Scan) -> Iterator[Shift]:
    """Find shifted stretches of each corpus; the indices count the pairs of the whole split."""
    for start, end in scan.stretches():
        for shift in find_shifts(*_of_lines(scan, start, end)):
            yield Shift(start + shift.first, start + shift.last, shift.offset)


def unrelated_stretches(scan: Scan) -> Iterator[tuple[int, int]]:
    """Find corpora whose sides do not belong together: first pair, and the one after the last."""
    for start, end in scan.stretches():
        lines = _of_lines(scan, start, end)
        if is_unrelated(*lines) and not find_shifts(*lines):
            yield start, end


def _of_lines(
    scan: Scan, start: int, end: int
) -> tuple[array[int], array[int], array[int], array[int]]:
    """Cut out the lengths and the anchors of both sides, as `find_shifts` takes them."""
    source = scan.source
    target = scan.target
    part = slice(start, end)
    return source.lengths[part], target.lengths[part], source.anchors[part], target.anchors[part]


def _hit(kind: str, indices: Sequence[int], others: Sequence[int] = ()) -> Hit:
    return Hit(kind, len(indices), tuple(indices[:MOST_EXAMPLES]), tuple(others[:MOST_EXAMPLES]))


def _places(is_it: NDArray[np.bool_]) -> list[int]:
    places: list[int] = np.flatnonzero(is_it).tolist()
    return places


def _in_other_script(side: Side, scan: Scan, model: Side, usual: Scan) -> NDArray[np.bool_]:
    # The first script stands for too few letters, which never count as another script.
    counts = np.bincount(model.scripts, minlength=len(usual.script_names))[1:]
    known = {""}
    if counts.sum() >= MIN_LINES:
        common = counts >= USUAL_SHARE * counts.sum()
        known |= {usual.script_names[1 + place] for place in np.flatnonzero(common)}
    else:
        known |= set(scan.script_names)
    is_odd = np.array([name not in known for name in scan.script_names])
    return is_odd[np.asarray(side.scripts, dtype=np.intp)]


def _too_long(side: Side) -> NDArray[np.bool_]:
    lengths: NDArray[np.int64] = np.asarray(side.lengths, dtype=np.int64)
    filled = lengths[lengths > 0]
    if len(filled) < MIN_LINES:
        return np.zeros(len(lengths), dtype=bool)
    limit = max(_common(filled), LENGTH_FACTOR * float(np.median(filled)))
    return lengths > limit


def _unbalanced(scan: Scan) -> NDArray[np.bool_]:
    source: NDArray[np.int64] = np.asarray(scan.source.lengths, dtype=np.int64)
    target: NDArray[np.int64] = np.asarray(scan.target.lengths, dtype=np.int64)
    is_filled = (source > 0) & (target > 0)
    if is_filled.sum() < MIN_LINES:
        return np.zeros(len(source), dtype=bool)
    ratio = np.log((target + ADDED_LENGTH) / (source + ADDED_LENGTH))
    distance: NDArray[np.float64] = np.abs(ratio - np.median(ratio[is_filled]))
    limit = max(_common(distance[is_filled]), math.log(RATIO_FACTOR))
    return is_filled & (distance > limit)


def _common(values: NDArray[Any]) -> float:
    """Compute the bound that nearly all values stay below."""
    return float(np.quantile(values, min(COMMON_SHARE, 1 - MIN_EXTREME / len(values))))


def _repeated(scan: Scan) -> Iterator[Hit]:
    """Find exact copies, and sources that have several targets, perhaps in several languages."""
    is_filled = (np.asarray(scan.source.lengths) > 0) & (np.asarray(scan.target.lengths) > 0)
    filled = np.flatnonzero(is_filled)
    pairs = np.asarray(scan.pair_hashes, dtype=np.uint64)
    copies, originals = _find_repeats(pairs[filled])
    yield _hit("copy", filled[copies].tolist(), filled[originals].tolist())
    different = np.delete(filled, copies)
    sources = np.asarray(scan.source_hashes, dtype=np.uint64)[different]
    later, first = _find_repeats(sources)
    repeated = np.unique(sources[later])
    places = different[later], different[first]
    kind = "several targets"
    detail = count_of(len(repeated), "source has several targets", "sources have several targets")
    languages = np.asarray(scan.target.languages, dtype=np.int64)
    if len(languages):
        one = languages[places[0]]
        other = languages[places[1]]
        is_mixed = (one != other) & (one != UNKNOWN) & (other != UNKNOWN)
        num_mixed = len(np.unique(sources[later[is_mixed]]))
        if num_mixed >= max(FEWEST_MIXED, MIXED_SHARE * len(repeated)):
            kind = "several languages"
            places = (places[0][is_mixed], places[1][is_mixed])
            detail = f"{detail}: {_listed(scan, different[np.isin(sources, repeated)])}"
    found, others = (tuple(place[:MOST_EXAMPLES].tolist()) for place in places)
    yield Hit(kind, len(later), found, others, detail=detail)
    if kind != "several languages":
        yield from _mixed(scan)


def _mixed(scan: Scan) -> Iterator[Hit]:
    """Find targets of which none of several languages is the usual one."""
    if scan.languages is None or scan.languages.usual[1] != UNKNOWN or scan.tags:
        return
    languages = np.asarray(scan.target.languages, dtype=np.int64)
    counts = np.sort(np.bincount(languages, minlength=3)[1:])[::-1]
    if counts[1] >= max(FEWEST_MIXED, MIXED_SHARE * counts.sum()):
        numbers, places = np.unique(languages, return_index=True)
        places = places[numbers != UNKNOWN]
        clear = np.flatnonzero(languages != UNKNOWN)
        detail = _listed(scan, clear)
        yield Hit("target languages", len(clear), tuple(places.tolist()), detail=detail)


def _listed(scan: Scan, places: NDArray[np.int64]) -> str:
    """List the languages of some targets with their shares."""
    assert scan.languages is not None
    counts = Counter(scan.target.languages[place] for place in places.tolist())
    del counts[UNKNOWN]
    return ", ".join(
        f"{percent(count / counts.total())} in {scan.languages.names[number - 1]!r}"
        for number, count in counts.most_common()
    )


def _find_repeats(hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Find values that occurred before: their places in order, and where each occurred first."""
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    later = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    first = np.searchsorted(ordered, ordered[later])
    places = order[later]
    firsts = order[first]
    by_place = np.argsort(places)
    return places[by_place], firsts[by_place]


def find_doubtful(
    texts: Mapping[int, tuple[str, str]], data: DataConfig, known: Sequence[int]
) -> Iterator[Hit]:
    """Find pairs that may be wrong: exchanged, in another language, far too short.

    Args:
        texts: the pairs of a split, by their index.
        data: the recipe's data section; languages are compared with those that it names.
        known: pairs in which these things were found already.
    """
    pairs = {index: pair for index, pair in texts.items() if all(map(str.strip, pair))}
    found: dict[str, list[int]] = {}
    codes = tuple(
        known_code(code) if code else None for code in (data.source_language, data.target_language)
    )
    middle = median(map(_ratio, pairs.values())) if pairs else 0.0
    for index, pair in sorted(pairs.items()):
        if index in known or pair[0].casefold() == pair[1].casefold():
            continue
        kind = _judge_languages(pair, codes)
        is_long = max(map(len, pair)) >= FEWEST_CHARACTERS
        if kind:
            found.setdefault(kind, []).append(index)
        elif is_long and abs(_ratio(pair) - middle) > math.log(DOUBTFUL_FACTOR):
            found.setdefault("maybe ratio", []).append(index)
    for kind, indices in found.items():
        yield Hit(kind, len(indices), tuple(indices[:MOST_EXAMPLES]))


def _judge_languages(pair: tuple[str, str], codes: tuple[str | None, ...]) -> str:
    """Name what is odd about the languages of a pair, if anything is."""
    named = [identify_language(line) for line in pair]
    if None not in codes and codes[0] != codes[1]:
        is_swapped = all(
            are_kindred(name, code or "")
            for (name, _), code in zip(named, codes[::-1], strict=True)
        )
        is_sure = named[0][1] * named[1][1] >= BOTH_SURE
        if is_swapped and is_sure and min(map(len, pair)) >= SHORTEST_SWAPPED:
            return "maybe swapped"
    for side, line, (name, sure), code in zip(
        ("source", "target"), pair, named, codes, strict=True
    ):
        is_other = code is not None and name != "zxx" and not are_kindred(name, code)
        if is_other and sure >= SURE and len(line) >= FEWEST_LETTERS:
            return f"maybe {side} language"
    return ""


def _ratio(pair: tuple[str, str]) -> float:
    """Compare the lengths of a pair: a logarithm, 0 if they are equal."""
    source, target = (len(line.strip()) + ADDED_LENGTH for line in pair)
    return math.log(target / source)
