"""Rows of 8-bit integers: the largest rounding, and none when quantizing again."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from torch import Tensor

from pellucid.model.stored_tensors import (
    dequantize_rows,
    is_quantized_tensor,
    pack_weights,
    packed_types,
    quantize_tensor_rows,
    unpack_weights,
)

TINY = float(torch.finfo(torch.float32).tiny)

matrices = arrays.arrays(
    "float32",
    arrays.array_shapes(min_dims=2, max_dims=2, max_side=11),
    elements=st.floats(width=32, allow_nan=False, allow_infinity=False),
).map(torch.from_numpy)


@given(matrices)
def test_quantizing_again_gives_the_same_integers_and_scales(weight: Tensor) -> None:
    values, scale = quantize_tensor_rows(weight)
    again, scale_again = quantize_tensor_rows(dequantize_rows(values, scale))
    assert torch.equal(again, values)
    assert torch.equal(scale_again, scale)
    assert is_quantized_tensor(values, scale)


@given(matrices)
def test_no_entry_moves_by_more_than_half_a_step(weight: Tensor) -> None:
    values, scale = quantize_tensor_rows(weight)
    assert values.dtype == torch.int8
    assert int(values.min()) >= -127
    moved = (dequantize_rows(values, scale).double() - weight.double()).abs()
    step = weight.double().abs().amax(dim=1, keepdim=True) / 127
    # The scale is cut by 2^-16 of itself at most; rows of almost nothing become zeros.
    assert bool((moved <= step * (0.5 + 127 * 2.0**-16) + 127 * TINY).all())


@given(matrices)
def test_integers_and_scales_multiply_without_rounding(weight: Tensor) -> None:
    values, scale = quantize_tensor_rows(weight)
    exact = values.double() * scale.double()[:, None]
    assert torch.equal(dequantize_rows(values, scale).double(), exact)


def test_a_row_of_known_numbers() -> None:
    values, scale = quantize_tensor_rows(
        torch.tensor([[127.0, -63.4, 0.5, 0.49], [0.0, 0.0, 0.0, 0.0]])
    )
    assert values.tolist() == [[127, -63, 0, 0], [0, 0, 0, 0]]
    assert scale.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([[127, -128]], [1.0]),
        ([[126, 3]], [1.0]),
        ([[127, 3]], [0.1]),
        ([[127, 3]], [-1.0]),
        ([[127, 3]], [math.inf]),
        ([[127, 3]], [math.nan]),
        ([[127, 3]], [TINY / 4]),
        ([[0, 0]], [2.0]),
    ],
    ids=["minus-128", "short", "many-bits", "negative", "infinite", "nan", "tiny", "zeros"],
)
def test_guard_rows_that_cannot_be_had_again_are_seen(
    values: list[list[int]], scale: list[float]
) -> None:
    assert is_quantized_tensor(torch.tensor([[127, 3]], dtype=torch.int8), torch.tensor([0.5]))
    assert not is_quantized_tensor(torch.tensor(values, dtype=torch.int8), torch.tensor(scale))


def make_weights() -> dict[str, Tensor]:
    numbers = torch.Generator().manual_seed(3)
    return {
        "embedding.weight": torch.randn(7, 5, generator=numbers),
        "encoder.layers.0.feed_forward.inner.weight": torch.randn(11, 5, generator=numbers),
        "encoder.layers.0.feed_forward.inner.bias": torch.randn(11, generator=numbers),
        "encoder.positions.weight": torch.randn(13, 5, generator=numbers),
    }


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_packing_what_was_unpacked_gives_equal_tensors_of_the_stated_types(precision: str) -> None:
    weights = make_weights()
    packed = pack_weights(weights, precision)  # type: ignore[arg-type]
    types = packed_types(
        {name: tuple(weight.shape) for name, weight in weights.items()},
        precision,  # type: ignore[arg-type]
    )
    assert {name: (tuple(t.shape), t.dtype) for name, t in packed.items()} == types
    unpacked = unpack_weights(packed)
    assert unpacked.keys() == weights.keys()
    assert all(weight.dtype == torch.float32 for weight in unpacked.values())
    again = pack_weights(unpacked, precision)  # type: ignore[arg-type]
    assert again.keys() == packed.keys()
    assert all(torch.equal(again[name], tensor) for name, tensor in packed.items())


def test_int8_keeps_vectors_and_positions_as_they_are() -> None:
    weights = make_weights()
    packed = pack_weights(weights, "int8")
    quantized = {name for name, tensor in packed.items() if tensor.dtype == torch.int8}
    assert quantized == {"embedding.weight", "encoder.layers.0.feed_forward.inner.weight"}
    for name in weights.keys() - quantized:
        assert torch.equal(packed[name], weights[name])
