"""Changes written as text, those of whole source words among them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pellucid.errors import InputError, suggestion, whole_number
from pellucid.inside.changes.change import Change, cut_source_word, parse_change
from pellucid.text.token_words import is_punctuation, source_pieces, words_of_tokens
from pellucid.text.tokenizers.tokenizer import Tokenizer

_WORD = re.compile(r"(cut|zero)\s+word\s+(\S+)\s*")
_MARKS = ".,;:!?\"'()\u00ab\u00bb\u2026"


def parse_changes(
    texts: Sequence[str], tokenizer: Tokenizer, source: str, source_ids: Sequence[int]
) -> list[Change]:
    """Read changes, those of words among them.

    Args:
        texts: as `parse_change` reads them; or ``cut word pizza`` and ``zero word pizza``, which
            also take the number of a word, from 0. If the word is named by its number, or with
            the punctuation after it, the punctuation is cut too.
        tokenizer: splits the source into tokens.
        source: the line.
        source_ids: its tokens.

    Raises:
        InputError: a change cannot be read, or the source has no such word, or has it twice.
    """
    found: list[Change] = []
    for text in texts:
        match = _WORD.fullmatch(text.strip())
        if match is None:
            found.append(parse_change(text))
            continue
        pieces = source_pieces(tokenizer, source)
        word = _find(match[2], pieces, text)
        owners = words_of_tokens(tokenizer, "source", source, source_ids)
        positions = [token for token, words in enumerate(owners) if word in words]
        if match[2] == pieces[word].strip(_MARKS):
            tokens = tokenizer.source_tokens(source_ids)
            positions = [token for token in positions if not is_punctuation(tokens[token])]
        found += cut_source_word(positions, "masked" if match[1] == "cut" else "zeroed").changes
    return found


def _find(wanted: str, words: Sequence[str], text: str) -> int:
    """Return the number of a word that is given by its letters or by its number."""
    places = [number for number, word in enumerate(words) if wanted in (word, word.strip(_MARKS))]
    number = whole_number(wanted)
    if not places and number is not None and number < len(words):
        return number
    if len(places) == 1:
        return places[0]
    if places:
        raise InputError(
            f"A word must occur once in the source to be named, but {wanted!r} occurs "
            f"{len(places)} times ({text!r}). Name it by its number: {', '.join(map(str, places))}."
        )
    raise InputError(
        f"A word must be one of the source's, or its number from 0 to {len(words) - 1}, but is "
        f"{wanted!r} ({text!r}). {suggestion(wanted, [word.strip(_MARKS) for word in words])}"
    )
