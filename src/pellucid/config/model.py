"""The model: its sizes, and the switches that take the architecture apart."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import (
    Field,
    PositiveFloat,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from pellucid.config.architecture import (
    AS_RECURRENT,
    check_architecture,
    leave_out_other_architecture,
)
from pellucid.config.base import Strict, Width


class ModelConfig(Strict):
    """A model's function and the shapes of its weights.

    The defaults are the paper's base model; a recipe has the sizes of its ``size``.

    Source:
        Vaswani et al. 2017, "Attention Is All You Need", section 3 and table 3.
    """

    # Size
    architecture: Literal["transformer", "recurrent"] = "transformer"
    """Kind of model. ``recurrent`` is an encoder and a decoder of gated recurrent units, with only
    the settings of width, depth, embeddings and lengths, and those of its own."""
    d_model: Width = 512
    """Width of the vectors between layers."""
    d_ff: int = Field(default=2048, gt=0, le=2**18)
    """Inner width of the feed-forward layers."""
    num_heads: Width = 8
    """Number of heads of each attention."""
    d_key: Width
    """Width of queries and keys per head."""
    d_value: Width
    """Width of values per head; ``num_heads * d_value`` need not be ``d_model``."""
    num_encoder_layers: int = Field(default=6, gt=0, le=1000)
    """Number of layers of the encoder."""
    num_decoder_layers: int = Field(default=6, gt=0, le=1000)
    """Number of layers of the decoder."""

    # Layers
    norm: Literal["post", "pre", "none"] = "post"
    """Place of layer normalization: after each residual sum, or before each sub-layer."""
    layer_norm_epsilon: PositiveFloat = 1e-5
    """Number added to the variance, so that it is never 0."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """Activation inside the feed-forward layers."""
    positions: Literal["sinusoidal", "sinusoidal_halves", "learned", "none"] = "sinusoidal"
    """Positional encoding. ``sinusoidal`` alternates sines and cosines as in the paper,
    ``sinusoidal_halves`` has all sines before all cosines as in Marian."""
    embedding_scale: Literal["sqrt", "none"] = "sqrt"
    """Factor of the embeddings: the square root of ``d_model``, or 1."""
    projection_bias: bool = False
    """Biases of the query, key, value and output projections."""
    tied_embeddings: Literal["all", "decoder", "none"] = "all"
    """Embeddings that are one table: source, target and output (``all``), or target and output
    (``decoder``)."""

    # Vocabularies and lengths
    source_vocabulary_size: int = Field(default=0, ge=0, le=2**24)
    """Tokens of the source vocabulary. 0 in a recipe, where the tokenizer decides."""
    target_vocabulary_size: int = Field(default=0, ge=0, le=2**24)
    """Tokens of the target vocabulary. 0 in a recipe, where the tokenizer decides."""
    max_source_length: int = Field(default=1024, gt=0, le=10**12)
    """Maximum number of tokens of a source, ``</s>`` included."""
    max_target_length: int = Field(default=1024, gt=0, le=10**12)
    """Maximum number of tokens of a target, ``</s>`` included."""

    # Switches that take the architecture apart
    residual: bool = True
    """Residual connections around the sub-layers."""
    scale_scores: bool = True
    """Divide attention scores by the square root of ``d_key``."""
    look_ahead_mask: bool = True
    """Hide later positions from the decoder's self-attention."""
    projections: Literal["qkv", "qk", "none"] = "qkv"
    """Learned projections: ``qkv`` of queries, keys and values; ``qk`` puts the attention weights
    on the keys; ``none`` attends with the vectors themselves."""

    # The recurrent model
    recurrent_attention: Literal["none", "additive", "dot"] = "additive"
    """Attention of a recurrent decoder to the encoder's states: ``additive`` scores them with a
    small network of width ``d_key``, ``dot`` by dot products; ``none`` reads one vector of fixed
    length instead. Only for ``architecture = "recurrent"``."""

    @property
    def is_recurrent(self) -> bool:
        """True for gated recurrent units instead of layers of attention."""
        return self.architecture == "recurrent"

    @property
    def has_attention(self) -> bool:
        """False only for a recurrent model that hands over one vector of fixed length."""
        return not self.is_recurrent or self.recurrent_attention != "none"

    @property
    def attending_layers(self) -> range:
        """The layers of the decoder that attend to the source: of a recurrent one the first."""
        if self.is_recurrent:
            return range(1 if self.has_attention else 0)
        return range(self.num_decoder_layers)

    @model_serializer(mode="wrap")
    def _write(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return leave_out_other_architecture(write(self))

    @model_validator(mode="before")
    @classmethod
    def _fill_head_widths(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        check_architecture(values)
        if values.get("architecture") == "recurrent":
            width = values.get("d_model", cls.model_fields["d_model"].default)
            return {**AS_RECURRENT, "d_key": width, "d_value": width, **values}
        filled = dict(values)
        d_model = filled.get("d_model", cls.model_fields["d_model"].default)
        num_heads = filled.get("num_heads", cls.model_fields["num_heads"].default)
        if not (isinstance(d_model, int) and isinstance(num_heads, int) and num_heads > 0):
            return {"d_key": 1, "d_value": 1, **filled}  # the wrong field itself is reported
        for name in ("d_key", "d_value"):
            if name in filled:
                continue
            if d_model % num_heads:
                raise ValueError(
                    f"d_model must be a multiple of num_heads ({num_heads}) unless {name} is "
                    f"given, but is {d_model}"
                )
            filled[name] = d_model // num_heads
        return filled

    @model_validator(mode="after")
    def _check_together(self) -> ModelConfig:
        if self.is_recurrent and self.recurrent_attention != "none" and self.d_model % 2:
            raise ValueError(
                "d_model must be even for a recurrent model with attention (its encoder reads in "
                f"two directions, each of half the width), but is {self.d_model}"
            )
        if self.positions.startswith("sinusoidal") and self.d_model % 2:
            raise ValueError(
                "d_model must be even for sinusoidal positions (sines and cosines come in "
                f"pairs), but is {self.d_model}"
            )
        if self.projections == "qk" and self.d_key != self.d_value:
            raise ValueError(
                f"d_value must equal d_key ({self.d_key}) if the weights are put on the keys "
                f"(projections = 'qk'), but is {self.d_value}"
            )
        widths = (self.num_heads * self.d_key, self.num_heads * self.d_value)
        if self.projections == "none" and widths != (self.d_model, self.d_model):
            raise ValueError(
                "num_heads * d_key and num_heads * d_value must be d_model "
                f"({self.d_model}) without projections, but are {widths[0]} and {widths[1]}"
            )
        sizes = (self.source_vocabulary_size, self.target_vocabulary_size)
        if self.tied_embeddings == "all" and sizes[0] != sizes[1]:
            raise ValueError(
                "source_vocabulary_size and target_vocabulary_size must be equal if all "
                f"embeddings are tied, but are {sizes[0]} and {sizes[1]}"
            )
        return self
