"""The model: its sizes, the switches that take it apart, and what belongs to one architecture."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Literal

from pydantic import (
    Field,
    PositiveFloat,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from pellucid.config.base import Strict, Width
from pellucid.errors import ConfigurationError

_SIZES = ("d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers")
NAMED_SIZES: dict[str, dict[str, int]] = {
    name: dict(zip(_SIZES, numbers, strict=True))
    for name, numbers in {
        "tiny": (128, 256, 4, 4, 4),
        "small": (256, 1024, 8, 3, 3),
        # These two are the paper's (table 3).
        "base": (512, 2048, 8, 6, 6),
        "big": (1024, 4096, 16, 6, 6),
    }.items()
}

_OF_TRANSFORMER = (
    *("d_ff", "num_heads", "d_value"),
    *("norm", "layer_norm_epsilon", "activation", "positions", "projection_bias"),
    *("residual", "scale_scores", "look_ahead_mask", "projections"),
    *("norm_kind", "gated_feed_forward", "num_key_value_heads", "max_relative_distance"),
    *("stack_norm", "input_norm", "decoder"),
)
_OF_RECURRENT = ("recurrent_attention",)

_AS_RECURRENT: Mapping[str, Any] = {
    "num_encoder_layers": 1,
    "num_decoder_layers": 1,
    "num_heads": 1,
    "norm": "none",
    "positions": "none",
    "residual": False,
    "scale_scores": False,
}
"""The values of a recurrent model: one layer on either side unless given, and of the Transformer's
settings those that describe it, so that code which reads them finds nothing that is not there."""

_ANY_NUMBER = {
    *_SIZES,
    *("d_key", "d_value", "layer_norm_epsilon", "max_source_length", "max_target_length"),
    *("source_vocabulary_size", "target_vocabulary_size", "max_relative_distance"),
}

AS_FIRST_BUILT: Mapping[str, Collection[object]] = {
    "architecture": ("transformer",),
    "norm": ("post", "pre", "none"),
    "activation": ("relu", "gelu", "swish"),
    "positions": ("sinusoidal", "sinusoidal_halves", "learned", "none"),
    "embedding_scale": ("sqrt", "none"),
    "projection_bias": (False, True),
    "tied_embeddings": ("all", "decoder", "none"),
    "residual": (True, False),
    "scale_scores": (True, False),
    "look_ahead_mask": (True, False),
    "projections": ("qkv", "qk", "none"),
    "norm_kind": ("layer",),
    "stack_norm": (False,),
    "input_norm": (False,),
    "gated_feed_forward": (False,),
    "num_key_value_heads": (0,),
    "decoder": ("attention",),
}
"""The options of a Transformer, with the values that every implementation of it was built for.

