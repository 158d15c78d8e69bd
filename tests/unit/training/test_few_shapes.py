"""Products in bfloat16 that are padded to few shapes: the same numbers, and few shapes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from small_model import make_batch, make_model
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from pellucid.attention.fast import attend_fast
from pellucid.config import TrainingConfig
from pellucid.training.fast.bfloat16 import (
    FEWEST_ROWS,
    MAX_MULTIPLES,
    MIN_SIZE_TO_TRANSPOSE,
    make_shapes_repeat,
    row_multiple,
    transposed_copy,
)
from pellucid.training.fast.loss import ROWS_PER_CHUNK, chunk_rows, smoothed_cross_entropy
from pellucid.training.update.batch_parts import BatchPart
from pellucid.training.update.passes import Passes

D, E, V = 13, 7, 37
ROUNDING = 2**-8
"""Half the distance of two neighbours in bfloat16, of what they are."""


class Products(TorchDispatchMode):
    """A mode that notes the shapes of products in bfloat16; only those have to repeat."""

    def __init__(self) -> None:
        super().__init__()
        self.shapes: set[tuple[int, ...]] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.bmm):
            factors = args[-2:]
            if factors[0].dtype == torch.bfloat16 and factors[0].numel():
                self.shapes.add((*factors[0].shape, factors[1].shape[-1]))
        return func(*args, **(kwargs or {}))


def make_linear(*, bias: bool = True) -> nn.Linear:
    torch.manual_seed(3)
    linear = nn.Linear(D, E, bias=bias).to(torch.bfloat16)
    make_shapes_repeat(nn.Sequential(linear))
    return linear


def assert_near(actual: Tensor | None, expected: Tensor | None) -> None:
    """Check that two tensors differ by at most some roundings of the largest number."""
    assert actual is not None
    assert expected is not None
    assert actual.shape == expected.shape
    expected = expected.detach().double()
    largest = float(expected.abs().max())
    assert float((actual.detach().double() - expected).abs().max()) <= 3 * ROUNDING * largest


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("num_rows", [1, 61, 127, 128, 129, 256, 383, 2053, 4099])
def test_linear_layer_and_its_gradients_are_those_of_pytorch(num_rows: int, bias: bool) -> None:
    linear = make_linear(bias=bias)
    x_JD = torch.randn(num_rows, D).to(torch.bfloat16).requires_grad_()
    upstream_JE = torch.randn(num_rows, E).to(torch.bfloat16)
    y_JE = linear(x_JD)
    y_JE.backward(upstream_JE)
    wide = [tensor.detach().double().requires_grad_() for tensor in (x_JD, *linear.parameters())]
    expected_JE = F.linear(*wide)
    expected_JE.backward(upstream_JE.double())
    assert_near(y_JE, expected_JE.detach())
    for ours, theirs in zip((x_JD, *linear.parameters()), wide, strict=True):
        assert_near(ours.grad, theirs.grad)


@pytest.mark.parametrize(("num_inputs", "num_outputs"), [(1021, 1031), (1031, 1021)])
def test_wide_layer_has_the_gradients_of_pytorch(num_inputs: int, num_outputs: int) -> None:
    assert num_inputs * num_outputs >= MIN_SIZE_TO_TRANSPOSE
    torch.manual_seed(3)
    linear = nn.Linear(num_inputs, num_outputs).to(torch.bfloat16)
    make_shapes_repeat(nn.Sequential(linear))
    x_JD = torch.randn(307, num_inputs).to(torch.bfloat16).requires_grad_()
    upstream_JE = torch.randn(307, num_outputs).to(torch.bfloat16)
    wide = [tensor.detach().double().requires_grad_() for tensor in (x_JD, *linear.parameters())]
    linear(x_JD).backward(upstream_JE)
    F.linear(*wide).backward(upstream_JE.double())
    for ours, theirs in zip((x_JD, *linear.parameters()), wide, strict=True):
        assert_near(ours.grad, theirs.grad)


@pytest.mark.parametrize("num_rows", [1, 127, 128, 389])
def test_transposed_copy_is_the_transposed_matrix(num_rows: int) -> None:
    matrix_JC = torch.randn(num_rows, D)
    transposed_CJ = transposed_copy(matrix_JC)
    assert torch.equal(transposed_CJ, matrix_JC.T)
    assert transposed_CJ.is_contiguous()


def test_linear_layer_keeps_all_axes_before_the_last() -> None:
    linear = make_linear()
    x_BLD = torch.randn(5, 11, D).to(torch.bfloat16)
    assert torch.equal(linear(x_BLD), linear(x_BLD.flatten(0, 1)).view(5, 11, E))


def test_rows_of_many_batches_make_few_shapes() -> None:
    linear = make_linear()
    with Products() as products:
        for num_rows in range(1, 4200, 41):
            x_JD = torch.randn(num_rows, D).to(torch.bfloat16).requires_grad_()
            linear(x_JD).sum().backward()
    # Three kinds of product for each number of rows; those of half as many are in use below 2,048.
    assert len(products.shapes) <= 3 * (MAX_MULTIPLES + MAX_MULTIPLES // 2 + 2)


@pytest.mark.parametrize(
    ("num_rows", "multiple"), [(1, 128), (2048, 128), (2049, 256), (4096, 256), (25_000, 2048)]
)
def test_multiples_grow_with_the_rows(num_rows: int, multiple: int) -> None:
    assert row_multiple(num_rows) == multiple


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("num_rows", [1, 61, 128, 131, ROWS_PER_CHUNK, 4 * ROWS_PER_CHUNK + 5])
def test_loss_in_bfloat16_and_its_gradients(num_rows: int, has_bias: bool) -> None:
    torch.manual_seed(3)
    inputs = [torch.randn(num_rows, D), torch.randn(V, D) / 3, torch.randn(V) / 3]
    narrow = [tensor.to(torch.bfloat16).requires_grad_() for tensor in inputs]
    wide = [tensor.detach().double().requires_grad_() for tensor in narrow]
    target_P = torch.randint(V, (num_rows,))
    with Products() as products:
        actual, plain = smoothed_cross_entropy(
            narrow[0], narrow[1], narrow[2] if has_bias else None, target_P, smoothing=0.1
        )
        actual.backward()
    assert all(max(shape) % FEWEST_ROWS == 0 for shape in products.shapes if D in shape)
    logits_PV = F.linear(wide[0], wide[1], wide[2] if has_bias else None)
    expected = F.cross_entropy(logits_PV, target_P, label_smoothing=0.1)
    expected.backward()
    assert actual.item() == pytest.approx(expected.item(), rel=0.01)
    assert plain.item() == pytest.approx(F.cross_entropy(logits_PV, target_P).item(), rel=0.01)
    for ours, theirs in zip(narrow[: 2 + has_bias], wide, strict=False):
        assert_near(ours.grad, theirs.grad)


def test_chunk_of_a_large_vocabulary_has_the_fewest_rows() -> None:
    assert chunk_rows(64_007, multiple=FEWEST_ROWS) == FEWEST_ROWS
    assert chunk_rows(1_000_003, multiple=FEWEST_ROWS) == FEWEST_ROWS
    assert chunk_rows(32_003, multiple=FEWEST_ROWS) == 2 * FEWEST_ROWS


def test_attention_that_is_trained_in_bfloat16_computes_in_float32() -> None:
    torch.manual_seed(3)
    narrow = [torch.randn(3, 2, length, 5).to(torch.bfloat16) for length in (7, 11, 11)]
    mask = torch.arange(11) < torch.tensor([11, 4, 0]).view(3, 1, 1, 1)
    for tensor in narrow:
        tensor.requires_grad_()
    with Products() as products:
        context = attend_fast(*narrow, mask)
        context.sum().backward()
    wide = [tensor.detach().float().requires_grad_() for tensor in narrow]
    expected = attend_fast(*wide, mask)
    expected.sum().backward()
    assert products.shapes == set()
    assert context.dtype == torch.bfloat16
    assert not context[2].any(), "a row that may attend to nothing"
    assert_near(context, expected)
    for ours, theirs in zip(narrow, wide, strict=True):
        assert_near(ours.grad, theirs.grad)


def test_passes_in_bfloat16_meet_few_shapes_and_leave_the_model_alone() -> None:
    model = make_model()
    passes = Passes(model, TrainingConfig(dropout=0.25), "bfloat16")
    with Products() as products:
        for step in range(1, 8):
            batch = make_batch(20 + step, 3 + step, 12 - step, seed=step)
            passes.refresh_weights()
            passes.sum_gradients(step, [BatchPart(0, 1.0, batch)])
    rows = {max(size for size in shape if size % FEWEST_ROWS == 0) for shape in products.shapes}
    assert rows <= {FEWEST_ROWS, 2 * FEWEST_ROWS, 3 * FEWEST_ROWS}
    assert {type(module) for module in model.modules() if isinstance(module, nn.Linear)} == {
        nn.Linear
    }
