"""Alikeness of words by their letters and by their sound.

With `pellucid.attention.similarity.edit_similarity` these show that attention takes any
similarity, and that the choice of it decides what is found.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid.errors import InputError

__all__ = ["ngram_similarity", "ngrams", "sound_similarity", "soundex"]

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


def ngrams(word: str, length: int = 2) -> tuple[str, ...]:
    """Cut a word into all its stretches of some letters, in order, without regard to case."""
    small = word.lower()
    return tuple(small[start : start + length] for start in range(len(small) - length + 1))


def ngram_similarity(queries: Sequence[str], keys: Sequence[str], length: int = 2) -> Tensor:
    r"""Measure how many stretches two words share: ``similarities_LM`` from 0 to 1.

    $$2\,|A \cap B| / (|A| + |B|)$$

    Source:
        Dice 1945, on bigrams.
    """

    def share(query: str, key: str) -> float:
        first, second = Counter(ngrams(query, length)), Counter(ngrams(key, length))
        total = first.total() + second.total()
        return 2 * (first & second).total() / total if total else 0.0

    return torch.tensor(
        [[share(query, key) for key in keys] for query in queries], dtype=torch.float64
    )


def soundex(word: str) -> str:
    """Write how an English name sounds as a letter and three digits.

    Vowels, *h*, *w* and *y* are left out; neighbors of one class count once, also across *h* and
    *w*.

    Args:
        word: letters from a to z; others are passed over.

    Raises:
        InputError: there is no such letter.

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
    """Measure how alike names sound, as minus the places where their codes differ.

    ``similarities_LM``, from −4 to 0.
    """
    pairs = [[(soundex(query), soundex(key)) for key in keys] for query in queries]
    return torch.tensor(
        [
            [-float(sum(a != b for a, b in zip(*pair, strict=True))) for pair in row]
            for row in pairs
        ],
        dtype=torch.float64,
    )
