"""Multi-head attention, the feed-forward network, and the two kinds of layer.

Every module takes a ``site``: its place, with the probe that looks there and the dropout of
training. A watched attention computes its five explicit stages and shows each result; any other
takes the fastest path. Both compute the same function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from pellucid.attention import masks, stages
from pellucid.attention.fast import attend_fast
from pellucid.config import ModelConfig, known_option
from pellucid.model.kv_cache import GrowingKeysValues, LayerCache
from pellucid.model.rotary import PositionsInside, make_norm
from pellucid.model.simple_unit import SimpleUnit
from pellucid.model.site import Site

_Activation = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[str, _Activation] = {"relu": F.relu, "gelu": F.gelu, "swish": F.silu}


class MultiHeadAttention(nn.Module):
    r"""Several attentions in parallel, each with its own projections.

    $$h_i = A(XW_i^q, XW_i^k, XW_i^v), \quad M = \text{Concat}(h_1, …, h_h) W^O$$

    Queries and keys share a width, values have another, and $W^O$ is $h d_v × d$. Rows $i d_k$ to
    $(i + 1) d_k$ (end excluded; $d_v$ for values) of a projection's weight belong to head i,
    counted from 0. Projecting is separate from `forward`, so that a cache can keep keys and values.
    With ``num_key_value_heads``, each head of keys and values serves a group of query heads.

    Args:
        config: sizes and switches.
        has_positions: True for self-attention, which some kinds of positions are part of.

    Source:
        Vaswani et al. 2017, section 3.2.2; notes "Transformers", equations 7 to 9 and 12 to 14;
        groups: Ainslie et al. 2023, "GQA", section 2.2.
    """

    __call__: Callable[..., Tensor]  # For type checkers: PyTorch declares Any.

    def __init__(self, config: ModelConfig, *, has_positions: bool = False) -> None:
        super().__init__()
        self.num_heads = config.num_heads
        self.d_key = config.d_key
        self.d_value = config.d_value
        self.positions = PositionsInside(config, is_used=has_positions)
        self.use_scale: bool = known_option(config, "scale_scores", (True, False))
        self.projections = known_option(config, "projections", ("qkv", "qk", "none"))
        d_model = config.d_model
        bias = known_option(config, "projection_bias", (False, True))
        kv_heads = known_option(config, "num_key_value_heads", range(config.num_heads))
        kv_heads = kv_heads or config.num_heads
        if config.projections != "none":
            self.query = nn.Linear(d_model, config.num_heads * config.d_key, bias=bias)
            self.key = nn.Linear(d_model, kv_heads * config.d_key, bias=bias)
        if config.projections == "qkv":
            self.value = nn.Linear(d_model, kv_heads * config.d_value, bias=bias)
        self.output = nn.Linear(config.num_heads * config.d_value, d_model, bias=bias)

    def project_query(self, x_BLD: Tensor, start: int = 0) -> Tensor:
        """Make the queries of positions from ``start``: ``query_BHLK``."""
        wide = x_BLD if self.projections == "none" else self.query(x_BLD)
        return self.positions.turn(self._split_heads(wide, self.d_key), start)

    def project_key_value(self, x_BMD: Tensor, start: int = 0) -> tuple[Tensor, Tensor]:
        """Make the keys and values, with fewer heads if these serve groups."""
        wide = x_BMD if self.projections == "none" else self.key(x_BMD)
        value_BHME = key_BHMK = self._split_heads(wide, self.d_key)
        if self.projections == "qkv":  # "qk" and "none": the keys are also the values.
            value_BHME = self._split_heads(self.value(x_BMD), self.d_value)
        return self.positions.turn(key_BHMK, start), value_BHME

    def _split_heads(self, wide: Tensor, width: int) -> Tensor:
        batch, length, all_heads = wide.shape
        return wide.view(batch, length, all_heads // width, width).transpose(1, 2)

    def share(self, grouped: Tensor) -> Tensor:
        """Repeat each head of keys or values for the query heads of its group."""
        groups = self.num_heads // grouped.shape[1]
        return grouped if groups == 1 else grouped.repeat_interleave(groups, dim=1)

    def forward(
        self,
        query_BHLK: Tensor,
        key_BHMK: Tensor,
        value_BHME: Tensor,
        *,
        mask: Tensor | None,
        site: Site,
    ) -> Tensor:
        """Attend with every head, concatenate, and project: ``output_BLD``."""
        drop = site.drop_weights
        positions = self.positions
        # Here and not before, so that a cache keeps the few heads only.
        key_BHMK = self.share(key_BHMK)
        value_BHME = self.share(value_BHME)
        if site.is_watched:
            # Shared with a cache, and without projections with the input itself.
            query_BHLK = site.show("query", query_BHLK, is_shared=True)
            key_BHMK = site.show("key", key_BHMK, is_shared=True)
            value_BHME = site.show("value", value_BHME, is_shared=True)
            scores_BHLM = scaled_BHLM = site.show("scores", positions.score(query_BHLK, key_BHMK))
            if self.use_scale:
                scaled_BHLM = stages.scale(scores_BHLM, query_BHLK.shape[-1])
            scaled_BHLM = site.show("scaled", scaled_BHLM)
            biased_BHLM = positions.lower(scaled_BHLM)
            masked_BHLM = site.show("masked", masks.apply_mask(biased_BHLM, mask))
            weights_BHLM = site.show("weights", stages.weigh(masked_BHLM))
            # Weights are shown as the softmax gives them, before dropout.
            weights_BHLM = weights_BHLM if drop is None else drop(weights_BHLM)
            context_BHLE = site.show("context", stages.mix(weights_BHLM, value_BHME))
        else:
            use_scale = self.use_scale
            bias = positions.bias(query_BHLK, key_BHMK, self.use_scale)
            context_BHLE = attend_fast(
                query_BHLK, key_BHMK, value_BHME, mask, use_scale=use_scale, bias=bias, drop=drop
            )
        return site.show("output", self.output(context_BHLE.transpose(1, 2).flatten(2)))


class FeedForward(nn.Module):
    r"""The position-wise feed-forward network, with ReLU: $\max(0, xW_1 + b_1)W_2 + b_2$.

    The same weights serve every position, and a row's result depends on that row only. A gated one
    multiplies by a second projection: $(\max(0, xW_1 + b_1) \odot (xV + c))W_2 + b_2$.

    Source:
        Vaswani et al. 2017, equation 2; notes "Transformers", equation 17; gated: Shazeer 2020,
        "GLU Variants Improve Transformer", equations 5 and 6.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.d_model, config.d_ff)
        self.outer = nn.Linear(config.d_ff, config.d_model)
        if known_option(config, "gated_feed_forward", (False, True)):
            self.gate = nn.Linear(config.d_model, config.d_ff)
        self.activation = ACTIVATIONS[known_option(config, "activation", ACTIVATIONS)]

    def forward(self, x_BLD: Tensor, site: Site) -> Tensor:
        """Widen, activate, narrow: ``output_BLD``."""
        inner_BLF = site.show("inner", self.inner(x_BLD))
        activated_BLF = self.activation(inner_BLF)
        if hasattr(self, "gate"):
            activated_BLF = activated_BLF * site.show("gate", self.gate(x_BLD))
        activated_BLF = site.show("activated", activated_BLF)
        return site.show("output", self.outer(site.drop_activated(activated_BLF)))


