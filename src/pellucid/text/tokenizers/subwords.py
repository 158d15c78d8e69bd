"""Subword vocabularies of SentencePiece, which give every text back exactly."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Literal, final

import sentencepiece

from pellucid.config import TokenizerConfig, TokenizerRecipe
from pellucid.errors import BundleError
from pellucid.machine.hardware import threads_in_use
from pellucid.machine.randomness import random_bytes
from pellucid.text.tokenizers.new_pieces import (
    append_pieces,
    has_probabilities,
    learn_pieces,
    spell_piece,
)
from pellucid.text.tokenizers.sentencepiece_training import NOT_LEARNED, STAND_INS, train_model
from pellucid.text.tokenizers.tokenizer import (
    SPACE_SIGN,
    SPECIAL_TOKENS,
    LearnedTokenizer,
    Lines,
    damaged_model,
    prepare_symbols,
    take_file,
)


@final
class SubwordVocabulary:
    """One SentencePiece model as a vocabulary.

    With byte fallback every text comes back exactly. Without it, characters that the training
    text did not hold become ``<unk>``.
    """

    def __init__(self, model: bytes, symbols: Sequence[str] = ()) -> None:
        """Read a model.

        Args:
            model: a serialized SentencePiece model.
            symbols: its pieces that are never cut.

        Raises:
            RuntimeError: the bytes are not a model.
            UnicodeDecodeError: a piece is not UTF-8.
        """
        self._model = model
        self._symbols = symbols
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(model)
        self.special_ids = (
            self._processor.pad_id(),
            self._processor.unk_id(),
            self._processor.bos_id(),
            self._processor.eos_id(),
        )
        tokens = [self._processor.id_to_piece(id_) for id_ in range(len(self._processor))]
        for name, id_ in zip(SPECIAL_TOKENS, self.special_ids, strict=True):
            # SentencePiece gives -1 for a special token that a model lacks.
            if id_ >= 0:
                tokens[id_] = name
        self.tokens = tuple(tokens)
        unknown = self._processor.unk_id()
        # A letter that is a piece of the model would not be written in bytes.
        self._stand_ins = [
            letter for letter in STAND_INS if self._processor.piece_to_id(letter) == unknown
        ]

    def encode(self, text: str) -> list[int]:
        """Cut one text into ids."""
        if SPACE_SIGN in text:
            # A text that holds every stand-in loses its U+2581.
            for stand_in in self._stand_ins:
                if stand_in not in text:
                    ids = self._processor.encode(text.replace(SPACE_SIGN, stand_in))
                    return _replace_run(ids, self._byte_ids(stand_in), self._byte_ids(SPACE_SIGN))
        encoded: list[int] = self._processor.encode(text)
        return encoded

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many texts into ids, on the threads in use."""
        if any(SPACE_SIGN in text for text in texts):
            return [self.encode(text) for text in texts]
        encoded: list[list[int]] = self._processor.encode(list(texts), num_threads=threads_in_use())
        return encoded

    @property
    def has_probabilities(self) -> bool:
        """True for a unigram model; a byte-pair model has merges instead."""
        return has_probabilities(self._processor)

    def encode_n_best(self, text: str, count: int) -> list[tuple[list[int], float]]:
        """Cut one text in its most probable ways, each with its log-probability.

        Raises:
            RuntimeError: the model has no probabilities.

        Source:
            Kudo 2018, "Subword Regularization", section 3.
        """
        if SPACE_SIGN in text:
            # The detour by a stand-in knows only one way.
            return [(self.encode(text), 0.0)]
        ways = self._processor.nbest_encode(text, nbest_size=count)
        whole = self._symbols_in(ways[0]) if ways else []
        # Some ways cut a symbol into letters, but it must stay whole.
        ways = [ids for ids in ways if self._symbols_in(ids) == whole]
        return [(ids, math.fsum(map(self._processor.get_score, ids))) for ids in ways]

    def encode_by_merges(self, text: str, count: int, merges: MergeDropout) -> list[list[int]]:
        """Cut one text several times, with random merges left out.

        Words that the merges cannot build (with bytes, for example) are cut as usual.
        """
        words = self._words(self.encode(text))
        # Merges never join two words, so each word is cut by itself.
        cuts = merges.segment([word for word, _ in words], count)
        return [
            [id_ for cut, (_, usual) in zip(ways, words, strict=True) for id_ in cut or usual]
            for ways in cuts
        ]

    def merges(self, rate: float, seed: int) -> MergeDropout:
        """Return the model's merges, each left out with the probability ``rate``."""
        ids = {self.tokens[id_]: id_ for id_ in range(len(self.tokens)) if self._is_plain(id_)}
        # A byte-pair model stores the order of its merges as negative scores.
        ranks = {
            piece: -self._processor.get_score(id_) for piece, id_ in ids.items() if len(piece) > 1
        }
        return MergeDropout(ids, ranks, rate=rate, seed=seed)

    def extended(self, lines: Iterable[str], count: int) -> SubwordVocabulary:
        """Append pieces for characters that only this text has; old ids and old text stay.

        Args:
            lines: the text, normalized.
            count: the most pieces to append.
        """
        known = {self.tokens[id_] for id_ in range(len(self.tokens)) if self._is_plain(id_)}
        known |= {*self._symbols}
        pieces = learn_pieces(self._model, known.__contains__, map(_without_signs, lines), count)
        if not pieces:
            return self
        return SubwordVocabulary(append_pieces(self._model, pieces), self._symbols)

    def spell(self, token: str) -> list[int]:
        """Find the ids that write the text of a piece that this model lacks."""
        return spell_piece(token, self.encode, self.tokens)

    def _words(self, ids: Sequence[int]) -> list[tuple[str, list[int]]]:
        """Group ids into words: each with its letters, or ``""`` if a piece has none."""
        words: list[list[int]] = []
        for id_ in ids:
            if not words or self.tokens[id_].startswith(SPACE_SIGN):
                words.append([])
            words[-1].append(id_)
        return [(self._letters(cut), cut) for cut in words]

    def _letters(self, ids: Sequence[int]) -> str:
        if not all(map(self._is_plain, ids)):
            return ""
        return "".join(self.tokens[id_] for id_ in ids)

    def _symbols_in(self, ids: Sequence[int]) -> list[str]:
        return [self.tokens[id_] for id_ in ids if self.tokens[id_] in self._symbols]

    def _is_plain(self, id_: int) -> bool:
        model = self._processor
        is_special = model.is_control(id_) or model.is_unknown(id_) or model.is_byte(id_)
        return not is_special and self.tokens[id_] not in self._symbols

    def decode(self, ids: Sequence[int]) -> str:
        """Join ids into a text; bytes that are not UTF-8 become U+FFFD."""
        text: str = self._processor.decode(list(ids))
        return text

    def to_bytes(self) -> bytes:
        """Return the serialized model."""
        return self._model

    def _byte_ids(self, letter: str) -> list[int]:
        return [self._processor.piece_to_id(f"<0x{byte:02X}>") for byte in letter.encode()]


