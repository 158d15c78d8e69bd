r"""Weights in fewer bits: rows of 8-bit integers with a scale each, and bfloat16.

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

import numpy as np

SCALE = "_scale"
"""The suffix of the name of a stored matrix of integers that names the scales of its rows."""

LARGEST = 127

# Masks out the last 7 of the 24 significant bits of a float32.
_KEPT_BITS = ~0x7F
_SMALLEST_SCALE = np.finfo(np.float32).tiny


def quantize_rows(weight_OI: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Turn a matrix into 8-bit integers with one scale a row.

    No entry moves by more than half its row's scale. A row so small that its scale would not be
    a normal float32 (below 1.5e-36) becomes zeros with the scale 1.

    Args:
        weight_OI: finite float32 numbers.

    Returns:
        ``values_OI``, int8 between -127 and 127, and ``scale_O``, float32.
    """
    largest_O = np.abs(weight_OI).max(axis=1) / np.float32(LARGEST)
    scale_O = (largest_O.view(np.int32) & _KEPT_BITS).view(np.float32)
    # A scale that is not normal has fewer bits, so dequantizing would round.
    is_zero_O = scale_O < _SMALLEST_SCALE
    scale_O = np.where(is_zero_O, np.float32(1), scale_O)
    values_OI = np.rint(weight_OI / scale_O[:, None])
    values_OI[is_zero_O] = 0
    return values_OI.astype(np.int8), scale_O


def is_quantized(values_OI: np.ndarray, scale_O: np.ndarray) -> bool:
    """True if integers and scales can be a result of `quantize_rows`."""
    # As int first, because -(-128) does not fit 8 bits.
    largest_O = np.maximum(values_OI.max(axis=1).astype(int), -values_OI.min(axis=1).astype(int))
    has_few_bits_O = np.ascontiguousarray(scale_O).view(np.int32) & ~_KEPT_BITS == 0
    # The scale is cut down, never up, so the largest entry of a row always becomes 127.
    is_row_O = (largest_O == LARGEST) & (scale_O >= _SMALLEST_SCALE) & has_few_bits_O
    is_zero_O = (largest_O == 0) & (scale_O == 1)
    return bool((np.isfinite(scale_O) & (is_row_O | is_zero_O)).all())


def is_quantizable(name: str, num_axes: int) -> bool:
    """Tell whether int8 applies to a weight: not to learned positions, which are only added."""
    return num_axes == 2 and not name.endswith("positions.weight")


def to_bfloat16(values: np.ndarray) -> np.ndarray:
    """Round finite float32 numbers to bfloat16, ties to even; the result is their bits."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    # Less than half of the last bit kept, or just half if that bit is odd: ties go to even.
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
