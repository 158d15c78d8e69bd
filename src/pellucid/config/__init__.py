"""Frozen, validated configuration; TOML in and out; an unknown key is an error."""

from pellucid.config.base import Strict, validate
from pellucid.config.config_json import BundleConfig, LanguagesConfig, TokenizerConfig
from pellucid.config.data import DataConfig
from pellucid.config.decoding import DecodingConfig, Precision, Splitting, TreatmentConfig
from pellucid.config.model import NAMED_SIZES, ModelConfig, known_option, named_size
from pellucid.config.training import LogConfig, TrainingConfig
from pellucid.config.training_recipe import (
    Recipe,
    StartConfig,
    TokenizerRecipe,
    apply_overrides,
    check_overrides,
    load_recipe,
    parse_toml,
    to_toml,
)

__all__ = [
    "NAMED_SIZES",
    "BundleConfig",
    "DataConfig",
    "DecodingConfig",
    "LanguagesConfig",
    "LogConfig",
    "ModelConfig",
    "Precision",
    "Recipe",
    "Splitting",
    "StartConfig",
    "Strict",
    "TokenizerConfig",
    "TokenizerRecipe",
    "TrainingConfig",
    "TreatmentConfig",
    "apply_overrides",
    "check_overrides",
    "known_option",
    "load_recipe",
    "named_size",
    "parse_toml",
    "to_toml",
    "validate",
]
