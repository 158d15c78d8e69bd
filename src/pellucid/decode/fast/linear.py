"""Products with fixed weights, in a given precision."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid.config import Precision
from pellucid.errors import ConfigurationError

Linear = Callable[[Tensor], Tensor]
"""A function from rows of one width to rows of another."""


def make_linear(
    weight: Tensor, bias: Tensor | None, precision: Precision, *, is_normalized: bool = False
) -> Linear:
    """Prepare ``x W^T + b`` for many computations.

    ``float32`` and ``bfloat16`` compute in the weight's own type. ``int8`` keeps a signed byte for
    each weight with a scale for each row, quantizes the input on the fly with one scale for the
    batch, and sums in 32-bit integers. Rows that are not normalized are divided by their largest
    value before and multiplied by it after, so that the scale suits all of them.

    Args:
        weight: (out, in).
        bias: (out), or None.
        precision: of the product.
        is_normalized: True if the input's rows are of about one size, as after a layer norm.

    Raises:
        ConfigurationError: this PyTorch has no int8 products for this processor.
    """
    if precision == "int8":
        return _make_int8(weight, bias, is_normalized=is_normalized)
    if weight.device.type != "cpu":
        return lambda rows: F.linear(rows, weight, bias)
    # With few rows this layout is up to twice as fast; with many it makes no difference.
    transposed = weight.t().contiguous()
    if bias is None:
        return lambda rows: rows @ transposed
    width = weight.shape[0]
    return lambda rows: torch.addmm(bias, rows.reshape(-1, rows.shape[-1]), transposed).view(
        *rows.shape[:-1], width
    )


def _make_int8(weight: Tensor, bias: Tensor | None, *, is_normalized: bool) -> Linear:
    if not {"fbgemm", "x86"} & set(torch.backends.quantized.supported_engines):
        raise ConfigurationError(
            "PyTorch does not support the precision int8 on this processor. Use float32 or "
            "bfloat16."
        )
    torch.backends.quantized.engine = "fbgemm"
    smallest = torch.finfo(torch.float32).tiny
    scale = (weight.abs().amax(dim=1) / 127).clamp(min=smallest)
    zero = torch.zeros(len(weight), dtype=torch.long)
    with warnings.catch_warnings():
        # Deprecated in favor of a separate package, whose kernels for processors are slower.
        warnings.filterwarnings("ignore", message=".*quantized tensor creation.*")
        quantized = torch.quantize_per_channel(weight, scale, zero, 0, torch.qint8)
        packed = torch.ops.quantized.linear_prepack(quantized, bias if is_normalized else None)
    # Without VNNI two products are added in 16 bits, which seven bits of input cannot overflow.
    use_seven_bits = not torch.cpu._is_vnni_supported()

    def multiply(rows: Tensor) -> Tensor:
        product: Tensor = torch.ops.quantized.linear_dynamic(rows, packed, use_seven_bits)
        return product

    def multiply_resized(rows: Tensor) -> Tensor:
        size = rows.abs().amax(dim=-1, keepdim=True).clamp_(min=smallest)
        product: Tensor = torch.ops.quantized.linear_dynamic(rows / size, packed, use_seven_bits)
        product *= size
        return product if bias is None else product.add_(bias)

    return multiply if is_normalized else multiply_resized
