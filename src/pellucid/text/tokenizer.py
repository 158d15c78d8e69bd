"""What every tokenizer can do: text to ids and back, for a source and a target side."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, Protocol, Self

from pellucid.config import TokenizerConfig, TokenizerRecipe
from pellucid.errors import BundleError
from pellucid.text.normalization import normalize

__all__ = [
    "SPACE_SIGN",
    "SPECIAL_TOKENS",
    "LearnedTokenizer",
    "Lines",
    "Tokenizer",
    "Vocabulary",
    "damaged_model",
    "file_names",
    "prepare_lines",
    "read_tokens",
    "take_file",
    "write_tokens",
]

SPECIAL_TOKENS = ("<pad>", "<unk>", "<s>", "</s>")

SPACE_SIGN = "\u2581"
"""SentencePiece's sign for a space."""

Lines = Callable[[], Iterable[str]]
"""Gives the lines of one side of the training text, afresh at each call.

A function rather than a list, so that text larger than memory can be read as often as needed.
"""


class Vocabulary(Protocol):
    """One set of tokens, with both directions between text and ids.

    Text comes normalized; ids go without start, end and padding.
    """

    @property
    def tokens(self) -> Sequence[str]:
        """Every token; its place is its id."""

    def encode(self, text: str) -> list[int]:
        """Cut one text into ids."""

    def encode_many(self, texts: Sequence[str]) -> list[list[int]]:
        """Cut many texts into ids."""

    def decode(self, ids: Sequence[int]) -> str:
        """Put ids together to a text."""

    def to_bytes(self) -> bytes:
        """The file that a bundle keeps."""


class Tokenizer(ABC):
    """Text in, ids out, and back; one vocabulary for both sides or one for each.

    Encoded texts end in ``</s>``. A target has no start token: training and decoding put
    ``config.target_start_id`` in front.

    Attributes:
        config: what a bundle says of the tokenizer.
    """

    def __init__(self, config: TokenizerConfig, source: Vocabulary, target: Vocabulary) -> None:
        """Put a tokenizer together.

        Args:
            config: which kind it is, its normalization and its special ids.
            source: the source side's vocabulary.
            target: the target side's; the same object where they are joint.
        """
        self.config = config
        self._source = source
        self._target = target
        self._silent = frozenset((config.pad_id, config.bos_id, config.eos_id))

    @abstractmethod
    def files(self) -> dict[str, bytes]:
        """The files that a bundle keeps, by name."""

    @property
    def source_vocabulary_size(self) -> int:
        """How many source tokens there are."""
        return len(self._source.tokens)

    @property
    def target_vocabulary_size(self) -> int:
        """How many target tokens there are."""
        return len(self._target.tokens)

    def normalized(self, text: str) -> str:
        """The text as it is cut, and as decoding gives it back where nothing is unknown.

        Only ``drop_punctuation`` takes away more than this.
        """
        return _prepare(text, self.config)

    def language_code(self, text: str) -> str:
        """What a source text begins with that holds for all of it, as ``>>fra<<``; mostly nothing.

        Args:
            text: the whole text; a part of it needs the same before it.
        """
        del text
        return ""

    def encode_source(self, text: str) -> list[int]:
        """Cut a source text into ids that end in ``</s>``."""
        return [*self._source.encode(self.normalized(text)), self.config.eos_id]

    def encode_target(self, text: str) -> list[int]:
        """Cut a target text into ids that end in ``</s>``; no start token."""
        return [*self._target.encode(self.normalized(text)), self.config.eos_id]

    def encode_sources(self, texts: Sequence[str]) -> list[list[int]]:
        """Do as `encode_source`, for many texts at once, which is faster."""
        return self._encode_many(self._source, texts)

    def encode_targets(self, texts: Sequence[str]) -> list[list[int]]:
        """Do as `encode_target`, for many texts at once, which is faster."""
        return self._encode_many(self._target, texts)

    def decode_source(self, ids: Sequence[int]) -> str:
        """Put source ids together to a text; padding, start and end say nothing."""
        return self._source.decode([id_ for id_ in ids if id_ not in self._silent])

    def decode_target(self, ids: Sequence[int]) -> str:
        """Put target ids together to a text; padding, start and end say nothing."""
        return self._target.decode([id_ for id_ in ids if id_ not in self._silent])

    def source_tokens(self, ids: Sequence[int]) -> list[str]:
        """The source token of each id; special ones as ``<pad> <unk> <s> </s>``."""
        return [self._source.tokens[id_] for id_ in ids]

    def target_tokens(self, ids: Sequence[int]) -> list[str]:
        """The target token of each id; special ones as ``<pad> <unk> <s> </s>``."""
        return [self._target.tokens[id_] for id_ in ids]

    def vocabulary(self, side: Literal["source", "target"]) -> list[str]:
        """Every token of one side, in the order of the ids."""
        return list((self._source if side == "source" else self._target).tokens)

    def _encode_many(self, vocabulary: Vocabulary, texts: Sequence[str]) -> list[list[int]]:
        encoded = vocabulary.encode_many([self.normalized(text) for text in texts])
        return [[*ids, self.config.eos_id] for ids in encoded]


