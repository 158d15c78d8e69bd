"""Weights as a bundle stores them at each precision; `pellucid.native.quantization` is int8."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from pellucid.config import Precision
from pellucid.native import quantization
from pellucid.native.quantization import SCALE, is_quantizable

_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def quantize_tensor_rows(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Turn a float32 matrix into 8-bit integers with one scale a row, exactly as the engine does.

    Returns:
        The int8 matrix, and the float32 scales, one a row.
    """
    # One quantizer for both, so that stored integers are those that the engine would make.
    values, scale = quantization.quantize_rows(weight.detach().numpy(force=True))
    return torch.from_numpy(values), torch.from_numpy(scale)


def dequantize_rows(values: Tensor, scale: Tensor) -> Tensor:
    """Turn 8-bit integers with one scale a row back into a float32 matrix, exactly."""
    return values.float() * scale[:, None]


def is_quantized_tensor(values: Tensor, scale: Tensor) -> bool:
    """True if integers and scales can be a result of `quantize_tensor_rows`."""
    return quantization.is_quantized(values.numpy(), scale.numpy())


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
        if is_quantizable(name, weight.dim()):
            packed[name], packed[name + SCALE] = quantize_tensor_rows(weight.float())
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
        if is_quantizable(name, len(shape)):
            types[name] = (shape, torch.int8)
            types[name + SCALE] = (shape[:1], torch.float32)
    return types


def unpack_weights(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert stored tensors back into float32 weights, by name."""
    return {
        name: dequantize_rows(tensor, tensors[name + SCALE])
        if tensor.dtype == torch.int8
        else tensor.float()
        for name, tensor in tensors.items()
        # Only next to its matrix is a tensor of such a name a scale.
        if not (name.endswith(SCALE) and name.removesuffix(SCALE) in tensors)
    }
