"""``config.json``: what a bundle says of itself."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, PositiveFloat, PositiveInt

from pellucid.config.base import Strict
from pellucid.config.model import ModelConfig
from pellucid.config.tokenizer import TokenizerConfig

__all__ = ["BundleConfig", "DecodingConfig", "LanguagesConfig"]


class LanguagesConfig(Strict):
    """The two languages, as codes such as ``en`` and ``fr``; empty where nobody said."""

    source: str = ""
    target: str = ""


class DecodingConfig(Strict):
    """Defaults for translating.

    A hypothesis may be at most ``max_length_ratio`` times the source's tokens plus
    ``max_length_offset``, and never more than the model's ``max_target_length``.
    """

    max_length_ratio: PositiveFloat = 2.0
    max_length_offset: PositiveInt = 20


class BundleConfig(Strict):
    """The whole of ``config.json``."""

    format: Literal[1] = 1
    precision: Literal["float32"] = "float32"
    languages: LanguagesConfig = Field(default_factory=LanguagesConfig)
    decoding: DecodingConfig = Field(default_factory=DecodingConfig)
    model: ModelConfig
    tokenizer: TokenizerConfig
