"""What a translation should keep of its source: placeholders, tags, addresses, numbers, ends."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import eq

from pellucid.documents.markup.placeholder_shapes import addresses_of, codes_of
from pellucid.documents.placeholders import ACCELERATORS

_MAY_HOLD_MARKS = re.compile(r"[%{<&_@/$]|\[[\[\d]|\\\(|[:!][A-Za-z_]")

_TAG = re.compile(r"(</?[a-zA-Z][a-zA-Z0-9:-]{0,30})(?:\s[^<>]{0,200})?/?>")
_ANY_ACCELERATOR = re.compile(r"[&_](?=[^\W_])")
_NUMBER = re.compile(r"\d+")
_SEPARATED = re.compile(r"(?<=\d)[.,'\u2019\xa0\u202f\u2009 ](?=\d\d\d(?!\d))")

# Greek has the semicolon for a question mark, Armenian has its own marks within the word.
_ENDS = {
    "?": "question",
    "？": "question",
    "؟": "question",
    ";": "question",
    "\u037e": "question",
    "!": "exclamation",
    "！": "exclamation",
    ":": "colon",
    "：": "colon",
}
_CLOSING = "\"'»”’)]}*_ \u00a0"
_UNFINISHED = ("FIXME", "TODO:", "TBD", "XXX")

LARGEST_WRITTEN_OUT = 12
"""Numbers up to this one are often words in one language and digits in the other."""

MOST_DIGITS = 19
"""Digits of a number that is compared."""

_MAY_STAND_TWICE = frozenset(
    {"nous", "vous", "ha", "ah", "oh", "no", "non", "oui", "yes", "very", "bye", "so", "that"}
    | {"had", "die", "das", "der", "den", "dem", "sie", "ihr", "wat", "dat", "van", "se", "da"}
    | {"blah", "bla", "hi", "he"}
)
"""Words that correct sentences have twice in a row, as in "vous vous trompez"."""


def placeholders(line: str) -> Counter[str]:
    """Count the placeholders of a line, such as ``%s``, ``%(name)d``, ``{name}`` or ``${x}``."""
    return Counter(codes_of(line))


def not_kept(source: str, target: str) -> list[str]:
    """Name what a target has not kept of its source, or has and its source has not.

    Args:
        source: the source.
        target: its translation.

    Returns:
        ``placeholders``, ``tags``, ``addresses``, ``accelerators`` (``&`` or ``_`` before the key
        of a menu), ``numbers``, ``ends`` (a question mark, an exclamation mark or a colon),
        ``edges`` (white space), ``unfinished`` (``FIXME`` and the like) and ``doubled`` (a word
        twice in a row). Nearly all pairs have none.
    """
    found = []
    if _MAY_HOLD_MARKS.search(source) or _MAY_HOLD_MARKS.search(target):
        found = _marks_not_kept(source, target)
    if not {"addresses", "placeholders"} & {*found} and _number_changed(source, target):
        found.append("numbers")
    if _end(source) != _end(target):
        found.append("ends")
    if source and target and _edges(source) != _edges(target):
        found.append("edges")
    if any((mark in source) != (mark in target) for mark in _UNFINISHED):
        found.append("unfinished")
    if _is_doubled(target) and not _is_doubled(source):
        found.append("doubled")
    return found


def _marks_not_kept(source: str, target: str) -> list[str]:
    found = []
    if placeholders(source) != placeholders(target):
        found.append("placeholders")
    if Counter(_TAG.findall(source)) != Counter(_TAG.findall(target)):
        found.append("tags")
    if Counter(addresses_of(source)) != Counter(addresses_of(target)):
        found.append("addresses")
    if len(ACCELERATORS.findall(source)) == 1 and not _ANY_ACCELERATOR.search(target):
        found.append("accelerators")
    return found


def _number_changed(source: str, target: str) -> bool:
    """Tell whether a number became another one, or a large one is missing.

    Small numbers that only one side has may be words on the other.
    """
    in_source = _NUMBER.findall(source)
    in_target = _NUMBER.findall(target)
    if in_source == in_target:
        return False
    first = _numbers(source, in_source)
    second = _numbers(target, in_target)
    if first == second:
        return False
    missing = first - second
    added = second - first
    if missing and added:
        return True
    return any(number > LARGEST_WRITTEN_OUT for number in (*missing, *added))


def _numbers(line: str, numbers: list[str]) -> Counter[int]:
    """Count the numbers of a line, whatever their digits and separators."""
    if len(numbers) > 1:
        numbers = _NUMBER.findall(_SEPARATED.sub("", line))
    return Counter(int(number) for number in numbers if len(number) <= MOST_DIGITS)


def _end(line: str) -> str:
    """Name the mark that a line ends with, if it is one that most languages write."""
    if not line:
        return ""
    last = line[-1]
    if last in _CLOSING:
        line = line.rstrip(_CLOSING)
        last = line[-1:]
    return _ENDS.get(last, "")


def _edges(line: str) -> tuple[bool, bool]:
    return line[0].isspace(), line[-1].isspace()


def _is_doubled(line: str) -> bool:
    words = line.split()
    if not any(map(eq, words, words[1:])):
        return False
    return any(
        word == other and len(word) > 1 and word.isalpha() and word not in _MAY_STAND_TWICE
        for word, other in pairwise(words)
    )


@dataclass(frozen=True)
class KeptPlaceholders:
    """Whether translations keep the placeholders of other lines.

    Attributes:
        lines: the number of lines that have some.
        kept: how many of these have the same ones in their translation.
        lost: the numbers of the others, from 1.
    """

    lines: int
    kept: int
    lost: tuple[int, ...]


def count_kept_placeholders(lines: Sequence[str], translations: Sequence[str]) -> KeptPlaceholders:
    """Count the lines whose placeholders their translations keep, each as often as it is there.

    Args:
        lines: the sources, or translations made by people.
        translations: as many translations.
    """
    num_lines = 0
    lost = []
    for number, (line, translation) in enumerate(zip(lines, translations, strict=True), start=1):
        wanted = placeholders(line) if _MAY_HOLD_MARKS.search(line) else None
        if wanted:
            num_lines += 1
            if placeholders(translation) != wanted:
                lost.append(number)
    return KeptPlaceholders(num_lines, num_lines - len(lost), tuple(lost))
