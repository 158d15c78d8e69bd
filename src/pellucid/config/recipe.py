"""A recipe: everything that one training run needs, in one TOML file; its reading and writing."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import tomli_w
from pydantic import (
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    PrivateAttr,
    field_validator,
    model_validator,
)

from pellucid.config.base import Several, Strict, validate
from pellucid.config.bundle import TokenizerConfig
from pellucid.config.decoding import DecodingConfig
from pellucid.config.model import NAMED_SIZES, ModelConfig, check_recurrent_recipe, named_size
from pellucid.config.parsing import ExcessError, read_toml_text
from pellucid.config.training import TrainingConfig
from pellucid.errors import ConfigurationError, suggestion
from pellucid.files import expand_home, read_bytes

SPECIAL_TOKENS = 4
"""Padding, unknown, start and end, which every vocabulary holds."""


class DataConfig(Strict):
    """The text, and the pairs to leave out of it.

    Parallel files are two files in which line i of one translates line i of the other. Files of
    pairs hold both sides: ``.tsv`` and ``.csv`` (source, target, or more columns, see ``columns``),
    ``.jsonl`` (objects with ``source`` and ``target``, or with a key for each language, also inside
    ``translation``), ``.parquet`` and ``.arrow`` (such columns). Text may be plain or packed:
    ``.gz``, ``.xz``, ``.bz2`` or ``.zst``.

    The test text is optional: nothing is learned or chosen from it. Only the data check reads it,
    to see if it is in the training text.
    """

    # Place and languages
    folder: str = ""
    """Folder that relative names start from; itself relative to the recipe's. ``$NAME`` is taken
    from the environment, and ``~/`` in any name is the home folder."""
    source_language: str = ""
    """Code of the source language, such as ``en``."""
    target_language: str = ""
    """Code of the target language, such as ``fr``."""

    # Training text
    train_source: Several[str] = ()
    """Source sides of parallel files."""
    train_target: Several[str] = ()
    """Target sides of parallel files, in the same order."""
    train: Several[str] = ()
    """Files of pairs."""
    train_weights: Several[Annotated[float, Field(gt=0, le=1000)]] = ()
    """Passes over each corpus in an epoch: 2 shows every pair twice, 0.5 a fresh half of the pairs.
    One number for each corpus, parallel files first; 1 for all unless given."""
    train_alignments: Several[str] = ()
    """Word links for ``training.guided_head``, one file for each corpus, parallel files first: in
    Pharaoh format, one pair of sentences a line."""

    # Validation text
    validation_source: Several[str] = ()
    """Source sides of parallel files."""
    validation_target: Several[str] = ()
    """Target sides of parallel files, in the same order."""
    validation: Several[str] = ()
    """Files of pairs."""

    split: NonNegativeInt = 0
    """In place of validation and test text, set aside so many pairs of the training text for each,
    at most a tenth of it: those whose sources have the smallest hashes. Training leaves out every
    pair with a source or target of theirs."""

    # Test text
    test_source: Several[str] = ()
    """Source sides of parallel files."""
    test_target: Several[str] = ()
    """Target sides of parallel files, in the same order."""
    test: Several[str] = ()
    """Files of pairs."""

    # Reading
    columns: Several[PositiveInt | str] = ()
    """The columns of source and target in files of pairs: two names of the first line of a
    ``.tsv``, such as ``["en", "fr"]``, or two numbers from 1; in ``.jsonl`` two keys, with a dot
    between nested ones. The first line of a ``.tsv`` is left out if it holds the names."""
    on_bad_line: Literal["stop", "skip"] = "stop"
    """A line that cannot be used, because a column or key is missing or it is not UTF-8, stops the
    training with a list of such lines, or is left out and counted."""
    cut_by: Literal["none", "bpe", "sentencepiece", "wordpiece", "joiner"] = "none"
    """Text that was cut into subwords before is joined to words as it is read: ``bpe``
    (``nu@@ mber``), ``sentencepiece`` (``▁num ber``), ``wordpiece`` (``num ##ber``), ``joiner``
    (``num ￭ber``). The model then reads and writes words."""

    # Pairs to leave out
    max_length: PositiveInt = 256
    """Leave out a pair if a side has more tokens than this, ``</s>`` included."""
    max_length_ratio: PositiveFloat = 9.0
    """Leave out a pair if a side has more than this many times the tokens of the other."""
    pad_to: NonNegativeInt = 0
    """Pad every sequence to this many tokens and leave out longer pairs; 0 pads to the longest of
    a batch. All batches then have one shape, at the cost of computing the padding."""

    _whole: DataConfig | None = PrivateAttr(default=None)

    @property
    def whole(self) -> DataConfig:
        """The section that this is a part of; the split is that of its text."""
        return self._whole or self

    def part(self, **names: Any) -> DataConfig:
        """Return this section with other names of files."""
        part = self.model_copy(update=names)
        part._whole = self.whole
        return part

    def names(self, split: str) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
        """Name the files of a split: pairs of parallel files, and files of both sides.

        With ``split``, validation and test text are in those of the training text.
        """
        key = "train" if self.split else split
        sides = zip(getattr(self, f"{key}_source"), getattr(self, f"{key}_target"), strict=True)
        return list(sides), getattr(self, key)

    @field_validator("*")
    @classmethod
    def _expand_home(cls, value: Any) -> Any:
        """Let ``~/`` stand for the user's home folder in the names of files."""
        return expand_home(value)

    @model_validator(mode="after")
    def _check_sides(self) -> DataConfig:
        for split in ("train", "validation", "test"):
            both = getattr(self, split)
            source = getattr(self, f"{split}_source")
            target = getattr(self, f"{split}_target")
            if len(source) != len(target):
                raise ValueError(
                    f"{split}_source and {split}_target must name equally many files, but name "
                    f"{len(source)} and {len(target)}"
                )
            is_split_off = self.split > 0 and split != "train"
            if is_split_off and (both or source):
                raise ValueError(
                    f"split takes the {split} text from the training text, but {split} names files "
                    "too: remove one of them"
                )
            if not both and not source and split != "test" and not is_split_off:
                raise ValueError(
                    f"No files were given for {split}: name them in {split}_source and "
                    f"{split}_target, or in {split}"
                    + ", or let split = 1000 set it aside"
                    * (split == "validation")
                )
        if len(self.columns) not in (0, 2):
            raise ValueError(
                "columns must name two columns, those of source and target, but names "
                f"{len(self.columns)}"
            )
        num_corpora = len(self.train_source) + len(self.train)
        for key, what in (("train_weights", "number"), ("train_alignments", "file")):
            given = getattr(self, key)
            if given and len(given) != num_corpora:
                raise ValueError(
                    f"{key} must hold one {what} for each of the {num_corpora} training corpora, "
                    f"but holds {len(given)}"
                )
        if self.split and self.train_alignments:
            raise ValueError(
                "split leaves out lines that train_alignments would count: name validation files"
            )
        return self


class TokenizerRecipe(TokenizerConfig):
    """The tokenizer to learn: what the bundle will store, and how to get there."""

    # Learning
    vocabulary_size: int = Field(default=8000, gt=0, le=2**24)
    """Tokens of each vocabulary, the four special tokens included. Of whole words the most frequent
    are kept."""
    model_type: Literal["bpe", "unigram"] = "bpe"
    """SentencePiece: byte-pair encoding, or a unigram model."""
    byte_fallback: bool = True
    """SentencePiece: write unknown characters as bytes."""
    character_coverage: float = Field(default=1.0, ge=0.98, le=1.0)
    """SentencePiece: share of all characters in the text that the vocabulary must cover."""
    split_by_script: bool = True
    """SentencePiece: never put letters into one piece with digits or punctuation, nor letters of
    two scripts; digits and punctuation may share one (``3.``). Without it, text that was tokenized
    before becomes shorter: ``d&apos;`` is one piece instead of four."""
    max_training_lines: int = Field(default=5_000_000, ge=1000)
    """SentencePiece: learn from a sample of this many lines if there are more."""
    min_word_count: PositiveInt = 1
    """Whole words: leave out words that occur less often."""

    @model_validator(mode="after")
    def _check_recipe(self) -> TokenizerRecipe:
        of_sentencepiece = (
            *("model_type", "byte_fallback", "character_coverage", "split_by_script"),
            "max_training_lines",
        )
        for name in of_sentencepiece if self.kind == "words" else ("min_word_count",):
            value, default = getattr(self, name), type(self).model_fields[name].default
            if value != default:
                raise ValueError(
                    f"tokenizer.{name} must be left out (it has no effect) when tokenizer.kind is "
                    f"{self.kind!r}, but is {value!r}"
                )
        if self.kind == "sentencepiece" and self.vocabulary_size <= SPECIAL_TOKENS:
            raise ValueError(
                f"tokenizer.vocabulary_size must be more than the {SPECIAL_TOKENS} special tokens, "
                f"but is {self.vocabulary_size}"
            )
        # Imported models have other ids, but nothing new is learned with them.
        ids = (self.pad_id, self.unk_id, self.bos_id, self.eos_id)
        if ids != (0, 1, 2, 3) or self.target_start_id not in ids:
            raise ValueError(
                "tokenizer.pad_id, unk_id, bos_id, eos_id must be 0, 1, 2, 3 in a recipe and "
                f"target_start_id one of them, but are {', '.join(map(str, ids))} and "
                f"{self.target_start_id}"
            )
        return self


class StartConfig(Strict):
    """The trained model that training starts from, as ``--from`` names it."""

    model: str = ""
    """Bundle or run folder, relative to the folder that the command is given in; empty for random
    weights."""
    model_hash: str = ""
    """That model's hash, so that a run is not resumed from another one."""
    new_tokens: int = Field(default=0, ge=0, le=2**20)
    """Add up to this many tokens to each of the model's vocabularies, for what the training text
    has and they lack: whole words, or pieces for characters. Old tokens and their weights stay."""

    @model_validator(mode="after")
    def _check_new_tokens(self) -> StartConfig:
        if self.new_tokens and not self.model:
            raise ValueError(
                "start.new_tokens needs a model to start from (--from, start.model), but none was "
                "given: a new vocabulary is as large as tokenizer.vocabulary_size"
            )
        return self


class Recipe(Strict):
    """The whole recipe.

    ``model.size`` names a ready-made size (``tiny`` unless given) that the other keys change.
    """

    short_cuts: ClassVar[Mapping[str, tuple[str, ...]]] = {"model": ("size",)}

    data: DataConfig
    """The text."""
    tokenizer: TokenizerRecipe = Field(default_factory=TokenizerRecipe)
    """The tokenizer to learn."""
    model: ModelConfig
    """The model to train."""
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    """The course of training."""
    start: StartConfig = Field(default_factory=StartConfig)
    """The model to start from."""
    decoding: DecodingConfig = Field(default_factory=DecodingConfig)
    """The bundle's defaults of a translation."""

    @model_validator(mode="before")
    @classmethod
    def _expand_size(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        model = values.get("model", {})
        if not isinstance(model, dict):
            return values
        model = dict(model)
        size = model.pop("size", "tiny")
        if not isinstance(size, str) or size not in NAMED_SIZES:
            raise ValueError(
                f"model.size must be a known size, but is {size!r}. "
                + suggestion(str(size), NAMED_SIZES).removesuffix(".")
            )
        sizes = named_size(size, model.get("architecture"))
        return {**values, "model": {**sizes, **model}}

    @model_validator(mode="after")
    def _check_together(self) -> Recipe:
        if self.model.is_recurrent:
            check_recurrent_recipe(self.training, self.decoding)
        if self.tokenizer.sharing == "separate" and self.model.tied_embeddings == "all":
            raise ValueError(
                "model.tied_embeddings must be 'decoder' or 'none' with separate vocabularies, "
                "but is 'all'"
            )
        if self.tokenizer.sharing == "separate" and self.training.both_directions_steps:
            raise ValueError(
                "training.both_directions_steps must be 0 unless tokenizer.sharing is 'joint', "
                f"but is {self.training.both_directions_steps}"
            )
        longest = min(self.model.max_source_length, self.model.max_target_length)
        for name in ("max_length", "pad_to"):
            if (value := getattr(self.data, name)) > longest:
                raise ValueError(
                    f"data.{name} must be at most model.max_source_length and "
                    f"model.max_target_length ({longest}), but is {value}"
                )
        return self

    @model_validator(mode="after")
    def _check_guided_head(self) -> Recipe:
        guided = self.training.guided_head
        if bool(guided) != bool(self.data.train_alignments):
            given, missing = "training.guided_head", "data.train_alignments"
            if not guided:
                given, missing = missing, given
            raise ValueError(f"{given} needs {missing}, but {missing} was not given")
        if not guided:
            return self
        if not self.model.has_attention:
            raise ValueError(
                "training.guided_head must be left out when model.recurrent_attention is 'none' "
                f"(there is no attention to guide), but is {list(guided)}"
            )
        for name, index, count in (
            ("layer", guided[0], len(self.model.attending_layers)),
            ("head", guided[1], self.model.num_heads),
        ):
            if index >= count:
                raise ValueError(
                    f"The {name} of training.guided_head must be from 0 to {count - 1}, "
                    f"but is {index}"
                )
        if self.training.both_directions_steps:
            raise ValueError(
                "training.both_directions_steps must be 0 with training.guided_head (links lead "
                f"one way), but is {self.training.both_directions_steps}"
            )
        if self.training.subword_samples:
            raise ValueError(
                "training.subword_samples must be 0 with training.guided_head (links belong to "
                f"one segmentation), but is {self.training.subword_samples}"
            )
        return self


def parse_toml(data: bytes, where: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        ConfigurationError: the bytes are not UTF-8 or not TOML, with the line.
    """
    try:
        return read_toml_text(data.decode("utf-8-sig"))  # editors may write a byte-order mark
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"A recipe must be UTF-8 text, but byte {error.start + 1} is not ({where})."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"A recipe must be TOML, but is not: {error} ({where}).") from None
    except ExcessError as error:
        raise ConfigurationError(
            f"A recipe must hold settings, but {error} ({where}). Correct it there."
        ) from None


def load_recipe(path: Path, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe file and put ``section.key=value`` changes on top.

    Raises:
        ConfigurationError: one sentence with the file, the dotted key and the nearest name.
        InputFileNotFoundError: the file does not exist.
    """
    values = parse_toml(read_bytes(path), str(path))
    return validate(Recipe, apply_overrides(values, overrides), str(path))


def apply_overrides(values: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Put ``section.key=value`` changes on top of a nested mapping.

    A value is read as TOML if it is TOML (``3``, ``true``, ``["a", "b"]``), otherwise as text.

    Raises:
        ConfigurationError: an override does not have that form, or changes a key for the second
            time.
    """
    texts: dict[tuple[str, str], str] = {}
    changed = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in values.items()
    }
    for override in overrides:
        key, separator, text = override.partition("=")
        section, dot, name = key.strip().partition(".")
        if not separator or not dot or not section or not name:
            raise ConfigurationError(
                f"A change must be written section.key=value, but is {override!r} (--set). "
                "For example: --set training.max_steps=2000."
            )
        table = changed.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigurationError(f"{section!r} must be a section, but is a value (--set).")
        if (section, name) in texts:
            raise ConfigurationError(
                f"{section}.{name} must be set once, but is set to {texts[section, name]!r} and to "
                f"{text.strip()!r} (--set). Leave one out."
            )
        texts[section, name] = text.strip()
        try:
            table[name] = _parse_value(text.strip())
        except ExcessError as error:
            raise ConfigurationError(
                f"{section}.{name} must be a setting, but {error} (--set). Correct it."
            ) from None
    return changed


def _parse_value(text: str) -> Any:
    try:
        return read_toml_text(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def to_toml(section: Strict) -> str:
    """Write a section as TOML, with every default spelled out."""
    return tomli_w.dumps(section.model_dump(mode="json"))
