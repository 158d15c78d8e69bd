r"""Weights in fewer bits: rows of 8-bit integers, and how a bundle stores each precision.

A row $w$ becomes integers $q$ and one scale $s$: $w_j \approx q_j s$, with
$s = \max_j |w_j| / 127$ and $q_j = \text{round}(w_j / s)$.

The scale is cut to 17 significant bits. With the 7 bits of $q$ every product $q_j s$ then fits
the 24 bits of a float32 exactly, so that dequantizing rounds nothing: quantizing the dequantized
row gives the same integers and the same scale. The stored integers can thus be recovered from a
model in float32.

Source:
    Symmetric quantization by rows as in CTranslate2 and Jacob et al. 2018, "Quantization and
    Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from pellucid.config import Precision

LARGEST = 127
SCALE_SUFFIX = "_scale"
"""The suffix that turns the name of a matrix into the name of its scale."""

# Masks out the last 7 of the 24 significant bits of a float32.
_KEPT_BITS = ~0x7F
_SMALLEST_SCALE = torch.finfo(torch.float32).tiny
_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def quantize_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Turn a matrix into 8-bit integers with one scale a row.

    No entry moves by more than half its row's scale. A row so small that its scale would not be
    a normal float32 (below 1.5e-36) becomes zeros with the scale 1.

    Args:
        weight: a finite float32 matrix.

    Returns:
        The int8 matrix, its entries between -127 and 127, and the float32 scales, one a row.
    """
    largest = weight.abs().amax(dim=1)
    scale = ((largest / LARGEST).view(torch.int32) & _KEPT_BITS).view(torch.float32)
    is_zero = scale < _SMALLEST_SCALE
    scale = scale.masked_fill(is_zero, 1.0)
    values = (weight / scale[:, None]).round().masked_fill(is_zero[:, None], 0.0)
    return values.to(torch.int8), scale


def dequantize_rows(values: Tensor, scale: Tensor) -> Tensor:
    """Turn 8-bit integers with one scale a row back into a float32 matrix, exactly."""
    return values.float() * scale[:, None]


def is_quantized(values: Tensor, scale: Tensor) -> bool:
    """True if integers and scales can be a result of `quantize_rows`."""
    if not bool(torch.isfinite(scale).all()):
        return False
    largest = torch.maximum(values.amax(dim=1).int(), -values.amin(dim=1).int())
    is_row = (largest == LARGEST) & (scale >= _SMALLEST_SCALE)
    is_row &= scale.view(torch.int32) & ~_KEPT_BITS == 0
    is_zero = (largest == 0) & (scale == 1.0)
    return bool((is_row | is_zero).all())


def pack_weights(weights: Mapping[str, Tensor], precision: Precision) -> dict[str, Tensor]:
    """Convert float32 weights into the tensors that a bundle stores at a precision.

    ``float32`` and ``bfloat16`` apply to all tensors. ``int8`` turns every matrix ``NAME`` into
    integers ``NAME`` and scales ``NAME_scale``; vectors stay float32, and so do learned positions,
    which are added and never multiplied.
    """
    if precision != "int8":
        return {name: weight.to(_TYPES[precision]) for name, weight in weights.items()}
    packed: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if _is_quantizable(name, weight.shape):
            packed[name], packed[name + SCALE_SUFFIX] = quantize_rows(weight.float())
        else:
            packed[name] = weight.float()
    return packed


def packed_types(
    shapes: Mapping[str, tuple[int, ...]], precision: Precision
) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    """Compute the shapes and types of the stored tensors from the shapes of the weights."""
    if precision != "int8":
        return {name: (shape, _TYPES[precision]) for name, shape in shapes.items()}
    types: dict[str, tuple[tuple[int, ...], torch.dtype]] = {}
    for name, shape in shapes.items():
        types[name] = (shape, torch.float32)
        if _is_quantizable(name, shape):
            types[name] = (shape, torch.int8)
            types[name + SCALE_SUFFIX] = (shape[:1], torch.float32)
    return types


def unpack_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert stored tensors back into float32 weights, by name."""
    return {
        name: dequantize_rows(tensor, tensors[name + SCALE_SUFFIX])
        if tensor.dtype == torch.int8
        else tensor.float()
        for name, tensor in tensors.items()
        if not (name.endswith(SCALE_SUFFIX) and name.removesuffix(SCALE_SUFFIX) in tensors)
    }


def _is_quantizable(name: str, shape: Sequence[int]) -> bool:
    return len(shape) == 2 and not name.endswith("positions.weight")
