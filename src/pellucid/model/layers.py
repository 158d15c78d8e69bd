"""Multi-head attention, the feed-forward network, and the two kinds of layer.

Every module takes ``site``, the name of its place, and ``probe``: with a probe attention is
computed in its five explicit stages and each result is shown; without one it takes the fastest
path. Both compute the same function.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from pellucid.attention import masks, stages
from pellucid.attention.fast import attend_fast
from pellucid.attention.probe import Probe, is_watched, show
from pellucid.config import ModelConfig
from pellucid.model.cache import DecoderCache
from pellucid.model.dropout import Dropout

__all__ = [
    "ACTIVATIONS",
    "DecoderLayer",
    "EncoderLayer",
    "FeedForward",
    "MultiHeadAttention",
    "Sublayer",
]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "swish": F.silu,
}


class MultiHeadAttention(nn.Module):
    r"""Several attentions beside each other, each with its own projections.

    $$h_i = A(XW_i^q, XW_i^k, XW_i^v), \quad M = \text{Concat}(h_1, …, h_h) W^O$$

    The widths are free: d_q = d_k, d_v apart, and $W^O$ is $h d_v × d$. Heads are consecutive
    blocks of rows of the projections' weights.

    Source:
        Vaswani et al. 2017, section 3.2.2; notes "Transformers", equations 7 to 9 and 12 to 14.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.use_scale = config.scale_scores
        self.projections = config.projections
        wide = config.num_heads * config.d_key
        if config.projections != "none":
            self.query = nn.Linear(config.d_model, wide, bias=config.projection_bias)
            self.key = nn.Linear(config.d_model, wide, bias=config.projection_bias)
        if config.projections == "qkv":
            self.value = nn.Linear(
                config.d_model, config.num_heads * config.d_value, bias=config.projection_bias
            )
        self.output = nn.Linear(
            config.num_heads * config.d_value, config.d_model, bias=config.projection_bias
        )

    def project_query(self, x_BLD: Tensor) -> Tensor:
        """Make the queries: ``query_BHLK``."""
        return self._split_heads(x_BLD if self.projections == "none" else self.query(x_BLD))

    def project_key_value(self, x_BMD: Tensor) -> tuple[Tensor, Tensor]:
        """Make the keys and values: ``key_BHMK``, ``value_BHME``."""
        key_BHMK = self._split_heads(x_BMD if self.projections == "none" else self.key(x_BMD))
        if self.projections == "qkv":
            return key_BHMK, self._split_heads(self.value(x_BMD))
        return key_BHMK, key_BHMK

    def _split_heads(self, wide: Tensor) -> Tensor:
        batch, length, width = wide.shape
        return wide.view(batch, length, self.num_heads, width // self.num_heads).transpose(1, 2)

    def forward(
        self,
        query_BHLK: Tensor,
        key_BHMK: Tensor,
        value_BHME: Tensor,
        *,
        mask: Tensor | None,
        site: str,
        probe: Probe | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Attend with every head, concatenate, and project: ``output_BLD``."""
        drop: Callable[[Tensor], Tensor] | None = None
        if dropout is not None and dropout.drops_weights:
            drop = partial(dropout.on_weights, place=site)
        if probe is not None and is_watched(probe, site):
            context_BHLE = self._attend_in_stages(
                query_BHLK, key_BHMK, value_BHME, mask=mask, site=site, probe=probe, drop=drop
            )
        else:
            context_BHLE = attend_fast(
                query_BHLK, key_BHMK, value_BHME, mask, use_scale=self.use_scale, drop=drop
            )
        output_BLD = self.output(context_BHLE.transpose(1, 2).flatten(2))
        return show(probe, site, "output", output_BLD)

    def _attend_in_stages(
        self,
        query_BHLK: Tensor,
        key_BHMK: Tensor,
        value_BHME: Tensor,
        *,
        mask: Tensor | None,
        site: str,
        probe: Probe,
        drop: Callable[[Tensor], Tensor] | None,
    ) -> Tensor:
        query_BHLK = show(probe, site, "query", query_BHLK)
        key_BHMK = show(probe, site, "key", key_BHMK)
        value_BHME = show(probe, site, "value", value_BHME)
        scores_BHLM = show(probe, site, "scores", stages.score(query_BHLK, key_BHMK))
        scaled_BHLM = scores_BHLM
        if self.use_scale:
            scaled_BHLM = stages.scale(scores_BHLM, query_BHLK.shape[-1])
        scaled_BHLM = show(probe, site, "scaled", scaled_BHLM)
        masked_BHLM = show(probe, site, "masked", masks.apply_mask(scaled_BHLM, mask))
        weights_BHLM = show(probe, site, "weights", stages.weigh(masked_BHLM))
        if drop is not None:
            weights_BHLM = drop(weights_BHLM)
        return show(probe, site, "context", stages.mix(weights_BHLM, value_BHME))


class FeedForward(nn.Module):
    r"""The position-wise feed-forward network: $\max(0, xW_1 + b_1)W_2 + b_2$.

    The same weights for every position; a row's result depends on that row alone.

    Source:
        Vaswani et al. 2017, equation 2; notes "Transformers", equation 17.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, config.d_model)
        self.activation = ACTIVATIONS[config.activation]

    def forward(
        self,
        x_BLD: Tensor,
        *,
        site: str,
        probe: Probe | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Widen, activate, narrow: ``output_BLD``."""
        inner_BLF = show(probe, site, "inner", self.inner(x_BLD))
        activated_BLF = show(probe, site, "activated", self.activation(inner_BLF))
        if dropout is not None:
            activated_BLF = dropout.on_activated(activated_BLF, site)
        return show(probe, site, "output", self.outer(activated_BLF))


class Sublayer:
    r"""What stands around every sub-layer: dropout, residual connection and layer norm.

    Post-norm, the paper's: $\text{LayerNorm}(x + \text{Sublayer}(x))$. Pre-norm:
    $x + \text{Sublayer}(\text{LayerNorm}(x))$. Layer norm with gain 1 and bias 0 is equation 15
    of the notes "Transformers": population variance, ε inside the root.

    Source:
        Vaswani et al. 2017, section 3.1; notes "Transformers", equations 15 and 16; pre-norm:
        Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".
    """

    def __init__(self, config: ModelConfig) -> None:
        self.has_residual = config.residual
        self.norm_place = config.norm

    def __call__(
        self,
        x_BLD: Tensor,
        sublayer: Callable[[Tensor], Tensor],
        norm: nn.Module | None,
        *,
        site: str,
        probe: Probe | None,
        dropout: Dropout | None,
    ) -> Tensor:
        """Run one sub-layer with everything around it."""
        x_BLD = show(probe, site, "input", x_BLD)
        entering_BLD = x_BLD
        if self.norm_place == "pre" and norm is not None:
            entering_BLD = show(probe, site, "norm", norm(x_BLD))
        output_BLD = sublayer(entering_BLD)
        if dropout is not None:
            output_BLD = dropout(output_BLD, site)
        if self.has_residual:
            output_BLD = x_BLD + output_BLD
        output_BLD = show(probe, site, "residual", output_BLD)
        if self.norm_place == "post" and norm is not None:
            output_BLD = show(probe, site, "norm", norm(output_BLD))
        return output_BLD


def _layer_norm(config: ModelConfig) -> nn.Module | None:
    if config.norm == "none":
        return None
    return nn.LayerNorm(config.d_model, eps=config.layer_norm_epsilon)


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each within a `Sublayer`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.around = Sublayer(config)
        self.self_attention = MultiHeadAttention(config)
        self.self_attention_norm = _layer_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = _layer_norm(config)

    def forward(
        self,
        x_BSD: Tensor,
        mask: Tensor | None,
        *,
        site: str,
        probe: Probe | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Map a layer's input to its output, both ``x_BSD``."""

        def attend(x_BSD: Tensor) -> Tensor:
            query_BHSK = self.self_attention.project_query(x_BSD)
            key_BHSK, value_BHSE = self.self_attention.project_key_value(x_BSD)
            output_BSD: Tensor = self.self_attention(
                query_BHSK,
                key_BHSK,
                value_BHSE,
                mask=mask,
                site=f"{site}.self",
                probe=probe,
                dropout=dropout,
            )
            return output_BSD

        def feed_forward(x_BSD: Tensor) -> Tensor:
            output_BSD: Tensor = self.feed_forward(
                x_BSD, site=f"{site}.feed_forward", probe=probe, dropout=dropout
            )
            return output_BSD

        x_BSD = self.around(
            x_BSD,
            attend,
            self.self_attention_norm,
            site=f"{site}.self",
            probe=probe,
            dropout=dropout,
        )
        return self.around(
            x_BSD,
            feed_forward,
            self.feed_forward_norm,
            site=f"{site}.feed_forward",
            probe=probe,
            dropout=dropout,
        )


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, then the feed-forward network."""

    def __init__(self, config: ModelConfig, index: int) -> None:
        super().__init__()
        self.index = index
        self.around = Sublayer(config)
        self.self_attention = MultiHeadAttention(config)
        self.self_attention_norm = _layer_norm(config)
        self.cross_attention = MultiHeadAttention(config)
        self.cross_attention_norm = _layer_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = _layer_norm(config)

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        *,
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        cache: DecoderCache | None,
        site: str,
        probe: Probe | None = None,
        dropout: Dropout | None = None,
    ) -> Tensor:
        """Map a layer's input to its output, both ``x_BTD``."""

        def attend_to_target(x_BTD: Tensor) -> Tensor:
            query_BHTK = self.self_attention.project_query(x_BTD)
            key_BHMK, value_BHME = self.self_attention.project_key_value(x_BTD)
            if cache is not None:
                grown = cache.layers[self.index].self_attention
                key_BHMK, value_BHME = grown.append(key_BHMK, value_BHME)
            output_BTD: Tensor = self.self_attention(
                query_BHTK,
                key_BHMK,
                value_BHME,
                mask=self_mask,
                site=f"{site}.self",
                probe=probe,
                dropout=dropout,
            )
            return output_BTD

        def attend_to_source(x_BTD: Tensor) -> Tensor:
            query_BHTK = self.cross_attention.project_query(x_BTD)
            key_BHSK, value_BHSE = self._source_key_value(memory_BSD, cache)
            output_BTD: Tensor = self.cross_attention(
                query_BHTK,
                key_BHSK,
                value_BHSE,
                mask=cross_mask,
                site=f"{site}.cross",
                probe=probe,
                dropout=dropout,
            )
            return output_BTD

        def feed_forward(x_BTD: Tensor) -> Tensor:
            output_BTD: Tensor = self.feed_forward(
                x_BTD, site=f"{site}.feed_forward", probe=probe, dropout=dropout
            )
            return output_BTD

        for name, sublayer, norm in (
            ("self", attend_to_target, self.self_attention_norm),
            ("cross", attend_to_source, self.cross_attention_norm),
            ("feed_forward", feed_forward, self.feed_forward_norm),
        ):
            x_BTD = self.around(
                x_BTD, sublayer, norm, site=f"{site}.{name}", probe=probe, dropout=dropout
            )
        return x_BTD

    def _source_key_value(
        self, memory_BSD: Tensor, cache: DecoderCache | None
    ) -> tuple[Tensor, Tensor]:
        """The source's keys and values: computed once where there is a cache."""
        if cache is None:
            return self.cross_attention.project_key_value(memory_BSD)
        layer = cache.layers[self.index]
        if layer.cross_attention is None:
            layer.cross_attention = self.cross_attention.project_key_value(memory_BSD)
        return layer.cross_attention