def _without_signs(line: str) -> str:
    """Leave out characters that this module gives another meaning."""
    return NOT_LEARNED.sub(" ", line)


def _replace_run(ids: list[int], old: list[int], new: list[int]) -> list[int]:
    """Replace each run of ids by another of the same length."""
    result = list(ids)
    for start in range(len(ids) - len(old) + 1):
        if ids[start : start + len(old)] == old:
            result[start : start + len(new)] = new
    return result


@final
class SentencePieceTokenizer(LearnedTokenizer):
    """A tokenizer of subwords: ``tokenizer.model``, or ``source.model`` and ``target.model``."""

    _JOINT_FILE = "tokenizer.model"
    _source: SubwordVocabulary
    _target: SubwordVocabulary

    @classmethod
    def _learn_vocabulary(cls, recipe: TokenizerRecipe, *sides: Lines) -> SubwordVocabulary:
        return SubwordVocabulary(train_model(recipe, *sides), prepare_symbols(recipe))

    @classmethod
    def _load_vocabulary(
        cls, config: TokenizerConfig, files: Mapping[str, bytes], name: str, where: str
    ) -> SubwordVocabulary:
        model = take_file(files, name, where)
        try:
            vocabulary = SubwordVocabulary(model, prepare_symbols(config))
        except (RuntimeError, UnicodeDecodeError):
            raise damaged_model(name, model, where) from None
        expected = (config.pad_id, config.unk_id, config.bos_id, config.eos_id)
        if vocabulary.special_ids != expected:
            raise BundleError(
                f"The ids of <pad>, <unk>, <s> and </s> must be {expected} as config.json says, "
                f"but are {vocabulary.special_ids} ({where}/{name}). The two files belong to "
                "different models; copy the whole folder again."
            )
        return vocabulary

    def segmenter(
        self, side: Literal["source", "target"], count: int, *, dropout: float, seed: int
    ) -> Callable[[str], list[tuple[list[int], float]]]:
        """Make a function that cuts a text in several ways, each ending in ``</s>``.

        A unigram model gives the most probable ones with their log-probabilities. A byte-pair
        model leaves out merges at random; all its results count as equally probable, 0.

        Args:
            side: the side whose vocabulary cuts.
            count: the most ways to return.
            dropout: the probability that a merge is left out.
            seed: of the merges that are left out.
        """
        vocabulary = self._source if side == "source" else self._target
        merges = None if vocabulary.has_probabilities else vocabulary.merges(dropout, seed)

        def segment(text: str) -> list[tuple[list[int], float]]:
            text = self.normalized(text)
            if merges is None:
                ways = vocabulary.encode_n_best(text, count)
            else:
                ways = [(ids, 0.0) for ids in vocabulary.encode_by_merges(text, count, merges)]
            return [([*ids, self.config.eos_id], score) for ids, score in ways]

        return segment


