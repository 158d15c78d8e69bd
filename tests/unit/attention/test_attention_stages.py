"""The five stages, the fast path, and the arguments of `attend`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from pellucid.attention import attend, attend_fast, causal_mask, mix, scale, score, weigh
from pellucid.attention.fast import SHORT_ENOUGH_FOR_PLAIN_PRODUCTS
from pellucid.errors import InputError

Three = tuple[Tensor, Tensor, Tensor]
BATCH, HEADS, D_KEY, D_VALUE = 2, 3, 5, 7
SHORT = (11, 13)
LONG = (SHORT_ENOUGH_FOR_PLAIN_PRODUCTS + 3, SHORT_ENOUGH_FOR_PLAIN_PRODUCTS + 11)


def _inputs(lengths: tuple[int, int], *, requires_grad: bool = False) -> Three:
    num_queries, num_keys = lengths
    generator = torch.Generator().manual_seed(1)
    shapes = ((num_queries, D_KEY), (num_keys, D_KEY), (num_keys, D_VALUE))
    query, key, value = (
        torch.randn(BATCH, HEADS, *shape, generator=generator, dtype=torch.float64).requires_grad_(
            requires_grad
        )
        for shape in shapes
    )
    return query, key, value


def _mask(lengths: tuple[int, int], *, with_empty_row: bool = False) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    mask_B1LM = torch.rand(BATCH, 1, *lengths, generator=generator) > 0.4
    mask_B1LM[..., 0] = True
    if with_empty_row:
        mask_B1LM[1, 0, 4] = False
    return mask_B1LM


def _largest_difference(first: Tensor, second: Tensor) -> float:
    return float((first - second).abs().max())


def _reference(query: Any, key: Any, value: Any, mask: Any, *, use_scale: bool) -> dict[str, Any]:
    """The definition, one pair of positions at a time, in NumPy."""
    num_queries, num_keys = query.shape[0], key.shape[0]
    scores = np.zeros((num_queries, num_keys))
    weights = np.zeros((num_queries, num_keys))
    context = np.zeros((num_queries, value.shape[1]))
    for i in range(num_queries):
        for j in range(num_keys):
            scores[i, j] = sum(query[i, k] * key[j, k] for k in range(query.shape[1]))
    scaled = scores / math.sqrt(query.shape[1]) if use_scale else scores
    for i in range(num_queries):
        total = sum(math.exp(scaled[i, j]) for j in range(num_keys) if mask[i, j])
        for j in range(num_keys):
            weights[i, j] = math.exp(scaled[i, j]) / total if mask[i, j] else 0.0
            context[i] += weights[i, j] * value[j]
    masked = np.where(mask, scaled, -np.inf)
    return {
        "scores": scores,
        "scaled": scaled,
        "masked": masked,
        "weights": weights,
        "context": context,
    }


@pytest.mark.parametrize("use_scale", [True, False])
def test_attend_every_stage_equals_numpy(use_scale: bool) -> None:
    lengths = (3, 5)
    query, key, value = (tensor[0, 0].numpy() for tensor in _inputs(lengths))
    mask = _mask(lengths)[0, 0].numpy()
    steps = attend(query, key, value, mask, use_scale=use_scale)
    for stage, expected in _reference(query, key, value, mask, use_scale=use_scale).items():
        np.testing.assert_allclose(getattr(steps, stage).numpy(), expected, atol=1e-12)


@pytest.mark.parametrize(("d_model", "d_key", "d_value"), [(4, 16, 16), (4, 16, 3), (5, 2, 11)])
def test_attend_projections_of_free_widths_equal_numpy(
    d_model: int, d_key: int, d_value: int
) -> None:
    random = np.random.default_rng(3)
    x = random.normal(size=(7, d_model))
    query, key, value = (x @ random.normal(size=(d_model, d)) for d in (d_key, d_key, d_value))
    everywhere = np.ones((7, 7), dtype=bool)
    expected = _reference(query, key, value, everywhere, use_scale=True)["context"]
    np.testing.assert_allclose(attend(query, key, value).context.numpy(), expected, atol=1e-10)


@pytest.mark.parametrize("lengths", [SHORT, LONG])
@pytest.mark.parametrize("kind", ["none", "random", "empty row", "padding", "causal"])
def test_attend_fast_equals_stages_and_pytorch(lengths: tuple[int, int], kind: str) -> None:
    query, key, value = _inputs(lengths)
    mask = {
        "none": None,
        "random": _mask(lengths),
        "empty row": _mask(lengths, with_empty_row=True),
        "padding": _mask(lengths)[:, :, :1, :],
        "causal": causal_mask(*lengths),
    }[kind]
    stages = attend(query, key, value, mask).context
    fast = attend_fast(query, key, value, mask)
    fused = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    assert _largest_difference(fast, stages) < 1e-10
    assert _largest_difference(fused, stages) < 1e-10


@pytest.mark.parametrize("lengths", [SHORT, LONG])
def test_attend_fast_without_scale_equals_stages(lengths: tuple[int, int]) -> None:
    query, key, value = _inputs(lengths)
    stages = attend(query, key, value, use_scale=False).context
    assert _largest_difference(attend_fast(query, key, value, use_scale=False), stages) < 1e-10


@pytest.mark.parametrize("lengths", [SHORT, LONG])
def test_attend_fast_gradients_equal_those_of_stages(lengths: tuple[int, int]) -> None:
    mask = _mask(lengths, with_empty_row=True)
    fast_inputs = _inputs(lengths, requires_grad=True)
    stage_inputs = _inputs(lengths, requires_grad=True)
    attend_fast(*fast_inputs, mask).square().sum().backward()
    attend(*stage_inputs, mask).context.square().sum().backward()
    for fast, staged in zip(fast_inputs, stage_inputs, strict=True):
        assert fast.grad is not None
        assert staged.grad is not None
        assert _largest_difference(fast.grad, staged.grad) < 1e-10


def test_attend_stages_are_the_five_functions_in_order() -> None:
    query, key, value = _inputs(SHORT)
    steps = attend(query, key, value)
    assert torch.equal(steps.scores, score(query, key))
    assert torch.equal(steps.scaled, scale(steps.scores, D_KEY))
    assert torch.equal(steps.masked, steps.scaled)
    assert torch.equal(steps.weights, weigh(steps.masked))
    assert torch.equal(steps.context, mix(steps.weights, value))
    assert steps.weights.shape == (BATCH, HEADS, *SHORT)
    assert steps.context.shape == (BATCH, HEADS, SHORT[0], D_VALUE)


def test_weigh_rows_sum_to_one_and_survive_large_scores() -> None:
    weights = weigh(torch.tensor([[1e30, 0.0, -1e30], [3e38, 3e38, -math.inf]]))
    assert weights.tolist() == [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]]


def test_weigh_adding_a_constant_to_a_row_changes_nothing() -> None:
    scores = _inputs(SHORT)[0]
    assert _largest_difference(weigh(scores), weigh(scores + 17)) < 1e-14


def test_scale_keeps_the_variance_of_products_near_one() -> None:
    generator = torch.Generator().manual_seed(5)
    query, key = (torch.randn(301, 257, generator=generator) for _ in range(2))
    assert abs(float(scale(score(query, key), 257).var()) - 1) < 0.05


@pytest.mark.parametrize("lengths", [SHORT, LONG])
def test_empty_row_has_weights_and_context_zero_and_finite_gradients(
    lengths: tuple[int, int],
) -> None:
    mask = _mask(lengths, with_empty_row=True)
    steps = attend(*_inputs(lengths), mask)
    assert steps.weights[1, :, 4].abs().max() == 0
    assert steps.context[1, :, 4].abs().max() == 0
    for compute in (attend_fast, lambda *given: attend(*given).context):
        inputs = _inputs(lengths, requires_grad=True)
        context = compute(*inputs, mask)
        assert context[1, :, 4].abs().max() == 0
        context.exp().sum().backward()
        for tensor in inputs:
            assert tensor.grad is not None
            assert tensor.grad.isfinite().all()
        query_gradient = inputs[0].grad
        assert query_gradient is not None
        assert query_gradient[1, :, 4].abs().max() == 0


def test_attend_fast_all_rows_empty_is_zero() -> None:
    nowhere = torch.zeros(1, 1, 1, SHORT[1], dtype=torch.bool)
    assert attend_fast(*_inputs(SHORT), nowhere).abs().max() == 0


def test_forbidden_position_changed_at_will_changes_nothing() -> None:
    query, key, value = _inputs(SHORT)
    mask = torch.ones(1, 1, 1, SHORT[1], dtype=torch.bool)
    mask[..., 6] = False
    other_key, other_value = key.clone(), value.clone()
    other_key[:, :, 6] = 1e6
    other_value[:, :, 6] = -1e6
    for compute in (attend_fast, lambda *given: attend(*given).context):
        assert torch.equal(
            compute(query, key, value, mask), compute(query, other_key, other_value, mask)
        )


def _small(*, requires_grad: bool = True) -> Three:
    query, key, value = (
        tensor[:1, :2].detach().clone().requires_grad_(requires_grad) for tensor in _inputs((3, 5))
    )
    return query, key, value


@pytest.mark.sample(4)
@pytest.mark.parametrize("kind", ["none", "masked", "empty row"])
@pytest.mark.parametrize("stage", ["scores", "scaled", "weights", "context"])
def test_attend_gradients_pass_gradcheck(kind: str, stage: str) -> None:
    mask = None if kind == "none" else causal_mask(3, 5)
    if kind == "empty row":
        assert mask is not None
        mask[..., 1, :] = False
    assert torch.autograd.gradcheck(lambda *given: getattr(attend(*given, mask), stage), _small())


@pytest.mark.parametrize("kind", ["none", "masked", "empty row"])
@pytest.mark.parametrize("drop", [None, lambda weights_BHLM: weights_BHLM])
def test_attend_fast_gradients_pass_gradcheck_on_both_branches(
    kind: str, drop: Callable[[Tensor], Tensor] | None
) -> None:
    mask = None if kind == "none" else causal_mask(3, 5)
    if kind == "empty row":
        assert mask is not None
        mask[..., 1, :] = False
    assert torch.autograd.gradcheck(lambda *given: attend_fast(*given, mask, drop=drop), _small())


def test_single_stages_pass_gradcheck() -> None:
    query, key, value = _small()
    assert torch.autograd.gradcheck(score, (query, key))
    scores = score(query, key).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda given: scale(given, D_KEY), (scores,))
    assert torch.autograd.gradcheck(weigh, (scores,))
    assert torch.autograd.gradcheck(mix, (scores, value))


def test_attend_takes_lists_of_whole_numbers() -> None:
    steps = attend([[1, 0], [0, 1]], [[1, 0], [0, 1]], [[2, 4], [6, 8]])
    assert steps.scores.tolist() == [[1, 0], [0, 1]]
    assert steps.context.dtype == torch.float32


def test_attend_takes_numpy_and_keeps_its_precision() -> None:
    random = np.random.default_rng(7)
    query, key, value = (random.normal(size=(3, 5)) for _ in range(3))
    assert attend(query, key, value).context.dtype == torch.float64
    assert attend(query.astype(np.float32), key, value).context.dtype == torch.float64


def test_attend_takes_a_mixture_of_lists_arrays_and_tensors() -> None:
    steps = attend([[1.0, 2.0]], np.ones((3, 2)), torch.arange(15).reshape(3, 5), [[1 > 0] * 3])
    assert steps.context.shape == (1, 5)
    assert steps.context[0].tolist() == pytest.approx([5, 6, 7, 8, 9])


def test_attend_bfloat16_stays_bfloat16() -> None:
    ones = torch.ones(2, 3, dtype=torch.bfloat16)
    assert attend(ones, ones, ones).context.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("query", "key", "value", "mask", "words"),
    [
        ([1, 2], [[1, 2]], [[1, 2]], None, r"have \(2,\), \(1, 2\)"),
        ([[1, 2]], [[1, 2, 3]], [[1, 2]], None, r"have \(1, 2\), \(1, 3\)"),
        ([[1, 2]], [[1, 2]], [[1, 2], [3, 4]], None, r"have \(1, 2\), \(1, 2\) and \(2, 2\)"),
        ([[1, 2]], [[1, 2]], [[1, 2]], [[1]], "truth values"),
        ([[1, 2]], [[1, 2]], [[1, 2]], [[0.0]], "truth values"),
        ([[1, 2]], [[1, 2]], [[1, 2]], [[True, False]], "broadcast"),
        ([[1, 2]], [[1, 2]], [[1, 2]], [[[True]]] * 3, "broadcast"),
        ([[1, 2], [3]], [[1, 2]], [[1, 2]], None, "query"),
        ([[1, 2]], "key", [[1, 2]], None, "key"),
        ([[[1, 2]]] * 2, [[[1, 2]]] * 3, [[[1, 2]]] * 3, None, "before the last two axes"),
    ],
)
def test_attend_what_does_not_fit_is_one_sentence(
    query: Any, key: Any, value: Any, mask: Any, words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        attend(query, key, value, mask)
    message = str(caught.value)
    assert "must" in message
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("query", "key", "mask"),
    [
        (torch.ones(1, 2, device="meta"), [[2.0, 1.0], [0.0, 3.0]], [[True, False]]),
        ([[1.0, 0.0]], torch.ones(2, 2, device="meta"), torch.tensor([[True, False]])),
        (np.ones((1, 2)), torch.ones(2, 2, device="meta"), None),
    ],
    ids=["query", "key", "array"],
)
def test_attend_moves_lists_and_arrays_to_the_device_of_a_tensor(
    query: Any, key: Any, mask: Any
) -> None:
    steps = attend(query, key, np.ones((2, 3), dtype=np.float16), mask)
    assert steps.context.device == torch.device("meta")
    assert steps.context.shape == (1, 3)


@pytest.mark.parametrize(
    "query",
    [
        [[1 + 2j, 0]],
        torch.ones(1, 2, dtype=torch.complex64),
        torch.ones(1, 2).to(torch.float8_e4m3fn),
        [[10**30, 0]],
        [[10**400, 0]],
    ],
    ids=["complex list", "complex", "float8", "large", "larger"],
)
def test_attend_refuses_types_that_do_not_mix_in_one_sentence(query: Any) -> None:
    with pytest.raises(InputError, match="The query must be a tensor, an array or nested lists"):
        attend(query, torch.eye(2), torch.eye(2))


def test_attend_takes_mixed_types_and_the_widest_floats() -> None:
    steps = attend([[1, 0]], torch.eye(2, dtype=torch.bfloat16), np.eye(2), [[True, True]])
    assert steps.context.dtype == torch.float64
