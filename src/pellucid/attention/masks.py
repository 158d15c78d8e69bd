"""Masks: who may attend to whom. Everywhere **True = may attend**.

A row that may attend nowhere has weights 0 and context 0. (Softmax of a row of −∞ would be
0/0; zero is the only value that lets nothing through and keeps gradients finite.)

Equation 18 of the notes "Transformers" adds a mask B before it scales. For B of 0 and −∞ the order
does not matter; for a finite B it does. The last three functions below are for lessons on that.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def padding_mask(is_token_BM: Tensor) -> Tensor:
    """Let every query attend to real tokens only: ``mask_B11M``. Combine masks with ``&``."""
    # The same for every head and every query, so these axes broadcast.
    return is_token_BM[:, None, None, :]


def causal_mask(
    num_queries: int, num_keys: int | None = None, *, device: torch.device | str | None = None
) -> Tensor:
    """Let each position attend to itself and to those before it (look-ahead mask): ``mask_11LM``.

    With fewer queries than keys the queries are the *last* positions, as in decoding with a
    cache. By default there are as many keys as queries.

    Source:
        Vaswani et al. 2017, section 3.2.3; notes "Transformers", section 4.2.
    """
    num_keys = num_queries if num_keys is None else num_keys
    mask_LM = torch.ones(num_queries, num_keys, dtype=torch.bool, device=device)
    # Moved to the right by the positions that come before the first query.
    return mask_LM.tril(num_keys - num_queries)[None, None]


def apply_mask(scaled_BHLM: Tensor, mask: Tensor | None) -> Tensor:
    """Stage 3 of attention: set the scores of forbidden pairs to −∞: ``masked_BHLM``."""
    return scaled_BHLM if mask is None else scaled_BHLM.masked_fill(~mask, -math.inf)


def additive_mask(mask: Tensor, *, dtype: torch.dtype = torch.float32) -> Tensor:
    """Write a mask as the matrix B of equation 18: 0 for True, −∞ for False."""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(~mask, -math.inf)


def mask_then_scale(scores_BHLM: Tensor, additive_BHLM: Tensor, d_key: int) -> Tensor:
    r"""Add B first, then scale: $(QK^T + B) / \sqrt{d_k}$, as equation 18 prints it."""
    return (scores_BHLM + additive_BHLM) / math.sqrt(d_key)


def scale_then_mask(scores_BHLM: Tensor, additive_BHLM: Tensor, d_key: int) -> Tensor:
    r"""Scale first, then add B: $QK^T / \sqrt{d_k} + B$, as everyone computes it."""
    return scores_BHLM / math.sqrt(d_key) + additive_BHLM
