"""The words of a line that word links count, and given words found in their text.

Words stand between spaces. Chinese, Japanese, Thai, Lao, Khmer and Burmese are written without
spaces, so that a whole line would be one word: without a dictionary its smallest units that have a
meaning, or a sound, of their own can be told apart. Given words are those of a tokenized text; the
line that they were cut from is another.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import pairwise

from pellucid.errors import DataError
from pellucid.languages.letters import combining_marks, is_unspaced
from pellucid.text.link_choices import WordRule
from pellucid.text.token_words import split_pieces

MOST_COMPARED = 2000
"""Letters of a line that are compared in full with those of its parts."""

# Entities of the Moses tokenizer, and names of brackets in treebanks.
_ENTITIES: Mapping[str, str] = {
    "&apos;": "'",
    "&quot;": '"',
    "&lt;": "<",
    "&gt;": ">",
    "&#91;": "[",
    "&#93;": "]",
    "&#124;": "|",
    "&bar;": "|",
    "&amp;": "&",
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
}
_ENTITY = re.compile("|".join(map(re.escape, _ENTITIES)))
_BETWEEN_SIGNS = re.compile(r"@(\W)@")

_DOUBLE_QUOTES = '"\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb\u300c\u300d'
_SINGLE_QUOTES = "'`\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4\u2039\u203a"
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
_SPELLINGS: Mapping[str, str] = {
    # Treebanks write a double quotation mark as two single ones.
    **dict.fromkeys(_DOUBLE_QUOTES, "''"),
    **dict.fromkeys(_SINGLE_QUOTES, "'"),
    **dict.fromkeys(_DASHES, "-"),
}

_CONTEXT = 12


def find_parts_of_words(words: Sequence[str], text: str) -> list[str]:
    """Find the part of a text that each given word was made of.

    Case, white space, invisible characters, Unicode normalization, the shape of quotation marks
    and dashes, the entities of Moses (``&apos;``), its signs between (``@-@``) and the brackets of
    treebanks (``-LRB-``) do not matter. Everything else must be equal.

    Args:
        words: the words, in order.
        text: the text, without a language code.

    Returns:
        For each word its part of the text. Together they have all letters of the text.

    Raises:
        DataError: words and text are not the same.
    """
    for merges_dashes in (False, True):  # `--` may stand for a dash
        spelled, owners = _spell([_plain(word) for word in words], merges_dashes=merges_dashes)
        found, places = _spell(list(text), merges_dashes=merges_dashes)
        if spelled == found:
            return _collect(len(words), text, dict(zip(places, owners, strict=True)))
    raise _not_found(words, text)


def parts_of_words(words: Sequence[str], parts: Sequence[str]) -> list[list[tuple[int, str]]]:
    """Find the words of a line in the parts that the line was split into.

    Parts may differ from the line in some characters, as the characters that a model does not know
    are replaced or left out.

    Args:
        words: the words of the line, in order.
        parts: its parts, in order.

    Returns:
        For each part the numbers of the words that it holds, in order, each with its letters in
        the part.
    """
    text = "".join(parts)
    if len(parts) == 1 and "".join(words) == "".join(text.split()):  # nearly always
        return [list(enumerate(words))]
    spelled, owners = _spell(words, merges_dashes=False)
    found, places = _spell(list(text), merges_dashes=False)
    owner_of: dict[int, int] = {}
    if spelled == found:
        owner_of = dict(zip(places, owners, strict=True))
    else:
        # A full comparison of letters that repeat takes the square of their number.
        is_long = len(spelled) > MOST_COMPARED
        matcher = SequenceMatcher(None, spelled, found, autojunk=is_long)
        for block in matcher.get_matching_blocks():
            for offset in range(block.size):
                # A character may be spelled as several letters: the first decides its word.
                owner_of.setdefault(places[block.b + offset], owners[block.a + offset])
    pieces = []
    start = 0
    # Letters before the first match go to the first word that was found.
    last = min(owner_of.values(), default=0)
    for part in parts:
        held: list[tuple[int, str]] = []
        for place, letter in enumerate(part, start=start):
            if letter.isspace():
                continue
            last = owner_of.get(place, last)
            if held and held[-1][0] == last:
                held[-1] = (last, held[-1][1] + letter)
            else:
                held.append((last, letter))
        pieces.append(held if words else [])
        start += len(part)
    return pieces


def _plain(word: str) -> str:
    """Undo what a tokenizer wrote into a word."""
    match = _BETWEEN_SIGNS.fullmatch(word)
    return _ENTITY.sub(lambda found: _ENTITIES[found[0]], match[1] if match else word)


def _spell(pieces: Sequence[str], *, merges_dashes: bool) -> tuple[str, list[int]]:
    """Spell pieces in one form: its letters, and the number of the piece that each comes from."""
    letters: list[str] = []
    owners: list[int] = []
    for number, piece in enumerate(pieces):
        for character in piece:
            # One character may be several letters, and all of them belong to its piece.
            for letter in _spelling(character):
                if merges_dashes and letter == "-" and letters[-1:] == ["-"]:
                    continue
                letters.append(letter)
                owners.append(number)
    return "".join(letters), owners


@lru_cache(maxsize=1 << 14)
def _spelling(character: str) -> str:
    """Spell one character: without case, decomposed, in the plainest shape."""
    if character in _SPELLINGS:
        return _SPELLINGS[character]
    # Decomposed first, because letters such as ᴬ have a case only then.
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    return "".join(
        _SPELLINGS.get(letter, letter)
        for letter in plain
        if not letter.isspace() and unicodedata.category(letter) not in ("Cf", "Cc")
    )


def _collect(num_words: int, text: str, owner_of: Mapping[int, int]) -> list[str]:
    """Give each word its characters of the text; those that were not spelled go with the last."""
    found = [""] * num_words
    last = 0
    for place, character in enumerate(text):
        last = owner_of.get(place, last)
        if num_words and not character.isspace():
            found[last] += character
    return found


def _not_found(words: Sequence[str], text: str) -> DataError:
    """Say where words and text begin to differ."""
    spelled, owners = _spell([_plain(word) for word in words], merges_dashes=False)
    found, places = _spell(list(text), merges_dashes=False)
    same = next(_first_difference(spelled, found))
    if same >= len(spelled):
        rest = text[places[same] :].strip()
        return DataError(
            f"The words must be those of the text, but it continues with {_short(rest)} after the "
            "last word. Give the words of this very line."
        )
    number = owners[same]
    rest = text[places[same] :].strip() if same < len(found) else ""
    there = f"{_short(rest)} is there" if rest else "the text ends before it"
    return DataError(
        f"The words must be those of the text, but word {number} is {_short(words[number])} and "
        f"{there}. Give the words of this very line."
    )


def _first_difference(one: str, other: str) -> Iterator[int]:
    for place, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            yield place
    yield min(len(one), len(other))


def _short(text: str) -> str:
    return repr(text if len(text) <= _CONTEXT else f"{text[:_CONTEXT]}…")


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
