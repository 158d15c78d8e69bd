"""The interface of tokenizers: text to ids and back, for a source and a target side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, Literal, Protocol, Self

from pellucid.config import TokenizerConfig, TokenizerRecipe
from pellucid.config.config_json import MASKS
from pellucid.documents.placeholder_masks import Wanted, mask, mask_pair, maskable
from pellucid.errors import BundleError
from pellucid.text.normalization import normalize

SPECIAL_TOKENS = ("<pad>", "<unk>", "<s>", "</s>")

SPACE_SIGN = "\u2581"
"""SentencePiece's sign for a space."""

Lines = Callable[[], Iterable[str]]
"""Yields the lines of one side of the training text, from the start at each call.

It is a function and not a list, so that text larger than memory can be read as often as needed.
"""


class Vocabulary(Protocol):
    """One set of tokens, which turns text into ids and ids into text.

    Its text is normalized already; its ids have no start, end or padding.
    """

    @property
    def tokens(self) -> Sequence[str]:
        """Every token, in the order of the ids."""

    def encode(self, text: str) -> list[int]:
        """Cut one text into ids."""

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many texts into ids."""

    def decode(self, ids: Sequence[int]) -> str:
        """Join ids into a text."""

    def spell(self, token: str) -> list[int]:
        """Find the ids that write the text of a token that this vocabulary lacks."""

    def to_bytes(self) -> bytes:
        """Return the file that a bundle keeps."""


class LearnedVocabulary(Vocabulary, Protocol):
    """A vocabulary that was learned from text, and can learn more."""

    def extended(self, lines: Iterable[str], count: int) -> LearnedVocabulary:
        """Append at most ``count`` tokens for normalized text that it lacks; old ids stay."""


class Tokenizer(ABC):
    """Turns text into ids and back, with one vocabulary for both sides or one for each.

    Encoded texts end in ``</s>``. A target has no start token: training and decoding put
    ``config.target_start_id`` in front.

    Attributes:
        config: the bundle's tokenizer section.
    """

    def __init__(self, config: TokenizerConfig, source: Vocabulary, target: Vocabulary) -> None:
        """Make a tokenizer.

        Args:
            config: its kind, its normalization and its special ids.
            source: the source side's vocabulary.
            target: the target side's; the same object if they are joint.
        """
        self.config = config
        self._source = source
        self._target = target
        # Tokens without text.
        self._textless = frozenset((config.pad_id, config.bos_id, config.eos_id))
        self.first_ids: frozenset[int] = frozenset()
        """Tokens that a text may begin with, and that are none of its words."""

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """Return the files that a bundle keeps, by name."""

    @abstractmethod
    def extended(self, count: int, sources: Lines, targets: Lines) -> Tokenizer:
        """Append tokens for text that the vocabularies lack.

        Old tokens keep their ids, and text without unknown words or characters is cut as before.
        The result depends only on the text.

        Args:
            count: the most tokens to append to each vocabulary.
            sources: yields the source lines; a joint vocabulary reads both sides.
            targets: yields the target lines.
        """

    @property
    def source_vocabulary_size(self) -> int:
        """The number of source tokens."""
        return len(self._source.tokens)

    @property
    def target_vocabulary_size(self) -> int:
        """The number of target tokens."""
        return len(self._target.tokens)

    def normalized(self, text: str) -> str:
        """Normalize a text: the form that is cut, and that decoding returns if nothing is unknown.

        Cutting removes nothing more, except with ``drop_punctuation``.
        """
        if text.isascii() and not self.config.lowercase:
            return text  # most are
        return _prepare(text, self.config)

    @cached_property
    def has_masks(self) -> bool:
        """True if the model reads symbols in the place of placeholders such as ``%s``."""
        return {*MASKS} <= {*self.config.symbols}

    @cached_property
    def maskable(self) -> Wanted | None:
        """Tell which placeholders get a symbol: not those that are tokens, such as ``<formal>``."""
        return maskable({*self.config.symbols})

    def masked(self, source: str) -> str:
        """Write a source line as the model reads it, maybe with symbols for placeholders."""
        return mask(source, wanted=self.maskable)[0] if self.has_masks else source

    def masked_pair(self, source: str, target: str, *, words_only: bool = False) -> tuple[str, str]:
        """Write a line and its translation as the model reads and writes them.

        Args:
            source: the line.
            target: its translation.
            words_only: True to leave placeholders with white space, so that words can be counted.
        """
        if not self.has_masks:
            return source, target
        # Together, because the source decides which symbol stands for a placeholder.
        wanted = maskable({*self.config.symbols}, words_only=words_only)
        return mask_pair(source, target, wanted=wanted)

    def language_code(self, text: str) -> str:
        """Return the code at the start of a source text that names a language, such as ``>>fra<<``.

        Args:
            text: the whole text. If it is translated in parts, each part needs the code.

        Returns:
            The code, with white space before it; ``""`` for most models and texts.
        """
        del text
        return ""

    @property
    def language_codes(self) -> tuple[str, ...]:
        """The codes that a source text may begin with, such as ``>>fra<<``; none in most models."""
        return ()

    @property
    def reads_source_language(self) -> bool:
        """True if a code names both languages, such as ``>>eng_Latn:fra_Latn<<``."""
        return False

    @property
    def needs_code(self) -> bool:
        """True if no text can be translated without a code: there is no language to guess."""
        return False

    def knows_code(self, code: str) -> bool:
        """Tell whether a source text may begin with a code."""
        return code in self.language_codes

    def given_ids(self, source: str) -> tuple[int, ...]:
        """Return the tokens that the target of a source begins with, whatever the model thinks.

        Args:
            source: the source text, with the code of its languages if the model has codes.
        """
        del source
        return ()

    def leading_ids(self, target_ids: Sequence[int]) -> tuple[int, ...]:
        """Return the tokens at the start of a target that were given and not written."""
        return tuple(target_ids[:1]) if self.first_ids.intersection(target_ids[:1]) else ()

    def encode_translation(self, source: str, target: str) -> list[int]:
        """Cut the translation of a source: `given_ids`, then as `encode_target`."""
        return [*self.given_ids(source), *self.encode_target(target)]

    def encode_source(self, text: str) -> list[int]:
        """Cut a source text into ids that end in ``</s>``."""
        return [*self._source.encode(self.normalized(text)), self.config.eos_id]

    def encode_target(self, text: str) -> list[int]:
        """Cut a target text into ids that end in ``</s>``; no start token."""
        return [*self._target.encode(self.normalized(text)), self.config.eos_id]

    def encode_sources(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many source texts, as `encode_source` does, but faster."""
        return self._encode_many(self._source, texts)

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many target texts, as `encode_target` does, but faster."""
        return self._encode_many(self._target, texts)

    def decode_target(self, ids: Sequence[int]) -> str:
        """Join target ids into a text; padding, start and end tokens are dropped."""
        return self._target.decode([id_ for id_ in ids if id_ not in self._textless])

    def decode_source(self, ids: Sequence[int]) -> str:
        """Join source ids into a text, as the model reads it; special tokens are dropped."""
        return self._source.decode([id_ for id_ in ids if id_ not in self._textless])

    def source_tokens(self, ids: Sequence[int]) -> list[str]:
        """Look up the source token of each id; the special ones are ``<pad> <unk> <s> </s>``."""
        tokens = self._source.tokens
        return [tokens[id_] for id_ in ids]

    def target_tokens(self, ids: Sequence[int]) -> list[str]:
        """Look up the target token of each id; the special ones are ``<pad> <unk> <s> </s>``."""
        tokens = self._target.tokens
        return [tokens[id_] for id_ in ids]

    def vocabulary(self, side: Literal["source", "target"]) -> list[str]:
        """List every token of one side, in the order of the ids."""
        return list((self._source if side == "source" else self._target).tokens)

    def spell(self, token: str, side: Literal["source", "target"]) -> list[int]:
        """Find the ids that write a token's text, for a token of an extended vocabulary.

        Args:
            token: the token, which this vocabulary lacks.
            side: the side whose vocabulary spells it.
        """
        return (self._source if side == "source" else self._target).spell(token)

    def _encode_many(self, vocabulary: Vocabulary, texts: Sequence[str]) -> list[list[int]]:
        encoded = vocabulary.encode_many(list(map(self.normalized, texts)))
        for ids in encoded:
            ids.append(self.config.eos_id)
        return encoded


class LearnedTokenizer(Tokenizer):
    """A tokenizer learned from training text, with one file for each vocabulary."""

    _JOINT_FILE: ClassVar[str]
    """The file of a joint vocabulary."""
    _source: LearnedVocabulary
    _target: LearnedVocabulary

    @classmethod
    def learn(cls, recipe: TokenizerRecipe, sources: Lines, targets: Lines) -> Self:
        """Learn the vocabularies from training text.

        Args:
            recipe: the recipe's tokenizer section.
            sources: yields the source lines; a joint vocabulary reads both sides.
            targets: yields the target lines.

        Raises:
            ConfigurationError: the vocabulary size is impossible for this text.
            DataError: the text is empty.
        """
        # A bundle keeps only these fields; the others say how to learn.
        config = TokenizerConfig(
            **{name: getattr(recipe, name) for name in TokenizerConfig.model_fields}
        )
        if recipe.sharing == "joint":
            joint = cls._learn_vocabulary(recipe, sources, targets)
            return cls(config, joint, joint)
        return cls(
            config, cls._learn_vocabulary(recipe, sources), cls._learn_vocabulary(recipe, targets)
        )

    @classmethod
    def load(cls, config: TokenizerConfig, files: Mapping[str, bytes], where: str) -> Self:
        """Read the vocabularies from a bundle's files.

        Args:
            config: the bundle's tokenizer section.
            files: the bundle's files by name; only the tokenizer's are read.
            where: the bundle, for messages.

        Raises:
            BundleError: a file is missing, damaged, or disagrees with the configuration.
        """
        source_file, target_file = file_names(config, cls._JOINT_FILE)
        source = cls._load_vocabulary(config, files, source_file, where)
        # One object for both sides, as when it was learned.
        if target_file == source_file:
            return cls(config, source, source)
        return cls(config, source, cls._load_vocabulary(config, files, target_file, where))

    def files(self) -> dict[str, bytes]:
        """Return the vocabulary files that a bundle keeps, by name."""
        sides = (self._source.to_bytes(), self._target.to_bytes())
        return dict(zip(file_names(self.config, self._JOINT_FILE), sides, strict=True))

    def extended(self, count: int, sources: Lines, targets: Lines) -> Self:
        """Append tokens for text that the vocabularies lack, as `Tokenizer.extended` says."""
        if self.config.sharing == "joint":
            joint = self._source.extended(
                prepare_training_lines(self.config, sources, targets), count
            )
            return type(self)(self.config, joint, joint)
        return type(self)(
            self.config,
            self._source.extended(prepare_training_lines(self.config, sources), count),
            self._target.extended(prepare_training_lines(self.config, targets), count),
        )

    @classmethod
    @abstractmethod
    def _learn_vocabulary(cls, recipe: TokenizerRecipe, *sides: Lines) -> LearnedVocabulary:
        """Learn one vocabulary from the lines of one side or both."""

    @classmethod
    @abstractmethod
    def _load_vocabulary(
        cls, config: TokenizerConfig, files: Mapping[str, bytes], name: str, where: str
    ) -> LearnedVocabulary:
        """Read and check one vocabulary file."""


def file_names(config: TokenizerConfig, joint: str) -> tuple[str, str]:
    """Name the source's and the target's file, which are the same if the vocabulary is joint.

    Args:
        config: the bundle's tokenizer section.
        joint: the file of a joint vocabulary; separate ones have its ending.
    """
    if config.sharing == "joint":
        return joint, joint
    ending = joint.rpartition(".")[2]
    return f"source.{ending}", f"target.{ending}"


def _prepare(text: str, config: TokenizerConfig) -> str:
    """Bring a text into the form that is cut: lower case if asked for, then normalized."""
    return normalize(text.lower() if config.lowercase else text, config.normalization)


def prepare_symbols(config: TokenizerConfig) -> tuple[str, ...]:
    """List the texts that stay whole, in the form that is cut; the longest first."""
    symbols = {_prepare(symbol, config) for symbol in config.symbols}
    # The longest first, because a pattern takes the first alternative that fits.
    return tuple(sorted(symbols, key=lambda symbol: (-len(symbol), symbol)))


def prepare_training_lines(config: TokenizerConfig, *sides: Lines) -> Iterator[str]:
    """Yield the training lines of some sides, one side after the other, in the form that is cut."""
    for side in sides:
        for line in side():
            yield _prepare(line, config)


def take_file(files: Mapping[str, bytes], name: str, where: str) -> bytes:
    """Take one of a tokenizer's files.

    Raises:
        BundleError: it is missing.
    """
    if name not in files:
        raise BundleError(
            f"A bundle must hold {name}, which its config.json requires, but does not ({where}). "
            "Copy the whole folder again."
        )
    return files[name]


def damaged_model(name: str, model: bytes, where: str) -> BundleError:
    """Word the error of a file that SentencePiece cannot read."""
    return BundleError(
        f"{name} must be a SentencePiece model, but its {len(model)} bytes are not one "
        f"({where}/{name}). The file is damaged; copy it again."
    )


def read_tokens(files: Mapping[str, bytes], name: str, where: str) -> list[str]:
    r"""Read a vocabulary file: one token a line; only ``\n`` ends a line.

    Args:
        files: the bundle's files by name.
        name: the vocabulary file.
        where: the bundle, for messages.

    Returns:
        The tokens, in the order of the ids.

    Raises:
        BundleError: the file is missing, not UTF-8, or holds an empty or a repeated token.
    """
    place = f"{where}/{name}"
    first: dict[str, int] = {}
    # Not `splitlines`, which also cuts at carriage returns: a token may hold one.
    lines = take_file(files, name, where).removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines, start=1):
        try:
            token = line.decode("utf-8")
        except UnicodeDecodeError:
            raise BundleError(
                f"A vocabulary must be UTF-8, but a token is not ({place}:{number}). The file is "
                "damaged; copy it again."
            ) from None
        if not token:
            raise BundleError(
                f"Every line of a vocabulary must hold a token, but one is empty "
                f"({place}:{number}). The file is damaged; copy it again."
            )
        if token in first:
            raise BundleError(
                f"Every token of a vocabulary must occur once, but {token!r} of line "
                f"{first[token]} occurs again ({place}:{number}). The file is damaged; copy it "
                "again."
            )
        first[token] = number
    return list(first)


def write_vocabulary(tokens: Iterable[str]) -> bytes:
    r"""Make a vocabulary file: one token a line, each ended by ``\n``."""
    return "".join(f"{token}\n" for token in tokens).encode("utf-8")