NUM_SEGMENTATIONS = 64
"""Segmentations drawn of each word; each of its places in a text then draws one of them."""

CACHE_SIZE = 2**19
"""Segmentations of words to remember."""


@final
class MergeDropout:
    """Cuts words by the merges of a byte-pair vocabulary, each left out with a probability.

    Everything drawn is a function of the seed and the text, so that other processes and other
    orders of the texts give the same result.

    Args:
        ids: the id of each piece, single letters included.
        ranks: the rank of each piece that a merge makes; the lowest is made first.
        rate: the probability that one step leaves out a possible merge.
        seed: the run's.

    Source:
        Provilkov et al. 2020, "BPE-Dropout: Simple and Effective Subword Regularization",
        algorithm 1.
    """

    def __init__(
        self, ids: Mapping[str, int], ranks: Mapping[str, float], *, rate: float, seed: int
    ) -> None:
        self._ids = ids
        self._ranks = ranks
        # Each draw is a number of 16 bits.
        self._threshold = round(rate * 2**16)
        self._seed = seed
        # A cache of this object only: its rate and seed decide the results.
        self._cut = lru_cache(CACHE_SIZE)(self._segment_word)

    def segment(self, words: Sequence[str], count: int) -> Iterator[list[tuple[int, ...]]]:
        """Cut the words of a text ``count`` times, each time into the ids of each word.

        A word with a letter that is not a piece gets no ids.
        """
        raw = random_bytes(count * len(words), self._seed, "merges of a text", *words)
        # A limited number for each word, so that the cache finds most of them again.
        numbers = (raw % NUM_SEGMENTATIONS).reshape(count, len(words))
        for row in numbers.tolist():
            yield list(map(self._cut, words, row))

    def _segment_word(self, word: str, number: int) -> tuple[int, ...]:
        pieces = list(word)
        # A word of n letters has at most n - 1 merges to weigh, then n - 2, and so on.
        most = len(word) * (len(word) - 1) // 2
        drawn = random_bytes(2 * most, self._seed, "merges of a word", word, number)
        draws = iter(drawn.view("<u2").tolist())
        while True:
            best = math.inf
            place = -1
            for at, (left, right) in enumerate(pairwise(pieces)):
                rank = self._ranks.get(left + right, math.inf)
                # In this order, only a merge that would be taken uses a draw.
                if rank < best and next(draws) >= self._threshold:
                    best = rank
                    place = at
            if place < 0:
                is_whole = all(piece in self._ids for piece in pieces)
                return tuple(self._ids[piece] for piece in pieces) if is_whole else ()
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
