"""Attention between rows, in training on a processor.

Queries, keys and values enter as adjacent columns of rows, and contexts leave as rows. Only this
file splits rows into sentences and heads.

Sentences of up to 128 tokens attend in blocks of 32, 64, 96 or 128 positions. A block holds as many
sentences as fit, masked from each other, and is padded with zeros. So products are larger, the
whole softmax in bfloat16 is vectorized, and shapes are few, which
`pellucid.train.fast.rows.few_shapes` explains. The number of blocks is padded to one of few numbers
too.
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
from pellucid.train.fast.rows.few_shapes import pad_rows, row_multiple, shapes_matter

BLOCK_STEP = 32
"""A block's positions are a multiple of this: the numbers of a bfloat16 vector."""

LONGEST_IN_BLOCKS = 128
"""The greatest length for which blocks are faster than fused attention, forward and backward."""

FEWEST_BLOCKS = 4
"""Numbers of blocks are multiples of this."""

ROWS_FOR_MEAN = 64
"""The rows from which the mean of all keys, or values, is estimated."""


def block_size(longest: int) -> int:
    """Compute the positions of a block for sentences of up to so many tokens."""
    return -(-longest // BLOCK_STEP) * BLOCK_STEP


class RowLayout(NamedTuple):
    """The layout of padded sentences as rows, one after the other, several sentences to a block."""

    num_sentences: int
    length: int
    sentences_per_block: int = 1

    @property
    def num_blocks(self) -> int:
        """Blocks that hold sentences."""
        return -(-self.num_sentences // self.sentences_per_block)

    @property
    def positions_used(self) -> int:
        """Positions of a block that belong to sentences."""
        return self.sentences_per_block * self.length

    def flatten(self, x_BLD: Tensor) -> Tensor:
        """Stack the positions of all sentences as rows, padded to whole blocks: ``x_JD``."""
        x_JD = pad_rows(x_BLD.flatten(0, 1), self.positions_used)
        return pad_rows(x_JD, row_multiple(len(x_JD))) if shapes_matter(x_JD) else x_JD

    def unflatten(self, x_JX: Tensor) -> Tensor:
        """View rows as sentences again: ``x_BLX``."""
        rows = self.num_sentences * self.length
        return x_JX[:rows].view(self.num_sentences, self.length, -1)

    def by_head(self, x_JX: Tensor, num_heads: int) -> Tensor:
        """View rows as (block, head, used position, column of a head)."""
        rows = self.num_blocks * self.positions_used
        return x_JX[:rows].view(self.num_blocks, self.positions_used, num_heads, -1).transpose(1, 2)

    def write_heads(self, by_head: Tensor, into_JX: Tensor) -> None:
        """Write what `by_head` views into rows, and zeros into the padding rows."""
        found = self.by_head(into_JX, by_head.shape[1])
        found.copy_(by_head[: self.num_blocks, :, : self.positions_used])
        into_JX[self.num_blocks * self.positions_used :] = 0


class AttentionRows(NamedTuple):
    """The rows that attend, those attended to, and their mask, in one of two forms.

    Attributes:
        rows: the layout of queries.
        memory_rows: that of keys and values, with as many sentences to a block.
        mask: True for positions of a sentence that may be attended to; None for all.
        additive_B1LM: added to scores; each block is one of B.
    """

    rows: RowLayout
    memory_rows: RowLayout
    mask: Tensor | None
    additive_B1LM: Tensor | None = None

    def in_blocks(self, positions: int, dtype: torch.dtype) -> AttentionRows:
        """Turn the mask of sentences into an additive mask of blocks of so many positions."""
        rows, sentences_per_block = self.rows, self.rows.sentences_per_block
        lengths = rows.length, self.memory_rows.length
        may_BLM = torch.zeros(rows.num_blocks * sentences_per_block, *lengths, dtype=torch.bool)
        may_BLM[: rows.num_sentences] = True if self.mask is None else self.mask[:, 0]
        # The lowest number instead of -inf: positions without any key get no NaN.
        forbidden = torch.finfo(dtype).min
        own_BLM = torch.zeros(may_BLM.shape, dtype=dtype).masked_fill_(~may_BLM, forbidden)
        sizes = (_round_to_few(rows.num_blocks), 1, positions, positions)
        additive_B1LM = torch.full(sizes, forbidden, dtype=dtype)
        # In a block every sentence attends only to itself.
        for number in range(sentences_per_block):
            queries, keys = (slice(number * length, (number + 1) * length) for length in lengths)
            own = own_BLM[number::sentences_per_block]
            additive_B1LM[: rows.num_blocks, 0, queries, keys] = own
        return self._replace(mask=None, additive_B1LM=additive_B1LM)


def _round_to_few(num_blocks: int) -> int:
    return num_blocks + -num_blocks % row_multiple(num_blocks, fewest=FEWEST_BLOCKS)


class RowHeads(NamedTuple):
    """Splits rows into heads.

    Attributes:
        attention: has the heads.
        layout: the rows that attend, and those attended to.
        site: the place, with the dropout of the step.
    """

    attention: MultiHeadAttention
    layout: AttentionRows
    site: Site

    @property
    def scale(self) -> float:
        """The factor of scores."""
        width = self.attention.query.out_features // self.attention.num_heads
        return float(width**-0.5) if self.attention.use_scale else 1.0

    def split(self, projected: Sequence[Tensor]) -> list[tuple[RowLayout, Tensor]]:
        """Split into queries, keys and values: the layout of each, and its columns."""
        parts = (self.attention.query, self.attention.key, self.attention.value)
        widths = [part.out_features for part in parts]
        rows, memory_rows = self.layout.rows, self.layout.memory_rows
        if len(projected) == 1:
            return [(rows, columns) for columns in torch.split(projected[0], widths, dim=1)]
        key_value = torch.split(projected[1], widths[1:], dim=1)
        return [(rows, projected[0]), *((memory_rows, columns) for columns in key_value)]

    def gather(self, parts: Sequence[Tensor], shapes: Sequence[torch.Size]) -> list[Tensor]:
        """Write queries, keys and values, by head, into rows of the shapes that they came from."""
        dtype = self.attention.query.weight.dtype
        projected = [torch.empty(shape, dtype=dtype) for shape in shapes]
        for (rows, columns), part in zip(self.split(projected), parts, strict=True):
            rows.write_heads(part, columns)
        return projected

    def in_float32(self, rows: RowLayout, columns: Tensor) -> Tensor:
        """Copy columns of rows, by head, as float32 or wider."""
        by_head = rows.by_head(columns, self.attention.num_heads)
        sums = torch.promote_types(columns.dtype, torch.float32)
        return torch.empty(by_head.shape, dtype=sums).copy_(by_head)

    def in_blocks(self, rows: RowLayout, columns: Tensor, sizes: Sequence[int]) -> Tensor:
        """Copy columns of rows, by head, into blocks; ``sizes`` are their number and positions."""
        by_head = rows.by_head(columns, self.attention.num_heads)
        num_blocks, positions = sizes
        blocks = columns.new_zeros(num_blocks, by_head.shape[1], positions, by_head.shape[3])
        blocks[: rows.num_blocks, :, : rows.positions_used] = by_head
        return blocks

    def mean_by_head(self, columns_JX: Tensor) -> Tensor:
        """Estimate the mean of all rows, by head; it need not be exact, since it only centers."""
        mean_X = columns_JX[:ROWS_FOR_MEAN].mean(dim=0)
        return mean_X.view(self.attention.num_heads, 1, -1)


def attend_rows(heads: RowHeads, *projected: Tensor) -> Tensor:
    """Attend, from queries, keys and values to contexts.

    Args:
        heads: splits the rows.
        projected: queries, keys and values as columns of one matrix; or the queries, and a matrix
            of keys and values.

    Returns:
        ``context_JX``: the contexts of all heads as adjacent columns.
    """
    function = _AttendFused if heads.layout.additive_B1LM is None else _AttendInBlocks
    context_JX: Tensor = function.apply(heads, *projected)  # type: ignore[no-untyped-call]
    return context_JX


class _AttendFused(torch.autograd.Function):
    """PyTorch's fused attention in float32, with its own derivative, between copies."""

    @staticmethod
    def forward(ctx: Any, heads: RowHeads, *projected: Tensor) -> Tensor:
        parts = [heads.in_float32(*part).requires_grad_() for part in heads.split(projected)]
        query_BHLK, key_BHMK, value_BHME = parts
        use_scale, mask = heads.attention.use_scale, heads.layout.mask
        drop = heads.site.drop_weights
        with torch.enable_grad():
            context_BHLE = attend_fast(
                query_BHLK, key_BHMK, value_BHME, mask, use_scale=use_scale, drop=drop
            )
        ctx.heads, ctx.parts, ctx.context_BHLE = heads, parts, context_BHLE
        ctx.shapes = [part.shape for part in projected]
        context_JX = projected[0].new_empty(len(projected[0]), heads.attention.value.out_features)
        heads.layout.rows.write_heads(context_BHLE.detach(), context_JX)
        return context_JX

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_JX: Tensor) -> tuple[Any, ...]:
        heads: RowHeads = ctx.heads
        grad_BHLE = heads.in_float32(heads.layout.rows, grad_JX)
        grads = torch.autograd.grad(ctx.context_BHLE, ctx.parts, grad_BHLE)
        del ctx.context_BHLE, ctx.parts
        return None, *heads.gather(grads, ctx.shapes)


class _AttendInBlocks(torch.autograd.Function):
    """Attention within blocks, in the rows' own precision, with its derivative written out.

    Each block is one of B, and its positions are both L and M.

    A vector added to all keys shifts all scores of a query by the same amount, which softmax
    ignores. A vector added to all values does the same to the derivatives of a query's weights,
    which the derivative of softmax ignores. The mean key and the mean value are therefore
    subtracted first, so that bfloat16's few digits are left for the differences.
    """

    @staticmethod
    def forward(ctx: Any, heads: RowHeads, *projected: Tensor) -> Tensor:
        additive_B1LM, scale = heads.layout.additive_B1LM, heads.scale
        assert additive_B1LM is not None
        ctx.sizes = additive_B1LM.shape[::2]
        parts = heads.split(projected)
        query_BHLK, key_BHMK, value_BHME = (heads.in_blocks(*part, ctx.sizes) for part in parts)
        mean_key_H1K, mean_value_H1E = (heads.mean_by_head(columns) for _, columns in parts[1:])
        key_BHMK -= mean_key_H1K
        scores_BHLM = query_BHLK @ key_BHMK.transpose(2, 3)
        torch.add(additive_B1LM, scores_BHLM, alpha=scale, out=scores_BHLM)
        weights_BHLM = torch.softmax(scores_BHLM, dim=-1, out=scores_BHLM)
        context_JX = projected[0].new_empty(len(projected[0]), heads.attention.value.out_features)
        heads.layout.rows.write_heads(weights_BHLM @ value_BHME, context_JX)
        ctx.heads, ctx.mean_value_H1E = heads, mean_value_H1E
        ctx.parts = query_BHLK, key_BHMK, value_BHME, weights_BHLM
        ctx.shapes = [part.shape for part in projected]
        return context_JX

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_JX: Tensor) -> tuple[Any, ...]:
        heads: RowHeads = ctx.heads
        query_BHLK, key_BHMK, value_BHME, weights_BHLM = ctx.parts
        del ctx.parts
        grad_BHLE = heads.in_blocks(heads.layout.rows, grad_JX, ctx.sizes)
        grad_value_BHME = weights_BHLM.transpose(2, 3) @ grad_BHLE
        value_BHME -= ctx.mean_value_H1E
        grad_weights_BHLM = grad_BHLE @ value_BHME.transpose(2, 3)
        grad_scores_BHLM = torch.ops.aten._softmax_backward_data(
            grad_weights_BHLM, weights_BHLM, -1, weights_BHLM.dtype
        ).mul_(heads.scale)
        grad_query_BHLK = grad_scores_BHLM @ key_BHMK
        grad_key_BHMK = grad_scores_BHLM.transpose(2, 3) @ query_BHLK
        return None, *heads.gather((grad_query_BHLK, grad_key_BHMK, grad_value_BHME), ctx.shapes)