class LearnedTokenizer(Tokenizer):
    """A tokenizer that is learned from training text and keeps one file for each vocabulary."""

    _JOINT_FILE: ClassVar[str]
    """The file of a joint vocabulary."""

    @classmethod
    def learn(cls, recipe: TokenizerRecipe, sources: Lines, targets: Lines) -> Self:
        """Learn the vocabularies from training text.

        Args:
            recipe: the recipe's tokenizer section.
            sources: gives the source lines.
            targets: gives the target lines.

        Raises:
            ConfigurationError: the vocabulary size is impossible for this text.
            DataError: the text is empty.
        """
        # What a bundle keeps of the recipe: the rest only says how to learn.
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
            files: bytes by file name; others than the tokenizer's are ignored.
            where: the bundle, for messages.

        Raises:
            BundleError: a file is missing, damaged, or disagrees with the configuration.
        """
        source_file, target_file = file_names(config, cls._JOINT_FILE)
        source = cls._load_vocabulary(config, files, source_file, where)
        if target_file == source_file:
            return cls(config, source, source)
        return cls(config, source, cls._load_vocabulary(config, files, target_file, where))

    def files(self) -> dict[str, bytes]:
        """The vocabulary files that a bundle keeps, by name."""
        sides = (self._source.to_bytes(), self._target.to_bytes())
        return dict(zip(file_names(self.config, self._JOINT_FILE), sides, strict=True))

    @classmethod
    @abstractmethod
    def _learn_vocabulary(cls, recipe: TokenizerRecipe, *sides: Lines) -> Vocabulary:
        """Learn one vocabulary from the lines of one side or both."""

    @classmethod
    @abstractmethod
    def _load_vocabulary(
        cls, config: TokenizerConfig, files: Mapping[str, bytes], name: str, where: str
    ) -> Vocabulary:
        """Read and check one vocabulary file."""


def file_names(config: TokenizerConfig, joint: str) -> tuple[str, str]:
    """Name the source's and the target's file: twice the same for a joint vocabulary.

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


def prepare_lines(recipe: TokenizerRecipe, *sides: Lines) -> Iterator[str]:
    """The training lines of some sides, one side after the other, in the form that is cut."""
    for side in sides:
        for line in side():
            yield _prepare(line, recipe)


def take_file(files: Mapping[str, bytes], name: str, where: str) -> bytes:
    """Take one of a tokenizer's files.

    Raises:
        BundleError: it is not there.
    """
    if name not in files:
        raise BundleError(
            f"A bundle must hold {name} as its config.json says, but does not ({where}). "
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
    """Read a vocabulary file: one token a line, ended by a line feed alone.

    Args:
        files: bytes by file name.
        name: which of them.
        where: the bundle, for messages.

    Returns:
        The tokens; a token's place is its id.

    Raises:
        BundleError: the file is missing, not UTF-8, or holds an empty or a repeated token.
    """
    place = f"{where}/{name}"
    first: dict[str, int] = {}
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
                f"Every token of a vocabulary must stand there once, but {token!r} of line "
                f"{first[token]} comes again ({place}:{number}). The file is damaged; copy it "
                "again."
            )
        first[token] = number
    return list(first)


def write_tokens(tokens: Iterable[str]) -> bytes:
    r"""Write a vocabulary file: a token a line, each line ended by ``\n``."""
    return "".join(f"{token}\n" for token in tokens).encode("utf-8")
