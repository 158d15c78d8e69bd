"""Encoder and decoder in training on a processor, with all positions of a batch as rows.

The positions of all sentences are stacked as J rows, those attended to as I rows. Everything except
attention works on each position separately, so it sees one matrix. In bfloat16 it is padded with
rows of zeros so that products have few shapes (`pellucid.train.fast.rows.few_shapes`). The results
of these rows are not used, and their gradients are 0. Queries, keys and values are one product.

Only `pellucid.train.fast.rows.attention` splits rows into sentences and heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pellucid.attention.masks import causal_mask, padding_mask
from pellucid.config import ModelConfig, TrainingConfig
from pellucid.model import Dropout, Transformer
from pellucid.model.layers import AddNorm, MultiHeadAttention
from pellucid.model.site import Site
from pellucid.train.fast.rows.attention import (
    LONGEST_IN_BLOCKS,
    AttentionRows,
    RowHeads,
    RowLayout,
    attend_rows,
    block_size,
)
from pellucid.train.fast.rows.few_shapes import linear_in_few_shapes


def supports_rows(model: ModelConfig, training: TrainingConfig) -> bool:
    """Tell whether a model can be trained this way; a guided head would see no weights.

    It is faster if shapes matter: in bfloat16 on a processor.
    """
    is_usual = not model.is_recurrent and model.projections == "qkv"
    return is_usual and not training.compile and not training.guided_head


class TransformerOnRows:
    """Encoder and decoder of a model, for one batch.

    Args:
        model: holds the weights.
        source_mask_BS: True for tokens, False for padding.
        target_length: of the padded targets.
        dropout: of the step.
    """

    def __init__(
        self, model: Transformer, source_mask_BS: Tensor, target_length: int, dropout: Dropout
    ) -> None:
        self._model, self._dropout = model, dropout
        num_sentences, source_length = source_mask_BS.shape
        longest = max(source_length, target_length)
        is_short = longest <= LONGEST_IN_BLOCKS and not dropout.drops_weights
        self._block_positions = block_size(longest) if is_short else 0
        sentences_per_block = self._block_positions // longest if is_short else 1
        self._source = RowLayout(num_sentences, source_length, sentences_per_block)
        self._target = RowLayout(num_sentences, target_length, sentences_per_block)
        self._mask = padding_mask(source_mask_BS)

    def encode(self, source_BS: Tensor) -> Tensor:
        """Compute what ``model.encode`` does."""
        stack, site = self._model.encoder, Site("encoder", dropout=self._dropout)
        x_BSD = stack.enter(source_BS, self._model.embedding_of("source"), site)
        x_JD = self._source.flatten(x_BSD)
        to_self = self._attention_rows(self._source, self._source, self._mask, x_JD.dtype)
        for index, layer in enumerate(stack.layers):
            on_rows = _LayerOnRows(layer, site.within(index))
            x_JD = on_rows.attend("self", x_JD, to_self)
            x_JD = on_rows.feed_forward(x_JD)
        return self._source.unflatten(stack.leave(x_JD, site))

    def decode(
        self, target_BT: Tensor, memory_BSD: Tensor, *, target_mask_BT: Tensor | None = None
    ) -> Tensor:
        """Compute what ``model.decode`` does; the mask is for models that look ahead."""
        stack, site = self._model.decoder, Site("decoder", dropout=self._dropout)
        x_BTD = stack.enter(target_BT, self._model.embedding_of("target"), site)
        x_JD, memory_ID = self._target.flatten(x_BTD), self._source.flatten(memory_BSD)
        own_mask = None if target_mask_BT is None else padding_mask(target_mask_BT)
        if self._model.config.look_ahead_mask:
            own_mask = causal_mask(self._target.length)
        to_self = self._attention_rows(self._target, self._target, own_mask, x_JD.dtype)
        to_source = self._attention_rows(self._target, self._source, self._mask, x_JD.dtype)
        for index, layer in enumerate(stack.layers):
            on_rows = _LayerOnRows(layer, site.within(index))
            x_JD = on_rows.attend("self", x_JD, to_self)
            x_JD = on_rows.attend("cross", x_JD, to_source, memory_ID)
            x_JD = on_rows.feed_forward(x_JD)
        return self._target.unflatten(stack.leave(x_JD, site))

    def _attention_rows(
        self, rows: RowLayout, memory_rows: RowLayout, mask: Tensor | None, dtype: torch.dtype
    ) -> AttentionRows:
        layout = AttentionRows(rows, memory_rows, mask)
        return layout.in_blocks(self._block_positions, dtype) if self._block_positions else layout


class _LayerOnRows(NamedTuple):
    """One layer, from rows to rows."""

    layer: Any
    site: Site

    def attend(
        self, kind: str, x_JD: Tensor, layout: AttentionRows, memory_ID: Tensor | None = None
    ) -> Tensor:
        """Run self-attention, or cross-attention to the memory, as a whole sub-layer."""
        attention: MultiHeadAttention = getattr(self.layer, f"{kind}_attention")
        site = self.site.within(kind)
        heads = RowHeads(attention, layout, site)
        parts = [attention.query, attention.key, attention.value]

        def run(entering_JD: Tensor, site: Site) -> Tensor:
            if memory_ID is None:
                projected = [_project(entering_JD, parts)]
            else:
                projected = [_project(entering_JD, parts[:1]), _project(memory_ID, parts[1:])]
            output_JD: Tensor = attention.output(attend_rows(heads, *projected))
            return output_JD

        add_norm: AddNorm = self.layer.add_norm
        return add_norm(x_JD, run, getattr(self.layer, f"{kind}_attention_norm"), site)

    def feed_forward(self, x_JD: Tensor) -> Tensor:
        """Run the feed-forward network as a whole sub-layer."""
        layer = self.layer
        add_norm: AddNorm = layer.add_norm
        site = self.site.within("feed_forward")
        return add_norm(x_JD, layer.feed_forward, layer.feed_forward_norm, site)


def _project(x_JD: Tensor, parts: Sequence[nn.Linear]) -> Tensor:
    """Apply several linear layers as one; their results are adjacent columns."""
    weight_FD = torch.cat(tuple(part.weight for part in parts))
    biases = tuple(part.bias for part in parts if part.bias is not None)
    return linear_in_few_shapes(x_JD, weight_FD, torch.cat(biases) if biases else None)
