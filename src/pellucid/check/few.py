"""Odd pairs of a text of few lines, where counts say little but one line may say enough."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from pellucid.check.judging import Hit
from pellucid.check.languages import FEWEST_LETTERS, are_kindred, identify, known_code
from pellucid.check.scan import MOST_EXAMPLES
from pellucid.config import DataConfig

FEW = 200
"""The most pairs that are looked at one by one."""

SURE = 0.8
"""The least probability with which one line is in another language."""

BOTH_SURE, SHORTEST_SWAPPED = 0.2, 10
"""The same for the product of the two lines of an exchanged pair, and their fewest characters."""

RATIO_FACTOR, ADDED_LENGTH, FEWEST_CHARACTERS = 2.5, 10, 20
"""Times the usual ratio of lengths, with this added to both, if one line has so many characters."""


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
        elif is_long and abs(_ratio(pair) - middle) > math.log(RATIO_FACTOR):
            found.setdefault("maybe ratio", []).append(index)
    for kind, indices in found.items():
        yield Hit(kind, len(indices), tuple(indices[:MOST_EXAMPLES]))


def _judge_languages(pair: tuple[str, str], codes: tuple[str | None, ...]) -> str:
    """Name what is odd about the languages of a pair, if anything is."""
    named = [identify(line) for line in pair]
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
