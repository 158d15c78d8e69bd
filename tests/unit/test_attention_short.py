"""Attention over short sentences: equal to the stages, with both passes written by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from pellucid.attention import attend, attend_fast, causal_mask
from pellucid.attention.short import COLUMNS_AT_ONCE, attend_short

B, H, K, E = 3, 2, 7, 5
LENGTHS = [(11, 13), (1, 1), (13, COLUMNS_AT_ONCE), (2, COLUMNS_AT_ONCE + 1)]


def make_inputs(length: int, num_keys: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    generator = torch.Generator().manual_seed(3)
    shapes = ((length, K), (num_keys, K), (num_keys, E))
    return [
        torch.randn(B, rows, H, width, generator=generator)
        .to(dtype)
        .transpose(1, 2)
        .detach()
        .requires_grad_()
        for rows, width in shapes
    ]


def make_mask(kind: str, length: int, num_keys: int) -> Tensor | None:
    seen = torch.tensor([num_keys, max(1, num_keys - 4), max(1, num_keys // 2)])
    padding = torch.arange(num_keys) < seen.view(B, 1, 1, 1)
    causal = causal_mask(length, num_keys)
    return {"none": None, "padding": padding, "causal": causal, "both": padding & causal}[kind]


@pytest.mark.parametrize("lengths", LENGTHS)
@pytest.mark.parametrize("kind", ["none", "padding", "causal", "both"])
def test_context_and_gradients_equal_those_of_the_stages(
    lengths: tuple[int, int], kind: str
) -> None:
    mask = make_mask(kind, *lengths)
    ours, theirs = make_inputs(*lengths), make_inputs(*lengths)
    context = attend_short(ours[0], ours[1], ours[2], mask, 1 / math.sqrt(K))
    expected = attend(*theirs, mask).context
    torch.testing.assert_close(context, expected, rtol=0, atol=1e-12)
    upstream = torch.randn(context.shape, dtype=context.dtype)
    context.backward(upstream)
    expected.backward(upstream)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.grad, other.grad, rtol=0, atol=1e-12)


@pytest.mark.parametrize("factor", [1.0, 0.3])
def test_gradients_pass_gradcheck(factor: float) -> None:
    mask = make_mask("both", 3, 5)
    inputs = [tensor[:, :1].detach().requires_grad_() for tensor in make_inputs(3, 5)]
    assert torch.autograd.gradcheck(lambda *given: attend_short(*given, mask, factor), inputs)


def test_inputs_in_float32_stay_as_they_are() -> None:
    inputs = [one.detach().contiguous() for one in make_inputs(5, 16, torch.float32)]
    before = [one.clone() for one in inputs]
    for one in inputs:
        one.requires_grad_()
    attend_short(inputs[0], inputs[1], inputs[2], None, 0.5).sum().backward()
    for one, other in zip(inputs, before, strict=True):
        assert torch.equal(one.detach(), other)


def test_training_in_bfloat16_takes_it_and_lays_heads_side_by_side() -> None:
    inputs = make_inputs(11, 13, torch.bfloat16)
    context = attend_fast(*inputs)
    assert torch.equal(context, attend_short(*inputs, None, 1 / math.sqrt(K)))  # type: ignore[misc]
    assert context.dtype == torch.bfloat16
    assert context.transpose(1, 2).is_contiguous(), "or concatenating the heads is a copy"
    wide = attend(*(one.detach().float() for one in inputs)).context
    torch.testing.assert_close(context.detach().float(), wide, rtol=2**-8, atol=2**-8)
