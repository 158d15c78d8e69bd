"""New pieces for a SentencePiece model: for characters that it lacks, so that old text stays."""

from __future__ import annotations

import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple, final

import sentencepiece

from pellucid.text.tokenizers.tokenizer import SPACE_SIGN

_LONGEST = 16
"""Letters of a piece, as in models that SentencePiece learns."""

_FEWEST = 2
"""A piece of several letters must occur so often."""

_RESERVED = frozenset((SPACE_SIGN, "\u2585"))


class VocabularyPiece(NamedTuple):
    """A piece of a SentencePiece model, and its score."""

    text: str
    score: float


def has_probabilities(processor: sentencepiece.SentencePieceProcessor) -> bool:
    """Tell whether a model is a unigram model; a byte-pair model has merges instead."""
    try:
        # The library does not tell the kind, but refuses this for byte pairs.
        processor.nbest_encode("a", nbest_size=1)
    except RuntimeError:
        return False
    return True


def append_pieces(model: bytes, pieces: Sequence[VocabularyPiece]) -> bytes:
    """Append pieces to a serialized model; their ids follow those that it has.

    A repeated field of a protocol buffer continues wherever the bytes have more of it.

    Source:
        Protocol Buffers, "Encoding"; ``sentencepiece_model.proto``: ``ModelProto.pieces`` is field
        1, with ``piece`` 1 and ``score`` 2.
    """
    appended = [model]
    for piece in pieces:
        text = piece.text.encode()
        # 0x15 announces the four bytes of field 2.
        body = write_field(1, text) + b"\x15" + struct.pack("<f", piece.score)
        appended.append(write_field(1, body))
    return b"".join(appended)


