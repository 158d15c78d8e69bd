"""A table of keys and values for every word: what there is of it, in layer 0.

At layer 0 a token's key and value follow from its word and its position alone, the same in every
sentence. In every later layer, and in cross-attention, they follow from the whole sentence, and
there is no such table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor

from pellucid.inside.pair import Pair
from pellucid.model.layers import EncoderLayer
from pellucid.model.site import Site

__all__ = ["WordMatch", "best_words", "vectors_of_words"]


@dataclass(frozen=True)
class WordMatch:
    """A word of the vocabulary whose key would match a query.

    Attributes:
        token: the word's piece.
        scaled: query times key, over the root of their width where the model scales.
    """

    token: str
    scaled: float


@torch.inference_mode()
def vectors_of_words(
    pair: Pair, part: Literal["encoder", "decoder"], position: int, head: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The queries, keys and values that every word would have in layer 0's self-attention.

    Args:
        pair: the model.
        part: whose layer 0.
        position: where the words would stand.
        head: from 0.

    Returns:
        ``query_VK``, ``key_VK`` and ``value_VE``.
    """
    model = pair.model
    stack = model.encoder if part == "encoder" else model.decoder
    size = (
        model.config.source_vocabulary_size
        if part == "encoder"
        else model.config.target_vocabulary_size
    )
    table = model.embedding_of("source" if part == "encoder" else "target")
    x_V1D = stack.enter(torch.arange(size)[:, None], table, Site(part), offset=position)
    layer = cast(EncoderLayer, stack.layers[0])
    attention = layer.self_attention
    if layer.self_attention_norm is not None and model.config.norm == "pre":
        x_V1D = layer.self_attention_norm(x_V1D)
    query_VH1K = attention.project_query(x_V1D)
    key_VH1K, value_VH1E = attention.project_key_value(x_V1D)
    return query_VH1K[:, head, 0], key_VH1K[:, head, 0], value_VH1E[:, head, 0]


def best_words(
    pair: Pair,
    part: Literal["encoder", "decoder"],
    *,
    head: int,
    row: int,
    position: int,
    most: int,
) -> list[WordMatch]:
    """The words whose keys best match the query of a row, were they to stand at a position.

    Args:
        pair: the model and the sentence.
        part: whose layer 0.
        head: from 0.
        row: the position whose query is asked.
        position: where the words would stand.
        most: how many words.
    """
    query_VK, _, _ = vectors_of_words(pair, part, row, head)
    ids = pair.source_ids if part == "encoder" else pair.read_ids
    _, key_VK, _ = vectors_of_words(pair, part, position, head)
    scores_V = key_VK @ query_VK[ids[row]]
    if pair.model.config.scale_scores:
        scores_V = scores_V / query_VK.shape[-1] ** 0.5
    found = scores_V.topk(min(most, len(scores_V)))
    tokens_of = pair.tokenizer.source_tokens if part == "encoder" else pair.tokenizer.target_tokens
    words = tokens_of(found.indices.tolist())
    return [
        WordMatch(word, score) for word, score in zip(words, found.values.tolist(), strict=True)
    ]
