"""The fused, chunked cross-entropy against PyTorch's, and its gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pellucid.training.fast.loss import (
    NUMBERS_PER_CHUNK,
    ROWS_PER_CHUNK,
    interleave,
    smoothed_cross_entropy,
)

D = 7


def make_rows(
    num_rows: int, vocabulary: int, *, has_bias: bool = True, seed: int = 3
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    numbers = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        drawn = torch.randn(*shape, generator=numbers, dtype=torch.float64)
        return drawn.requires_grad_()

    states_PD, weight_VD = draw(num_rows, D), draw(vocabulary, D)
    bias_V = draw(vocabulary) if has_bias else None
    return states_PD, weight_VD, bias_V, torch.randint(vocabulary, (num_rows,), generator=numbers)


def by_pytorch(rows: tuple[Tensor, Tensor, Tensor | None, Tensor], smoothing: float) -> Tensor:
    states_PD, weight_VD, bias_V, target_P = rows
    logits_PV = F.linear(states_PD, weight_VD, bias_V)
    return F.cross_entropy(logits_PV, target_P, label_smoothing=smoothing)


def assert_near(actual: Tensor, expected: Tensor, tolerance: float) -> None:
    assert actual.shape == expected.shape
    difference = (actual - expected).detach().abs()
    largest, mean = float(difference.max()), float(difference.mean())
    assert largest <= tolerance, f"largest difference {largest:.3g}, mean {mean:.3g}"


@pytest.mark.sample(18)
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.37])
@pytest.mark.parametrize(
    ("num_rows", "vocabulary"),
    [
        (1, 37),
        (61, 37),
        (ROWS_PER_CHUNK, 37),
        (ROWS_PER_CHUNK + 1, 37),
        (2 * ROWS_PER_CHUNK, 37),
        (3 * ROWS_PER_CHUNK - 5, 37),
        (ROWS_PER_CHUNK + 29, 997),
        (31, 5003),
        (NUMBERS_PER_CHUNK // 32_003 + 3, 32_003),
    ],
)
def test_loss_and_gradients_equal_pytorchs(
    num_rows: int, vocabulary: int, smoothing: float, has_bias: bool
) -> None:
    rows = make_rows(num_rows, vocabulary, has_bias=has_bias)
    inputs = [tensor for tensor in rows[:3] if tensor is not None]
    actual, _ = smoothed_cross_entropy(*rows, smoothing=smoothing)
    expected = by_pytorch(rows, smoothing)
    assert_near(actual, expected, 1e-12)
    actual_gradients = torch.autograd.grad(actual, inputs)
    expected_gradients = torch.autograd.grad(expected, inputs)
    for ours, theirs in zip(actual_gradients, expected_gradients, strict=True):
        assert_near(ours, theirs, 1e-9)


def by_pytorch_with_r_drop(
    rows: tuple[Tensor, Tensor, Tensor | None, Tensor], smoothing: float, alpha: float
) -> Tensor:
    """Half of what the paper's equation 4 gives a pair, as the mean over all pairs."""
    states_PD, weight_VD, bias_V, _ = rows
    logs_PV = F.linear(states_PD, weight_VD, bias_V).log_softmax(-1)
    p, q = logs_PV[::2], logs_PV[1::2]
    there = F.kl_div(q, p, reduction="batchmean", log_target=True)
    back = F.kl_div(p, q, reduction="batchmean", log_target=True)
    return by_pytorch(rows, smoothing) + alpha / 4 * (there + back)


