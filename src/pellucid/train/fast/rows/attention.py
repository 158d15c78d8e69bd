"""Attention between rows, in training on a processor.

Queries, keys and values come beside each other as columns of rows, and contexts leave as rows.
Sentences and heads are there in between alone.

Sentences of up to 128 tokens attend in blocks of 32, 64, 96 or 128 positions, several in one where
they fit, masked from each other, and zeros to the end. So products are less tiny, all of bfloat16's
softmax is vectorized, and there are few of the shapes that
`pellucid.train.fast.rows.few_shapes` speaks of: the number of blocks is
brought to one of few as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pellucid.attention.fast import attend_fast
from pellucid.model.layers import MultiHeadAttention
from pellucid.model.site import Site
from pellucid.train.fast.rows.few_shapes import fill_rows, rows_at_once, shapes_matter

__all__ = [
    "FEWEST_BLOCKS",
    "LONGEST_IN_BLOCKS",
    "Between",
    "Heads",
    "Rows",
    "attend_between",
    "block_size",
]

BLOCK_STEP = 32
"""What a block's positions are a multiple of: numbers that one instruction takes in bfloat16."""

LONGEST_IN_BLOCKS = 128
"""Up to which length blocks are faster than fused attention, forward and backward."""

FEWEST_BLOCKS = 4
"""What numbers of blocks are multiples of."""

ROWS_OF_COMMON_PART = 64
"""From how many rows it is taken what keys, or values, have in common."""


