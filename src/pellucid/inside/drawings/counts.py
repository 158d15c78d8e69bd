"""Parameter counts of each step of an architecture, from a model that holds no values."""

from __future__ import annotations

import torch

from pellucid.config import ModelConfig
from pellucid.model.make import make_model

IN_LAYER = "encoder.layers.0"
"""The first layer stands for all of its part, and its self-attention for every attention."""

ATTENTION = f"{IN_LAYER}.self_attention"


class Counts:
    """The number of parameters below any name of a model; steps that it does not have count 0.

    Args:
        config: sizes and switches.
        has_output_bias: True if the logits have a bias, which the configuration does not say.
    """

    def __init__(self, config: ModelConfig, has_output_bias: bool = False) -> None:
        self.config = config
        # Weights without values: counting needs no memory, however large the model is.
        with torch.device("meta"):
            model = make_model(config, has_output_bias=has_output_bias)
        self._sizes = {name: weight.numel() for name, weight in model.named_parameters()}

    def of(self, *names: str) -> int:
        """Count the parameters of some parts, such as ``encoder.layers.0.feed_forward``."""
        prefixes = tuple(f"{name}." for name in names)
        return sum(size for name, size in self._sizes.items() if name.startswith(prefixes))

    @property
    def total(self) -> int:
        """The whole model."""
        return sum(self._sizes.values())

    @property
    def source_table(self) -> int:
        """The source's table; the only one if all embeddings are tied."""
        return self.of("embedding", "source_embedding")
