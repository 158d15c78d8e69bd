"""The words of a line that word links count: between spaces, or by script where no spaces are.

Chinese, Japanese, Thai, Lao, Khmer and Burmese are written without spaces between words, so that a
whole line would be one word. Without a dictionary its smallest units that have a meaning, or a
sound, of their own can be told apart.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise
from typing import Literal, get_args

from pellucid.text.letters import combining_marks, is_unspaced
from pellucid.text.token_words import split_pieces

WordRule = Literal["auto", "spaces", "script"]
WORD_RULES: tuple[WordRule, ...] = get_args(WordRule)


def line_words(text: str, rule: WordRule = "auto") -> list[str]:
    """Cut a line into the words that links count, from 0.

    With ``spaces`` these are the pieces between white space, as `split_pieces` cuts them. With
    ``script`` pieces that hold letters of scripts without spaces are cut further:

    - each Chinese character is a word;
    - a run of hiragana, of katakana or of Bopomofo is a word;
    - in Thai, Lao, Khmer and Burmese a word is a letter with its vowels, marks and subscripts;
    - each wide punctuation mark is a word;
    - what stands between them, such as a Latin word or a number, is a word.

    With ``auto`` a line is cut by script if `is_without_spaces` says so, otherwise at spaces.

    Args:
        text: the line, without a language code.
        rule: which of these.
    """
    pieces = split_pieces(text)
    if rule == "spaces" or (rule == "auto" and not is_without_spaces(text)):
        return pieces
    return [word for piece in pieces for word in _cut(piece)]


def is_without_spaces(text: str) -> bool:
    """Tell whether a line is of a script without spaces, and not cut into words already.

    It is if no white space stands between two letters of such scripts, and if there are more of
    these letters than pieces in other scripts: one Chinese name does not change an English line.
    """
    pieces = split_pieces(text)
    counts = [sum(map(is_unspaced, piece)) for piece in pieces]
    return sum(counts) > counts.count(0) and not _has_space_between(pieces)


def has_spaced_letters(text: str) -> bool:
    """Tell whether white space stands between two letters of scripts without spaces."""
    return _has_space_between(split_pieces(text))


def _has_space_between(pieces: list[str]) -> bool:
    return any(is_unspaced(one[-1]) and is_unspaced(other[0]) for one, other in pairwise(pieces))


def _cut(piece: str) -> list[str]:
    """Cut a piece between spaces by the scripts of its letters."""
    if not any(map(is_unspaced, piece)):
        return [piece]
    return [match[0] for match in _units().finditer(piece)]


@cache
def _units() -> re.Pattern[str]:
    """Compile the pattern of one word of a piece."""
    marks = f"[{combining_marks()}\u200d\ufe00-\ufe0f]"
    thai = (
        # A vowel written before its letter, the letter, its marks, and vowels written after it.
        rf"[\u0e40-\u0e44]?[\u0e01-\u0e2e]{marks}*(?:[\u0e30\u0e32\u0e33\u0e45]{marks}*)*"
        rf"|[\u0ec0-\u0ec4]?[\u0e81-\u0eae\u0edc-\u0edf]{marks}*"
        rf"(?:[\u0eb0\u0eb2\u0eb3\u0ebd]{marks}*)*"
    )
    # Subscript letters follow a sign; in Burmese a letter that ends the syllable is killed.
    khmer = rf"[\u1780-\u17b3](?:\u17d2[\u1780-\u17b3]|{marks})*"
    burmese = (
        rf"[\u1000-\u102a\u103f](?:\u1039[\u1000-\u102a]|{marks})*"
        rf"(?:[\u1000-\u102a][\u1037\u1038]?\u103a[\u1037\u1038]?(?:\u1039[\u1000-\u102a]{marks}*)?)*"
    )
    chinese = (
        rf"[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]{marks}*"
    )
    kana = (
        rf"(?:[\u3041-\u309f]{marks}*)+|(?:[\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f]{marks}*)+"
        rf"|(?:[\u3105-\u312f\u31a0-\u31bf]{marks}*)+"
    )
    digits = "".join(
        rf"|[{chr(zero)}-{chr(zero + 9)}]+" for zero in (0x0E50, 0x0ED0, 0x1040, 0x17E0)
    )
    unspaced = rf"{thai}|{khmer}|{burmese}|{chinese}|{kana}{digits}"
    alone = f"[{_wide_marks()}]{marks}*"
    return re.compile(rf"{unspaced}|{alone}|(?:(?!{unspaced}|{alone}).)+", re.DOTALL)


@cache
def _wide_marks() -> str:
    """List the punctuation marks of these scripts, for a character class."""
    places = (*range(0x3000, 0x3040), *range(0xFF01, 0xFF66), *range(0x104A, 0x1050))
    letters = map(chr, (*places, 0x30FB, *range(0x17D4, 0x17DB), 0x0E2F, 0x0E46, 0x0E5A, 0x0E5B))
    return re.escape("".join(one for one in letters if unicodedata.category(one)[0] == "P"))
