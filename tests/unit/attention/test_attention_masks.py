"""Masks of attention: padding, causal, both, and the mask as a matrix that is added."""

from __future__ import annotations

import math

import pytest
import torch

from pellucid.attention import (
    additive_mask,
    apply_mask,
    attend,
    causal_mask,
    mask_then_scale,
    padding_mask,
    scale_then_mask,
    weigh,
)


def test_causal_mask_allows_itself_and_those_before() -> None:
    mask = causal_mask(5)
    assert mask.dtype == torch.bool
    assert mask.shape == (1, 1, 5, 5)
    for query in range(5):
        for key in range(5):
            assert bool(mask[0, 0, query, key]) == (key <= query)


def test_causal_mask_fewer_queries_than_keys_are_the_last_rows() -> None:
    for num_queries in range(1, 8):
        assert torch.equal(causal_mask(num_queries, 7), causal_mask(7)[:, :, -num_queries:])


def test_padding_mask_gives_padding_weight_exactly_zero() -> None:
    is_token = torch.tensor([[True] * 7, [True] * 3 + [False] * 4])
    x = torch.randn(2, 3, 7, 5, generator=torch.Generator().manual_seed(1))
    weights = attend(x, x, x, padding_mask(is_token)).weights
    assert padding_mask(is_token).shape == (2, 1, 1, 7)
    assert weights[1, :, :, 3:].abs().max() == 0
    assert weights[0].min() > 0


def test_masks_combined_allow_what_both_allow() -> None:
    is_token = torch.tensor([[True, True, False], [True, True, True]])
    both = padding_mask(is_token) & causal_mask(3)
    assert both.shape == (2, 1, 3, 3)
    assert both[0, 0].tolist() == [[True, False, False], [True, True, False], [True, True, False]]
    assert torch.equal(both[1], causal_mask(3)[0])


def test_apply_mask_none_leaves_the_scores() -> None:
    scores = torch.randn(3, 5)
    assert apply_mask(scores, None) is scores


def test_additive_mask_is_zero_where_allowed_and_minus_infinity_elsewhere() -> None:
    additive = additive_mask(causal_mask(3)[0, 0], dtype=torch.float64)
    assert additive.tolist() == [[0, -math.inf, -math.inf], [0, 0, -math.inf], [0, 0, 0]]
    assert additive.dtype == torch.float64


def test_additive_mask_added_equals_mask_applied() -> None:
    scores = torch.randn(5, 5, dtype=torch.float64)
    mask = causal_mask(5)[0, 0]
    assert torch.equal(scores + additive_mask(mask, dtype=torch.float64), apply_mask(scores, mask))


@pytest.mark.parametrize("d_key", [3, 64])
def test_mask_orders_for_minus_infinity_agree(d_key: int) -> None:
    scores = torch.randn(7, 7, dtype=torch.float64)
    additive = additive_mask(causal_mask(7)[0, 0], dtype=torch.float64)
    first = mask_then_scale(scores, additive, d_key)
    assert torch.equal(first, scale_then_mask(scores, additive, d_key))


def test_mask_orders_for_a_finite_bias_differ() -> None:
    scores, bias = torch.zeros(3, 3), torch.diag(torch.ones(3))
    first, second = mask_then_scale(scores, bias, 4), scale_then_mask(scores, bias, 4)
    assert torch.equal(first, bias / 2)
    assert torch.equal(second, bias)


def test_mask_and_scale_functions_pass_gradcheck() -> None:
    scores = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda s, b: mask_then_scale(s, b, 7), (scores, bias))
    assert torch.autograd.gradcheck(lambda s, b: scale_then_mask(s, b, 7), (scores, bias))
    mask = causal_mask(3, 5)[0, 0]
    mask[1] = False
    assert torch.autograd.gradcheck(lambda s: weigh(apply_mask(s, mask)), (scores,))
