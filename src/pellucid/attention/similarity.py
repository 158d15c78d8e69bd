r"""Attention pooling: any similarity, turned into weights, over any keys and values.

$$A(\mathbf{q}, D) = \sum_{i=1}^{m} \alpha(\mathbf{q}, \mathbf{k}_i)\,\mathbf{v}_i$$

A similarity takes queries and keys and gives ``similarities_LM``, higher for more alike; softmax
turns each row into weights α. Scaled dot-product attention is this with the scaled dot; a database
query is this with weights of one and zero.

Source:
    Notes "Transformers", equation 1; Bahdanau et al. 2015, appendix A.1.2 (additive); Nadaraya and
    Watson 1964 (kernel); Levenshtein 1966 (edit distance); slides "Self-Attention" (room numbers).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor

from pellucid.attention.stages import AttentionSteps, mix, scale, score, weigh
from pellucid.errors import InputError

_Rows = TypeVar("_Rows")


# Two stages under the names of equation 1: a similarity, and the weighted sum of the values.
dot = score
pool = mix


def scaled_dot(query_LK: Tensor, key_MK: Tensor) -> Tensor:
    r"""Measure similarity by the dot product over $\sqrt{d_k}$."""
    return scale(score(query_LK, key_MK), query_LK.shape[-1])


def additive(
    query: Tensor, key: Tensor, *, query_weight: Tensor, key_weight: Tensor, direction: Tensor
) -> Tensor:
    r"""Measure similarity by a small network: $\mathbf{v}^T \tanh(W\mathbf{q} + U\mathbf{k})$.

    Queries and keys may have different widths: W is (inner width, width of queries), U (inner
    width, width of keys), v (inner width). Bind them with ``functools.partial`` for pooling.
    """
    turned_query = (query @ query_weight.T)[..., :, None, :]
    turned_key = (key @ key_weight.T)[..., None, :, :]
    return torch.tanh(turned_query + turned_key) @ direction


def gaussian_kernel(query_LK: Tensor, key_MK: Tensor, *, width: float = 1.0) -> Tensor:
    r"""Measure similarity by distance: $-\lVert\mathbf{q}-\mathbf{k}\rVert^2 / (2\sigma^2)$.

    This is the logarithm of the Gaussian kernel of width σ, so that the softmax divides the kernel
    itself by its sum: Nadaraya–Watson regression.

    Raises:
        InputError: the width is not positive.
    """
    if not width > 0:
        raise InputError(f"The width of a Gaussian kernel must be positive, but is {width}.")
    difference_LMK = query_LK[..., :, None, :] - key_MK[..., None, :, :]
    return -difference_LMK.square().sum(dim=-1) / (2 * width**2)


def compare_strings(
    queries: Sequence[str], keys: Sequence[str], compare: Callable[[str, str], float]
) -> Tensor:
    """Compare each query with each key, in float64."""
    rows = [[float(compare(query, key)) for key in keys] for query in queries]
    return torch.tensor(rows, dtype=torch.float64)


def edit_distance(first: str, second: str) -> int:
    """Count the fewest insertions, deletions and substitutions between two strings."""
    # One row of the table at a time, since each needs only the one above.
    above = list(range(len(second) + 1))
    for row, first_letter in enumerate(first, start=1):
        current = [row]
        for column, second_letter in enumerate(second, start=1):
            substituted = above[column - 1] + (first_letter != second_letter)
            current.append(min(substituted, above[column] + 1, current[-1] + 1))
        above = current
    return above[-1]


def edit_similarity(queries: Sequence[str], keys: Sequence[str]) -> Tensor:
    """Measure similarity of spelling, as minus the edit distance."""
    return compare_strings(queries, keys, lambda query, key: -float(edit_distance(query, key)))


def exact_match(queries: Sequence[str], keys: Sequence[str]) -> Tensor:
    """Test for equality, as a database does: 0 if equal, −∞ if not.

    The weights are then 1 for the row found and 0 for all others. A query that equals no key has
    weights 0 and result 0.
    """
    return compare_strings(queries, keys, lambda query, key: 0.0 if query == key else -math.inf)


def attention_pooling(
    query: _Rows,
    keys: _Rows,
    values: Any,
    similarity: Callable[[_Rows, _Rows], Tensor],
    *,
    temperature: float = 1.0,
) -> AttentionSteps:
    """Answer queries from a table of keys and values.

    Args:
        query: L queries of any kind that the similarity takes: rows of a tensor, strings.
        keys: M keys of the same kind.
        values: (M, E): a tensor, an array or nested lists.
        similarity: gives (L, M).
        temperature: divides the similarities before the softmax. 0 stands for the limit: the most
            similar key takes all the weight, and keys that tie share it evenly.

    Returns:
        The stages: ``scores`` are the similarities, ``scaled`` those over the temperature, nothing
        is masked. At temperature 0 ``scaled`` is 0 at the most similar keys and −∞ elsewhere.

    Raises:
        InputError: the temperature is negative, or the values are not one for each key.
    """
    if not temperature >= 0:
        raise InputError(f"The temperature must be 0 or more, but is {temperature}.")
    scores_LM = similarity(query, keys)
    value_ME = torch.as_tensor(values).to(scores_LM.dtype)
    if value_ME.dim() < 2 or value_ME.shape[-2] != scores_LM.shape[-1]:
        raise InputError(
            f"Values must be a matrix with one row for each of the {scores_LM.shape[-1]} keys, "
            f"but have the shape {tuple(value_ME.shape)}."
        )
    if temperature > 0:
        scaled_LM = scores_LM / temperature
    else:
        is_largest_LM = scores_LM == scores_LM.amax(dim=-1, keepdim=True)
        may_win_LM = is_largest_LM & (scores_LM > -math.inf)  # A row of −∞ has no winner.
        scaled_LM = torch.zeros_like(scores_LM).masked_fill(~may_win_LM, -math.inf)
    weights_LM = weigh(scaled_LM)
    return AttentionSteps(scores_LM, scaled_LM, scaled_LM, weights_LM, pool(weights_LM, value_ME))
