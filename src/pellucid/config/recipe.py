"""A recipe: everything one training run needs, in one TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import (
    Field,
    NonNegativeFloat,
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
from pellucid.errors import suggestion

__all__ = ["DataConfig", "Recipe", "TokenizerRecipe", "TrainingConfig"]


class DataConfig(Strict):
    """Where the text is, and which pairs are left out.

    Either ``train_source`` and ``train_target`` name parallel files (line i of one translates
    line i of the other), or ``train`` names files that hold both sides: ``.tsv`` (source, tab,
    target) or ``.jsonl`` (objects with ``source`` and ``target``); all plain or ``.gz``. The
    same for ``validation``. Relative names start from ``folder``, and ``folder`` from the
    recipe's own place. A folder written ``$NAME`` is taken from the environment.
    """

    folder: str = ""
    source_language: str = ""
    target_language: str = ""
    train_source: tuple[str, ...] = ()
    train_target: tuple[str, ...] = ()
    train: tuple[str, ...] = ()
    validation_source: tuple[str, ...] = ()
    validation_target: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    max_length: PositiveInt = 256
    max_length_ratio: PositiveFloat = 9.0
    pad_to: NonNegativeInt = 0

    @field_validator(
        "train_source",
        "train_target",
        "train",
        "validation_source",
        "validation_target",
        "validation",
        mode="before",
    )
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        if isinstance(value, str):
            return (value,)
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _check_sides(self) -> DataConfig:
        for split in ("train", "validation"):
            both = getattr(self, split)
            source = getattr(self, f"{split}_source")
            target = getattr(self, f"{split}_target")
            if len(source) != len(target):
                raise ValueError(
                    f"{split}_source and {split}_target must name equally many files, but name "
                    f"{len(source)} and {len(target)}"
                )
            if not both and not source:
                raise ValueError(
                    f"{split}_source and {split}_target (or {split}) must name the files of "
                    f"the {split} text, but name none"
                )
        return self


class TokenizerRecipe(TokenizerConfig):
    """How to learn the tokenizer: what the bundle stores, and how to get there.

    ``vocabulary_size`` is per vocabulary, the four special tokens included; of whole words the
    most frequent are kept. ``model_type``, ``byte_fallback``, ``character_coverage`` and
    ``max_training_lines`` (learn from a sample of more lines than this) belong to SentencePiece,
    ``min_word_count`` to whole words.
    """

    vocabulary_size: PositiveInt = 8000
    model_type: Literal["bpe", "unigram"] = "bpe"
    byte_fallback: bool = True
    character_coverage: float = Field(default=1.0, gt=0.9, le=1.0)
    max_training_lines: int = Field(default=5_000_000, ge=1000)
    min_word_count: PositiveInt = 1

    @model_validator(mode="after")
    def _check_recipe(self) -> TokenizerRecipe:
        without_effect = {
            "sentencepiece": ("min_word_count",),
            "words": ("model_type", "byte_fallback", "character_coverage", "max_training_lines"),
        }[self.kind]
        for name in without_effect:
            value, default = getattr(self, name), type(self).model_fields[name].default
            if value != default:
                raise ValueError(
                    f"tokenizer.{name} must be left out (it has no effect) when tokenizer.kind is "
                    f"{self.kind!r}, but is {value!r}"
                )
        ids = (self.pad_id, self.unk_id, self.bos_id, self.eos_id)
        if ids != (0, 1, 2, 3) or self.target_start_id not in ids:
            raise ValueError(
                "tokenizer.pad_id, unk_id, bos_id, eos_id must be 0, 1, 2, 3 in a recipe and "
                f"target_start_id one of them, but are {', '.join(map(str, ids))} and "
                f"{self.target_start_id}"
            )
        return self


class TrainingConfig(Strict):
    """How to train: the paper's settings unless a recipe says otherwise.

    The learning rate rises linearly to ``learning_rate`` over ``warmup_steps``. Then it falls
    with the inverse square root of the step, the paper's ``schedule``, or ``linear``ly, to zero
    at ``max_steps``. ``learning_rate = 0`` asks for the paper's peak,
    ``d_model^-0.5 * warmup_steps^-0.5``.

    Training ends at the first of ``max_steps``, ``max_minutes`` (0: no limit) and ``patience``
    validations without a better BLEU (0: never).

    Source:
        Vaswani et al. 2017, section 5.
    """

    seed: NonNegativeInt = 1
    max_tokens_per_batch: PositiveInt = 4096
    learning_rate: NonNegativeFloat = 0.0
    warmup_steps: PositiveInt = 4000
    schedule: Literal["inverse_square_root", "linear"] = "inverse_square_root"
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.98, ge=0, lt=1)
    epsilon: PositiveFloat = 1e-9
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    dropout: float = Field(default=0.1, ge=0, lt=1)
    max_gradient_norm: NonNegativeFloat = 0.0
    max_steps: PositiveInt = 100_000
    max_minutes: NonNegativeFloat = 0.0
    patience: NonNegativeInt = 0
    validate_every: PositiveInt = 1000
    log_every: PositiveInt = 50
    keep_checkpoints: int = Field(default=2, ge=1)


class Recipe(Strict):
    """The whole recipe.

    ``model.size`` names a ready-made size (``tiny`` unless given) that the other keys change.
    """

    short_cuts: ClassVar[Mapping[str, tuple[str, ...]]] = {"model": ("size",)}

    data: DataConfig
    tokenizer: TokenizerRecipe = Field(default_factory=TokenizerRecipe)
    model: ModelConfig
    training: TrainingConfig = Field(default_factory=TrainingConfig)
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
        longest = min(self.model.max_source_length, self.model.max_target_length)
        if self.data.max_length > longest:
            raise ValueError(
                "data.max_length must be at most the model's own limits, but is "
                f"{self.data.max_length} beside {longest}"
            )
        return self
