"""The context of attention on the fastest path. Tests hold it to the explicit stages."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

__all__ = ["SHORT_ENOUGH_FOR_PLAIN_PRODUCTS", "attend_fast"]

SHORT_ENOUGH_FOR_PLAIN_PRODUCTS = 128


def attend_fast(
    query_BHLK: Tensor,
    key_BHMK: Tensor,
    value_BHME: Tensor,
    mask: Tensor | None = None,
    *,
    use_scale: bool = True,
    drop: Callable[[Tensor], Tensor] | None = None,
) -> Tensor:
    """Compute only the context, in the fastest way for the lengths and device: ``context_BHLE``.

    On a CPU without gradients, short sentences take plain batched products: with one query for
    each of many sentences PyTorch's fused attention takes twice as long. Everything else takes the
    fused one. In training on a CPU its inputs become float32, because its backward pass in bfloat16
    is several times slower and plain products make a kernel for each new shape.

    ``drop`` is dropout for the weights. It takes plain products, since fused attention has no
    weights to show it. The result equals ``attend(...).context`` up to rounding.
    """
    factor = 1 / math.sqrt(query_BHLK.shape[-1]) if use_scale else 1.0
    dtype = query_BHLK.dtype
    is_on_cpu = query_BHLK.device.type == "cpu"
    is_trained = is_on_cpu and query_BHLK.requires_grad and not torch.compiler.is_compiling()
    if is_trained and dtype == torch.bfloat16:
        query_BHLK, key_BHMK, value_BHME = query_BHLK.float(), key_BHMK.float(), value_BHME.float()
    longest = max(query_BHLK.shape[-2], key_BHMK.shape[-2])
    is_short = is_on_cpu and longest <= SHORT_ENOUGH_FOR_PLAIN_PRODUCTS
    if (is_short and not is_trained) or drop is not None:
        scaled_BHLM = (query_BHLK * factor) @ key_BHMK.transpose(-2, -1)
        if mask is not None:
            # The lowest number instead of −∞: a row without any key must not become 0/0.
            scaled_BHLM = scaled_BHLM.masked_fill(~mask, torch.finfo(scaled_BHLM.dtype).min)
        weights_BHLM = torch.softmax(scaled_BHLM, dim=-1)
        if drop is not None:
            weights_BHLM = drop(weights_BHLM)
        context_BHLE = weights_BHLM @ value_BHME
    else:
        context_BHLE = F.scaled_dot_product_attention(
            query_BHLK, key_BHMK, value_BHME, attn_mask=mask, scale=factor
        )
    context_BHLE = context_BHLE.to(dtype)
    if mask is None:
        return context_BHLE
    # A row that may attend nowhere has context 0. To check first whether there is one saves a
    # copy, but would wait for a GPU and break a compiler's graph.
    may_attend = mask.any(dim=-1, keepdim=True)
    is_cheap = may_attend.device.type == "cpu" and not torch.compiler.is_compiling()
    if is_cheap and bool(may_attend.all()):
        return context_BHLE
    return context_BHLE.masked_fill(~may_attend, 0.0)
