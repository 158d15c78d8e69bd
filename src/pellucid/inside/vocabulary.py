"""Queries, keys and values of every word of the vocabulary, which exist only in layer 0.

In layer 0, a token's key and value depend only on its word and its position: they are the same in
every sentence. In later layers, and in cross-attention, they depend on the whole sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from pellucid.config.head_address import Part, parse_head
from pellucid.inside.pair import PairData
from pellucid.model import Transformer
from pellucid.model.layers import EncoderLayer
from pellucid.model.rotary import PositionsInside
from pellucid.model.site import Site


@dataclass(frozen=True)
class WordMatch:
    """A word of the vocabulary, and how well its key would match a query.

    Attributes:
        token: the word's piece.
        scaled: query times key, divided by the root of their width if the model scales scores.
    """

    token: str
    scaled: float


@torch.inference_mode()
def vectors_of_words(
    pair: PairData, part: Part, position: int, head: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute the query, key and value that every word would have in layer 0's self-attention.

    Args:
        pair: holds the model.
        part: the encoder's layer 0, or the decoder's.
        position: of each word.
        head: from 0.

    Returns:
        ``query_VK``, ``key_VK`` and ``value_VE``.
    """
    model = pair.model
    assert isinstance(model, Transformer)
    parse_head(f"{part}.0.self.{head}").check_in(model.config)
    stack = model.encoder if part == "encoder" else model.decoder
    table = model.embedding_of("source" if part == "encoder" else "target")
    x_V1D = stack.enter(
        torch.arange(table.num_embeddings, device=pair.device)[:, None],
        table,
        Site(part),
        offset=position,
    )
    layer = cast(EncoderLayer, stack.layers[0])
    attention = layer.self_attention
    # With pre-norm the attention reads what the norm made of the vector.
    if layer.self_attention_norm is not None and model.config.norm == "pre":
        x_V1D = layer.self_attention_norm(x_V1D)
    query_VH1K = attention.project_query(x_V1D, position)
    # Groups of query heads share one head of keys, which is repeated for each.
    key_VH1K, value_VH1E = map(attention.share, attention.project_key_value(x_V1D, position))
    return query_VH1K[:, head, 0], key_VH1K[:, head, 0], value_VH1E[:, head, 0]


def best_words(
    pair: PairData, part: Part, *, head: int, row: int, position: int, most: int
) -> list[WordMatch]:
    """Find the words whose keys would best match the query of a row if they stood at a position.

    Args:
        pair: the model and the sentence.
        part: the encoder's layer 0, or the decoder's.
        head: from 0.
        row: the position of the query.
        position: of each word.
        most: the number of words.
    """
    # The query stands at its own position, the keys at the one that is asked about.
    query_VK, _, _ = vectors_of_words(pair, part, row, head)
    ids = pair.source_ids if part == "encoder" else pair.read_ids
    _, key_VK, _ = vectors_of_words(pair, part, position, head)
    query_K = query_VK[ids[row]]
    inside = pair.model.get_submodule(f"{part}.layers.0.self_attention.positions")
    assert isinstance(inside, PositionsInside)
    # Relative positions add a vector to the key; others add nothing.
    scores_V = (inside.vector(position - row, like=key_VK) + key_VK) @ query_K
    if pair.model.config.scale_scores:
        scores_V = scores_V / query_VK.shape[-1] ** 0.5
    found = scores_V.topk(min(most, len(scores_V)))
    tokens_of = pair.tokenizer.source_tokens if part == "encoder" else pair.tokenizer.target_tokens
    words = tokens_of(found.indices.tolist())
    return [
        WordMatch(word, score) for word, score in zip(words, found.values.tolist(), strict=True)
    ]
