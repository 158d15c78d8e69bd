"""Whole-word vocabularies: every word of the training text gets an id."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Self, final

from pellucid.config import TokenizerConfig, TokenizerRecipe
from pellucid.errors import BundleError, ConfigurationError, DataError
from pellucid.languages.letters import combining_marks
from pellucid.text.tokenizers.tokenizer import (
    SPECIAL_TOKENS,
    LearnedTokenizer,
    Lines,
    prepare_symbols,
    prepare_training_lines,
    read_tokens,
    write_vocabulary,
)

JOINER = "\uffed"
"""The sign of a token without a space before it: ``life!`` is ``life`` and ``￭!``."""


def word_cutter(config: TokenizerConfig) -> Callable[[str], list[str]]:
    """Find how a vocabulary of whole words cuts a text that is normalized already."""
    cut = bare_words if config.drop_punctuation else split_words
    return partial(cut, symbols=prepare_symbols(config))


def split_words(text: str, symbols: tuple[str, ...] = ()) -> list[str]:
    r"""Cut a text into tokens, so that `join_words` gives it back exactly.

    A word is a run of letters, digits and their marks, with single apostrophes and hyphens
    inside (``Let's``, ``well-known``). Every other character is one token. A token has one space
    before it, unless it starts with the `JOINER`; further spaces and all other white space are
    tokens themselves. The line is read as if it began with one space. Symbols stay whole.

    Example:
        ``"Not on your life!"`` gives ``["Not", "on", "your", "life", "￭!"]``.
    """
    if not text:
        return []
    found = _splitter(symbols).findall(f" {text}")
    return [after_space or JOINER + other for after_space, other in found]


def join_words(tokens: Iterable[str]) -> str:
    """Join tokens into the text that `split_words` cut."""
    return "".join(map(_written, tokens)).removeprefix(" ")


def _written(token: str) -> str:
    """Write a token as text, with the space before it."""
    bare = without_joiner(token)
    return bare if bare != token else f" {token}"


def bare_words(text: str, symbols: tuple[str, ...] = ()) -> list[str]:
    """Cut a text into words and symbols, without punctuation and white space.

    Example:
        ``"Not on your life!"`` gives ``["Not", "on", "your", "life"]``.
    """
    return [
        piece
        for piece in _cutter(symbols).findall(text)
        if piece in symbols
        or (not piece[0].isspace() and not unicodedata.category(piece[0]).startswith("P"))
    ]


def without_joiner(token: str) -> str:
    """Drop the joiner at the start of a token; a token that consists of it stays."""
    return token.removeprefix(JOINER) or token


def without_joiners(text: str) -> str:
    """Drop the joiners of all tokens in a text that people read; one that stands alone stays."""
    return _JOINED.sub("", text)


_JOINED = re.compile(rf"{JOINER}(?=\S)")


@cache
def _cutter(symbols: tuple[str, ...]) -> re.Pattern[str]:
    """Compile the pattern of white space, words, and single other characters."""
    return re.compile(rf"\s+|{_word(symbols)}|.", re.DOTALL)


@cache
def _splitter(symbols: tuple[str, ...]) -> re.Pattern[str]:
    """Compile the pattern of a token with a space before it, or of one without, as two groups."""
    word = _word(symbols)
    return re.compile(rf" ({word}|\S)|({word}|.)", re.DOTALL)


@cache
def _word(symbols: tuple[str, ...]) -> str:
    """Write the pattern of a symbol or a word."""
    # The marks are a long list: it is not searched for characters below all of them.
    word = rf"(?:[^\W_]+|(?![\x00-\u02ff])[{combining_marks()}])+"
    # Apostrophes, hyphens and the invisible joiners of Persian and Indic scripts bind a word.
    whole = rf"{word}(?:['\u2019\u2010\u2011\u200c\u200d-]{word})*"
    return "|".join([*map(re.escape, symbols), whole])


@final
class WordVocabulary:
    """A list of words as a vocabulary; other words become ``<unk>``.

    Attributes:
        tokens: every token, in the order of the ids.
    """

    def __init__(self, tokens: Sequence[str], config: TokenizerConfig) -> None:
        """Make a vocabulary.

        Args:
            tokens: the special tokens, then the words, in the order of the ids.
            config: says how texts are cut.
        """
        self._config = config
        self.tokens = tuple(tokens)
        # Made once, so that decoding only looks up and joins.
        self._written = tuple(map(_written, tokens))
        self._ids = {token: id_ for id_, token in enumerate(tokens)}
        self._unknown = SPECIAL_TOKENS.index("<unk>")
        self._cut = word_cutter(config)

    def encode(self, text: str) -> list[int]:
        """Cut one text into ids."""
        return [self._ids.get(token, self._unknown) for token in self._cut(text)]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many texts into ids."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Join ids into a text."""
        return "".join([self._written[id_] for id_ in ids]).removeprefix(" ")

    def extended(self, lines: Iterable[str], count: int) -> WordVocabulary:
        """Append the most frequent words that it lacks; old ids stay.

        Args:
            lines: the text, normalized.
            count: the most words to append.
        """
        counts: Counter[str] = Counter()
        for line in lines:
            counts.update(token for token in self._cut(line) if token not in self._ids)
        words = [word for word in counts if "\n" not in word]
        # Ties are broken by the characters, so that the order of the lines does not matter.
        words.sort(key=lambda word: (-counts[word], word))
        tokens = [*self.tokens, *words[:count]]
        return WordVocabulary(tokens, self._config)

    def spell(self, token: str) -> list[int]:
        """Find the id that stood for a word that this vocabulary lacks: ``<unk>``."""
        del token
        return [self._unknown]

    def to_bytes(self) -> bytes:
        r"""Return the vocabulary file: one token a line, each ended by ``\n``."""
        return write_vocabulary(self.tokens)


@final
class WordTokenizer(LearnedTokenizer):
    """A tokenizer of whole words: ``vocabulary.txt``, or ``source.txt`` and ``target.txt``.

    The most frequent words come first, equally frequent ones in the order of their characters.
    By default a text of known words comes back exactly. ``lowercase`` and ``drop_punctuation``
    lose case and punctuation on purpose.

    Source:
        Notes "Transformers", section 3.1.
    """

    _JOINT_FILE = "vocabulary.txt"

    @classmethod
    def _learn_vocabulary(cls, recipe: TokenizerRecipe, *sides: Lines) -> WordVocabulary:
        symbols = prepare_symbols(recipe)
        room = recipe.vocabulary_size - len(SPECIAL_TOKENS) - len(symbols)
        if room < 1:
            raise ConfigurationError(
                "tokenizer.vocabulary_size must leave room for a word after the special tokens "
                f"and symbols, but is {recipe.vocabulary_size}. Raise it."
            )
        cut = word_cutter(recipe)
        # Memory grows with the number of different words, not with the text.
        counts: Counter[str] = Counter()
        for line in prepare_training_lines(recipe, *sides):
            counts.update(cut(line))
        words = [
            word
            for word, count in counts.items()
            # A line break ends a line of the vocabulary file, so it cannot be a token.
            if count >= recipe.min_word_count and "\n" not in word and word not in symbols
        ]
        if not words:
            raise DataError(
                "The training text must hold words to learn a vocabulary from, but no word occurs "
                f"{recipe.min_word_count} times or more. Check the files in the recipe's data "
                "section, or lower tokenizer.min_word_count."
            )
        words.sort(key=lambda word: (-counts[word], word))
        return WordVocabulary([*SPECIAL_TOKENS, *symbols, *words[:room]], recipe)

    @classmethod
    def load(cls, config: TokenizerConfig, files: Mapping[str, bytes], where: str) -> Self:
        """Read the vocabularies from a bundle's files, as `LearnedTokenizer.load` does."""
        ids = (config.pad_id, config.unk_id, config.bos_id, config.eos_id)
        if ids != tuple(range(len(SPECIAL_TOKENS))):
            raise BundleError(
                "The ids of <pad>, <unk>, <s> and </s> must be 0, 1, 2, 3 with whole words, but "
                f"config.json says {', '.join(map(str, ids))} ({where}). Copy the whole folder "
                "again."
            )
        return super().load(config, files, where)

    @classmethod
    def _load_vocabulary(
        cls, config: TokenizerConfig, files: Mapping[str, bytes], name: str, where: str
    ) -> WordVocabulary:
        tokens = read_tokens(files, name, where)
        for number, special in enumerate(SPECIAL_TOKENS, start=1):
            found = tokens[number - 1] if number <= len(tokens) else "the end of the file"
            if found != special:
                raise BundleError(
                    f"Line {number} of a vocabulary must be {special}, but is {found!r} "
                    f"({where}/{name}:{number}). The file is damaged; copy it again."
                )
        return WordVocabulary(tokens, config)
