"""A recipe: everything that one training run needs, in one TOML file; its reading and writing."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

import tomli_w
from pydantic import (
    Field,
    PositiveInt,
    ValidationError,
    model_validator,
)

from pellucid.config.base import Strict, describe_problem, validate
from pellucid.config.config_json import MASKS, TokenizerConfig
from pellucid.config.data import DataConfig
from pellucid.config.decoding import DecodingConfig
from pellucid.config.model import NAMED_SIZES, ModelConfig, named_size
from pellucid.config.parsing import ExcessError, read_toml_text
from pellucid.config.training import TrainingConfig
from pellucid.errors import ConfigurationError, suggestion
from pellucid.files import endings, read_bytes

SPECIAL_TOKENS = 4
"""Padding, unknown, start and end, which every vocabulary holds."""


_ROUNDING = "its states would add up the rounding of every step"
_NO_EFFECT = "it drops only inputs, states between layers and outputs"


class TokenizerRecipe(TokenizerConfig):
    """The tokenizer to learn: what the bundle will store, and how to get there."""

    written_by_programs: ClassVar = frozenset(
        {"pad_id", "unk_id", "bos_id", "eos_id", "target_start_id", "languages", "first_token"}
    )

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
            value = getattr(self, name)
            default = type(self).model_fields[name].default
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
    """The trained model that training starts from, as ``--start`` names it."""

    written_by_programs: ClassVar = frozenset({"model_hash"})

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
                "start.new_tokens needs a model to start from (--start, start.model), but none was "
                "given: a new vocabulary is as large as tokenizer.vocabulary_size"
            )
        return self


def _with_masks(values: dict[str, Any]) -> dict[str, Any]:
    """Give the tokenizer the symbols of ``data.placeholders = "masks"``."""
    data = values.get("data")
    tokenizer = values.get("tokenizer", {})
    if not (isinstance(data, dict) and data.get("placeholders") == "masks"):
        return values
    # What is no section is reported where sections are checked.
    if not isinstance(tokenizer, dict):
        return values
    own = tokenizer.get("symbols", ())
    symbols = [own] if isinstance(own, str) else [*own]
    return {**values, "tokenizer": {**tokenizer, "symbols": [*dict.fromkeys([*symbols, *MASKS])]}}


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
                # `validate` ends the sentence itself.
                + suggestion(str(size), NAMED_SIZES).removesuffix(".")
            )
        sizes = named_size(size, model.get("architecture"))
        return {**_with_masks(values), "model": {**sizes, **model}}

    @model_validator(mode="after")
    def _check_together(self) -> Recipe:
        if self.model.is_recurrent:
            _check_recurrent(self.training, self.decoding)
        if self.model.decoder == "ssru":
            penalty = self.training.score_penalty_decoder
            rows: list[_Rule] = [
                ("training.score_penalty_decoder", penalty, (0.0,), "its decoder scores nothing"),
            ]
            _check_allowed(rows, "a decoder of recurrent units (model.decoder = 'ssru')")
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
        # Its symbols alone say that a model reads masks (docs/decisions/0027).
        if {*MASKS} <= {*self.tokenizer.symbols} and self.data.placeholders == "text":
            raise ValueError(
                "data.placeholders must be 'masks' if tokenizer.symbols has all masks "
                f"({MASKS[0]} to {MASKS[-1]}), but is 'text'"
            )
        longest = min(self.model.max_source_length, self.model.max_target_length)
        if self.data.max_pair_length > longest:
            raise ValueError(
                "data.max_pair_length must be at most model.max_source_length and "
                f"model.max_target_length ({longest}), but is {self.data.max_pair_length}"
            )
        return self

    @model_validator(mode="after")
    def _check_guided_head(self) -> Recipe:
        guided = self.training.guided_place
        if (guided is not None) != bool(self.data.train_alignments):
            both = ["training.guided_head", "data.train_alignments"]
            given, missing = both if guided else reversed(both)
            raise ValueError(f"{given} needs {missing}, but {missing} was not given")
        if guided is None:
            return self
        if not self.model.has_attention:
            raise ValueError(
                "training.guided_head must be left out when model.recurrent_attention is 'none' "
                f"(there is no attention to guide), but is {self.training.guided_head}"
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
                "training.subword_samples must be left out with training.guided_head (links "
                f"belong to one segmentation), but is {self.training.subword_samples}"
            )
        return self


def _check_recurrent(training: TrainingConfig, decoding: DecodingConfig) -> None:
    """Make sure that the training of a recurrent model asks for nothing that it lacks.

    Raises:
        ValueError: it does, with the setting and the reason.
    """
    rows: list[_Rule] = [
        ("training.kernels", training.kernels, ("auto", "pytorch"), "only Transformers have them"),
        ("training.precision", training.precision, ("auto", "float32"), _ROUNDING),
        ("decoding.precision", decoding.precision, ("float32",), _ROUNDING),
        ("training.attention_dropout", training.attention_dropout, (0.0,), _NO_EFFECT),
        ("training.feed_forward_dropout", training.feed_forward_dropout, (0.0,), _NO_EFFECT),
    ]
    _check_allowed(rows, "a recurrent model")


_Rule = tuple[str, object, Collection[object], str]
"""A setting's name and value, those that are allowed, and why others are not."""


