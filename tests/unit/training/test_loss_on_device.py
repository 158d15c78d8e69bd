"""The loss that a GPU computes: padding is data, and logits are never held whole."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pellucid.training.fast.loss import smoothed_cross_entropy
from pellucid.training.fast.pytorch import masked_cross_entropy

P, D, V = 62, 7, 37


def make_rows(dtype: torch.dtype, *, has_bias: bool = True) -> tuple[Any, ...]:
    numbers = torch.Generator().manual_seed(3)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=numbers).to(dtype).requires_grad_()

    target_P = torch.randint(V, (P,), generator=numbers)
    # Rows of R-Drop's pairs are both real or both padding.
    real_P = (torch.rand(P // 2, generator=numbers) < 0.7).repeat_interleave(2)
    return draw(P, D), draw(V, D), draw(V) if has_bias else None, target_P, real_P


@pytest.mark.parametrize("most_numbers", [2 * V, 11 * V, P * V, 1 << 26])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_loss_and_gradients_are_pytorchs_of_the_real_rows(
    dtype: torch.dtype, tolerance: float, has_bias: bool, most_numbers: int
) -> None:
    states_PD, weight_VD, bias_V, target_P, real_P = rows = make_rows(dtype, has_bias=has_bias)
    found, plain = masked_cross_entropy(*rows, smoothing=0.13, most_numbers=most_numbers)
    logits_PV = F.linear(states_PD, weight_VD, bias_V)[real_P]
    expected = F.cross_entropy(logits_PV, target_P[real_P], label_smoothing=0.13)
    unsmoothed = F.cross_entropy(logits_PV, target_P[real_P])
    assert torch.allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert torch.allclose(plain, unsmoothed, rtol=tolerance, atol=tolerance)
    inputs = [one for one in rows[:3] if one is not None]
    pairs = zip(
        torch.autograd.grad(3 * found, inputs),
        torch.autograd.grad(3 * expected, inputs),
        strict=True,
    )
    for one, other in pairs:
        assert torch.allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("most_numbers", [2 * V, 1 << 26])
def test_r_drop_is_that_of_the_processors_loss(most_numbers: int) -> None:
    rows = make_rows(torch.float64)
    *inputs, target_P, real_P = rows
    found, _ = masked_cross_entropy(*rows, smoothing=0.13, r_drop=5, most_numbers=most_numbers)
    states_PD, weight_VD, bias_V = inputs
    expected, _ = smoothed_cross_entropy(
        states_PD[real_P], weight_VD, bias_V, target_P[real_P], smoothing=0.13, r_drop=5
    )
    assert float(found) == pytest.approx(float(expected), rel=1e-12)
    pairs = zip(
        torch.autograd.grad(found, inputs), torch.autograd.grad(expected, inputs), strict=True
    )
    for one, other in pairs:
        assert torch.allclose(one, other, rtol=1e-10, atol=1e-12)


def test_bfloat16_sums_in_float32_and_is_near() -> None:
    rows = make_rows(torch.bfloat16)
    wide = make_rows(torch.float64)
    found, _ = masked_cross_entropy(*rows, smoothing=0.1)
    expected, _ = masked_cross_entropy(*wide, smoothing=0.1)
    assert found.dtype == torch.float32
    assert float(found) == pytest.approx(float(expected), rel=0.02)


def test_a_batch_of_padding_only_has_no_loss_and_no_gradient() -> None:
    states_PD, weight_VD, bias_V, target_P, real_P = make_rows(torch.float32)
    nothing_P = torch.zeros_like(real_P)
    found, _ = masked_cross_entropy(
        states_PD, weight_VD, bias_V, target_P, nothing_P, smoothing=0.1
    )
    gradients = torch.autograd.grad(found, [states_PD, weight_VD])
    assert float(found) == 0
    assert all(not one.any() for one in gradients)


class Largest(TorchDispatchMode):
    """The size of the largest new tensor, and the operations that wait for a device."""

    size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert "nonzero" not in str(func)
        assert "_local_scalar_dense" not in str(func)
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.size = max(self.size, result.numel())
        return result


def test_no_tensor_is_larger_than_a_chunk_and_nothing_waits() -> None:
    rows = make_rows(torch.float32)
    with Largest() as largest:
        masked_cross_entropy(*rows, smoothing=0.1, r_drop=1, most_numbers=12 * V)[0].backward()  # type: ignore[no-untyped-call]
    assert largest.size == 12 * V