@pytest.mark.sample(4)
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(
    ("num_rows", "vocabulary"),
    [(2, 37), (62, 37), (ROWS_PER_CHUNK + 2, 997), (NUMBERS_PER_CHUNK // 32_003 + 4, 32_003)],
)
def test_r_drop_and_its_gradients_equal_pytorchs(
    num_rows: int, vocabulary: int, has_bias: bool
) -> None:
    rows = make_rows(num_rows, vocabulary, has_bias=has_bias)
    inputs = [tensor for tensor in rows[:3] if tensor is not None]
    actual, plain = smoothed_cross_entropy(*rows, smoothing=0.1, r_drop=3.0)
    expected = by_pytorch_with_r_drop(rows, 0.1, 3.0)
    assert_near(actual, expected, 1e-12)
    assert_near(plain, by_pytorch(rows, 0.0), 1e-12)
    for ours, theirs in zip(
        torch.autograd.grad(actual, inputs), torch.autograd.grad(expected, inputs), strict=True
    ):
        assert_near(ours, theirs, 1e-9)


def test_the_rows_of_two_passes_alternate() -> None:
    rows_PD = torch.arange(6)[:, None] * torch.ones(6, 2, dtype=torch.int64)
    assert interleave(rows_PD)[:, 1].tolist() == [0, 3, 1, 4, 2, 5]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_second_result_is_the_unsmoothed_mean_without_gradient(smoothing: float) -> None:
    rows = make_rows(ROWS_PER_CHUNK + 29, 37)
    _, plain = smoothed_cross_entropy(*rows, smoothing=smoothing)
    states_PD, weight_VD, bias_V, target_P = rows
    log_PV = F.linear(states_PD, weight_VD, bias_V).log_softmax(-1)
    total = -sum(float(log_PV[row, token].detach()) for row, token in enumerate(target_P))
    assert float(plain) == pytest.approx(total / len(target_P), abs=1e-12)
    assert not plain.requires_grad


def test_loss_without_smoothing_is_exactly_the_mean_of_minus_log_p() -> None:
    smoothed, plain = smoothed_cross_entropy(*make_rows(ROWS_PER_CHUNK + 29, 37), smoothing=0.0)
    assert smoothed.detach().item() == plain.item()


def test_loss_of_certain_predictions_with_smoothing_is_not_zero() -> None:
    """By hand: p = (1/2, 1/4, 1/4), y = 0, ε = 0.3, so q = (0.8, 0.1, 0.1)."""
    weight_VD = torch.tensor([[2.0], [1.0], [1.0]], dtype=torch.float64).log()
    states_PD = torch.ones(1, 1, dtype=torch.float64)
    smoothed, plain = smoothed_cross_entropy(
        states_PD, weight_VD, None, torch.tensor([0]), smoothing=0.3
    )
    log_2 = 0.6931471805599453
    assert float(smoothed) == pytest.approx(0.8 * log_2 + 0.2 * 2 * log_2, abs=1e-15)
    assert float(plain) == pytest.approx(log_2, abs=1e-15)


@pytest.mark.parametrize("factor", [0.0, -2.5, 1024.0])
def test_gradients_follow_the_upstream_gradient(factor: float) -> None:
    rows = make_rows(ROWS_PER_CHUNK + 29, 37)
    inputs = [tensor for tensor in rows[:3] if tensor is not None]
    actual, _ = smoothed_cross_entropy(*rows, smoothing=0.1)
    actual_gradients = torch.autograd.grad(actual * factor, inputs)
    expected_gradients = torch.autograd.grad(by_pytorch(rows, 0.1) * factor, inputs)
    for ours, theirs in zip(actual_gradients, expected_gradients, strict=True):
        assert_near(ours, theirs, 1e-9 * max(1, abs(factor)))


def test_gradients_reach_what_made_the_states() -> None:
    rows = make_rows(61, 37)
    hidden_PD = torch.randn(61, D, dtype=torch.float64, requires_grad=True)
    gradients = []
    for use_ours in (True, False):
        changed = (hidden_PD.tanh() * 3, *rows[1:])
        loss = smoothed_cross_entropy(*changed, smoothing=0.1)[0] if use_ours else None
        loss = by_pytorch(changed, 0.1) if loss is None else loss
        gradients += torch.autograd.grad(loss, hidden_PD)
    assert_near(gradients[0], gradients[1], 1e-9)


def test_gradients_of_a_tied_table_add_up() -> None:
    """The table used as embedding and as output gets the sum of both gradients."""
    _, weight_VD, _, target_P = make_rows(61, 37)
    gradients = []
    for use_ours in (True, False):
        rows = (weight_VD[target_P.roll(1)] * 0.7, weight_VD, None, target_P)
        loss = smoothed_cross_entropy(*rows, smoothing=0.1)[0] if use_ours else None
        loss = by_pytorch(rows, 0.1) if loss is None else loss
        gradients += torch.autograd.grad(loss, weight_VD)
    assert_near(gradients[0], gradients[1], 1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_loss_on_small_sizes_passes_gradcheck(smoothing: float) -> None:
    states_PD, weight_VD, bias_V, target_P = make_rows(3, 5)
    assert torch.autograd.gradcheck(
        lambda *tensors: smoothed_cross_entropy(*tensors, target_P, smoothing=smoothing)[0],
        (states_PD, weight_VD, bias_V),
    )


def test_second_derivative_is_refused_rather_than_wrong() -> None:
    """Gradients are computed in the forward pass, so differentiating them would miss a part."""
    rows = make_rows(3, 5)
    loss, _ = smoothed_cross_entropy(*rows, smoothing=0.1)
    (gradient,) = torch.autograd.grad(loss.square(), rows[0], create_graph=True)
    with pytest.raises(RuntimeError):
        torch.autograd.grad(gradient.square().sum(), rows[0])


def test_loss_of_huge_logits_is_finite() -> None:
    states_PD, weight_VD, bias_V, target_P = make_rows(11, 37)
    loss, plain = smoothed_cross_entropy(
        states_PD * 1e4, weight_VD, bias_V, target_P, smoothing=0.1
    )
    (gradient,) = torch.autograd.grad(loss, weight_VD)
    assert bool(loss.isfinite() & plain.isfinite() & gradient.isfinite().all())


def test_loss_where_the_true_tokens_probability_is_no_float_is_exact() -> None:
    rows = make_rows(61, 37)
    rows = (rows[0].detach() * 1e3, *rows[1:])
    smoothed, plain = smoothed_cross_entropy(*rows, smoothing=0.1)
    assert float(plain) > 800
    expected = by_pytorch(rows, 0.1).detach()
    assert float(smoothed.detach()) == pytest.approx(float(expected), rel=1e-12)


class LargestTensor(TorchDispatchMode):
    """A mode that keeps the size of the largest result of any operation."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, Tensor):
            self.size = max(self.size, result.numel())
        return result


def test_memory_does_not_grow_with_positions_times_vocabulary() -> None:
    sizes = []
    for vocabulary in (16_411, 65_537):
        rows = make_rows(ROWS_PER_CHUNK + 29, vocabulary)
        with LargestTensor() as largest:
            smoothed_cross_entropy(*rows, smoothing=0.1)[0].backward()
        assert largest.size < (ROWS_PER_CHUNK + 29) * vocabulary
        sizes.append(largest.size)
    assert max(sizes) <= NUMBERS_PER_CHUNK


def test_loss_in_float32_equals_float64_nearly() -> None:
    rows = make_rows(3 * ROWS_PER_CHUNK - 5, 997)
    double, _ = smoothed_cross_entropy(*rows, smoothing=0.1)
    single, _ = smoothed_cross_entropy(
        *(None if tensor is None else tensor.float() for tensor in rows[:3]),
        rows[3],
        smoothing=0.1,
    )
    assert single.item() == pytest.approx(double.item(), rel=1e-5)


def test_loss_inputs_are_left_as_they_were() -> None:
    rows = make_rows(61, 37)
    before = [tensor.detach().clone() for tensor in rows if tensor is not None]
    smoothed_cross_entropy(*rows, smoothing=0.1)[0].backward()
    for old, new in zip(before, [tensor for tensor in rows if tensor is not None], strict=True):
        assert torch.equal(old, new.detach())