def _check_allowed(rows: Iterable[_Rule], model: str) -> None:
    for name, value, allowed, reason in rows:
        if value not in allowed:
            rule = " or ".join(map(repr, allowed))
            raise ValueError(f"{name} must be {rule} for {model} ({reason}), but is {value!r}")


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
        advice = " A recipe ends in .toml; a table of pairs must end in .tsv, .csv, .jsonl or "
        advice += ".parquet; or give two text files, one for each language."
        advice = "" if endings(where).kind == ".toml" else advice
        raise ConfigurationError(
            f"A recipe must be TOML, but is not: {error} ({where}).{advice}"
        ) from None
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
    Without a value (``section.key=``) the key is left out.

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
                f"A setting must be written SECTION.KEY=VALUE, but is {override!r} (--set). "
                "For example: training.max_steps=2000, or decoding.beam=5."
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
        if not text.strip():
            # As if the recipe did not have it: TOML has no other word for none.
            table.pop(name, None)
            continue
        try:
            table[name] = _parse_value(text.strip())
        except ExcessError as error:
            raise ConfigurationError(
                f"{section}.{name} must be a setting, but {error} (--set). Correct it."
            ) from None
    return changed


def check_overrides(overrides: Iterable[str]) -> None:
    """Refuse changes of a key that no recipe has, or to a value of another type.

    What depends on other keys is left to the whole recipe.

    Raises:
        ConfigurationError: one sentence about the first of them, which blames ``--set``.
    """
    for section, entries in apply_overrides({}, overrides).items():
        if section not in Recipe.model_fields:
            hint = suggestion(section, Recipe.model_fields)
            raise ConfigurationError(f"The section {section!r} is unknown (--set). {hint}")
        kind: Any = Recipe.model_fields[section].annotation
        for name, value in entries.items():
            if name in Recipe.short_cuts.get(section, ()):
                continue
            try:
                kind.model_validate({name: value})
            except ValidationError as error:
                for problem in error.errors():
                    if problem["loc"][:1] == (name,):
                        place = {**problem, "loc": (section, *problem["loc"])}
                        raise ConfigurationError(describe_problem(Recipe, place, "--set")) from None


def _parse_value(text: str) -> Any:
    try:
        # A shell takes quotes away, so that what is no TOML is meant as text.
        return read_toml_text(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def to_toml(section: Strict) -> str:
    """Write a section as TOML, with every default spelled out but those of programs' keys."""
    # TOML has no null: a limit that does not hold is left out.
    values = section.model_dump(mode="json", exclude_none=True)
    for name, _ in section:
        part = getattr(section, name)
        for key in getattr(part, "written_by_programs", ()):
            if getattr(part, key) == type(part).model_fields[key].default:
                values[name].pop(key, None)
    return tomli_w.dumps(values)
