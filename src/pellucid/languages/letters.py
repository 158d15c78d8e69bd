"""Letters and words, for rules that match whole words: runs of letters, digits and their marks."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

# Scripts without spaces: Thai, Lao, Burmese, Khmer, kana, Bopomofo and Chinese characters. In them
# a word may begin and end at every letter.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u19e0-\u19ff\u3005-\u3007\u3040-\u30ff\u3100-\u312f"
    "\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)


@cache
def combining_marks() -> str:
    """List every mark that combines with the letter before it, such as an accent."""
    # Between these two ranges Unicode has only ideographs.
    letters = map(chr, (*range(0x300, 0x20000), *range(0xE0000, 0xE1000)))
    return "".join(letter for letter in letters if unicodedata.category(letter)[0] == "M")


@cache
def word_pattern() -> re.Pattern[str]:
    """Compile the pattern of a whole run of word letters; apostrophes and hyphens end it."""
    # Marks of scripts without spaces must not join letters into a word.
    marks = _unspaced_pattern().sub("", combining_marks())
    return re.compile(rf"(?:[^\W_{_UNSPACED}]+|[{marks}]+)+")


@cache
def is_word_letter(letter: str) -> bool:
    """Tell whether two neighbors of this kind belong to the same word.

    True for letters, digits and their marks, but not for those of scripts without spaces.
    """
    return word_pattern().match(letter) is not None


def is_unspaced(letter: str) -> bool:
    """Tell whether a character belongs to a script without spaces between words."""
    return _unspaced_pattern().match(letter) is not None


@cache
def _unspaced_pattern() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")
