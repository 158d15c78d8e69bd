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

import functools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid.attention.masks import apply_mask
from pellucid.errors import InputError


def score(query_BHLK: Tensor, key_BHMK: Tensor) -> Tensor:
    """Stage 1: match each query with each key by their dot product: ``scores_BHLM``."""
    return query_BHLK @ key_BHMK.transpose(-2, -1)


def scale(scores_BHLM: Tensor, d_key: int) -> Tensor:
    r"""Stage 2: divide by $\sqrt{d_k}$, so that the softmax keeps its gradients: ``scaled_BHLM``.

    A sum of d_k products of independent numbers of variance 1 has variance d_k.
    """
    return scores_BHLM / math.sqrt(d_key)


def weigh(masked_BHLM: Tensor) -> Tensor:
    """Stage 4: softmax over the keys: ``weights_BHLM``, each row summing to 1.

    A row of −∞ only gets weights 0 (see `pellucid.attention.masks`).
    """
    is_empty_BHL1 = (masked_BHLM == -math.inf).all(dim=-1, keepdim=True)
    weights_BHLM = torch.softmax(masked_BHLM.masked_fill(is_empty_BHL1, 0.0), dim=-1)
    return weights_BHLM.masked_fill(is_empty_BHL1, 0.0)


def mix(weights_BHLM: Tensor, value_BHME: Tensor) -> Tensor:
    """Stage 5: sum the values, each times its weight: ``context_BHLE``."""
    return weights_BHLM @ value_BHME


@dataclass(frozen=True)
class AttentionSteps:
    """The results of the five stages: the context is (…, L, E), all others are (…, L, M)."""

    scores: Tensor
    scaled: Tensor
    masked: Tensor
    weights: Tensor
    context: Tensor


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
        InputError: the shapes do not fit together, or the mask does not hold truth values.
    """
    query, key, value = _as_floats(query=query, key=key, value=value)
    mask = None if mask is None else _as_tensor(mask, "mask").to(query.device)
    _check_shapes(query, key, value, mask)
    scores = score(query, key)
    scaled = scale(scores, query.shape[-1]) if use_scale else scores
    masked = apply_mask(scaled, mask)
    weights = weigh(masked)
    return AttentionSteps(scores, scaled, masked, weights, mix(weights, value))


def _as_tensor(matrix: Any, what: str) -> Tensor:
    try:
        return torch.as_tensor(matrix)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(
            f"The {what} must be a tensor, an array or nested lists of equal length, but is a "
            f"{type(matrix).__name__} that cannot be read as one ({error})."
        ) from error


def _as_floats(**matrices: Any) -> list[Tensor]:
    """Convert all to the widest floating type among them; whole numbers count as float32."""
    tensors = [_as_tensor(matrix, what) for what, matrix in matrices.items()]
    types = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
    dtype = functools.reduce(torch.promote_types, types) if types else torch.float32
    return [tensor.to(dtype) for tensor in tensors]


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    shapes = [tuple(matrix.shape) for matrix in (query, key, value)]
    fits = min(map(len, shapes)) >= 2
    fits = fits and query.shape[-1] == key.shape[-1] and key.shape[-2] == value.shape[-2]
    leading = _broadcast(*(shape[:-2] for shape in shapes)) if fits else None
    if leading is None:
        raise InputError(
            "Queries, keys and values must have the shapes (…, L, K), (…, M, K) and (…, M, E), "
            f"alike before the last two axes, but have {shapes[0]}, {shapes[1]} and {shapes[2]}."
        )
    if mask is not None and mask.dtype != torch.bool:
        raise InputError(
            f"A mask must hold truth values (True = may attend), but holds {mask.dtype}. "
            "For an additive mask pass `additive == 0`."
        )
    scores_shape = (*leading, query.shape[-2], key.shape[-2])
    if mask is not None and _broadcast(mask.shape, scores_shape) != scores_shape:
        raise InputError(
            f"A mask must broadcast to the shape of the scores {scores_shape}, but has the shape "
            f"{tuple(mask.shape)}."
        )


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None
