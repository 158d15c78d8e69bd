"""Characters that a model has not learned: replaced by ones that it knows, dropped, or named."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple, final

from pellucid.text.learned import RARE
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN, Tokenizer

# Marks that are often written in one of several ways; a model may have learned only one of them.
_ALTERNATIVES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4`", ("'", "’")),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", ('"', "”")),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63", ("-", "–")),
    "'": ("’",),
    '"': ("”",),
    "-": ("–", "‐"),
}

# Characters without ink that are not format characters (category Cf): control characters are
# recognized by their category, these by name.
_WITHOUT_INK = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0\u2800")
# Unicode has no names for control characters.
_CONTROL_NAMES = {"\t": "TAB", "\0": "NULL", "\x1b": "ESCAPE", "\x85": "NEXT LINE"}
_NONE: Mapping[str, int] = {}
_DIRECTIONS = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c")


def is_space(character: str) -> bool:
    """Tell whether a character is white space; SentencePiece's U+2581 stands for a space too."""
    return character.isspace() or character == SPACE_SIGN


def is_invisible(character: str) -> bool:
    """Tell whether a character has no ink and no width: zero-width, control or direction marks."""
    return (
        (unicodedata.category(character) in ("Cf", "Cc") and not character.isspace())
        or "\ufe00" <= character <= "\ufe0f"
        or character in _WITHOUT_INK
    )


def character_name(character: str) -> str:
    """Name a character for a message: ``U+00A0 NO-BREAK SPACE`` or ``😀 U+1F600``."""
    point = f"U+{ord(character):04X}"
    if is_invisible(character) or is_space(character) or not character.isprintable():
        name = _CONTROL_NAMES.get(character) or unicodedata.name(character, "")
        return f"{point} {name}".rstrip()
    # A combining mark needs a character to stand on.
    shown = f"◌{character}" if unicodedata.combining(character) else character
    return f"{shown} {point}"


class Cleaned(NamedTuple):
    """A line whose characters the model knows, as far as possible.

    Attributes:
        text: the line.
        replaced: the characters that were replaced by others, and how often.
        dropped: those that were left out.
        unknown: those that remain, though the model has never seen them.
        before: direction marks at the start of the line, which the translation gets too.
        after: those at its end.
    """

    text: str
    replaced: Mapping[str, int] = _NONE
    dropped: Mapping[str, int] = _NONE
    unknown: Mapping[str, int] = _NONE
    before: str = ""
    after: str = ""


@final
class Cleaner:
    """Brings lines closer to the text that a model has learned from.

    A line of known characters is not touched. Otherwise, white space becomes a plain space;
    invisible characters are dropped; compatibility forms such as full-width letters, quotation
    marks and dashes become forms that the model knows. Everything else stays.

    Args:
        characters: how often, at least, training had each character.
        tokenizer: the model's, which normalizes lines before it cuts them.

    Attributes:
        known: the characters that the model knows.
    """

    def __init__(self, characters: Mapping[str, int], tokenizer: Tokenizer) -> None:
        self._characters = characters
        self._tokenizer = tokenizer
        # A space or an invisible character that training had a few times does not count.
        self.known = frozenset(
            letter
            for letter, count in characters.items()
            if letter == " " or count >= RARE or not (is_space(letter) or is_invisible(letter))
        )
        self._stand_ins: dict[str, str | None] = {}

    def unknown_in(self, text: str) -> frozenset[str]:
        """Find the characters of a line that the model does not know, after normalization."""
        return frozenset(self._tokenizer.normalized(text)) - self.known

    def rare_share(self, text: str) -> float:
        """Compute the share of a line's characters that training had less than `RARE` times."""
        letters = [letter for letter in self._tokenizer.normalized(text) if not letter.isspace()]
        rare = sum(self._characters.get(letter, 0) < RARE for letter in letters)
        return rare / len(letters) if letters else 0.0

    def clean(self, text: str) -> Cleaned:
        """Replace or drop what the model does not know.

        Args:
            text: a line without a language code.

        Returns:
            The line itself if every character is known.
        """
        unknown = self.unknown_in(text)
        if not unknown:
            return Cleaned(text)
        return self._clean(self._tokenizer.normalized(text), unknown)

    def _clean(self, text: str, unknown: frozenset[str]) -> Cleaned:
        body = text.strip()
        # Direction marks around a line fit its translation too; those inside it do not.
        inner = body.strip("".join(unknown & _DIRECTIONS))
        start = body.find(inner)
        before, after = (body[:start], body[start + len(inner) :]) if inner else ("", "")
        replaced = Counter[str]()
        dropped = Counter[str]()
        remaining = Counter[str]()
        pieces: list[str] = []
        was_space = True  # no space at the start that the line did not have
        was_replaced = False
        for letter in text:
            stand_in = self._stand_in(letter) if letter in unknown else letter
            if stand_in is None:
                remaining[letter] += 1
                stand_in = letter
            elif letter in unknown:
                (replaced if stand_in else dropped)[letter] += 1
                if stand_in == " " and was_space:
                    stand_in = ""
            elif letter == " " and was_replaced:
                continue  # one space for both
            pieces.append(stand_in)
            was_space = stand_in.endswith(" ") or (was_space and not stand_in)
            was_replaced = was_space and (letter in unknown or was_replaced)
        cleaned = "".join(pieces)
        # What was unknown at the end may have become a space, in which the line did not end.
        if text and text[-1] in unknown:
            cleaned = cleaned.rstrip()
        return Cleaned(cleaned, replaced, dropped, remaining, before, after)

    def _stand_in(self, letter: str) -> str | None:
        """Find what to write in place of a character; None if there is nothing."""
        if letter not in self._stand_ins:
            self._stand_ins[letter] = self._find_stand_in(letter)
        return self._stand_ins[letter]

    def _find_stand_in(self, letter: str) -> str | None:
        if is_space(letter):
            return " "
        if is_invisible(letter):
            return ""
        same = self._tokenizer.normalized(unicodedata.normalize("NFKC", letter)).strip()
        for candidate in (same, *_ALTERNATIVES.get(letter, ())):
            # A stand-in that the model does not know either would gain nothing.
            if candidate and candidate != letter and self.known.issuperset(candidate):
                return candidate
        return None
