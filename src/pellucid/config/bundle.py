"""``config.json``: the configuration inside a bundle."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from pellucid.config.base import Strict
from pellucid.config.decoding import DecodingConfig, Precision
from pellucid.config.model import ModelConfig
from pellucid.config.tokenizer import TokenizerConfig


class LanguagesConfig(Strict):
    """The two languages."""

    source: str = ""
    """Code of the source language, such as ``en``; empty if unknown."""
    target: str = ""
    """Code of the target language, such as ``fr``; empty if unknown."""


class BundleConfig(Strict):
    """The whole of ``config.json``."""

    format: Literal[1] = 1
    """Version of the bundle format."""
    precision: Precision = "float32"
    """Precision of the stored weights."""
    languages: LanguagesConfig = Field(default_factory=LanguagesConfig)
    """Source and target language."""
    decoding: DecodingConfig = Field(default_factory=DecodingConfig)
    """Defaults of a translation."""
    model: ModelConfig
    """Sizes and switches."""
    tokenizer: TokenizerConfig
    """Kind and special tokens."""

    @model_validator(mode="after")
    def _check_precision(self) -> BundleConfig:
        if self.model.is_recurrent and self.precision != "float32":
            raise ValueError(
                f"precision must be float32 for a recurrent model, but is {self.precision}"
            )
        return self
