"""The Transformer laid out for decoding: many sentences with many beams, one token a step.

It computes the same function as `pellucid.model`, but shows no intermediate results: to look
inside, the result is replayed on the model itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid.attention import attend_fast
from pellucid.config import Precision
from pellucid.decode.fast.linear import Linear
from pellucid.decode.fast.state import DecoderState, Memory
from pellucid.decode.fast.weights import Prepared, PreparedAttention, PreparedLayer, prepare
from pellucid.model import Transformer
from pellucid.model.layers import ACTIVATIONS


class Engine:
    """One model, ready to decode with.

    Args:
        model: the weights; those that change their form are copied.
        precision: of the products with weights.
        dtype: of everything else; by default bfloat16 with bfloat16 products, otherwise float32.
            float64 is for results that must not depend on rounding.
    """

    def __init__(
        self,
        model: Transformer,
        precision: Precision = "float32",
        *,
        dtype: torch.dtype | None = None,
    ) -> None:
        default = torch.bfloat16 if precision == "bfloat16" else torch.float32
        self.prepared: Prepared = prepare(model, precision, dtype or default)
        self.config = model.config
        self.device = model.output_weight.device
        self.precision = precision
        self._activation = ACTIVATIONS[model.config.activation]

    @property
    def vocabulary_size(self) -> int:
        """The number of tokens in each row of logits."""
        return self.config.target_vocabulary_size

    @torch.inference_mode()
    def encode(self, sources: Sequence[Sequence[int]]) -> Memory:
        """Read source sentences, and compute the keys and values that the decoder attends to.

        Args:
            sources: token ids of each sentence, at least one each.
        """
        lengths = [len(ids) for ids in sources]
        longest = max(lengths)
        source_BS = torch.tensor(
            [[*ids, *[0] * (longest - len(ids))] for ids in sources], device=self.device
        )
        length_B = torch.tensor(lengths, device=self.device)
        mask_B11S = None
        if min(lengths) < longest:
            mask_B11S = torch.arange(longest, device=self.device) < length_B[:, None, None, None]
        x_BSD = self.prepared.source_embedding[source_BS]
        positions_SD = self.prepared.source_positions(longest)
        if positions_SD is not None:
            x_BSD = x_BSD + positions_SD
        for layer in self.prepared.encoder:
            x_BSD = self._attend_to_source(layer, x_BSD, mask_B11S)
            x_BSD = self._feed_forward(layer, x_BSD)
        norm = self.prepared.encoder_norm
        return self._make_memory(x_BSD if norm is None else norm(x_BSD), length_B)

    def new_state(self, sentences: int, width: int) -> DecoderState:
        """Make empty slots for some sentences, each with ``width`` hypotheses."""
        return DecoderState(self.config, sentences, width, self.prepared.dtype, self.device)

    @torch.inference_mode()
    def step(
        self, state: DecoderState, newest_A: Tensor, is_growing_A: Tensor | None = None
    ) -> Tensor:
        """Read one more token of every row, and return the logits of the next.

        Args:
            state: the keys and values of the tokens before; it grows by one column.
            newest_A: a token of each row, sentence by sentence.
            is_growing_A: rows whose logits are needed; here all are computed.

        Returns:
            ``logits_AV``, in float32, or float64 if the rows are.
        """
        x_AD = self.prepared.target_embedding[newest_A]
        length_A = state.advance()
        positions_TD = self.prepared.target_positions(state.longest)
        if positions_TD is not None:
            x_AD += positions_TD[length_A]
        for index, layer in enumerate(self.prepared.decoder):
            x_AD = self._attend_to_target(layer, x_AD, state, index)
            x_AD = self._attend_to_memory(layer, x_AD, state, index)
            x_AD = self._feed_forward(layer, x_AD)
        norm = self.prepared.decoder_norm
        logits_AV = self.prepared.output(x_AD if norm is None else norm(x_AD))
        return logits_AV.float() if logits_AV.dtype == torch.bfloat16 else logits_AV

    def _attend_to_source(
        self, layer: PreparedLayer, x_BSD: Tensor, mask_B11S: Tensor | None
    ) -> Tensor:
        attention, norm = layer.self_attention, layer.norms[0]
        query, key, value = self._project(attention, self._norm_before(x_BSD, norm))
        context_BHSE = attend_fast(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            mask_B11S,
            use_scale=False,  # the query's weights hold the factor
        )
        output_BSD = attention.project_out(context_BHSE.transpose(1, 2).flatten(2))
        return self._add_norm(x_BSD, output_BSD, norm)

    def _attend_to_target(
        self, layer: PreparedLayer, x_AD: Tensor, state: DecoderState, index: int
    ) -> Tensor:
        attention, norm = layer.self_attention, layer.norms[0]
        query_AHK, key_AHK, value_AHE = self._project(attention, self._norm_before(x_AD, norm))
        key_BHMK, value_BHME = state.append(index, key_AHK, value_AHE)
        query_BHWK = state.by_sentence(query_AHK)
        context = _attend(query_BHWK, key_BHMK, value_BHME, state.self_mask)
        return self._add_norm(x_AD, attention.project_out(context), norm)

    def _attend_to_memory(
        self, layer: PreparedLayer, x_AD: Tensor, state: DecoderState, index: int
    ) -> Tensor:
        attention, norm = layer.cross_attention, layer.norms[1]
        assert attention is not None
        normed_AD = self._norm_before(x_AD, norm)
        project = attention.project_in
        wide = self._scaled(normed_AD) if project is None else project(normed_AD)
        query_BWHK = wide.view(state.sentences, state.width, self.config.num_heads, -1)
        key_BHSK, value_BHSE = state.memory(index)
        context = _attend(query_BWHK.transpose(1, 2), key_BHSK, value_BHSE, state.cross_mask)
        return self._add_norm(x_AD, attention.project_out(context), norm)

    def _feed_forward(self, layer: PreparedLayer, rows: Tensor) -> Tensor:
        inner = layer.inner(self._norm_before(rows, layer.norms[2]))
        return self._add_norm(rows, layer.outer(self._activation(inner)), layer.norms[2])

    def _norm_before(self, rows: Tensor, norm: Linear | None) -> Tensor:
        return norm(rows) if norm is not None and self.config.norm == "pre" else rows

    def _add_norm(self, rows: Tensor, output: Tensor, norm: Linear | None) -> Tensor:
        if self.config.residual:
            output += rows
        return norm(output) if norm is not None and self.config.norm == "post" else output

    def _scaled(self, rows: Tensor) -> Tensor:
        """Scale queries that have no projection whose weights could hold the factor."""
        return rows / math.sqrt(self.config.d_key) if self.config.scale_scores else rows

    def _project(self, attention: PreparedAttention, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Make queries, keys and values with axes (…, heads, width)."""
        heads = self.config.num_heads
        if attention.project_in is None:
            whole = _by_head(rows, heads)
            return self._scaled(whole), whole, whole
        wide = attention.project_in(rows)
        keys = heads * self.config.d_key
        query = _by_head(wide[..., :keys], heads)
        key = _by_head(wide[..., keys : 2 * keys], heads)
        if self.config.projections == "qk":
            return query, key, key
        return query, key, _by_head(wide[..., 2 * keys :], heads)

    def _make_memory(self, memory_BSD: Tensor, length_B: Tensor) -> Memory:
        """Compute every decoder layer's keys and values of the source."""
        heads, keys = self.config.num_heads, self.config.num_heads * self.config.d_key
        if self.prepared.source_key_value is None:
            key_by_layer = memory_BSD[None].expand(self.config.num_decoder_layers, -1, -1, -1)
            value_by_layer = key_by_layer
        else:
            wide = self.prepared.source_key_value(memory_BSD)
            by_layer = _by_head(wide, self.config.num_decoder_layers).movedim(2, 0)
            key_by_layer = by_layer[..., :keys]
            value_by_layer = (
                by_layer[..., keys:] if self.config.projections == "qkv" else key_by_layer
            )
        return Memory(
            _by_head(key_by_layer, heads).transpose(2, 3),
            _by_head(value_by_layer, heads).transpose(2, 3),
            length_B,
        )


def _attend(
    query_BHLK: Tensor, key_BHMK: Tensor, value_BHME: Tensor, mask: Tensor | None
) -> Tensor:
    """Attend, and join the heads: ``(rows, heads · width)``.

    The mask is 0 or −∞ and is added; every query has a key that it may see.
    """
    scores_BHLM = query_BHLK @ key_BHMK.transpose(-2, -1)
    if mask is not None:
        scores_BHLM += mask
    context_BHLE = torch.softmax(scores_BHLM, dim=-1) @ value_BHME
    return context_BHLE.transpose(1, 2).flatten(2).flatten(0, 1)


def _by_head(rows: Tensor, heads: int) -> Tensor:
    """Split the last axis into equal parts."""
    return rows.view(*rows.shape[:-1], heads, rows.shape[-1] // heads)
