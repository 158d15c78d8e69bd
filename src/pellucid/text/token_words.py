"""Which word each token belongs to: subwords merged into the pieces that white space separates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from pellucid.text.tokenizer import SPACE_SIGN, Tokenizer
from pellucid.text.words import bare_words, split_words, without_joiner

__all__ = [
    "is_punctuation",
    "split_pieces",
    "words_of_tokens",
]

_SPACES = re.compile(r"[^\S\u00a0\u2007\u202f]+")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


def split_pieces(line: str) -> list[str]:
    """Cut a line into the pieces that links count, from 0.

    White space of every kind separates, but for the three no-break spaces (U+00A0, U+2007,
    U+202F), which are there so that nothing is cut: the French ``vie !`` is one piece.
    """
    return [piece for piece in _SPACES.split(line) if piece.strip()]


def words_of_tokens(
    tokenizer: Tokenizer, side: Literal["source", "target"], line: str, ids: Sequence[int]
) -> list[range]:
    """Find the pieces of a line that each of its tokens belongs to.

    The letters of the tokens are laid along the letters of the pieces. A token of white space
    alone belongs to the piece behind it.

    Args:
        tokenizer: cut the line.
        side: as which of the two.
        line: as it was given.
        ids: its tokens, ending in ``</s>``.

    Returns:
        For each token but ``</s>`` its pieces: nearly always one; several where a token runs
        across spaces.
    """
    pieces = [tokenizer.normalized(piece) for piece in split_pieces(line)]
    surfaces: list[str | None]
    if tokenizer.config.kind == "words":
        cut = bare_words if tokenizer.config.drop_punctuation else split_words
        surfaces = [_letters([without_joiner(token)]) for token in cut(tokenizer.normalized(line))]
        has_space = [False] * len(surfaces)
    else:
        read = tokenizer.source_tokens if side == "source" else tokenizer.target_tokens
        surfaces, has_space = _surfaces(read(ids[:-1]), ids[:-1], tokenizer.config.unk_id)
    if set().union(*filter(None, surfaces)) - set(_letters(pieces)):
        # A tokenizer that brings letters into another form by itself: compare in one form.
        pieces = [unicodedata.normalize("NFKC", piece) for piece in pieces]
        surfaces = [one and _letters([unicodedata.normalize("NFKC", one)]) for one in surfaces]
    return _lay(surfaces, has_space, pieces)


def _lay(
    surfaces: Sequence[str | None], has_space: Sequence[bool], pieces: Sequence[str]
) -> list[range]:
    """Walk along the pieces' letters, token by token; None is a token of unknown letters."""
    letters = _letters(pieces)
    owners = [index for index, piece in enumerate(pieces) for _ in _letters([piece])]
    last = len(owners) - 1
    found = []
    place, was_unknown = 0, False
    for surface, begins_word in zip(surfaces, has_space, strict=True):
        if was_unknown and begins_word:
            owner = owners[min(place, last)]
            place = next((at for at in range(place, last + 1) if owners[at] != owner), last)
        if surface:
            at = letters.find(surface, place + was_unknown)
            place = at if at >= 0 else place
        first = owners[min(place, last)]
        if surface is None:
            found.append(range(first, first + 1))
            was_unknown = True
            continue
        end = min(place + max(len(surface), 1) - 1, last)
        found.append(range(first, owners[end] + 1))
        place += len(surface)
        was_unknown = was_unknown and not surface
    return found


def _surfaces(
    tokens: Sequence[str], ids: Sequence[int], unk_id: int
) -> tuple[list[str | None], list[bool]]:
    """The letters that each SentencePiece token stands for, and whether a space comes first.

    The bytes of one letter count for its first byte; the others stand for nothing.
    """
    surfaces: list[str | None] = []
    has_space = []
    pending = b""
    for token, id_ in zip(tokens, ids, strict=True):
        byte = _BYTE.fullmatch(token)
        if byte is None:
            pending = b""
        has_space.append(token.startswith(SPACE_SIGN))
        if id_ == unk_id:
            surfaces.append(None)
        elif byte is None:
            surfaces.append(_letters([token.replace(SPACE_SIGN, " ")]))
        else:
            pending += bytes.fromhex(byte[1])
            surfaces.append("")
            letter = pending.decode("utf-8", errors="ignore")
            if letter:
                surfaces[len(surfaces) - len(pending)] = _letters([letter])
                pending = b""
    return surfaces, has_space


def _letters(pieces: Sequence[str]) -> str:
    """Everything but white space."""
    return "".join("".join(pieces).split())


def is_punctuation(token: str) -> bool:
    """Whether a token has nothing but punctuation marks, joined to the word before it or not."""
    letters = without_joiner(token.replace(SPACE_SIGN, "").strip())
    return bool(letters) and all(unicodedata.category(letter)[0] == "P" for letter in letters)
