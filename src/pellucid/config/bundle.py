"""``config.json``: what a bundle says of itself."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pellucid.config.base import Strict
from pellucid.config.decoding import DecodingConfig, Precision
from pellucid.config.model import ModelConfig
from pellucid.config.tokenizer import TokenizerConfig

__all__ = ["BundleConfig", "LanguagesConfig"]


class LanguagesConfig(Strict):
    """The two languages, as codes such as ``en`` and ``fr``; empty where nobody said."""

    source: str = ""
    target: str = ""


class BundleConfig(Strict):
    """The whole of ``config.json``."""

    format: Literal[1] = 1
    precision: Precision = "float32"
    languages: LanguagesConfig = Field(default_factory=LanguagesConfig)
    decoding: DecodingConfig = Field(default_factory=DecodingConfig)
    model: ModelConfig
    tokenizer: TokenizerConfig
