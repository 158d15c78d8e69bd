"""Checks of what a user hands to `attend`, or puts in a result's place."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pellucid.errors import InputError

_MAY_FORBID = frozenset({"scores", "scaled", "masked", "logits"})
"""The stages in which −∞ forbids a key or a token."""


def as_tensor(matrix: Any, what: str, device: torch.device | None = None) -> Tensor:
    """Read a tensor, an array or nested lists, and move it to a device.

    Raises:
        InputError: it cannot be read as one.
    """
    try:
        tensor = torch.as_tensor(matrix, device=device)
        if torch.promote_types(tensor.dtype, torch.float16).is_complex:  # fails for odd types
            raise TypeError("complex numbers cannot be ordered")
        return tensor
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise InputError(
            f"The {what} must be a tensor, an array or nested lists of equal length, but is a "
            f"{type(matrix).__name__} that cannot be read as one ({error})."
        ) from error


def as_floats(**matrices: Any) -> list[Tensor]:
    """Convert all to the widest floating type, or else float32, on the device of a tensor."""
    # Lists and arrays have no device, so they follow the tensors.
    device = next((one.device for one in matrices.values() if isinstance(one, Tensor)), None)
    tensors = [as_tensor(matrix, what, device) for what, matrix in matrices.items()]
    types = [tensor.dtype for tensor in tensors if tensor.is_floating_point()]
    dtype = functools.reduce(torch.promote_types, types) if types else torch.float32
    return [tensor.to(dtype) for tensor in tensors]


def check_shapes(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> None:
    """Check that queries, keys, values and mask fit together.

    Raises:
        InputError: they do not, or the mask does not hold truth values.
    """
    shapes = [tuple(matrix.shape) for matrix in (query, key, value)]
    fits = min(map(len, shapes)) >= 2
    # After the number of axes, without which these axes may not exist.
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


def fitted(replacement: Any, result: Tensor, site: str, stage: str) -> Tensor:
    """Check a probe's replacement, and convert it to the type and the device of the result.

    Raises:
        InputError: it is not a tensor of floating-point numbers, has another shape, or has numbers
            that are not finite. Scores and logits may be −∞.
    """
    found = type(replacement).__name__
    if isinstance(replacement, Tensor):
        found = f"{tuple(replacement.shape)} of {replacement.dtype} on {replacement.device}"
        is_dense = replacement.layout == torch.strided and not replacement.is_meta
        if is_dense and replacement.is_floating_point() and replacement.shape == result.shape:
            fit = replacement.to(device=result.device, dtype=result.dtype)
            if (fit.isfinite() | (fit.isneginf() & (stage in _MAY_FORBID))).all():
                return fit
            found = "not finite"
    raise InputError(
        "A probe's replacement must be a dense tensor of finite floating-point numbers (scores and "
        f"logits may be −∞) of the shape {tuple(result.shape)}, but is {found} ({site}.{stage}). "
        "Return None to leave the result as it is."
    )
