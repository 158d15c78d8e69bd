"""Words of tokens: the white-space-separated pieces of a line that each token belongs to."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from pellucid.text.language_tokens import split_code
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN, Tokenizer
from pellucid.text.tokenizers.whole_words import without_joiner, word_cutter

_SPACES = re.compile(r"[^\S\u00a0\u2007\u202f]+")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")

# A noncharacter, which no text holds and no vocabulary has. It stands for a model's own <unk>.
_UNKNOWN = "\ufdd0"


def split_pieces(line: str) -> list[str]:
    """Cut a line into pieces at white space; word links count them from 0.

    White space of every kind separates, except the three no-break spaces (U+00A0, U+2007, U+202F),
    which are written to keep text together: the French ``vie !`` is one piece.
    """
    return [piece for piece in _SPACES.split(line) if piece.strip()]


def source_pieces(tokenizer: Tokenizer, source: str) -> list[str]:
    """Cut a source line into pieces as `split_pieces` does, without its language code."""
    return split_pieces(split_code(tokenizer, source)[1])


def mark_unknown(tokenizer: Tokenizer, target: str) -> str:
    """Replace the ``<unk>`` that a model wrote by a letter that is cut into ``<unk>`` again.

    Cut as it is, its letters would be known ones, or several unknown ones. A vocabulary with bytes
    writes every letter and has no such text.
    """
    unk_id = tokenizer.config.unk_id
    written = tokenizer.decode_target([unk_id]).strip()
    if not written or written not in target or unk_id not in tokenizer.encode_target(_UNKNOWN):
        return target
    return target.replace(written, _UNKNOWN)


def show_unknown(text: str) -> str:
    """Write what `mark_unknown` replaced as ``<unk>`` again, for a reader."""
    return text.replace(_UNKNOWN, "<unk>")


def unknown_pieces(tokenizer: Tokenizer, target: str) -> list[str]:
    """List the pieces of a target that its vocabulary cannot write, each once.

    A model's own ``<unk>`` is not listed.
    """
    unk_id = tokenizer.config.unk_id
    pieces = split_pieces(mark_unknown(tokenizer, target).replace(_UNKNOWN, " "))
    return [one for one in dict.fromkeys(pieces) if unk_id in tokenizer.encode_target(one)]


def words_of_tokens(
    tokenizer: Tokenizer,
    side: Literal["source", "target"],
    line: str,
    ids: Sequence[int],
    words: Sequence[str] | None = None,
) -> list[range]:
    """Find the pieces of a line that each of its tokens belongs to.

    The letters of the tokens are matched with the letters of the pieces, from left to right. A
    token that is only white space belongs to the piece after it. The tokens of a source's language
    code belong to none, and do not count as one.

    Args:
        tokenizer: the tokenizer that cut the line.
        side: the side that the line was cut as.
        line: the line before normalization; a target as `mark_unknown` returns it.
        ids: its tokens, ending in ``</s>``.
        words: other pieces to take: parts of the line, without its language code, that together
            have all of its letters; those of `split_pieces` unless given.

    Returns:
        The pieces of each token except ``</s>``: nearly always one; several if a token contains
        spaces, or letters of several given words.
    """
    code, text = split_code(tokenizer, line) if side == "source" else ("", line)
    if tokenizer.leading_ids(ids):  # the token of a language, or <s>, which no letter spells
        return [range(0), *words_of_tokens(tokenizer, side, text, ids[1:], words)]
    # The code is matched as a piece too, and left out in the end.
    words = split_pieces(text) if words is None else words
    pieces = [tokenizer.normalized(piece) for piece in (*split_pieces(code), *words)]
    surfaces: list[str | None]
    read = tokenizer.source_tokens if side == "source" else tokenizer.target_tokens
    if tokenizer.config.kind == "words":
        cut = word_cutter(tokenizer.config)
        surfaces = [_letters([without_joiner(token)]) for token in cut(tokenizer.normalized(line))]
        if len(surfaces) != len(ids) - 1:  # a line with other words in place of unknown ones
            unk_id = tokenizer.config.unk_id
            surfaces = [
                None if id_ == unk_id else _letters([without_joiner(token)])
                for id_, token in zip(ids[:-1], read(ids[:-1]), strict=True)
            ]
        has_space = [False] * len(surfaces)
    else:
        surfaces, has_space = _surfaces(read(ids[:-1]), ids[:-1], tokenizer.config.unk_id)
    if set().union(*filter(None, surfaces)) - set(_letters(pieces)):
        # This tokenizer normalizes by itself (some SentencePiece models do): compare in one form.
        pieces = [unicodedata.normalize("NFKC", piece) for piece in pieces]
        surfaces = [one and _letters([unicodedata.normalize("NFKC", one)]) for one in surfaces]
    found = _match(surfaces, has_space, pieces)
    # Piece 0 is the code: its tokens get an empty range, and all other numbers go down by one.
    if code:
        return [range(max(owners.start - 1, 0), owners.stop - 1) for owners in found]
    return found


def _match(
    surfaces: Sequence[str | None], has_space: Sequence[bool], pieces: Sequence[str]
) -> list[range]:
    """Walk along the letters of the pieces, token by token; None is a token of unknown letters."""
    letters = _letters(pieces)
    # The piece of each letter.
    owners = [index for index, piece in enumerate(pieces) for _ in _letters([piece])]
    if not owners:  # A translation may be written in tokens that have no letters.
        return [range(0) for _ in surfaces]
    last = len(owners) - 1
    found = []
    place = 0
    was_unknown = False
    for surface, begins_word in zip(surfaces, has_space, strict=True):
        # Unknown tokens have no length: find where the letters continue after them. A token that
        # begins a word is in a later piece; any other has its letters later in the text.
        if was_unknown and begins_word:
            owner = owners[min(place, last)]
            place = next((at for at in range(place, last + 1) if owners[at] != owner), last)
            was_unknown = False
        if surface:
            # `was_unknown` counts as 1: an unknown token has at least one letter.
            at = letters.find(surface, place + was_unknown)
            # A token that is not found moves nothing, so that later ones can fit again.
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
    """Spell each SentencePiece token: its letters, and whether a space comes before them.

    If bytes make up one letter, it counts for the first of them; the others have no letters.
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
            # Empty until the bytes make up a whole letter.
            letter = pending.decode("utf-8", errors="ignore")
            if letter:
                surfaces[len(surfaces) - len(pending)] = _letters([letter])
                pending = b""
    return surfaces, has_space


def _letters(pieces: Sequence[str]) -> str:
    """Join the pieces without white space."""
    return "".join("".join(pieces).split())


def is_punctuation(token: str) -> bool:
    """Tell whether a token has only punctuation marks, joined to the word before it or not."""
    letters = without_joiner(token.replace(SPACE_SIGN, "").strip())
    return bool(letters) and all(unicodedata.category(letter)[0] == "P" for letter in letters)
