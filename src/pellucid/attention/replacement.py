"""A check of tensors that a user's code puts in the place of computed ones."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pellucid.errors import InputError

_MAY_FORBID = frozenset({"scores", "scaled", "masked", "logits"})
"""The stages in which −∞ forbids a key or a token."""


def fitted(replacement: Any, result: Tensor, site: str, stage: str) -> Tensor:
    """Check a probe's replacement, and convert it to the type and the device of the result.

    Raises:
        InputError: it is not a tensor of floating-point numbers, has another shape, or has numbers
            that are not finite. Scores and logits may be −∞.
    """
    found = type(replacement).__name__
    if isinstance(replacement, Tensor):
        found = f"{tuple(replacement.shape)} of {replacement.dtype} on {replacement.device}"
        # A sparse tensor cannot be compared number by number, and a meta tensor has no numbers.
        is_dense = replacement.layout == torch.strided and not replacement.is_meta
        if is_dense and replacement.is_floating_point() and replacement.shape == result.shape:
            fit = replacement.to(result)
            if (fit.isfinite() | (fit.isneginf() & (stage in _MAY_FORBID))).all():
                return fit
            found = "not finite"
    raise InputError(
        "A probe's replacement must be a dense tensor of finite floating-point numbers (scores and "
        f"logits may be −∞) of the shape {tuple(result.shape)}, but is {found} ({site}.{stage}). "
        "Return None to leave the result as it is."
    )
