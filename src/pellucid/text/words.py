"""Whole-word vocabularies: every word of the training text gets an index."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Self, final

from pellucid.config import TokenizerConfig, TokenizerRecipe
from pellucid.errors import BundleError, ConfigurationError, DataError
from pellucid.text.tokenizer import (
    SPECIAL_TOKENS,
    Lines,
    Tokenizer,
    config_of,
    prepare_lines,
    read_tokens,
    write_tokens,
)

__all__ = [
    "JOINER",
    "WordTokenizer",
    "WordVocabulary",
    "bare_words",
    "join_words",
    "split_words",
]

JOINER = "\uffed"
"""Marks a token that has no space before it: ``life!`` is ``life`` and ``￭!``."""


def split_words(text: str) -> list[str]:
    r"""Cut a text into tokens, so that `join_words` gives it back exactly.

    A word is a run of letters, digits and their marks, with single apostrophes and hyphens
    inside (``Let's``, ``well-known``). Every other character is a token of its own. A token has
    one space before it, unless it starts with the `JOINER`; further spaces and all other white
    space are tokens themselves. The line is read as if it began with one space.

    Example:
        ``"Not on your life!"`` gives ``["Not", "on", "your", "life", "￭!"]``.
    """
    if not text:
        return []
    text = f" {text}"
    tokens: list[str] = []
    has_space = False
    for match in _cutter().finditer(text):
        piece = match[0]
        if piece[0].isspace():
            has_space = piece[-1] == " " and match.end() < len(text)
            spaces = piece[:-1] if has_space else piece
            tokens.extend(JOINER + space for space in spaces)
        else:
            tokens.append(piece if has_space else JOINER + piece)
            has_space = False
    return tokens


def join_words(tokens: Iterable[str]) -> str:
    """Put tokens together to the text that `split_words` cut."""
    parts = (token[1:] if _is_joined(token) else f" {token}" for token in tokens)
    return "".join(parts).removeprefix(" ")


def bare_words(text: str) -> list[str]:
    """Cut a text into words alone, without punctuation and white space.

    Example:
        ``"Not on your life!"`` gives ``["Not", "on", "your", "life"]``.
    """
    pieces = (match[0] for match in _cutter().finditer(text))
    return [
        piece
        for piece in pieces
        if not piece[0].isspace() and not unicodedata.category(piece[0]).startswith("P")
    ]


def _is_joined(token: str) -> bool:
    """Whether no space stands before a token; the joiner alone is that character itself."""
    return len(token) > 1 and token[0] == JOINER


@cache
def _cutter() -> re.Pattern[str]:
    """The pattern of white space, words, and single other characters."""
    marks = "".join(
        chr(code)
        for code in range(0x300, sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Mn", "Mc", "Me")
    )
    word = rf"(?:[^\W_]|[{marks}])+"
    # Apostrophes, hyphens and the invisible joiners of Persian and Indic scripts bind a word.
    return re.compile(rf"\s+|{word}(?:['\u2019\u2010\u2011\u200c\u200d-]{word})*|.", re.DOTALL)


@final
class WordVocabulary:
    """A list of words as a vocabulary; what is not in it becomes ``<unk>``."""

    def __init__(self, tokens: Sequence[str], *, drop_punctuation: bool) -> None:
        """Make a vocabulary.

        Args:
            tokens: the special tokens, then the words; a token's place is its id.
            drop_punctuation: cut texts with `bare_words` instead of `split_words`.
        """
        self._tokens = tuple(tokens)
        self._ids = {token: id_ for id_, token in enumerate(tokens)}
        self._unknown = SPECIAL_TOKENS.index("<unk>")
        self._cut = bare_words if drop_punctuation else split_words

    @property
    def tokens(self) -> Sequence[str]:
        """Every token; its place is its id."""
        return self._tokens

    def encode(self, text: str) -> list[int]:
        """Cut one text into ids."""
        return [self._ids.get(token, self._unknown) for token in self._cut(text)]

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many texts into ids."""
        return [self.encode(text) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        """Put ids together to a text."""
        return join_words(self._tokens[id_] for id_ in ids)

    def to_bytes(self) -> bytes:
        r"""The vocabulary file: a token a line, each line ended by ``\n``."""
        return write_tokens(self._tokens)


@final
class WordTokenizer(Tokenizer):
    """A tokenizer of whole words: ``vocabulary.txt``, or ``source.txt`` and ``target.txt``.

    By default a text whose words are all known comes back exactly. ``lowercase`` and
    ``drop_punctuation`` lose case and punctuation on purpose.

    Source:
        Notes "Transformers", section 3.1.
    """

    @classmethod
    def learn(cls, recipe: TokenizerRecipe, sources: Lines, targets: Lines) -> Self:
        """Collect the words of the training text.

        The most frequent come first, equally frequent ones in the order of their characters.
        Memory grows with the number of different words, not with the text.

        Args:
            recipe: the recipe's tokenizer section.
            sources: gives the source lines.
            targets: gives the target lines.

        Raises:
            ConfigurationError: the vocabulary size leaves no room for a word.
            DataError: there are no words.
        """
        if recipe.sharing == "joint":
            both = _collect_words(recipe, sources, targets)
            return cls(config_of(recipe), both, both)
        return cls(
            config_of(recipe), _collect_words(recipe, sources), _collect_words(recipe, targets)
        )

    @classmethod
    def load(cls, config: TokenizerConfig, files: Mapping[str, bytes], where: str) -> Self:
        """Read the words from a bundle's files.

        Args:
            config: the bundle's tokenizer section.
            files: bytes by file name; others than the tokenizer's are ignored.
            where: the bundle, for messages.

        Raises:
            BundleError: a file is missing or damaged; says the line.
        """
        expected = tuple(range(len(SPECIAL_TOKENS)))
        actual = (config.pad_id, config.unk_id, config.bos_id, config.eos_id)
        if actual != expected:
            raise BundleError(
                "The ids of <pad>, <unk>, <s> and </s> must be 0, 1, 2, 3 with whole words, but "
                f"config.json says {', '.join(map(str, actual))} ({where}). Copy the whole folder "
                "again."
            )
        if config.sharing == "joint":
            both = _load_words(config, files, "vocabulary.txt", where)
            return cls(config, both, both)
        return cls(
            config,
            _load_words(config, files, "source.txt", where),
            _load_words(config, files, "target.txt", where),
        )

    def files(self) -> dict[str, bytes]:
        """The vocabulary files that a bundle keeps, by name."""
        if self.config.sharing == "joint":
            return {"vocabulary.txt": self._source.to_bytes()}
        return {"source.txt": self._source.to_bytes(), "target.txt": self._target.to_bytes()}


def _collect_words(recipe: TokenizerRecipe, *sides: Lines) -> WordVocabulary:
    """Count the words of some sides and keep the most frequent."""
    room = recipe.vocabulary_size - len(SPECIAL_TOKENS)
    if room < 1:
        raise ConfigurationError(
            "tokenizer.vocabulary_size must leave room for a word beside the four special "
            f"tokens, but is {recipe.vocabulary_size}. Raise it."
        )
    cut = bare_words if recipe.drop_punctuation else split_words
    counts: Counter[str] = Counter()
    for line in prepare_lines(recipe, *sides):
        counts.update(cut(line))
    words = [
        word
        for word, count in counts.items()
        # A line break ends a line of the vocabulary file, so it cannot be a token.
        if count >= recipe.min_word_count and "\n" not in word
    ]
    if not words:
        raise DataError(
            "The training text must hold words to learn a vocabulary from, but none occurs "
            f"{recipe.min_word_count} times or more. Check the files in the recipe's data "
            "section, or lower tokenizer.min_word_count."
        )
    words.sort(key=lambda word: (-counts[word], word))
    return WordVocabulary(
        [*SPECIAL_TOKENS, *words[:room]], drop_punctuation=recipe.drop_punctuation
    )


def _load_words(
    config: TokenizerConfig, files: Mapping[str, bytes], name: str, where: str
) -> WordVocabulary:
    """Read and check one vocabulary file."""
    place = f"{where}/{name}"
    tokens = read_tokens(files, name, where)
    for number, special in enumerate(SPECIAL_TOKENS, start=1):
        found = tokens[number - 1] if number <= len(tokens) else "the end of the file"
        if found != special:
            raise BundleError(
                f"Line {number} of a vocabulary must be {special}, but is {found!r} "
                f"({place}:{number}). The file is damaged; copy it again."
            )
    return WordVocabulary(tokens, drop_punctuation=config.drop_punctuation)
