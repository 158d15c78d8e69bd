"""The context of attention on the fastest path. Tests hold it to the explicit stages."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

SHORT_ENOUGH_FOR_PLAIN_PRODUCTS = 128
"""Positions up to which plain products are faster on a CPU: docs/decisions/0005."""


def attend_fast(
    query_BHLK: Tensor,
    key_BHMK: Tensor,
    value_BHME: Tensor,
    mask: Tensor | None = None,
    *,
    use_scale: bool = True,
    bias: Tensor | None = None,
    drop: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Compute only the context, in the fastest way for the lengths and device: ``context_BHLE``.

    A ``bias`` is added to scaled scores.

    - Dropout on weights (``drop``) takes plain products: fused attention hides its weights.
    - Short sentences on a CPU without gradients take plain products, which are twice as fast with
      one query for each of many sentences.
    - Everything else takes PyTorch's fused attention. If it needs gradients on a CPU, it runs in
      float32: its backward pass in bfloat16 is several times slower.

    The result equals ``attend(...).context`` up to rounding.
    """
    factor = 1 / math.sqrt(query_BHLK.shape[-1]) if use_scale else 1.0
    dtype = query_BHLK.dtype
    is_on_cpu = query_BHLK.device.type == "cpu"
    needs_gradients = is_on_cpu and query_BHLK.requires_grad
    if needs_gradients and dtype == torch.bfloat16:
        query_BHLK = query_BHLK.float()
        key_BHMK = key_BHMK.float()
        value_BHME = value_BHME.float()
    longest = max(query_BHLK.shape[-2], key_BHMK.shape[-2])
    is_short = is_on_cpu and longest <= SHORT_ENOUGH_FOR_PLAIN_PRODUCTS
    if (is_short and not needs_gradients) or drop is not None:
        scaled_BHLM = (query_BHLK * factor) @ key_BHMK.transpose(-2, -1)
        scaled_BHLM = scaled_BHLM if bias is None else scaled_BHLM + bias
        if mask is not None:
            # The lowest number instead of −∞: a row without any key must not become 0/0.
            scaled_BHLM = scaled_BHLM.masked_fill(~mask, torch.finfo(scaled_BHLM.dtype).min)
        weights_BHLM = torch.softmax(scaled_BHLM, dim=-1)
        if drop is not None:
            weights_BHLM = drop(weights_BHLM)
        context_BHLE = weights_BHLM @ value_BHME
    else:
        # PyTorch takes one of the two: truth values, or numbers to add, which then hold the mask.
        added = mask if bias is None else bias.to(query_BHLK.dtype)
        if bias is not None and added is not None and mask is not None:
            added = added.masked_fill(~mask, torch.finfo(added.dtype).min)
        context_BHLE = F.scaled_dot_product_attention(
            query_BHLK, key_BHMK, value_BHME, attn_mask=added, scale=factor
        )
    context_BHLE = context_BHLE.to(dtype)
    if mask is None:
        return context_BHLE
    # A row that may attend nowhere has context 0. Checking first saves a copy; it is skipped on a
    # GPU, where the processor would wait for it.
    has_key = mask.any(dim=-1, keepdim=True)
    if has_key.device.type == "cpu" and bool(has_key.all()):
        return context_BHLE
    return context_BHLE.masked_fill(~has_key, 0.0)