class AddNorm:
    r"""The surroundings of every sub-layer: dropout, residual connection and layer norm.

    Post-norm, the paper's: $\text{LayerNorm}(x + \text{Sublayer}(x))$. Pre-norm:
    $x + \text{Sublayer}(\text{LayerNorm}(x))$. Layer norm with gain 1 and bias 0 is equation 15
    of the notes "Transformers": population variance, ε inside the root.

    Source:
        Vaswani et al. 2017, section 3.1; notes "Transformers", equations 15 and 16; pre-norm:
        Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".
    """

    def __init__(self, config: ModelConfig) -> None:
        self.norm_place = known_option(config, "norm", ("post", "pre", "none"))
        self.has_residual = known_option(config, "residual", (True, False))

    def __call__(
        self,
        x_BLD: Tensor,
        sublayer: Callable[..., Tensor],
        norm: nn.Module | None,
        site: Site,
        *rest: Any,
    ) -> Tensor:
        """Run one sub-layer, ``sublayer(x_BLD, site, *rest)``, with everything around it."""
        # post-norm: norm(x + sublayer(x))
        # pre-norm:  x + sublayer(norm(x))
        # A probe that replaces the input changes the residual connection as well.
        x_BLD = entering_BLD = site.show("input", x_BLD)
        if self.norm_place == "pre" and norm is not None:
            entering_BLD = site.show("norm", norm(x_BLD))
        output_BLD = site.drop(sublayer(entering_BLD, site, *rest))
        if self.has_residual:
            output_BLD = x_BLD + output_BLD
        output_BLD = site.show("residual", output_BLD)
        if self.norm_place == "post" and norm is not None:
            output_BLD = site.show("norm", norm(output_BLD))
        return output_BLD


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each within an `AddNorm`."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.add_norm = AddNorm(config)
        self.self_attention = MultiHeadAttention(config, has_positions=True)
        self.self_attention_norm = make_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = make_norm(config)

    def forward(self, x_BSD: Tensor, mask: Tensor | None, site: Site) -> Tensor:
        """Map a layer's input to its output, both ``x_BSD``."""
        add_norm = self.add_norm
        self_norm = self.self_attention_norm
        x_BSD = add_norm(x_BSD, self._attend, self_norm, site.within("self"), mask)
        norm = self.feed_forward_norm
        return add_norm(x_BSD, self.feed_forward, norm, site.within("feed_forward"))

    def _attend(self, x_BSD: Tensor, site: Site, mask: Tensor | None) -> Tensor:
        query_BHSK = self.self_attention.project_query(x_BSD)
        key_BHSK, value_BHSE = self.self_attention.project_key_value(x_BSD)
        return self.self_attention(query_BHSK, key_BHSK, value_BHSE, mask=mask, site=site)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, then the feed-forward network.

    With ``decoder = "ssru"`` a recurrent unit takes the place of masked self-attention.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.add_norm = AddNorm(config)
        self.has_unit = known_option(config, "decoder", ("attention", "ssru")) == "ssru"
        if self.has_unit:
            self.recurrent = SimpleUnit(config)
            self.recurrent_norm = make_norm(config)
        else:
            self.self_attention = MultiHeadAttention(config, has_positions=True)
            self.self_attention_norm = make_norm(config)
        self.cross_attention = MultiHeadAttention(config)
        self.cross_attention_norm = make_norm(config)
        self.feed_forward = FeedForward(config)
        self.feed_forward_norm = make_norm(config)

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        self_mask: Tensor | None,
        cross_mask: Tensor | None,
        cache: LayerCache | None,
        site: Site,
    ) -> Tensor:
        """Map a layer's input to its output, both ``x_BTD``."""
        add_norm = self.add_norm
        at_cross = site.within("cross")
        cross_norm = self.cross_attention_norm
        past: Any = None if cache is None else cache.past
        if self.has_unit:
            at_unit = site.within("recurrent")
            x_BTD = add_norm(x_BTD, self.recurrent, self.recurrent_norm, at_unit, past)
        else:
            at_self = site.within("self")
            self_norm = self.self_attention_norm
            x_BTD = add_norm(x_BTD, self._attend_to_target, self_norm, at_self, self_mask, past)
        x_BTD = add_norm(
            x_BTD, self._attend_to_source, cross_norm, at_cross, memory_BSD, cross_mask, cache
        )
        norm = self.feed_forward_norm
        return add_norm(x_BTD, self.feed_forward, norm, site.within("feed_forward"))

    def _attend_to_target(
        self, x_BTD: Tensor, site: Site, mask: Tensor | None, past: GrowingKeysValues | None
    ) -> Tensor:
        # Read before the new rows are appended, which changes the length.
        start = 0 if past is None else past.length
        query_BHTK = self.self_attention.project_query(x_BTD, start)
        key_BHMK, value_BHME = self.self_attention.project_key_value(x_BTD, start)
        if past is not None:
            key_BHMK, value_BHME = past.append(key_BHMK, value_BHME)
        return self.self_attention(query_BHTK, key_BHMK, value_BHME, mask=mask, site=site)

    def _attend_to_source(
        self,
        x_BTD: Tensor,
        site: Site,
        memory_BSD: Tensor,
        mask: Tensor | None,
        cache: LayerCache | None,
    ) -> Tensor:
        query_BHTK = self.cross_attention.project_query(x_BTD)
        # With a cache the source is projected only once.
        key_value = None if cache is None else cache.cross_attention
        if key_value is None:
            key_value = self.cross_attention.project_key_value(memory_BSD)
        if cache is not None:
            cache.cross_attention = key_value
        return self.cross_attention(query_BHTK, *key_value, mask=mask, site=site)