def write_field(number: int, value: bytes | int) -> bytes:
    """Write a field of a protocol buffer: bytes with their length, or a whole number."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def learn_pieces(
    model: bytes, is_known: Callable[[str], bool], lines: Iterable[str], count: int
) -> list[VocabularyPiece]:
    """Learn pieces for characters that a model lacks.

    First come the characters, the most frequent ones first, then the most frequent pairs of
    neighboring pieces, as byte-pair encoding joins them. Every new piece has a character that the
    model lacked, so that text without such characters is cut as before, whatever the scores. The
    scores make the new pieces preferred to their parts, but never to old pieces.

    Args:
        model: a serialized SentencePiece model, byte-pair or unigram.
        is_known: tells whether the vocabulary has a character, not only its bytes.
        lines: the text, normalized.
        count: the most pieces to learn.

    Source:
        Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units".
    """
    words: Counter[str] = Counter()
    for line in lines:
        words.update(line.split())
    letters: Counter[str] = Counter()
    for word, number in words.items():
        for letter in word:
            letters[letter] += number
    new = [letter for letter in letters if _may_be_piece(letter) and not is_known(letter)]
    new.sort(key=lambda letter: (-letters[letter], letter))
    new = new[:count]
    if not new:
        return []
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    scores = _Scores(processor)
    pieces = [scores.of_letter(letter) for letter in new]
    processor = sentencepiece.SentencePieceProcessor(model_proto=append_pieces(model, pieces))
    # Only words with a new character can change (docs/decisions/0018).
    has_new = re.compile(f"[{re.escape(''.join(new))}]")
    cut = {
        tuple(processor.encode(word, out_type=str)): number
        # Sorted, so that the result does not depend on the order of the lines.
        for word, number in sorted(words.items())
        if has_new.search(word)
    }
    known = {processor.id_to_piece(id_) for id_ in range(len(processor))}
    for left, right in _join(cut, known, has_new, count - len(pieces)):
        pieces.append(scores.of_pair(left, right))
    return pieces


def spell_piece(piece: str, encode: Callable[[str], list[int]], tokens: Sequence[str]) -> list[int]:
    """Find the ids that write the text of a piece that a model lacks.

    Args:
        piece: with the sign of a space, if it begins with one.
        encode: cuts a text by the model, which puts a space before every text.
        tokens: the text of each id.
    """
    ids = encode(piece.removeprefix(SPACE_SIGN))
    if not ids or piece.startswith(SPACE_SIGN):
        return ids
    # This piece stands inside a word: the space that the model put before it goes again.
    first = tokens[ids[0]].removeprefix(SPACE_SIGN)
    if first == tokens[ids[0]]:
        return ids
    return [*([tokens.index(first)] if first in tokens else []), *ids[1:]]


def _may_be_piece(letter: str) -> bool:
    """Leave out white space, control characters and signs that SentencePiece reserves."""
    return unicodedata.category(letter)[0] not in "CZ" and letter not in _RESERVED


def _varint(number: int) -> bytes:
    """Write a number as a protocol buffer does: seven bits a byte, the lowest first."""
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _join(
    cut: dict[tuple[str, ...], int], known: set[str], has_new: re.Pattern[str], count: int
) -> Iterator[tuple[str, str]]:
    """Yield the pairs to join, each the most frequent one after all before it were joined."""
    words = [list(word) for word in cut]
    numbers = list(cut.values())
    made = set(known)
    counts: Counter[tuple[str, str]] = Counter()
    places: dict[tuple[str, str], set[int]] = {}

    def tally(index: int, sign: int) -> set[tuple[str, str]]:
        pairs = [pair for pair in pairwise(words[index]) if _may_join(pair, made, has_new)]
        for pair in pairs:
            counts[pair] += sign * numbers[index]
            places.setdefault(pair, set()).add(index)
        return set(pairs)

    for index in range(len(words)):
        tally(index, 1)
    # An entry whose count has changed since is out of date: a later one has the new count.
    queue = [(-number, pair) for pair, number in counts.items()]
    heapify(queue)
    while queue and count:
        number, best = heappop(queue)
        if -number != counts[best]:
            continue
        if -number < _FEWEST:
            return
        yield best
        count -= 1
        made.add("".join(best))
        changed: set[tuple[str, str]] = set()
        for index in places.pop(best):
            # Counted off and on again, because joining a pair changes its neighbors too.
            changed |= tally(index, -1)
            words[index] = _joined(words[index], best)
            changed |= tally(index, 1)
        for pair in changed:
            heappush(queue, (-counts[pair], pair))


def _may_join(pair: tuple[str, str], made: set[str], has_new: re.Pattern[str]) -> bool:
    """Tell whether two pieces may be joined: letters and their marks, with one that is new."""
    left, right = pair
    text = left + right
    return (
        left in made
        and right in made
        and len(text) <= _LONGEST
        and has_new.search(text) is not None
        and all(map(_is_letter, text.removeprefix(SPACE_SIGN)))
    )


def _is_letter(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "LM"


def _joined(pieces: Sequence[str], pair: tuple[str, str]) -> list[str]:
    """Join each occurrence of a pair, from the left."""
    found: list[str] = []
    place = 0
    while place < len(pieces):
        if tuple(pieces[place : place + 2]) == pair:
            found.append("".join(pair))
            place += 2
        else:
            found.append(pieces[place])
            place += 1
    return found


@final
class _Scores:
    """Scores of new pieces, by the kind of the model."""

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        self._scores = {
            processor.id_to_piece(id_): processor.get_score(id_) for id_ in range(len(processor))
        }
        self._is_unigram = has_probabilities(processor)
        self._lowest = min(self._scores.values())

    def of_letter(self, letter: str) -> VocabularyPiece:
        """Score a letter: as the rarest piece, which leaves the score of the unknown as it is."""
        return self._add(letter, self._lowest)

    def of_pair(self, left: str, right: str) -> VocabularyPiece:
        """Score a joined piece.

        Log-probabilities add up, so that the lower one of its parts is more than both together. A
        byte-pair model joins the highest score first, and so makes all of its old merges first.
        """
        return self._add(left + right, min(self._scores[left], self._scores[right]))

    def _add(self, text: str, score: float) -> VocabularyPiece:
        if not self._is_unigram:
            # Each new merge comes after all before it (docs/decisions/0018).
            self._lowest -= 1
            score = self._lowest
        self._scores[text] = score
        return VocabularyPiece(text, score)
