"""The number of parameters of each step of an architecture, from its configuration."""

from __future__ import annotations

from dataclasses import dataclass

from pellucid.config import ModelConfig


@dataclass(frozen=True)
class Counts:
    """The number of parameters of each step.

    Attributes:
        config: sizes and switches.
        has_output_bias: True if the logits have a bias, which the configuration does not say.
    """

    config: ModelConfig
    has_output_bias: bool = False

    @property
    def query(self) -> int:
        """The query projection, or the key projection, of all heads."""
        if self.config.projections == "none":
            return 0
        return self._linear(self.config.d_model, self.config.num_heads * self.config.d_key)

    @property
    def value(self) -> int:
        """The value projection of all heads."""
        if self.config.projections != "qkv":
            return 0
        return self._linear(self.config.d_model, self.config.num_heads * self.config.d_value)

    @property
    def output(self) -> int:
        """The projection after the concatenation of the heads, W_O."""
        return self._linear(self.config.num_heads * self.config.d_value, self.config.d_model)

    @property
    def attention(self) -> int:
        """One attention with all its heads."""
        return 2 * self.query + self.value + self.output

    @property
    def inner(self) -> int:
        """The first half of a feed-forward network."""
        return (self.config.d_model + 1) * self.config.d_ff

    @property
    def outer(self) -> int:
        """The second half of a feed-forward network."""
        return (self.config.d_ff + 1) * self.config.d_model

    @property
    def norm(self) -> int:
        """One layer norm: a gain and a bias for each dimension."""
        return 0 if self.config.norm == "none" else 2 * self.config.d_model

    @property
    def final_norm(self) -> int:
        """The norm at the end of a stack, which only pre-norm has."""
        return self.norm if self.config.norm == "pre" else 0

    @property
    def encoder_layer(self) -> int:
        """One layer of the encoder."""
        return self.attention + self.inner + self.outer + 2 * self.norm

    @property
    def decoder_layer(self) -> int:
        """One layer of the decoder."""
        return 2 * self.attention + self.inner + self.outer + 3 * self.norm

    @property
    def source_embedding(self) -> int:
        """The source's table; the only one if all embeddings are tied."""
        return self.config.source_vocabulary_size * self.config.d_model

    @property
    def target_embedding(self) -> int:
        """The target's own table; 0 if all embeddings are tied."""
        if self.config.tied_embeddings == "all":
            return 0
        return self.config.target_vocabulary_size * self.config.d_model

    @property
    def logits(self) -> int:
        """The output's own matrix, 0 if it is tied, and its bias."""
        size = self.config.target_vocabulary_size
        matrix = size * self.config.d_model if self.config.tied_embeddings == "none" else 0
        return matrix + (size if self.has_output_bias else 0)

    def positions(self, part: str) -> int:
        """Count the learned positions of the encoder or the decoder; others have no parameters."""
        if self.config.positions != "learned":
            return 0
        is_encoder = part == "encoder"
        limit = self.config.max_source_length if is_encoder else self.config.max_target_length
        return limit * self.config.d_model

    @property
    def total(self) -> int:
        """The whole model."""
        config = self.config
        return (
            self.source_embedding
            + self.target_embedding
            + self.positions("encoder")
            + self.positions("decoder")
            + config.num_encoder_layers * self.encoder_layer
            + config.num_decoder_layers * self.decoder_layer
            + 2 * self.final_norm
            + self.logits
        )

    def _linear(self, inside: int, outside: int) -> int:
        return inside * outside + (outside if self.config.projection_bias else 0)
