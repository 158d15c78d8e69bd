"""Make the model that a configuration describes, of either architecture."""

from __future__ import annotations

from pellucid.config import ModelConfig, known_option
from pellucid.model.encoder_decoder import EncoderDecoder
from pellucid.model.recurrent import RecurrentModel
from pellucid.model.transformer import Transformer


def make_model(config: ModelConfig, *, has_output_bias: bool = False) -> EncoderDecoder:
    """Make a model without values for its weights.

    Args:
        config: sizes and switches, with both vocabulary sizes.
        has_output_bias: True adds a bias to the logits.

    Raises:
        ConfigurationError: a vocabulary size is missing.
    """
    if known_option(config, "architecture", ("transformer", "recurrent")) == "recurrent":
        return RecurrentModel(config, has_output_bias=has_output_bias)
    return Transformer(config, has_output_bias=has_output_bias)
