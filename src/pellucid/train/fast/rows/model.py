"""Encoder and decoder in training on a processor, with all positions of a batch as rows.

The positions of all sentences lie under each other, J of them, those attended to likewise, I. What
is done to each position alone, all but attention, sees one matrix, which in bfloat16 is filled up
with rows of zeros so that products have few shapes (`pellucid.train.fast.rows.few_shapes`). What
becomes of these rows is looked at by nobody, and their gradients are 0. Queries, keys and values
are one product.

Sentences and heads are there in `pellucid.train.fast.rows.attention` alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pellucid.attention.masks import causal_mask, padding_mask
from pellucid.config import ModelConfig, TrainingConfig
from pellucid.model import Dropout, Transformer
from pellucid.model.layers import MultiHeadAttention, Sublayer
from pellucid.model.site import Site
from pellucid.train.fast.rows.attention import (
    LONGEST_IN_BLOCKS,
    Between,
    Heads,
    Rows,
    attend_between,
    block_size,
)
from pellucid.train.fast.rows.few_shapes import multiply_by

__all__ = ["HalvesInRows", "can_be_in_rows"]


def can_be_in_rows(model: ModelConfig, training: TrainingConfig) -> bool:
    """Whether a model's passes can be those here: they show nothing to a guided head.

    They are faster where shapes matter: in bfloat16 on a processor.
    """
    return model.projections == "qkv" and not training.compile and not training.guided_head


class HalvesInRows:
    """Encoder and decoder of a model, for one batch.

    Args:
        model: whose halves they are.
        source_mask_BS: where its sources have tokens.
        target_length: of its targets.
        dropout: of the step.
    """

    def __init__(
        self, model: Transformer, source_mask_BS: Tensor, target_length: int, dropout: Dropout
    ) -> None:
        self._model, self._dropout = model, dropout
        num_sentences, source_length = source_mask_BS.shape
        longest = max(source_length, target_length)
        is_short = longest <= LONGEST_IN_BLOCKS and not dropout.drops_weights
        self._positions = block_size(longest) if is_short else 0
        together = self._positions // longest if is_short else 1
        self._source = Rows(num_sentences, source_length, together)
        self._target = Rows(num_sentences, target_length, together)
        self._mask = padding_mask(source_mask_BS)

    def encode(self, source_BS: Tensor) -> Tensor:
        """Stand for ``model.encode``."""
        stack, site = self._model.encoder, Site("encoder", dropout=self._dropout)
        x_BSD = stack.enter(source_BS, self._model.embedding_of("source"), site)
        x_JD = self._source.lay(x_BSD)
        to_self = self._between(self._source, self._source, self._mask, x_JD.dtype)
        for index, layer in enumerate(stack.layers):
            on_rows = _LayerOnRows(layer, site.within(index))
            x_JD = on_rows.attend("self", x_JD, to_self)
            x_JD = on_rows.feed_forward(x_JD)
        return self._source.take(stack.leave(x_JD, site))

    def decode(
        self, target_BT: Tensor, memory_BSD: Tensor, *, target_mask_BT: Tensor | None = None
    ) -> Tensor:
        """Stand for ``model.decode``; the mask is for models that look ahead."""
        stack, site = self._model.decoder, Site("decoder", dropout=self._dropout)
        x_BTD = stack.enter(target_BT, self._model.embedding_of("target"), site)
        x_JD, memory_ID = self._target.lay(x_BTD), self._source.lay(memory_BSD)
        own_mask = None if target_mask_BT is None else padding_mask(target_mask_BT)
        if self._model.config.look_ahead_mask:
            own_mask = causal_mask(self._target.length)
        to_self = self._between(self._target, self._target, own_mask, x_JD.dtype)
        to_source = self._between(self._target, self._source, self._mask, x_JD.dtype)
        for index, layer in enumerate(stack.layers):
            on_rows = _LayerOnRows(layer, site.within(index))
            x_JD = on_rows.attend("self", x_JD, to_self)
            x_JD = on_rows.attend("cross", x_JD, to_source, memory_ID)
            x_JD = on_rows.feed_forward(x_JD)
        return self._target.take(stack.leave(x_JD, site))

    def _between(
        self, rows: Rows, memory_rows: Rows, mask: Tensor | None, dtype: torch.dtype
    ) -> Between:
        between = Between(rows, memory_rows, mask)
        return between.in_blocks(self._positions, dtype) if self._positions else between


class _LayerOnRows(NamedTuple):
    """One layer, whose sub-layers get and give rows."""

    layer: Any
    site: Site

    def attend(
        self, kind: str, x_JD: Tensor, between: Between, memory_ID: Tensor | None = None
    ) -> Tensor:
        """Run an attention with all around it; self-attention where there is no memory."""
        attention: MultiHeadAttention = getattr(self.layer, f"{kind}_attention")
        site = self.site.within(kind)
        heads = Heads(attention, between, site)
        parts = [attention.query, attention.key, attention.value]

        def run(entering_JD: Tensor, site: Site) -> Tensor:
            if memory_ID is None:
                projected = [_project(entering_JD, parts)]
            else:
                projected = [_project(entering_JD, parts[:1]), _project(memory_ID, parts[1:])]
            output_JD: Tensor = attention.output(attend_between(heads, *projected))
            return output_JD

        around: Sublayer = self.layer.around
        return around(x_JD, run, getattr(self.layer, f"{kind}_attention_norm"), site)

    def feed_forward(self, x_JD: Tensor) -> Tensor:
        """Run the feed-forward network with all around it."""
        layer = self.layer
        around: Sublayer = layer.around
        site = self.site.within("feed_forward")
        return around(x_JD, layer.feed_forward, layer.feed_forward_norm, site)


def _project(x_JD: Tensor, parts: Sequence[nn.Linear]) -> Tensor:
    """Apply several linear layers as one: their results beside each other."""
    weight_FD = torch.cat(tuple(part.weight for part in parts))
    biases = tuple(part.bias for part in parts if part.bias is not None)
    return multiply_by(x_JD, weight_FD, torch.cat(biases) if biases else None)
