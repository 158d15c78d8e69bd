"""What a model is: its sizes, and the switches that take the architecture apart."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, PositiveFloat, model_validator

from pellucid.config.base import Strict, Width

__all__ = ["NAMED_SIZES", "ModelConfig"]

NAMED_SIZES: dict[str, dict[str, int]] = {
    "tiny": {
        "d_model": 128,
        "d_ff": 256,
        "num_heads": 4,
        "num_encoder_layers": 4,
        "num_decoder_layers": 4,
    },
    "small": {
        "d_model": 256,
        "d_ff": 1024,
        "num_heads": 8,
        "num_encoder_layers": 3,
        "num_decoder_layers": 3,
    },
    "base": {
        "d_model": 512,
        "d_ff": 2048,
        "num_heads": 8,
        "num_encoder_layers": 6,
        "num_decoder_layers": 6,
    },
    "big": {
        "d_model": 1024,
        "d_ff": 4096,
        "num_heads": 16,
        "num_encoder_layers": 6,
        "num_decoder_layers": 6,
    },
}


class ModelConfig(Strict):
    """Everything that decides a model's function and the shapes of its weights.

    The defaults are the paper's base model; a recipe has those of its ``size``. ``d_key`` and
    ``d_value`` are per head and default to ``d_model / num_heads``; they are free, so
    ``num_heads * d_value`` need not be ``d_model``. The vocabulary sizes are 0 in a recipe, where
    the tokenizer decides them.

    Source:
        Vaswani et al. 2017, "Attention Is All You Need", section 3 and table 3.
    """

    architecture: Literal["transformer"] = "transformer"
    d_model: Width = 512
    d_ff: int = Field(default=2048, gt=0, le=2**18)
    num_heads: Width = 8
    d_key: Width
    d_value: Width
    num_encoder_layers: int = Field(default=6, gt=0, le=1000)
    num_decoder_layers: int = Field(default=6, gt=0, le=1000)
    norm: Literal["post", "pre", "none"] = "post"
    layer_norm_epsilon: PositiveFloat = 1e-5
    activation: Literal["relu", "gelu", "swish"] = "relu"
    positions: Literal["sinusoidal", "sinusoidal_halves", "learned", "none"] = "sinusoidal"
    embedding_scale: Literal["sqrt", "none"] = "sqrt"
    projection_bias: bool = False
    tied_embeddings: Literal["all", "decoder", "none"] = "all"
    source_vocabulary_size: int = Field(default=0, ge=0, le=2**24)
    target_vocabulary_size: int = Field(default=0, ge=0, le=2**24)
    max_source_length: int = Field(default=1024, gt=0, le=10**12)
    max_target_length: int = Field(default=1024, gt=0, le=10**12)
    residual: bool = True
    scale_scores: bool = True
    look_ahead_mask: bool = True
    projections: Literal["qkv", "qk", "none"] = "qkv"

    @model_validator(mode="before")
    @classmethod
    def _fill_head_widths(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        filled = dict(values)
        d_model = filled.get("d_model", cls.model_fields["d_model"].default)
        num_heads = filled.get("num_heads", cls.model_fields["num_heads"].default)
        if not (isinstance(d_model, int) and isinstance(num_heads, int) and num_heads > 0):
            return {"d_key": 1, "d_value": 1, **filled}
        for name in ("d_key", "d_value"):
            if name in filled:
                continue
            if d_model % num_heads:
                raise ValueError(
                    f"d_model must be a multiple of num_heads when {name} is not given, "
                    f"but {d_model} is not a multiple of {num_heads}"
                )
            filled[name] = d_model // num_heads
        return filled

    @model_validator(mode="after")
    def _check_together(self) -> ModelConfig:
        if self.positions.startswith("sinusoidal") and self.d_model % 2:
            raise ValueError(
                "d_model must be even for sinusoidal positions (sines and cosines come in "
                f"pairs), but is {self.d_model}"
            )
        if self.projections == "qk" and self.d_key != self.d_value:
            raise ValueError(
                "d_value must equal d_key when the weights are put on the keys "
                f"(projections = 'qk'), but is {self.d_value} beside {self.d_key}"
            )
        if self.projections == "none" and not (
            self.d_key == self.d_value and self.d_key * self.num_heads == self.d_model
        ):
            raise ValueError(
                "num_heads * d_key and num_heads * d_value must be d_model without projections, "
                f"but are {self.num_heads * self.d_key} and {self.num_heads * self.d_value} "
                f"beside {self.d_model}"
            )
        if self.tied_embeddings == "all" and (
            self.source_vocabulary_size != self.target_vocabulary_size
        ):
            raise ValueError(
                "The two vocabularies must have one size when all embeddings are tied, but have "
                f"{self.source_vocabulary_size} and {self.target_vocabulary_size}"
            )
        return self
