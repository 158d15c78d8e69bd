r"""Scaled dot-product attention as five named stages.

$$\text{Attention}(Q, K, V) = \text{softmax}\left(\frac{QK^T}{\sqrt{d_k}} + B\right)V$$

`scores` $QK^T$ → `scaled` $\div\sqrt{d_k}$ → `masked` + mask → `weights` softmax → `context`
weights · V. The names are the same in code, files, pictures and docs.

The letters at the end of a name are its axes (see `pellucid.shapes`). The functions take any
leading axes; the names show the model's, batch and heads.

Source:
    Vaswani et al. 2017, equation 1; notes "Transformers", equations 10, 11 and 18.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pellucid.arguments import named
from pellucid.attention.checks import as_floats, as_tensor, check_shapes
from pellucid.attention.masks import apply_mask
from pellucid.shapes import Brief


def score(query_BHLK: Tensor, key_BHMK: Tensor) -> Tensor:
    """Stage 1: match each query with each key by their dot product: ``scores_BHLM``."""
    return query_BHLK @ key_BHMK.transpose(-2, -1)


def scale(scores_BHLM: Tensor, d_key: int) -> Tensor:
    r"""Stage 2: divide by $\sqrt{d_k}$, so that the softmax keeps its gradients: ``scaled_BHLM``.

    A sum of d_k products of independent numbers of mean 0 and variance 1 has variance d_k.
    """
    return scores_BHLM / math.sqrt(d_key)


def weigh(masked_BHLM: Tensor) -> Tensor:
    """Stage 4: softmax over the keys: ``weights_BHLM``, each row summing to 1.

    A row that is all −∞ gets weights 0 (see `pellucid.attention.masks`).
    """
    # First scores of 0, so that neither the softmax nor its gradient is 0/0; then weights of 0.
    is_empty_BHL1 = (masked_BHLM == -math.inf).all(dim=-1, keepdim=True)
    weights_BHLM = torch.softmax(masked_BHLM.masked_fill(is_empty_BHL1, 0.0), dim=-1)
    return weights_BHLM.masked_fill(is_empty_BHL1, 0.0)


def mix(weights_BHLM: Tensor, value_BHME: Tensor) -> Tensor:
    """Stage 5: sum the values, each times its weight: ``context_BHLE``."""
    return weights_BHLM @ value_BHME


@dataclass(frozen=True, repr=False)
class AttentionSteps(Brief):
    """The results of the five stages: the context is (…, L, E), all others are (…, L, M)."""

    scores: Tensor
    scaled: Tensor
    masked: Tensor
    weights: Tensor
    context: Tensor


@named()
def attend(
    query: Any, key: Any, value: Any, mask: Any = None, *, use_scale: bool = True
) -> AttentionSteps:
    """Compute attention and keep every stage.

    Args:
        query: (…, L, K). A tensor, a NumPy array or nested lists; whole numbers become float32.
        key: (…, M, K).
        value: (…, M, E).
        mask: True = may attend; broadcasts to (…, L, M).
        use_scale: False leaves the scores unscaled.

    Raises:
        InputError: shapes or numbers cannot be used, or the mask does not hold truth values.
    """
    query, key, value = as_floats(query=query, key=key, value=value)
    # Not turned into truth values, since an additive mask has 0 for what it allows.
    mask = None if mask is None else as_tensor(mask, "mask", query.device)
    check_shapes(query, key, value, mask)
    scores = score(query, key)
    scaled = scale(scores, query.shape[-1]) if use_scale else scores
    masked = apply_mask(scaled, mask)
    weights = weigh(masked)
    return AttentionSteps(scores, scaled, masked, weights, mix(weights, value))
