"""The languages of lines: identified on a sample, then distinguished in every line.

A general identifier takes 60 microseconds for a line, too long for millions of lines. So it only
names the languages that occur in a sample, and frequencies of letters, learned from that sample,
distinguish these few in all lines. What they find is looked at again by the identifier.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pellucid.languages.codes import load_identifier, short_code

UNKNOWN = 0
"""The number of a line whose language is not clear."""

ABSENT = 255
"""The number of a language that is declared but not among those of the text."""

MOST = 12
"""The most languages to distinguish; the most frequent ones are kept."""

FEWEST_LETTERS = 16
"""Shorter lines are not judged."""

CONFIDENCE = 0.7
"""The least probability with which the identifier must name a language."""

CONFIRMED = 0.5
"""The same for a line that the frequencies of letters found."""

FEWEST_LINES = 3
LEAST_SHARE = 0.002
"""A language counts as occurring if so many lines of the sample, and this share, are in it."""

MARGIN = 8.0
"""Nats by which the language found must be likelier than each other one."""

BACKGROUND = 3000.0
"""Trigrams of the whole sample that are added to those of each language, to smooth them."""

MOST_CONFIRMED = 3000
"""Lines that are looked at again."""

NEARLY_ALL = 0.9
"""The share of these that must be confirmed for all further ones to be accepted."""

_BITS = 15
_NEWLINE = ord("\n")

# Languages that an identifier of single lines confuses, or that are written in each other's place.
_KINDRED = tuple(
    frozenset(group.split())
    for group in (
        "no nb nn da sv",
        "hr bs sr sh cnr",
        "id ms jv",
        "cs sk",
        "pt gl ext",
        "es ext an ast",
        "ca oc",
        "it vec lij",
        "fr wa gcf gcr ht oc",
        "de lb gsw bar",
        "nl af fy",
        "en pcm sco",
        "zh yue wuu lzh",
        "ar ary arz",
        "fa tg prs",
        "hi ne mr sa bho mai",
        "bn as",
        "ru be uk",
        "bg mk",
        "tr az crh",
        "uz uzs",
        "kk ky ba tt",
        "ku sdh ckb kmr",
        "el grc",
        "he hbo",
        "lv ltg",
        "zu xh nr ss",
        "st nso tn",
        "rw rn",
        "et vro",
    )
)


def identify_language(line: str) -> tuple[str, float]:
    """Name the language of a line, and how sure that is from 0 to 1; ``zxx`` stands for none."""
    code, confidence = load_identifier().classify(line)
    return code, float(confidence)


def identify_surely(line: str) -> str:
    """Name the language of a line, or return an empty text if it is short or not sure."""
    if not _is_long_enough(line):
        return ""
    code, confidence = identify_language(line)
    return code if confidence >= CONFIDENCE and code != "zxx" else ""


def known_code(language: str) -> str | None:
    """Find the identifier's code of a language such as ``en_GB`` or ``eng_Latn``, or None."""
    code = short_code(language)
    return code if code in load_identifier().labels and code != "zxx" else None


def are_kindred(first: str, second: str) -> bool:
    """Tell whether two languages are the same, or too similar to distinguish in single lines."""
    return first == second or any(first in group and second in group for group in _KINDRED)


