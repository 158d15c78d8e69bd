"""The variants of attention, each against its definition."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pellucid.attention import (
    attend,
    attend_across,
    attend_causally,
    attend_to_others,
    attend_with_embeddings,
    attend_with_keys,
    attend_with_values,
    query_network,
)

LENGTH, D_MODEL, D_KEY, D_VALUE, MEMORY = 7, 5, 3, 11, 13


def _random(*shape: int, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


X = _random(LENGTH, D_MODEL)
W_Q, W_K, W_V = (_random(D_MODEL, d, seed=s) for d, s in ((D_KEY, 2), (D_KEY, 3), (D_VALUE, 4)))


def test_attend_with_embeddings_uses_the_embeddings_for_all_three() -> None:
    steps = attend_with_embeddings(X)
    assert torch.equal(steps.scores, X @ X.T)
    assert torch.equal(steps.scaled, X @ X.T / 5**0.5)
    assert torch.equal(steps.context, steps.weights @ X)


def test_attend_to_others_adds_the_own_embedding_unchanged() -> None:
    steps = attend_to_others(X)
    for i in range(LENGTH):
        others = [j for j in range(LENGTH) if j != i]
        weights = torch.softmax(X[others] @ X[i] / 5**0.5, dim=0)
        expected = X[i] + weights @ X[others]
        assert (steps.context[i] - expected).abs().max() < 1e-12
        assert steps.weights[i, i] == 0
        assert steps.weights[i].sum().item() == pytest.approx(1)


def test_attend_to_others_a_word_alone_keeps_its_embedding() -> None:
    steps = attend_to_others(X[:1])
    assert steps.weights.tolist() == [[0.0]]
    assert torch.equal(steps.context, X[:1])


def test_attend_to_others_toy_width_four_divides_by_two() -> None:
    steps = attend_to_others(_random(3, 4))
    assert torch.equal(steps.scaled, steps.scores / 2)


def test_attend_with_keys_mixes_the_keys() -> None:
    steps = attend_with_keys(X, W_Q, W_K)
    assert torch.equal(steps.scores, (X @ W_Q) @ (X @ W_K).T)
    assert torch.equal(steps.context, steps.weights @ (X @ W_K))
    assert steps.context.shape == (LENGTH, D_KEY)


def test_attend_with_values_mixes_values_of_their_own_width() -> None:
    steps = attend_with_values(X, W_Q, W_K, W_V)
    assert torch.equal(steps.weights, attend_with_keys(X, W_Q, W_K).weights)
    assert torch.equal(steps.context, steps.weights @ (X @ W_V))
    assert steps.context.shape == (LENGTH, D_VALUE)


def test_attend_with_values_column_vectors_need_the_transpose() -> None:
    x, weight = _random(4), _random(4, 16, seed=2)
    assert (weight.T @ x - (x[None] @ weight)[0]).abs().max() < 1e-14


def test_attend_with_values_permuted_tokens_permute_the_context() -> None:
    order = torch.randperm(LENGTH, generator=torch.Generator().manual_seed(3))
    straight = attend_with_values(X, W_Q, W_K, W_V).context
    permuted = attend_with_values(X[order], W_Q, W_K, W_V).context
    assert (permuted - straight[order]).abs().max() < 1e-12


def test_one_word_twice_has_one_key_and_value_without_positions() -> None:
    x = torch.cat([X, X[:1]])
    steps = attend_with_values(x, W_Q, W_K, W_V)
    assert (steps.weights[:, 0] - steps.weights[:, -1]).abs().max() < 1e-14


def test_query_network_makes_queries_by_its_formula() -> None:
    inner, inner_bias = _random(D_MODEL, 17, seed=5), _random(17, seed=6)
    outer, outer_bias = _random(17, D_KEY, seed=7), _random(D_KEY, seed=8)
    network = query_network(inner, inner_bias, outer, outer_bias)
    query = torch.clamp(X @ inner + inner_bias, min=0) @ outer + outer_bias
    assert torch.equal(network(X), query)
    steps = attend_with_values(X, network, W_K, W_V)
    assert torch.equal(steps.context, attend(query, X @ W_K, X @ W_V).context)
    assert torch.equal(attend_with_keys(X, network, W_K).scores, query @ (X @ W_K).T)


def test_attend_causally_later_tokens_change_nothing() -> None:
    steps = attend_causally(X, W_Q, W_K, W_V)
    assert (steps.weights.triu(1) == 0).all()
    assert (steps.weights.diagonal() > 0).all()
    for length in range(1, LENGTH):
        alone = attend_causally(X[:length], W_Q, W_K, W_V)
        assert (alone.context - steps.context[:length]).abs().max() < 1e-12


def test_attend_across_asks_one_sequence_about_another() -> None:
    memory = _random(MEMORY, D_MODEL, seed=9)
    steps = attend_across(X, memory, W_Q, W_K, W_V)
    assert steps.weights.shape == (LENGTH, MEMORY)
    assert torch.equal(steps.context, attend(X @ W_Q, memory @ W_K, memory @ W_V).context)
    itself = attend_across(X, X, W_Q, W_K, W_V)
    assert torch.equal(itself.context, attend_with_values(X, W_Q, W_K, W_V).context)


def test_forms_in_a_batch_equal_each_sentence_alone() -> None:
    batch = _random(2, LENGTH, D_MODEL, seed=10)
    memory = _random(2, MEMORY, D_MODEL, seed=11)
    for row in range(2):
        for whole, alone in (
            (attend_to_others(batch), attend_to_others(batch[row])),
            (attend_causally(batch, W_Q, W_K, W_V), attend_causally(batch[row], W_Q, W_K, W_V)),
            (
                attend_across(batch, memory, W_Q, W_K, W_V),
                attend_across(batch[row], memory[row], W_Q, W_K, W_V),
            ),
        ):
            assert (whole.context[row] - alone.context).abs().max() < 1e-12


def test_forms_with_a_mask_give_the_forbidden_weight_zero() -> None:
    mask = torch.ones(LENGTH, dtype=torch.bool)
    mask[4] = False
    for steps in (
        attend_with_embeddings(X, mask=mask),
        attend_with_keys(X, W_Q, W_K, mask=mask),
        attend_with_values(X, W_Q, W_K, W_V, mask=mask),
        attend_across(X, X, W_Q, W_K, W_V, mask=mask),
    ):
        assert (steps.weights[:, 4] == 0).all()


FORMS: dict[str, Callable[..., Tensor]] = {
    "embeddings": lambda x, m, q, k, v: attend_with_embeddings(x).context,
    "others": lambda x, m, q, k, v: attend_to_others(x).context,
    "keys": lambda x, m, q, k, v: attend_with_keys(x, q, k).context,
    "values": lambda x, m, q, k, v: attend_with_values(x, q, k, v).context,
    "causally": lambda x, m, q, k, v: attend_causally(x, q, k, v).context,
    "across": lambda x, m, q, k, v: attend_across(x, m, q, k, v).context,
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_pass_gradcheck(name: str) -> None:
    shapes = ((3, 5), (4, 5), (5, 2), (5, 2), (5, 7))
    inputs = tuple(_random(*s, seed=i).requires_grad_() for i, s in enumerate(shapes))
    assert torch.autograd.gradcheck(FORMS[name], inputs)


def test_query_network_passes_gradcheck() -> None:
    shapes = ((3, 5), (5, 7), (7,), (7, 2), (2,), (5, 2), (5, 3))
    inputs = tuple(_random(*s, seed=i).requires_grad_() for i, s in enumerate(shapes))

    def compute(x: Tensor, *weights: Tensor) -> Tensor:
        network = query_network(*weights[:4])
        return attend_with_values(x, network, weights[4], weights[5]).context

    assert torch.autograd.gradcheck(compute, inputs)
