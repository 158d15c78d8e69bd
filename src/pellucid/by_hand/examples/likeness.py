"""Similarity of words by their letters and by their sound.

With `pellucid.attention.similarity.edit_similarity` these show that attention takes any
similarity, and that the result depends on its choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid.attention.similarity import compare_strings
from pellucid.errors import InputError

_DIGITS = {
    letter: digit
    for digit, letters in {
        "1": "bfpv",
        "2": "cgjkqsxz",
        "3": "dt",
        "4": "l",
        "5": "mn",
        "6": "r",
    }.items()
    for letter in letters
}


def edit_table(word: str, other: str) -> Tensor:
    """Fill the table of edit distances between the beginnings of two words.

    An entry is the least of three: above + 1 (drop a letter), left + 1 (put one in), and above
    left, + 1 if the letters differ (change it).

    Returns:
        Distances, with a row for each beginning of the word and a column for each of the other,
        both starting with the empty one. The last entry is the distance of the words.

    Source:
        Wagner and Fischer 1974.
    """
    rows = [[float(column) for column in range(len(other) + 1)]]
    for index, letter in enumerate(word, start=1):
        row = [float(index)]
        for column, known in enumerate(other, start=1):
            changed = rows[-1][column - 1] + (letter != known)
            row.append(min(rows[-1][column] + 1, row[-1] + 1, changed))
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float64)


def edit_path(word: str, other: str) -> tuple[str, ...]:
    """List the changes that make one word the other, as few as possible, from left to right."""
    distances, row, column = edit_table(word, other).tolist(), len(word), len(other)
    path: list[str] = []
    while row or column:
        here = distances[row][column]
        if (
            row
            and column
            and here == distances[row - 1][column - 1] + (word[row - 1] != other[column - 1])
        ):
            row, column = row - 1, column - 1
            old, new = word[row], other[column]
            path.append(f"keep {old}" if old == new else f"change {old} to {new}")
        elif row and here == distances[row - 1][column] + 1:
            row -= 1
            path.append(f"drop {word[row]}")
        else:
            column -= 1
            path.append(f"put in {other[column]}")
    return tuple(reversed(path))


def ngrams(word: str, length: int = 2) -> tuple[str, ...]:
    """List all stretches of some letters in a word, in order and in lower case."""
    small = word.lower()
    return tuple(small[start : start + length] for start in range(len(small) - length + 1))


def ngram_similarity(queries: Sequence[str], keys: Sequence[str], length: int = 2) -> Tensor:
    r"""Measure the share of common stretches of letters: ``similarities_LM`` from 0 to 1.

    $$2\,|A \cap B| / (|A| + |B|)$$

    Source:
        Dice 1945, on bigrams.
    """

    def share(query: str, key: str) -> float:
        first, second = Counter(ngrams(query, length)), Counter(ngrams(key, length))
        total = first.total() + second.total()
        return 2 * (first & second).total() / total if total else 0.0

    return compare_strings(queries, keys, share)


def soundex(word: str) -> str:
    """Write the sound of an English name as a letter and three digits.

    Vowels, *h*, *w* and *y* are left out; neighbors of one class count once, also across *h* and
    *w*. Characters other than a to z are skipped.

    Raises:
        InputError: the word has no letter from a to z.

    Source:
        Russell and Odell 1918, as the United States archives code census names.
    """
    letters = [letter for letter in word.lower() if "a" <= letter <= "z"]
    if not letters:
        raise InputError(f"A name must have a letter from a to z, but is {word!r}. Spell it so.")
    code = letters[0].upper()
    last = _DIGITS.get(letters[0], "")
    for letter in letters[1:]:
        digit = _DIGITS.get(letter, "")
        if digit and digit != last:
            code += digit
        if letter not in "hw":
            last = digit
    return code[:4].ljust(4, "0")


def sound_similarity(queries: Sequence[str], keys: Sequence[str]) -> Tensor:
    """Measure similarity of sound, as minus the places at which two codes differ: −4 to 0."""

    def compare(query: str, key: str) -> float:
        return -float(sum(a != b for a, b in zip(soundex(query), soundex(key), strict=True)))

    return compare_strings(queries, keys, compare)
