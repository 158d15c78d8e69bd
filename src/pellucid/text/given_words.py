"""Given words found in their text: tokenized text on one side, the line that it was cut from.

Corpora with gold links count the words of tokenized text, in which ``l'homme "dort"`` may be
``l &apos; homme &quot; dort &quot;``. A model reads the line. Here both are spelled in one form,
letter by letter, so that each word gets the part of the line that it was made of.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from pellucid.errors import DataError

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


def find_words(words: Sequence[str], text: str) -> list[str]:
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
        matcher = SequenceMatcher(None, spelled, found, autojunk=False)
        for block in matcher.get_matching_blocks():
            for offset in range(block.size):
                owner_of.setdefault(places[block.b + offset], owners[block.a + offset])
    pieces, start = [], 0
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