def block_size(longest: int) -> int:
    """How many positions a block has for sentences of up to so many tokens."""
    return -(-longest // BLOCK_STEP) * BLOCK_STEP


class Rows(NamedTuple):
    """How the positions of some sentences lie under each other, some sentences to a block."""

    num_sentences: int
    length: int
    together: int = 1

    @property
    def num_blocks(self) -> int:
        """Blocks that hold sentences."""
        return -(-self.num_sentences // self.together)

    @property
    def used(self) -> int:
        """Positions of a block that belong to sentences."""
        return self.together * self.length

    def lay(self, x_BLD: Tensor) -> Tensor:
        """Lay them so, up to the end of a block: ``x_JD``."""
        x_JD = fill_rows(x_BLD.flatten(0, 1), self.used)
        return fill_rows(x_JD, rows_at_once(len(x_JD))) if shapes_matter(x_JD) else x_JD

    def take(self, x_JX: Tensor) -> Tensor:
        """See them as sentences again: ``x_BLX``."""
        rows = self.num_sentences * self.length
        return x_JX[:rows].view(self.num_sentences, self.length, -1)

    def by_head(self, x_JX: Tensor, num_heads: int) -> Tensor:
        """See blocks and heads: (block, head, used position, column of a head)."""
        rows = self.num_blocks * self.used
        return x_JX[:rows].view(self.num_blocks, self.used, num_heads, -1).transpose(1, 2)

    def write(self, by_head: Tensor, into_JX: Tensor) -> None:
        """Put blocks and heads into rows, and zeros into those that fill up."""
        found = self.by_head(into_JX, by_head.shape[1])
        found.copy_(by_head[: self.num_blocks, :, : self.used])
        into_JX[self.num_blocks * self.used :] = 0


class Between(NamedTuple):
    """Which rows attend to which, and where they may: one of the two masks, or none.

    Attributes:
        rows: those of the queries.
        memory_rows: those of keys and values, of the same sentences, as many to a block.
        mask: where sentences may look; None for everywhere.
        additive_B1LM: in blocks, each one of B, what is added to scores.
    """

    rows: Rows
    memory_rows: Rows
    mask: Tensor | None
    additive_B1LM: Tensor | None = None

    def in_blocks(self, positions: int, dtype: torch.dtype) -> Between:
        """Say the same of blocks of so many positions, with a mask to be added."""
        rows, memory_rows, together = self.rows, self.memory_rows, self.rows.together
        lengths = rows.length, memory_rows.length
        may_BLM = torch.zeros(rows.num_blocks * together, *lengths, dtype=torch.bool)
        may_BLM[: rows.num_sentences] = True if self.mask is None else self.mask[:, 0]
        forbidden = torch.finfo(dtype).min
        own_BLM = torch.zeros(may_BLM.shape, dtype=dtype).masked_fill_(~may_BLM, forbidden)
        sizes = (_brought_to_few(rows.num_blocks), 1, positions, positions)
        additive_B1LM = torch.full(sizes, forbidden, dtype=dtype)
        for one in range(together):
            queries, keys = (slice(one * length, (one + 1) * length) for length in lengths)
            additive_B1LM[: rows.num_blocks, 0, queries, keys] = own_BLM[one::together]
        return self._replace(mask=None, additive_B1LM=additive_B1LM)


def _brought_to_few(num_blocks: int) -> int:
    return num_blocks + -num_blocks % rows_at_once(num_blocks, fewest=FEWEST_BLOCKS)


class Heads(NamedTuple):
    """Takes rows apart into heads.

    Attributes:
        attention: whose heads they are.
        between: which rows attend to which.
        site: the place, with the dropout of the step.
    """

    attention: MultiHeadAttention
    between: Between
    site: Site

    @property
    def factor(self) -> float:
        """What scores are multiplied by."""
        width = self.attention.query.out_features // self.attention.num_heads
        return float(width**-0.5) if self.attention.use_scale else 1.0

    def split(self, projected: Sequence[Tensor]) -> list[tuple[Rows, Tensor]]:
        """Queries, keys and values, each as columns of rows, with how those lie."""
        parts = (self.attention.query, self.attention.key, self.attention.value)
        widths = [part.out_features for part in parts]
        rows, memory_rows = self.between.rows, self.between.memory_rows
        if len(projected) == 1:
            return [(rows, columns) for columns in torch.split(projected[0], widths, dim=1)]
        key_value = torch.split(projected[1], widths[1:], dim=1)
        return [(rows, projected[0]), *((memory_rows, columns) for columns in key_value)]

    def gather(self, parts: Sequence[Tensor], shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Put queries, keys and values beside each other as rows again."""
        dtype = self.attention.query.weight.dtype
        projected = [torch.empty(shape, dtype=dtype) for shape in shapes]
        for (rows, columns), part in zip(self.split(projected), parts, strict=True):
            rows.write(part, columns)
        return projected

    def in_float32(self, rows: Rows, columns: Tensor) -> Tensor:
        """Copy columns of rows, by head, as float32 where they are narrower."""
        by_head = rows.by_head(columns, self.attention.num_heads)
        sums = torch.promote_types(columns.dtype, torch.float32)
        return torch.empty(by_head.shape, dtype=sums).copy_(by_head)

    def in_blocks(self, rows: Rows, columns: Tensor, sizes: Sequence[int]) -> Tensor:
        """Copy columns of rows, by head, into so many blocks of so many positions."""
        by_head = rows.by_head(columns, self.attention.num_heads)
        num_blocks, positions = sizes
        blocks = columns.new_zeros(num_blocks, by_head.shape[1], positions, by_head.shape[3])
        blocks[: rows.num_blocks, :, : rows.used] = by_head
        return blocks

    def common_part(self, columns_JX: Tensor) -> Tensor:
        """Estimate what all rows have in common, by head; any other row would do, but less well."""
        common_X = columns_JX[:ROWS_OF_COMMON_PART].mean(dim=0)
        return common_X.view(self.attention.num_heads, 1, -1)


def attend_between(heads: Heads, *projected: Tensor) -> Tensor:
    """Attend, from queries, keys and values to contexts.

    Args:
        heads: how rows are heads.
        projected: queries, keys and values beside each other, or the queries, and keys and
            values.

    Returns:
        ``context_JX``: the contexts of all heads beside each other.
    """
    way = _AttendFused if heads.between.additive_B1LM is None else _AttendInBlocks
    context_JX: Tensor = way.apply(heads, *projected)  # type: ignore[no-untyped-call]
    return context_JX


class _AttendFused(torch.autograd.Function):
    """PyTorch's own attention in float32, and its own derivative; copies around it."""

    @staticmethod
    def forward(ctx: Any, heads: Heads, *projected: Tensor) -> Tensor:
        parts = [heads.in_float32(*part).requires_grad_() for part in heads.split(projected)]
        query_BHLK, key_BHMK, value_BHME = parts
        use_scale, mask = heads.attention.use_scale, heads.between.mask
        drop = heads.site.drop_weights
        with torch.enable_grad():
            context_BHLE = attend_fast(
                query_BHLK, key_BHMK, value_BHME, mask, use_scale=use_scale, drop=drop
            )
        ctx.heads, ctx.parts, ctx.context_BHLE = heads, parts, context_BHLE
        ctx.shapes = [part.shape for part in projected]
        context_JX = projected[0].new_empty(len(projected[0]), heads.attention.value.out_features)
        heads.between.rows.write(context_BHLE.detach(), context_JX)
        return context_JX

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_JX: Tensor) -> tuple[Any, ...]:
        heads: Heads = ctx.heads
        grad_BHLE = heads.in_float32(heads.between.rows, grad_JX)
        grads = torch.autograd.grad(ctx.context_BHLE, ctx.parts, grad_BHLE)
        del ctx.context_BHLE, ctx.parts
        return None, *heads.gather(grads, ctx.shapes)


class _AttendInBlocks(torch.autograd.Function):
    """Attention within blocks, in the rows' own precision, with its derivative written out.

    Each block is one of B, and its positions are both L and M.

    What all keys have in common moves all scores of a query alike, which softmax does not see. What
    all values have in common does so to the derivatives of a query's weights, which softmax's own
    derivative does not see. Both are taken off before, so that bfloat16's few digits are left for
    what differs.
    """

    @staticmethod
    def forward(ctx: Any, heads: Heads, *projected: Tensor) -> Tensor:
        additive_B1LM, factor = heads.between.additive_B1LM, heads.factor
        assert additive_B1LM is not None
        ctx.sizes = additive_B1LM.shape[::2]
        parts = heads.split(projected)
        query_BHLK, key_BHMK, value_BHME = (heads.in_blocks(*part, ctx.sizes) for part in parts)
        common_key_H1K, common_value_H1E = (heads.common_part(columns) for _, columns in parts[1:])
        key_BHMK -= common_key_H1K
        scores_BHLM = query_BHLK @ key_BHMK.transpose(2, 3)
        torch.add(additive_B1LM, scores_BHLM, alpha=factor, out=scores_BHLM)
        weights_BHLM = torch.softmax(scores_BHLM, dim=-1, out=scores_BHLM)
        context_JX = projected[0].new_empty(len(projected[0]), heads.attention.value.out_features)
        heads.between.rows.write(weights_BHLM @ value_BHME, context_JX)
        ctx.heads, ctx.common_value_H1E = heads, common_value_H1E
        ctx.parts = query_BHLK, key_BHMK, value_BHME, weights_BHLM
        ctx.shapes = [part.shape for part in projected]
        return context_JX

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_JX: Tensor) -> tuple[Any, ...]:
        heads: Heads = ctx.heads
        query_BHLK, key_BHMK, value_BHME, weights_BHLM = ctx.parts
        del ctx.parts
        grad_BHLE = heads.in_blocks(heads.between.rows, grad_JX, ctx.sizes)
        grad_value_BHME = weights_BHLM.transpose(2, 3) @ grad_BHLE
        value_BHME -= ctx.common_value_H1E
        grad_weights_BHLM = grad_BHLE @ value_BHME.transpose(2, 3)
        grad_scores_BHLM = torch.ops.aten._softmax_backward_data(
            grad_weights_BHLM, weights_BHLM, -1, weights_BHLM.dtype
        ).mul_(heads.factor)
        grad_query_BHLK = grad_scores_BHLM @ key_BHMK
        grad_key_BHMK = grad_scores_BHLM.transpose(2, 3) @ query_BHLK
        return None, *heads.gather((grad_query_BHLK, grad_key_BHMK, grad_value_BHME), ctx.shapes)
