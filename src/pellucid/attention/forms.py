r"""Variants of attention, from the simplest to the one that models use, each with its own name.

| function | queries | keys | values | source |
| --- | --- | --- | --- | --- |
| `attend_with_embeddings` | x | x | x | lecture |
| `attend_to_others` | x | x of the other words | x of the others, plus x itself | lecture |
| `attend_with_keys` | x W^q | x W^k | the keys again | lecture |
| `attend_with_values` | x W^q | x W^k | x W^v | lecture; notes, equations 7 to 10 |
| `attend_causally` | x W^q | x W^k up to the query's position | x W^v | notes, equation 18 |
| `attend_across` | x W^q | memory W^k | memory W^v | notes, section 4.1 |

Arguments common to all: ``x_LD``, one embedding per token; ``query`` and ``key``, W^q and W^k of
shape (D, K); ``value``, W^v of shape (D, E), where E is free; ``mask``, True = may attend. Each
projection may also be a function of x, such as the one `query_network` makes. All return the five
stages. The lecture is one on self-attention, the notes are the notes "Transformers".

Tokens are rows and weights are (d, d_k), so that $Q = XW^q$ (equations 7 to 9). With vectors as
columns, as in the appendix of the notes, the same query is $(W^q)^T\mathbf{x}$; PyTorch's linear
layers store that transpose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from pellucid.attention.masks import causal_mask
from pellucid.attention.stages import AttentionSteps, attend

Projection = Tensor | Callable[[Tensor], Tensor]


def query_network(
    inner_weight_DF: Tensor, inner_bias_F: Tensor, outer_weight_FK: Tensor, outer_bias_K: Tensor
) -> Callable[[Tensor], Tensor]:
    r"""Make a projection of a small feed-forward network: $\max(0, xW_1 + b_1)W_2 + b_2$.

    The lecture: "or just passing it through a query feedforward neural network".
    """

    def make_queries(x_LD: Tensor) -> Tensor:
        return torch.relu(x_LD @ inner_weight_DF + inner_bias_F) @ outer_weight_FK + outer_bias_K

    return make_queries


def attend_with_embeddings(x_LD: Tensor, *, mask: Tensor | None = None) -> AttentionSteps:
    """Score the embeddings against each other and mix the embeddings themselves.

    Nothing is learned here, so every word mostly attends to words that look like it. The width of
    the context is D.
    """
    return attend(x_LD, x_LD, x_LD, mask)


def attend_to_others(x_LD: Tensor) -> AttentionSteps:
    r"""Score only the *other* words, and add the word's own embedding unchanged.

    $$\mathbf{c}_i = \mathbf{x}_i + \sum_{j \ne i} \alpha_{ij}\,\mathbf{x}_j$$

    The softmax is over the others only, so the weights' diagonal is 0. The only word of a sentence
    keeps its embedding.

    "We did not score the current word. We scored all the other words"; "The embedding of the
    current word, just as it is. We add them up."
    """
    is_other_LM = ~torch.eye(x_LD.shape[-2], dtype=torch.bool, device=x_LD.device)
    # A single word has no others: its context is 0 until its own embedding is added.
    steps = attend(x_LD, x_LD, x_LD, is_other_LM)
    return replace(steps, context=x_LD + steps.context)


def attend_with_keys(
    x_LD: Tensor, query: Projection, key: Projection, *, mask: Tensor | None = None
) -> AttentionSteps:
    """Compare queries with keys, and let the weights multiply the keys.

    "An acceptable way of doing it": a key must both be found and be worth finding. The width of
    the context is K.
    """
    key_MK = _project(x_LD, key)
    return attend(_project(x_LD, query), key_MK, key_MK, mask)


def attend_with_values(
    x_LD: Tensor,
    query: Projection,
    key: Projection,
    value: Projection,
    *,
    mask: Tensor | None = None,
) -> AttentionSteps:
    """Compare queries with keys, and let the weights multiply the values: the final form.

    The same three matrices serve every token. Keys and values are computed once for each
    occurrence of a word and used by all queries. The width of the context is E.
    """
    return attend_across(x_LD, x_LD, query, key, value, mask=mask)


def attend_causally(
    x_LD: Tensor, query: Projection, key: Projection, value: Projection
) -> AttentionSteps:
    """Let each token attend to itself and to those before it: masked self-attention.

    The weights are 0 above the diagonal.
    """
    # Without the axes of batch and heads, which one sentence lacks.
    mask_LM = causal_mask(x_LD.shape[-2], device=x_LD.device)[0, 0]
    return attend_with_values(x_LD, query, key, value, mask=mask_LM)


def attend_across(
    x_LD: Tensor,
    memory_MD: Tensor,
    query: Projection,
    key: Projection,
    value: Projection,
    *,
    mask: Tensor | None = None,
) -> AttentionSteps:
    """Let one sequence ask and another answer: cross-attention.

    In a decoder x is the target so far, and the memory is the encoder's output.
    """
    query_LK = _project(x_LD, query)
    return attend(query_LK, _project(memory_MD, key), _project(memory_MD, value), mask)


def _project(x_LD: Tensor, projection: Projection) -> Tensor:
    return projection(x_LD) if callable(projection) else x_LD @ projection
