"""A model's weights, regrouped so that decoding takes as few calls as possible.

Query, key and value become one product; the division by √d_k becomes part of the query's weights
and the factor √d_model part of the embeddings; the source's keys and values for all decoder layers
become one product. The function computed stays the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from pellucid.config import ModelConfig, Precision
from pellucid.decode.fast.linear import Linear, make_linear
from pellucid.model import Transformer
from pellucid.model.layers import DecoderLayer, EncoderLayer, MultiHeadAttention


@dataclass(frozen=True)
class PreparedAttention:
    """The product before an attention, if any (query, key, value), and the one after it (W^O)."""

    project_in: Linear | None
    project_out: Linear


@dataclass(frozen=True)
class PreparedLayer:
    """A layer's products; ``norms`` are those of self-attention, cross-attention, feed-forward."""

    self_attention: PreparedAttention
    cross_attention: PreparedAttention | None
    inner: Linear
    outer: Linear
    norms: tuple[Linear | None, ...]


@dataclass(frozen=True)
class Prepared:
    """A whole model; ``source_key_value`` computes each decoder layer's keys and values in turn."""

    config: ModelConfig
    dtype: torch.dtype
    source_embedding: Tensor
    target_embedding: Tensor
    encoder: tuple[PreparedLayer, ...]
    decoder: tuple[PreparedLayer, ...]
    encoder_norm: Linear | None
    decoder_norm: Linear | None
    source_key_value: Linear | None
    output: Linear
    source_positions: Callable[[int], Tensor | None]
    target_positions: Callable[[int], Tensor | None]


@torch.inference_mode()
def prepare(model: Transformer, precision: Precision, dtype: torch.dtype) -> Prepared:
    """Regroup a model's weights; those that change are copied.

    Args:
        model: the weights.
        precision: of the products.
        dtype: of everything else.
    """
    factory = _Factory(model.config, precision, dtype)
    # For the width, type and device of the positions.
    like = torch.empty(0, model.config.d_model, dtype=dtype, device=model.output_weight.device)
    return Prepared(
        model.config,
        dtype,
        factory.embedding(model.embedding_of("source")),
        factory.embedding(model.embedding_of("target")),
        tuple(factory.layer(layer) for layer in model.encoder.layers),
        tuple(factory.layer(layer) for layer in model.decoder.layers),
        factory.norm(getattr(model.encoder, "norm", None)),
        factory.norm(getattr(model.decoder, "norm", None)),
        factory.source_key_value(model.decoder.layers),
        factory.linear(model.output_weight, model.output_bias, after_norm=True),
        lambda length: model.encoder.position_rows(0, length, like=like),
        lambda length: model.decoder.position_rows(0, length, like=like),
    )


@dataclass(frozen=True)
class _Factory:
    """Makes the parts of a prepared model."""

    config: ModelConfig
    precision: Precision
    dtype: torch.dtype

    def linear(self, weight: Tensor, bias: Tensor | None, *, after_norm: bool) -> Linear:
        cast_bias = None if bias is None else bias.detach().to(self.dtype)
        return make_linear(
            weight.detach().to(self.dtype),
            cast_bias,
            self.precision,
            is_normalized=after_norm and self.config.norm != "none",
        )

    def embedding(self, table: nn.Embedding) -> Tensor:
        weight = table.weight.detach().to(self.dtype)
        is_scaled = self.config.embedding_scale == "sqrt"
        return weight * math.sqrt(self.config.d_model) if is_scaled else weight

    def norm(self, norm: nn.Module | None) -> Linear | None:
        if not isinstance(norm, nn.LayerNorm):
            return None
        weight, bias = norm.weight.detach().to(self.dtype), norm.bias.detach().to(self.dtype)
        shape, epsilon = norm.normalized_shape, norm.eps
        return lambda rows: F.layer_norm(rows, shape, weight, bias, epsilon)

    def layer(self, layer: nn.Module) -> PreparedLayer:
        assert isinstance(layer, EncoderLayer | DecoderLayer)
        cross = layer.cross_attention if isinstance(layer, DecoderLayer) else None
        inner, outer = layer.feed_forward.inner, layer.feed_forward.outer
        names = ("self_attention", "cross_attention", "feed_forward")
        return PreparedLayer(
            self._attention(layer.self_attention, ("query", "key", "value")),
            None if cross is None else self._attention(cross, ("query",)),
            self.linear(inner.weight, inner.bias, after_norm=True),
            self.linear(outer.weight, outer.bias, after_norm=False),
            tuple(self.norm(getattr(layer, f"{name}_norm", None)) for name in names),
        )

    def _attention(self, attention: MultiHeadAttention, names: Sequence[str]) -> PreparedAttention:
        output = self.linear(attention.output.weight, attention.output.bias, after_norm=False)
        if self.config.projections == "none":
            return PreparedAttention(None, output)
        weight, bias = _join([getattr(attention, n) for n in names if hasattr(attention, n)])
        # Convert before dividing: the division would round in float32.
        if self.dtype == torch.float64:
            weight, bias = weight.double(), None if bias is None else bias.double()
        if self.config.scale_scores:
            wide = attention.query.out_features
            weight[:wide] /= math.sqrt(self.config.d_key)
            if bias is not None:
                bias[:wide] /= math.sqrt(self.config.d_key)
        return PreparedAttention(self.linear(weight, bias, after_norm=True), output)

    def source_key_value(self, layers: Iterable[nn.Module]) -> Linear | None:
        if self.config.projections == "none":
            return None
        names = ("key", "value") if self.config.projections == "qkv" else ("key",)
        attentions = [layer.cross_attention for layer in layers]
        weight, bias = _join([getattr(one, name) for one in attentions for name in names])
        return self.linear(weight, bias, after_norm=True)


def _join(projections: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """Stack the weights and biases of several projections into one of each."""
    weight = torch.cat([projection.weight.detach() for projection in projections])
    biases = [projection.bias.detach() for projection in projections if projection.bias is not None]
    return weight, torch.cat(biases) if biases else None