A new value is not added here. It goes into the list of each implementation that computes it; the
others then refuse it. A new option is added with the value under which it changes nothing.
"""

_LATER = (
    *("norm_kind", "gated_feed_forward", "num_key_value_heads", "max_relative_distance"),
    *("stack_norm", "input_norm", "decoder"),
)
"""Options that files name only if they differ from their defaults, so that the files of models that
do not use them stay as they were."""


class ModelConfig(Strict):
    """A model's function and the shapes of its weights.

    The defaults are the paper's base model; a recipe has the sizes of its ``size``.

    Source:
        Vaswani et al. 2017, "Attention Is All You Need", section 3 and table 3.
    """

    written_by_programs: ClassVar = frozenset({"source_vocabulary_size", "target_vocabulary_size"})

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
    norm_kind: Literal["layer", "rms"] = "layer"
    """Normalization itself: ``layer`` subtracts the mean and divides by the standard deviation,
    ``rms`` divides by the root of the mean square, without a bias."""
    stack_norm: bool = False
    """One more norm after the last layer of encoder and decoder, as in PyTorch's
    ``nn.Transformer``. Only for ``norm = "post"``: with ``"pre"`` it is always there."""
    input_norm: bool = False
    """One more norm before the first layer of encoder and decoder: of the sum of embedding and
    position, as in BART and mBART."""
    layer_norm_epsilon: PositiveFloat = 1e-5
    """Number added to the variance, so that it is never 0."""
    activation: Literal["relu", "gelu", "swish"] = "relu"
    """Activation inside the feed-forward layers."""
    gated_feed_forward: bool = False
    """Multiply what the feed-forward layers activate by a second projection of their input."""
    positions: Literal[
        "sinusoidal", "sinusoidal_halves", "learned", "none", "rotary", "alibi", "relative"
    ] = "sinusoidal"
    """Positional encoding. ``sinusoidal`` alternates sines and cosines as in the paper,
    ``sinusoidal_halves`` has all sines before all cosines as in Marian. Three are part of
    self-attention instead of the input: ``rotary`` turns queries and keys by their positions,
    ``alibi`` lowers scores by the distance, ``relative`` learns a vector for each distance."""
    max_relative_distance: int = Field(default=16, gt=0, le=2**16)
    """Distance from which on ``relative`` positions are alike. Only for ``positions =
    "relative"``."""
    embedding_scale: Literal["sqrt", "none"] = "sqrt"
    """Factor of the embeddings: the square root of ``d_model``, or 1."""
    projection_bias: bool = False
    """Biases of the query, key, value and output projections."""
    tied_embeddings: Literal["all", "decoder", "none"] = "all"
    """Embeddings that are one table: source, target and output (``all``), or target and output
    (``decoder``)."""

    decoder: Literal["attention", "ssru"] = "attention"
    """Part of a decoder layer that reads the target's earlier words: masked self-attention, or a
    recurrent unit with a state of fixed size, the simpler simple recurrent unit (``ssru``)."""

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
    num_key_value_heads: int = Field(default=0, ge=0, le=2**16)
    """Number of heads of keys and values, each shared by a group of query heads. 0 gives every
    query head its own."""

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
    def adds_positions(self) -> bool:
        """True if the input is the sum of embeddings and vectors of positions."""
        return self.positions in ("sinusoidal", "sinusoidal_halves", "learned")

    @property
    def ends_in_norm(self) -> bool:
        """True if encoder and decoder each end in a norm."""
        return self.norm == "pre" or self.stack_norm

    @property
    def attending_layers(self) -> range:
        """The layers of the decoder that attend to the source: of a recurrent one the first."""
        if self.is_recurrent:
            return range(1 if self.has_attention else 0)
        return range(self.num_decoder_layers)

    @model_serializer(mode="wrap")
    def _write(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        values = _leave_out_other_architecture(write(self))
        # Earlier versions refuse keys that they do not know.
        defaults = {name: type(self).model_fields[name].default for name in _LATER}
        # Where it has an effect, the distance is written whatever it is.
        if self.positions == "relative":
            del defaults["max_relative_distance"]
        plain = {name for name, default in defaults.items() if values.get(name) == default}
        return {name: value for name, value in values.items() if name not in plain}

    @model_validator(mode="before")
    @classmethod
    def _fill_head_widths(cls, values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        # Before defaults are filled in: afterwards nothing tells them from what was given.
        _check_architecture(values)
        if values.get("architecture") == "recurrent":
            width = values.get("d_model", cls.model_fields["d_model"].default)
            return {**_AS_RECURRENT, "d_key": width, "d_value": width, **values}
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
        # Every query head has its own then, which all implementations compute.
        if filled.get("num_key_value_heads") == num_heads:
            filled["num_key_value_heads"] = 0
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
        self._check_variants()
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

    def _check_variants(self) -> None:
        """Make sure that options of `_LATER`, and the positions in attention, fit the others.

        Raises:
            ValueError: one does not.
        """
        groups = self.num_key_value_heads
        if groups and self.num_heads % groups:
            raise ValueError(
                "num_key_value_heads must divide num_heads "
                f"({self.num_heads}), so that all groups are equal, but is {groups}"
            )
        for is_wrong, rule in (
            (
                self.positions == "rotary" and self.d_key % 2,
                "d_key must be even for rotary positions (they turn pairs of numbers), but is "
                f"{self.d_key}",
            ),
            (
                groups and self.projections == "none",
                "num_key_value_heads must be left out without projections (every head attends "
                f"with its own numbers of the vector), but is {groups}",
            ),
            (
                self.norm_kind != "layer" and self.norm == "none",
                "norm_kind must be left out (it has no effect) when norm is 'none', but is "
                f"{self.norm_kind!r}",
            ),
            (
                self.input_norm and self.norm == "none",
                "input_norm must be left out when norm is 'none', but is True",
            ),
            (
                self.stack_norm and self.norm != "post",
                "stack_norm must be left out (it has no effect) unless norm is 'post', but norm is "
                f"{self.norm!r}",
            ),
            (
                self.decoder == "ssru" and not self.look_ahead_mask,
                "look_ahead_mask must be left out (it has no effect) when decoder is 'ssru', whose "
                "unit reads from left to right, but is False",
            ),
        ):
            if is_wrong:
                raise ValueError(rule)


def known_option(config: ModelConfig, name: str, values: Collection[object]) -> Any:
    """Get the value of an option that is one of these.

    Raises:
        ConfigurationError: it is another, so what follows would compute something else.
    """
    value = getattr(config, name)
    if value not in values:
        raise ConfigurationError(
            f"model.{name} must be {' or '.join(map(repr, values))} for this computation, but is "
            f"{value!r}. Use one of these, or teach the computation the new value."
        )
    return value


def find_unlisted(config: ModelConfig, accepted: Mapping[str, Collection[object]]) -> str | None:
    """Find the first option of a Transformer whose value an implementation does not list.

    Numbers need no entry. Another option without an entry is found whatever its value is.

    Args:
        config: the model's.
        accepted: by option, the values that the implementation computes.
    """
    for name in type(config).model_fields:
        is_free = name in _ANY_NUMBER or name in _OF_RECURRENT
        allowed = accepted.get(name, None if is_free else ())
        if allowed is not None and getattr(config, name) not in allowed:
            return name
    return None


def explain_unlisted(config: ModelConfig, accepted: Mapping[str, Collection[object]]) -> str | None:
    """Say in words what `find_unlisted` finds."""
    if config.is_recurrent:
        return "the model is recurrent"
    name = find_unlisted(config, accepted)
    return None if name is None else f"model.{name} is {getattr(config, name)}"


def named_size(size: str, architecture: object) -> dict[str, int]:
    """Return the settings of a ready-made size: of a recurrent model only its width."""
    sizes = NAMED_SIZES[size]
    return {"d_model": sizes["d_model"]} if architecture == "recurrent" else dict(sizes)


def _check_architecture(values: Mapping[str, Any]) -> None:
    """Make sure that each given setting has an effect in the architecture.

    Raises:
        ValueError: one belongs to the other architecture, or to another form of this one.
    """
    architecture = values.get("architecture", "transformer")
    foreign = _OF_TRANSFORMER if architecture == "recurrent" else _OF_RECURRENT
    for name in foreign:
        if name in values:
            raise ValueError(
                f"model.{name} must be left out (it has no effect) when model.architecture is "
                f"{architecture!r}, but is {values[name]!r}"
            )
    if "max_relative_distance" in values and values.get("positions") != "relative":
        raise ValueError(
            "model.max_relative_distance must be left out (it has no effect) unless "
            f"model.positions is 'relative', but is {values['max_relative_distance']!r}"
        )
    form = values.get("recurrent_attention", "additive")
    width = values.get("d_model")
    if architecture == "recurrent" and form != "additive" and values.get("d_key", width) != width:
        raise ValueError(
            "model.d_key must be left out (it has no effect) when model.recurrent_attention is "
            f"{form!r}, but is {values['d_key']!r}"
        )


def _leave_out_other_architecture(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out what has no effect in an architecture, as in the files of a bundle."""
    is_recurrent = values.get("architecture") == "recurrent"
    foreign = _OF_TRANSFORMER if is_recurrent else _OF_RECURRENT
    if is_recurrent and values.get("recurrent_attention") != "additive":
        foreign = (*foreign, "d_key")
    return {name: value for name, value in values.items() if name not in foreign}
