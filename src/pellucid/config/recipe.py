"""A recipe: everything one training run needs, in one TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    field_validator,
    model_validator,
)

from pellucid.config.base import Strict
from pellucid.config.decoding import DecodingConfig
from pellucid.config.model import NAMED_SIZES, ModelConfig
from pellucid.config.tokenizer import TokenizerConfig
from pellucid.config.training import TrainingConfig
from pellucid.errors import suggestion

__all__ = ["DataConfig", "Recipe", "StartConfig", "TokenizerRecipe"]

SPECIAL_TOKENS = 4
"""Padding, unknown, start and end, which every vocabulary holds."""


class DataConfig(Strict):
    """Where the text is, and which pairs are left out.

    Either ``train_source`` and ``train_target`` name parallel files (line i of one translates
    line i of the other), or ``train`` names files that hold both sides: ``.tsv`` (source, tab,
    target) or ``.jsonl`` (objects with ``source`` and ``target``); all plain or ``.gz``. The
    same for ``validation``. Relative names start from ``folder``, and ``folder`` from the
    recipe's own place. A folder written ``$NAME`` is taken from the environment. ``test_source``,
    ``test_target`` and ``test`` may name the text that the model will be measured on: nothing is
    learned or chosen from it, the data check alone looks whether it is in the training text.

    ``train_weights`` says, one number for each training corpus (the pairs of files first, then
    those of ``train``), how many times an epoch passes over it: 2 shows every pair twice, 0.5 a
    fresh half of the pairs. Without it every corpus has 1.

    ``train_alignments`` names, one for each training corpus in the same order, files of word links
    in the Pharaoh format, a line a pair, for ``training.guided_head``.

    A pair is left out where a side has more than ``max_length`` tokens, ``</s>`` included, or
    ``max_length_ratio`` times the tokens of the other. With ``pad_to`` above 0 every sequence is
    padded to so many tokens, and longer pairs are left out: one shape for all batches, at the cost
    of computing the padding.
    """

    folder: str = ""
    source_language: str = ""
    target_language: str = ""
    train_source: tuple[str, ...] = ()
    train_target: tuple[str, ...] = ()
    train: tuple[str, ...] = ()
    train_weights: tuple[Annotated[float, Field(gt=0, le=1000)], ...] = ()
    train_alignments: tuple[str, ...] = ()
    validation_source: tuple[str, ...] = ()
    validation_target: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    test_source: tuple[str, ...] = ()
    test_target: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    max_length: PositiveInt = 256
    max_length_ratio: PositiveFloat = 9.0
    pad_to: NonNegativeInt = 0

    @field_validator(
        "train_source",
        "train_target",
        "train",
        "train_weights",
        "train_alignments",
        "validation_source",
        "validation_target",
        "validation",
        "test_source",
        "test_target",
        "test",
        mode="before",
    )
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        if isinstance(value, str):
            return (value,)
        return tuple(value) if isinstance(value, list) else value

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
            if not both and not source and split != "test":
                raise ValueError(
                    f"{split}_source and {split}_target (or {split}) must name the files of "
                    f"the {split} text, but name none"
                )
        num_corpora = len(self.train_source) + len(self.train)
        for key, what in (("train_weights", "number"), ("train_alignments", "file")):
            given = getattr(self, key)
            if given and len(given) != num_corpora:
                raise ValueError(
                    f"{key} must hold one {what} for each of the {num_corpora} training corpora, "
                    f"but holds {len(given)}"
                )
        return self


class TokenizerRecipe(TokenizerConfig):
    """How to learn the tokenizer: what the bundle stores, and how to get there.

    ``vocabulary_size`` is per vocabulary, the four special tokens included; of whole words the
    most frequent are kept. ``model_type``, ``byte_fallback``, ``character_coverage``,
    ``split_by_script`` and ``max_training_lines`` (learn from a sample of more lines than this)
    belong to SentencePiece, ``min_word_count`` to whole words. With ``split_by_script`` letters,
    digits and punctuation never share a piece; text that was tokenized before is cut shorter
    without: ``d&apos;`` is one piece then, and four with it.
    """

    vocabulary_size: int = Field(default=8000, gt=0, le=2**24)
    model_type: Literal["bpe", "unigram"] = "bpe"
    byte_fallback: bool = True
    character_coverage: float = Field(default=1.0, ge=0.98, le=1.0)
    split_by_script: bool = True
    max_training_lines: int = Field(default=5_000_000, ge=1000)
    min_word_count: PositiveInt = 1

    @model_validator(mode="after")
    def _check_recipe(self) -> TokenizerRecipe:
        without_effect = {
            "sentencepiece": ("min_word_count",),
            "words": (
                "model_type",
                "byte_fallback",
                "character_coverage",
                "split_by_script",
                "max_training_lines",
            ),
        }[self.kind]
        for name in without_effect:
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
        ids = (self.pad_id, self.unk_id, self.bos_id, self.eos_id)
        if ids != (0, 1, 2, 3) or self.target_start_id not in ids:
            raise ValueError(
                "tokenizer.pad_id, unk_id, bos_id, eos_id must be 0, 1, 2, 3 in a recipe and "
                f"target_start_id one of them, but are {', '.join(map(str, ids))} and "
                f"{self.target_start_id}"
            )
        return self


class StartConfig(Strict):
    """The trained model that training starts from, as ``--from`` names it; empty: random weights.

    A relative name starts from the folder that the command is given in. ``model_hash`` is that
    model's, so that a run is not continued from another one.
    """

    model: str = ""
    model_hash: str = ""


class Recipe(Strict):
    """The whole recipe.

    ``model.size`` names a ready-made size (``tiny`` unless given) that the other keys change.
    """

    short_cuts: ClassVar[Mapping[str, tuple[str, ...]]] = {"model": ("size",)}

    data: DataConfig
    tokenizer: TokenizerRecipe = Field(default_factory=TokenizerRecipe)
    model: ModelConfig
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    start: StartConfig = Field(default_factory=StartConfig)
    decoding: DecodingConfig = Field(default_factory=DecodingConfig)

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
        return {**values, "model": {**NAMED_SIZES[size], **model}}

    @model_validator(mode="after")
    def _check_together(self) -> Recipe:
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
        if self.data.max_length > longest:
            raise ValueError(
                "data.max_length must be at most the model's own limits, but is "
                f"{self.data.max_length} beside {longest}"
            )
        if self.data.pad_to > longest:
            raise ValueError(
                "data.pad_to must be at most the model's own limits, but is "
                f"{self.data.pad_to} beside {longest}"
            )
        return self

    @model_validator(mode="after")
    def _check_guided_head(self) -> Recipe:
        guided = self.training.guided_head
        if bool(guided) != bool(self.data.train_alignments):
            given, missing = "training.guided_head", "data.train_alignments"
            if not guided:
                given, missing = missing, given
            raise ValueError(f"{missing} must be set beside {given}, but is not")
        if not guided:
            return self
        for name, index, count in (
            ("layer", guided[0], self.model.num_decoder_layers),
            ("head", guided[1], self.model.num_heads),
        ):
            if index >= count:
                raise ValueError(
                    f"training.guided_head must be a layer and a head that there are, but {name} "
                    f"{index} is not among 0 to {count - 1}"
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
