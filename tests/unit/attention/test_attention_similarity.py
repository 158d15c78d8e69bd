"""Attention pooling with every similarity, from a soft mixture to a database query."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pellucid.attention import (
    additive,
    attend,
    attention_pooling,
    dot,
    edit_distance,
    edit_similarity,
    exact_match,
    gaussian_kernel,
    pool,
    scaled_dot,
)
from pellucid.errors import InputError

ROOMS = {"Smith": 200.0, "Summer": 201.0, "Smeeth": 202.0}
NUMBERS = [[room] for room in ROOMS.values()]


def _random(*shape: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def test_pool_is_the_weighted_sum_of_equation_one() -> None:
    weights, values = torch.softmax(_random(3, 5), dim=-1), _random(5, 7)
    expected = torch.zeros(3, 7, dtype=torch.float64)
    for i in range(3):
        for j in range(5):
            expected[i] += weights[i, j] * values[j]
    assert (pool(weights, values) - expected).abs().max() < 1e-14


def test_attention_pooling_with_scaled_dot_is_attention() -> None:
    query, key, value = _random(3, 5), _random(7, 5, seed=2), _random(7, 11, seed=3)
    pooled, attended = attention_pooling(query, key, value, scaled_dot), attend(query, key, value)
    assert torch.equal(pooled.scores, attended.scaled)
    assert torch.equal(pooled.weights, attended.weights)
    assert torch.equal(pooled.context, attended.context)


def test_attention_pooling_with_dot_at_temperature_root_d_is_attention() -> None:
    query, key, value = _random(3, 5), _random(7, 5, seed=2), _random(7, 11, seed=3)
    pooled = attention_pooling(query, key, value, dot, temperature=math.sqrt(5))
    assert (pooled.context - attend(query, key, value).context).abs().max() < 1e-14


def test_additive_equals_its_formula_with_different_widths() -> None:
    query, key = _random(3, 5), _random(7, 2, seed=2)
    query_weight, key_weight = _random(11, 5, seed=3), _random(11, 2, seed=4)
    direction = _random(11, seed=5)
    similarities = additive(
        query, key, query_weight=query_weight, key_weight=key_weight, direction=direction
    )
    assert similarities.shape == (3, 7)
    for i in range(3):
        for j in range(7):
            inner = np.tanh(
                query_weight.numpy() @ query[i].numpy() + key_weight.numpy() @ key[j].numpy()
            )
            assert similarities[i, j].item() == pytest.approx(float(direction.numpy() @ inner))


def test_gaussian_kernel_weights_are_nadaraya_watson() -> None:
    query, key, value = _random(3, 2), _random(7, 2, seed=2), _random(7, 1, seed=3)
    steps = attention_pooling(query, key, value, partial(gaussian_kernel, width=0.7))
    for i in range(3):
        kernel = [math.exp(-float((query[i] - k).square().sum()) / (2 * 0.7**2)) for k in key]
        expected = sum(w * float(v) for w, v in zip(kernel, value[:, 0], strict=True)) / sum(kernel)
        assert steps.context[i, 0].item() == pytest.approx(expected)


def test_gaussian_kernel_of_itself_is_zero_and_largest() -> None:
    x = _random(5, 3)
    similarities = gaussian_kernel(x, x)
    assert similarities.diagonal().tolist() == [0.0] * 5
    assert (similarities.argmax(dim=-1) == torch.arange(5)).all()


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ("Summeth", "Smith", 3),
        ("Summeth", "Summer", 2),
        ("Summeth", "Smeeth", 2),
        ("kitten", "sitting", 3),
        ("", "abc", 3),
        ("abc", "", 3),
        ("", "", 0),
        ("same", "same", 0),
        ("flaw", "lawn", 2),
    ],
)
def test_edit_distance_known_pairs(first: str, second: str, distance: int) -> None:
    assert edit_distance(first, second) == distance


_words = st.text(alphabet="abc", max_size=6)


@settings(max_examples=settings.default.max_examples * 3 // 5, deadline=None)
@given(_words, _words, _words)
def test_edit_distance_is_a_metric(first: str, second: str, third: str) -> None:
    there, back = edit_distance(first, second), edit_distance(second, first)
    assert there == back
    assert (there == 0) == (first == second)
    assert abs(len(first) - len(second)) <= there <= max(len(first), len(second))
    assert edit_distance(first, third) <= there + edit_distance(second, third)


def test_room_number_soft_is_between_the_rooms() -> None:
    steps = attention_pooling(["Summeth"], list(ROOMS), NUMBERS, edit_similarity)
    assert steps.scores.tolist() == [[-3, -2, -2]]
    assert steps.weights[0].tolist() == pytest.approx([0.155, 0.422, 0.422], abs=5e-4)
    assert steps.context.item() == pytest.approx(201.27, abs=0.005)


def test_temperature_zero_gives_all_weight_to_the_most_similar() -> None:
    steps = attention_pooling(
        ["Smithy", "Sumer"], list(ROOMS), NUMBERS, edit_similarity, temperature=0
    )
    assert steps.weights.tolist() == [[1, 0, 0], [0, 1, 0]]
    assert steps.context[:, 0].tolist() == [200, 201]


def test_temperature_zero_ties_share_evenly_as_the_limit_does() -> None:
    hard = attention_pooling(["Summeth"], list(ROOMS), NUMBERS, edit_similarity, temperature=0)
    cold = attention_pooling(["Summeth"], list(ROOMS), NUMBERS, edit_similarity, temperature=0.01)
    assert hard.weights.tolist() == [[0, 0.5, 0.5]]
    assert (hard.weights - cold.weights).abs().max() < 1e-12


@pytest.mark.parametrize("temperature", [0.0, 0.5, 1.0, 9.0])
def test_exact_match_is_a_database_query_at_any_temperature(temperature: float) -> None:
    steps = attention_pooling(
        ["Summer", "Nobody"], list(ROOMS), NUMBERS, exact_match, temperature=temperature
    )
    assert steps.weights.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert steps.context[:, 0].tolist() == [201, 0]


def test_higher_temperature_evens_the_weights() -> None:
    steps = attention_pooling(["Summeth"], list(ROOMS), NUMBERS, edit_similarity, temperature=1e6)
    assert steps.weights[0].tolist() == pytest.approx([1 / 3] * 3, abs=1e-6)


def test_pooling_impossible_arguments_are_refused() -> None:
    with pytest.raises(InputError, match="temperature"):
        attention_pooling(["a"], ["b"], [[1.0]], edit_similarity, temperature=-1)
    with pytest.raises(InputError, match="temperature"):
        attention_pooling(["a"], ["b"], [[1.0]], edit_similarity, temperature=math.nan)
    with pytest.raises(InputError, match="one row for each of the 1 keys"):
        attention_pooling(["a"], ["b"], [[1.0], [2.0]], edit_similarity)
    with pytest.raises(InputError, match="one row for each of the 1 keys"):
        attention_pooling(["a"], ["b"], [1.0], edit_similarity)
    with pytest.raises(InputError, match="positive"):
        gaussian_kernel(torch.ones(1, 1), torch.ones(1, 1), width=0)


@pytest.mark.parametrize("name", ["dot", "scaled_dot", "gaussian_kernel"])
def test_pooling_passes_gradcheck(name: str) -> None:
    similarity = {"dot": dot, "scaled_dot": scaled_dot, "gaussian_kernel": gaussian_kernel}[name]
    inputs = tuple(
        tensor.requires_grad_() for tensor in (_random(2, 3), _random(5, 3, seed=2), _random(5, 7))
    )
    assert torch.autograd.gradcheck(
        lambda q, k, v: attention_pooling(q, k, v, similarity, temperature=0.7).context, inputs
    )


def test_additive_pooling_passes_gradcheck_also_for_its_weights() -> None:
    shapes = ((2, 3), (5, 2), (5, 7), (11, 3), (11, 2), (11,))
    inputs = tuple(_random(*s, seed=i).requires_grad_() for i, s in enumerate(shapes))

    def compute(q: Tensor, k: Tensor, v: Tensor, w: Tensor, u: Tensor, d: Tensor) -> Tensor:
        similarity = partial(additive, query_weight=w, key_weight=u, direction=d)
        return attention_pooling(q, k, v, similarity).context

    assert torch.autograd.gradcheck(compute, inputs)
