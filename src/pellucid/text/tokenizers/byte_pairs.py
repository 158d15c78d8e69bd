"""Pairs of bytes, as in BART: text is cut at spaces and kinds of signs, then into bytes."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import final

from pellucid.errors import BundleError
from pellucid.text.tokenizers.tokenizer import SPACE_SIGN

_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_VERSION = "#version"
_KEPT_WORDS = 2**16
"""Words whose pieces are remembered: those of a large text occur again."""


@final
class BytePairs:
    """Pieces of bytes with the ids of a list of tokens.

    A list spells pieces as SentencePiece would: ▁ is a space, and bytes that are no whole letters
    are written as ``<0xC3>``.

    Args:
        merges: a file of pairs, in the order in which they are joined.
        tokens: the list, in the order of the ids.
        unk_id: the id of bytes that the list lacks.
        reserved: ids that no text may produce.

    Raises:
        BundleError: the file is not one of pairs.

    Source:
        Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units"; on
        bytes: Radford et al. 2019 (GPT-2).
    """

    def __init__(
        self, merges: bytes, tokens: Sequence[str], *, unk_id: int, reserved: Collection[int]
    ) -> None:
        self._merges = merges
        self.tokens = tuple(tokens)
        self._unk_id = unk_id
        taken = {*reserved}
        self._bytes = [spelled_bytes(token) for token in tokens]
        self._ids = {one: id_ for id_, one in enumerate(self._bytes) if id_ not in taken}
        self._ranks = _read_merges(merges)
        self._cut = lru_cache(_KEPT_WORDS)(self._cut_word)

    def encode(self, text: str) -> list[int]:
        """Cut one text into ids."""
        return [id_ for word in _words().findall(text) for id_ in self._cut(word)]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many texts into ids."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Join ids into a text; bytes that are no letters become U+FFFD."""
        text = b"".join(self._bytes[id_] for id_ in ids).decode("utf-8", errors="replace")
        return text.removeprefix(" ")

    def spell(self, token: str) -> list[int]:
        """Find the ids that write the text of a token that the list lacks."""
        return self.encode(token.replace(SPACE_SIGN, " "))

    def to_bytes(self) -> bytes:
        """Return the file of pairs."""
        return self._merges

    def _cut_word(self, word: str) -> tuple[int, ...]:
        pieces = [bytes((one,)) for one in word.encode("utf-8", errors="replace")]
        last = len(self._ranks)
        while len(pieces) > 1:
            pairs = list(pairwise(pieces))
            first = min(pairs, key=lambda pair: self._ranks.get(pair, last))
            if first not in self._ranks:
                break
            pieces = _join(pieces, first)
        return tuple(self._ids.get(piece, self._unk_id) for piece in pieces)


def _join(pieces: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    """Join a pair wherever it occurs, from the left."""
    joined = []
    place = 0
    while place < len(pieces):
        if (pieces[place], *pieces[place + 1 : place + 2]) == pair:
            joined.append(pair[0] + pair[1])
            place += 2
        else:
            joined.append(pieces[place])
            place += 1
    return joined


def _read_merges(merges: bytes) -> dict[tuple[bytes, bytes], int]:
    ranks: dict[tuple[bytes, bytes], int] = {}
    for line in merges.decode("utf-8", errors="replace").split("\n"):
        if not line or line.startswith(_VERSION):
            continue
        pair = line.removesuffix("\r").split(" ")
        if len(pair) != 2 or not all(_alphabet().keys() >= {*one} for one in pair):
            raise BundleError(
                "Every line of merges.txt must hold two pieces of bytes, but one is "
                f"{line[:40]!r}. The file is damaged, or of another kind; copy it again."
            )
        left, right = map(raw_bytes, pair)
        ranks.setdefault((left, right), len(ranks))
    return ranks


@cache
def _alphabet() -> dict[str, int]:
    """Map the letters that stand for bytes in GPT-2's files: printable ones for themselves."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in plain]
    return {
        **{chr(byte): byte for byte in plain},
        **{chr(256 + place): byte for place, byte in enumerate(others)},
    }


def raw_bytes(piece: str) -> bytes:
    """Read a piece of GPT-2's files, whose every letter stands for a byte."""
    letters = _alphabet()
    return bytes(letters[one] for one in piece)


def is_raw(piece: str) -> bool:
    """Tell whether every letter of a piece stands for a byte."""
    return _alphabet().keys() >= {*piece}


def spell_bytes(piece: bytes) -> str:
    """Spell bytes as a token that can be read: the opposite of `spelled_bytes`."""
    try:
        text = piece.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    plain = text.replace(" ", SPACE_SIGN)
    # What could not be read back, or would end a line of the list.
    if not text or SPACE_SIGN in text or not plain.isprintable() or _BYTE.search(text):
        return "".join(f"<0x{byte:02X}>" for byte in piece)
    return plain


def spelled_bytes(token: str) -> bytes:
    """Read the bytes of a token of a bundle's list."""
    if _BYTE.sub("", token) == "" and token:
        return bytes(int(byte, 16) for byte in _BYTE.findall(token))
    return token.replace(SPACE_SIGN, " ").encode("utf-8", errors="replace")


@cache
def _words() -> re.Pattern[str]:
    r"""Make GPT-2's pattern of words, in which ``\p{L}`` are letters and ``\p{N}`` numbers.

    Python has neither; its ``\w`` is both and ``_``, and its ``\d`` lacks numbers such as ½.
    """
    other_numbers = "".join(
        re.escape(chr(code))
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Nl", "No")
    )
    number = rf"[\d{other_numbers}]"
    letter = rf"[^\W\d_{other_numbers}]"
    return re.compile(
        rf"'s|'t|'re|'ve|'m|'ll|'d| ?{letter}+| ?{number}+| ?(?:[^\w\s]|_)+|\s+(?!\S)|\s+"
    )
