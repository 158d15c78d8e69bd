"""Encoder and decoder in training on a processor, with all positions of a batch as rows.

The positions of all sentences lie under each other, J of them, those attended to likewise, I. What
is done to each position alone, all but attention, sees one matrix, which in bfloat16 is filled up
with rows of zeros so that products have few shapes (`pellucid.train.few_shapes`). What becomes of
these rows is looked at by nobody, and their gradients are 0. Queries, keys and values are one
product.

Sentences and heads are there inside `_Attend` alone. Short sentences attend several in a block,
masked from each other, so that the products are less tiny.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from pellucid.attention.masks import causal_mask, padding_mask
from pellucid.attention.stages import attend_fast
from pellucid.config import TrainingConfig
from pellucid.model import Dropout, Transformer
from pellucid.model.layers import MultiHeadAttention, Sublayer
from pellucid.train.few_shapes import fill_rows, multiply_by, rows_at_once, shapes_matter

__all__ = ["HalvesInRows", "can_be_in_rows"]

POSITIONS_A_BLOCK = 32
"""How many positions a block of short sentences has at most."""

SHORT = 64
"""Up to which length plain products are faster than fused attention, forward and backward."""


def can_be_in_rows(model: Transformer, training: TrainingConfig) -> bool:
    """Whether a model's passes can be those here, and are faster so: in bfloat16 alone.

    They show nothing to a guided head.
    """
    is_plain = not training.compile and not training.guided_head
    is_fit = model.config.projections == "qkv" and is_plain
    return is_fit and shapes_matter(next(model.parameters()))


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
        self._is_short = longest <= SHORT and not dropout.drops_weights
        together = max(1, POSITIONS_A_BLOCK // longest) if self._is_short else 1
        self._source = _Rows(num_sentences, source_length, together)
        self._target = _Rows(num_sentences, target_length, together)
        self._mask = padding_mask(source_mask_BS)

    def encode(self, source_BS: Tensor) -> Tensor:
        """Stand for ``model.encode``."""
        stack, dropout = self._model.encoder, self._dropout
        x_BSD = stack.enter(source_BS, self._model.embedding_of("source"), dropout=dropout)
        x_JD = self._source.lay(x_BSD)
        to_self = self._between(self._source, self._source, self._mask, x_JD.dtype)
        for index, layer in enumerate(stack.layers):
            on_rows = _LayerOnRows(layer, f"encoder.{index}", dropout)
            x_JD = on_rows.attend("self", x_JD, to_self)
            x_JD = on_rows.feed_forward(x_JD)
        return self._source.take(stack.leave(x_JD))

    def decode(self, target_BT: Tensor, memory_BSD: Tensor) -> Tensor:
        """Stand for ``model.decode``."""
        stack, dropout = self._model.decoder, self._dropout
        x_BTD = stack.enter(target_BT, self._model.embedding_of("target"), dropout=dropout)
        x_JD, memory_ID = self._target.lay(x_BTD), self._source.lay(memory_BSD)
        look_ahead = None
        if self._model.config.look_ahead_mask:
            look_ahead = causal_mask(self._target.length)
        to_self = self._between(self._target, self._target, look_ahead, x_JD.dtype)
        to_source = self._between(self._target, self._source, self._mask, x_JD.dtype)
        for index, layer in enumerate(stack.layers):
            on_rows = _LayerOnRows(layer, f"decoder.{index}", dropout)
            x_JD = on_rows.attend("self", x_JD, to_self)
            x_JD = on_rows.attend("cross", x_JD, to_source, memory_ID)
            x_JD = on_rows.feed_forward(x_JD)
        return self._target.take(stack.leave(x_JD))

    def _between(
        self, rows: _Rows, memory_rows: _Rows, mask: Tensor | None, dtype: torch.dtype
    ) -> _Between:
        if not self._is_short:
            return _Between(rows, memory_rows, mask, None)
        sums = torch.promote_types(dtype, torch.float32)
        return _Between(rows, memory_rows, None, _additive_in_blocks(rows, memory_rows, mask, sums))


class _Rows(NamedTuple):
    """How the positions of some sentences lie under each other, some sentences to a block."""

    num_sentences: int
    length: int
    together: int

    @property
    def num_blocks(self) -> int:
        return -(-self.num_sentences // self.together)

    @property
    def block_length(self) -> int:
        return self.together * self.length

    def lay(self, x_BLD: Tensor) -> Tensor:
        """Lay them so, up to the end of a block: ``x_JD``."""
        x_JD = fill_rows(x_BLD.flatten(0, 1), self.block_length)
        return fill_rows(x_JD, rows_at_once(len(x_JD))) if shapes_matter(x_JD) else x_JD

    def take(self, x_JX: Tensor) -> Tensor:
        """See them as sentences again: ``x_BLX``."""
        rows = self.num_sentences * self.length
        return x_JX[:rows].view(self.num_sentences, self.length, -1)

    def by_head(self, x_JX: Tensor, num_heads: int) -> Tensor:
        """See blocks and heads: (block, head, position, column of a head)."""
        rows = self.num_blocks * self.block_length
        blocks = x_JX[:rows].view(self.num_blocks, self.block_length, num_heads, -1)
        return blocks.transpose(1, 2)

    def write(self, by_head: Tensor, into_JX: Tensor) -> None:
        """Put blocks and heads into rows, and zeros into those that fill up."""
        self.by_head(into_JX, by_head.shape[1]).copy_(by_head)
        into_JX[self.num_blocks * self.block_length :] = 0


class _Between(NamedTuple):
    """Which rows attend to which, and where they may: one of the two masks, or none."""

    rows: _Rows
    memory_rows: _Rows
    mask: Tensor | None
    additive: Tensor | None


def _additive_in_blocks(
    rows: _Rows, memory_rows: _Rows, mask: Tensor | None, dtype: torch.dtype
) -> Tensor:
    """Write a mask of sentences as what is added to scores: (block, 1, query, key)."""
    together, num_blocks = rows.together, rows.num_blocks
    may_BLM = torch.zeros(num_blocks * together, rows.length, memory_rows.length, dtype=torch.bool)
    may_BLM[: rows.num_sentences] = True if mask is None else mask[:, 0]
    forbidden = torch.finfo(dtype).min
    own_BLM = torch.zeros(may_BLM.shape, dtype=dtype).masked_fill_(~may_BLM, forbidden)
    sizes = (num_blocks, together, rows.length, together, memory_rows.length)
    additive = torch.full(sizes, forbidden, dtype=dtype)
    for one in range(together):
        additive[:, one, :, one] = own_BLM[one::together]
    return additive.view(num_blocks, 1, rows.block_length, memory_rows.block_length)


class _LayerOnRows(NamedTuple):
    """One layer, whose sub-layers get and give rows."""

    layer: Any
    site: str
    dropout: Dropout

    def attend(
        self, kind: str, x_JD: Tensor, between: _Between, memory_ID: Tensor | None = None
    ) -> Tensor:
        """Run an attention with all around it; self-attention where there is no memory."""
        attention: MultiHeadAttention = getattr(self.layer, f"{kind}_attention")
        site = f"{self.site}.{kind}"
        heads = _Heads(attention, between, self.dropout, site)
        parts = [attention.query, attention.key, attention.value]

        def run(entering_JD: Tensor) -> Tensor:
            if memory_ID is None:
                projected = [_project(entering_JD, parts)]
            else:
                projected = [_project(entering_JD, parts[:1]), _project(memory_ID, parts[1:])]
            context_JX = _Attend.apply(heads, *projected)  # type: ignore[no-untyped-call]
            output_JD: Tensor = attention.output(context_JX)
            return output_JD

        return self._around(site, getattr(self.layer, f"{kind}_attention_norm"), run, x_JD)

    def feed_forward(self, x_JD: Tensor) -> Tensor:
        """Run the feed-forward network with all around it."""
        site = f"{self.site}.feed_forward"
        run = partial(self.layer.feed_forward, site=site, dropout=self.dropout)
        return self._around(site, self.layer.feed_forward_norm, run, x_JD)

    def _around(
        self, site: str, norm: nn.Module | None, run: Callable[[Tensor], Tensor], x_JD: Tensor
    ) -> Tensor:
        around: Sublayer = self.layer.around
        return around(x_JD, run, norm, site=site, probe=None, dropout=self.dropout)


def _project(x_JD: Tensor, parts: Sequence[nn.Linear]) -> Tensor:
    """Apply several linear layers as one: their results beside each other."""
    weight_FD = torch.cat(tuple(part.weight for part in parts))
    biases = tuple(part.bias for part in parts if part.bias is not None)
    return multiply_by(x_JD, weight_FD, torch.cat(biases) if biases else None)


class _Heads(NamedTuple):
    """Takes rows apart into heads, and lets these attend."""

    attention: MultiHeadAttention
    between: _Between
    dropout: Dropout
    site: str

    def split(self, projected: Sequence[Tensor]) -> list[tuple[_Rows, Tensor]]:
        """Queries, keys and values, each as columns of rows, with how those lie."""
        parts = (self.attention.query, self.attention.key, self.attention.value)
        widths = [part.out_features for part in parts]
        rows, memory_rows = self.between.rows, self.between.memory_rows
        if len(projected) == 1:
            return [(rows, columns) for columns in torch.split(projected[0], widths, dim=1)]
        key_value = torch.split(projected[1], widths[1:], dim=1)
        return [(rows, projected[0]), *((memory_rows, columns) for columns in key_value)]

    def apart(self, rows: _Rows, columns: Tensor) -> Tensor:
        """Copy columns of rows, by head, as float32 where they are narrower."""
        by_head = rows.by_head(columns, self.attention.num_heads)
        sums = torch.promote_types(columns.dtype, torch.float32)
        return torch.empty(by_head.shape, dtype=sums).copy_(by_head)

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attend within blocks."""
        use_scale, between = self.attention.use_scale, self.between
        if between.additive is None:
            drop = None
            if self.dropout.drops_weights:
                drop = partial(self.dropout.on_weights, place=self.site)
            return attend_fast(query, key, value, between.mask, use_scale=use_scale, drop=drop)
        factor = query.shape[-1] ** -0.5 if use_scale else 1.0
        masked = torch.add(between.additive, query @ key.transpose(2, 3), alpha=factor)
        return torch.softmax(masked, dim=-1) @ value


class _Attend(torch.autograd.Function):
    """Attention between rows: queries, keys and values beside each other become contexts.

    Inside it is PyTorch's own derivative; around it blocks and heads are copied once each way.
    """

    @staticmethod
    def forward(ctx: Any, heads: _Heads, *projected: Tensor) -> Tensor:
        parts = [heads.apart(*part).requires_grad_() for part in heads.split(projected)]
        with torch.enable_grad():
            context = heads.attend(*parts)
        ctx.heads, ctx.parts, ctx.context = heads, parts, context
        ctx.shapes = [part.shape for part in projected]
        context_JX = projected[0].new_empty(len(projected[0]), context.shape[1] * context.shape[3])
        heads.between.rows.write(context.detach(), context_JX)
        return context_JX

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_JX: Tensor) -> tuple[Any, ...]:
        heads: _Heads = ctx.heads
        grad = heads.apart(heads.between.rows, grad_JX)
        grads = torch.autograd.grad(ctx.context, ctx.parts, grad)
        del ctx.context, ctx.parts
        projected = [grad_JX.new_empty(shape) for shape in ctx.shapes]
        for (rows, columns), part in zip(heads.split(projected), grads, strict=True):
            rows.write(part, columns)
        return None, *projected