class LanguageJudge:
    """Distinguishes the languages of a sample, in any number of lines.

    Args:
        sample: lines of all texts with their languages, as `identify_surely` names them.
        expected: codes of languages that may be in the text; kindred ones count as these.

    Attributes:
        names: the languages; number ``i + 1`` of a line stands for ``names[i]``.
    """

    def __init__(self, sample: Sequence[tuple[str, str]], expected: Sequence[str] = ()) -> None:
        groups: defaultdict[str, list[str]] = defaultdict(list)
        for line, code in sample:
            if code:
                groups[code].append(line)
        self._merge(groups, expected)
        least = max(FEWEST_LINES, LEAST_SHARE * len(sample))
        self.names = tuple(name for name, lines in groups.items() if len(lines) >= least)[:MOST]
        background = _count([line for line, _ in sample])
        background = BACKGROUND * (background + 0.1) / (background.sum() + 0.1 * len(background))
        self._table = np.empty((len(self.names), len(background)), dtype=np.float32)
        for row, name in enumerate(self.names):
            counts = _count(groups[name]) + background
            self._table[row] = np.log(counts / counts.sum())
        self._confirmed = Counter[bool]()

    @staticmethod
    def _merge(groups: defaultdict[str, list[str]], expected: Sequence[str]) -> None:
        """Add the lines of kindred languages to those of the expected or most frequent one."""
        order = sorted(groups, key=lambda code: (code not in expected, -len(groups[code]), code))
        for place, code in enumerate(order):
            for other in order[place + 1 :]:
                if other not in expected and are_kindred(code, other) and code in groups:
                    groups[code] += groups.pop(other, [])
        for code in sorted(groups, key=lambda code: -len(groups[code])):
            groups[code] = groups.pop(code)

    def judge(self, lines: Sequence[str], usual: int) -> NDArray[np.uint8]:
        """Number the language of each line.

        Args:
            lines: the lines; none holds a line break.
            usual: the number of their usual language; every other one is looked at again.

        Returns:
            A number for each line, `UNKNOWN` if it is too short or not clear.
        """
        numbers = np.zeros(len(lines), dtype=np.uint8)
        if not self.names or not lines:
            return numbers
        ids, is_break, starts = _trigrams(lines)
        scores = np.empty((len(self.names), len(lines)), dtype=np.float32)
        for row, table in enumerate(self._table):
            weights = table[ids]
            weights[is_break] = 0
            scores[row] = np.add.reduceat(weights, starts)
        best = scores.argmax(axis=0)
        if len(self.names) > 1:
            ordered = np.sort(scores, axis=0)
            is_clear = ordered[-1] - ordered[-2] > MARGIN
        else:
            is_clear = np.ones(len(lines), dtype=bool)
        is_clear &= np.array([_is_long_enough(line) for line in lines])
        numbers[is_clear] = best[is_clear] + 1
        for place in np.flatnonzero((numbers != UNKNOWN) & (numbers != usual)).tolist():
            if not self._confirm(lines[place], self.names[numbers[place] - 1]):
                numbers[place] = UNKNOWN
        return numbers

    def _confirm(self, line: str, name: str) -> bool:
        """Ask the identifier as well, unless it agreed often enough."""
        seen = self._confirmed
        if seen.total() >= MOST_CONFIRMED:
            return seen[True] >= NEARLY_ALL * seen.total()
        code, confidence = identify_language(line)
        is_so = confidence >= CONFIRMED and are_kindred(code, name)
        seen[is_so] += 1
        return is_so


@dataclass(frozen=True)
class TextLanguages:
    """The languages of the two sides of a text.

    Attributes:
        judge: distinguishes the languages of the text.
        usual: the number of the language of the sources, and of the targets; `UNKNOWN` if it is
            neither declared nor clear, `ABSENT` if the text does not hold the one declared.
        codes: their codes; empty if not known.
        are_declared: True for a side whose language the recipe names.
    """

    judge: LanguageJudge
    usual: tuple[int, int]
    codes: tuple[str, str]
    are_declared: tuple[bool, bool]

    @property
    def names(self) -> tuple[str, ...]:
        """The languages in the text; number ``i + 1`` of a line stands for ``names[i]``."""
        return self.judge.names

    def of_pairs(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
        """Number the languages of both sides of some pairs; copies stay unknown."""
        numbers = (
            self.judge.judge(sources, self.usual[0]),
            self.judge.judge(targets, self.usual[1]),
        )
        is_copy = np.array([a == b for a, b in zip(sources, targets, strict=True)], dtype=bool)
        for side in numbers:
            side[is_copy] = UNKNOWN
        return numbers


def _is_long_enough(line: str) -> bool:
    # A Chinese or Japanese character says as much as several letters.
    return len(line) >= FEWEST_LETTERS or (len(line) >= FEWEST_LETTERS // 3 and line[0] > "\u2e80")


def _trigrams(
    lines: Sequence[str],
) -> tuple[NDArray[np.uint32], NDArray[np.bool_], NDArray[np.int64]]:
    """Hash the three letters around each letter.

    Returns:
        The hashes, those in which a line break is in the middle, and where each line begins.
    """
    text = "\n" + "\n".join(lines).lower() + "\n"
    points = np.frombuffer(text.encode("utf-32-le", "replace"), dtype=np.uint32)
    mixed: NDArray[np.uint32] = (
        points[:-2] * np.uint32(0x9E3779B1)
        + points[1:-1] * np.uint32(0x85EBCA6B)
        + points[2:] * np.uint32(0xC2B2AE35)
    )
    is_break = points[1:-1] == _NEWLINE
    starts = np.concatenate([[0], np.flatnonzero(is_break)])
    return mixed >> np.uint32(32 - _BITS), is_break, starts


def _count(lines: Sequence[str]) -> NDArray[np.float64]:
    if not lines:
        return np.zeros(1 << _BITS)
    ids, is_break, _ = _trigrams(lines)
    return np.bincount(ids[~is_break], minlength=1 << _BITS).astype(np.float64)
