"""Settings that belong to one architecture: refused, filled in and left out with the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.config.decoding import DecodingConfig
    from pellucid.config.training import TrainingConfig

_SIZES = ("d_model", "d_ff", "num_heads", "num_encoder_layers", "num_decoder_layers")
NAMED_SIZES: dict[str, dict[str, int]] = {
    name: dict(zip(_SIZES, numbers, strict=True))
    for name, numbers in {
        "tiny": (128, 256, 4, 4, 4),
        "small": (256, 1024, 8, 3, 3),
        "base": (512, 2048, 8, 6, 6),
        "big": (1024, 4096, 16, 6, 6),
    }.items()
}

_OF_TRANSFORMER = (
    *("d_ff", "num_heads", "d_value"),
    *("norm", "layer_norm_epsilon", "activation", "positions", "projection_bias"),
    *("residual", "scale_scores", "look_ahead_mask", "projections"),
)
_OF_RECURRENT = ("recurrent_attention",)

AS_RECURRENT: Mapping[str, Any] = {
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


def named_size(size: str, architecture: object) -> dict[str, int]:
    """Return the settings of a ready-made size: of a recurrent model only its width."""
    sizes = NAMED_SIZES[size]
    return {"d_model": sizes["d_model"]} if architecture == "recurrent" else dict(sizes)


def check_architecture(values: Mapping[str, Any]) -> None:
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
    form = values.get("recurrent_attention", "additive")
    width = values.get("d_model")
    if architecture == "recurrent" and form != "additive" and values.get("d_key", width) != width:
        raise ValueError(
            "model.d_key must be left out (it has no effect) when model.recurrent_attention is "
            f"{form!r}, but is {values['d_key']!r}"
        )


def leave_out_other_architecture(values: dict[str, Any]) -> dict[str, Any]:
    """Leave out what has no effect in an architecture, as in the files of a bundle."""
    is_recurrent = values.get("architecture") == "recurrent"
    foreign = _OF_TRANSFORMER if is_recurrent else _OF_RECURRENT
    if is_recurrent and values.get("recurrent_attention") != "additive":
        foreign = (*foreign, "d_key")
    return {name: value for name, value in values.items() if name not in foreign}


def check_recurrent_recipe(training: TrainingConfig, decoding: DecodingConfig) -> None:
    """Make sure that the training of a recurrent model asks for nothing that it lacks.

    Raises:
        ValueError: it does, with the setting and the reason.
    """
    for name, value, allowed, reason in (
        ("training.kernels", training.kernels, ("auto", "pytorch"), "only Transformers have them"),
        ("training.precision", training.precision, ("auto", "float32"), _ROUNDING),
        ("decoding.precision", decoding.precision, ("float32",), _ROUNDING),
        ("training.compile", training.compile, (False,), "each length would be compiled again"),
        ("training.attention_dropout", training.attention_dropout, (0.0,), _NO_EFFECT),
        ("training.feed_forward_dropout", training.feed_forward_dropout, (0.0,), _NO_EFFECT),
    ):
        if value not in allowed:
            rule = " or ".join(map(repr, allowed))
            raise ValueError(
                f"{name} must be {rule} for a recurrent model ({reason}), but is {value!r}"
            )


_ROUNDING = "its states would add up the rounding of every step"
_NO_EFFECT = "it drops only inputs, states between layers and outputs"
