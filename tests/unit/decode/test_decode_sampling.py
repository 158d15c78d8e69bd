"""Samples: their frequencies, what is cut off, and that neighbors do not matter."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from pellucid.decode.search.sampling import draw
from pellucid.decode.search.uniforms import uniforms

A, V = 7, 13

OFF: dict[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "epsilon": 0.0}


def distribution(logs: list[float], options: dict[str, Any]) -> list[float]:
    """Apply the options to the softmax, step by step for one row."""
    highest = max(logs)
    weights = [math.exp((log - highest) / options["temperature"]) for log in logs]
    softmax = [weight / math.fsum(weights) for weight in weights]
    order = sorted(range(len(logs)), key=lambda token: (-softmax[token], token))
    kept = set(order[: int(options["top_k"])] if options["top_k"] else order)
    if options["top_p"] < 1:
        kept &= {
            token
            for rank, token in enumerate(order)
            if sum(softmax[other] for other in order[:rank]) < options["top_p"]
        }
    kept = {
        token
        for token in kept
        if softmax[token] >= options["epsilon"] or softmax[token] == max(softmax)
    }
    total = math.fsum(softmax[token] for token in kept)
    return [p / total if token in kept else 0.0 for token, p in enumerate(softmax)]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"temperature": 0.6},
        {"temperature": 2.5, "epsilon": 0.05},
        {"top_k": 4},
        {"top_p": 0.8},
        {"top_k": 9, "top_p": 0.9, "epsilon": 0.03, "temperature": 1.5},
    ],
)
def test_draw_frequencies_match_the_softmax(changes: dict[str, Any]) -> None:
    options, count = {**OFF, **changes}, 40_000
    dice = torch.Generator().manual_seed(5)
    log_1V = torch.randn(1, V, generator=dice).log_softmax(1)
    log_1V[0, 2] = -math.inf
    uniform_A = torch.from_numpy(uniforms(["line 7"], 11, count)[0])
    drawn = draw(log_1V.expand(count, V), uniform_A, **options).bincount(minlength=V).tolist()
    expected = [count * p for p in distribution(log_1V[0].double().tolist(), options)]
    assert all(seen == 0 for seen, mean in zip(drawn, expected, strict=True) if mean == 0)
    pairs = [(seen, mean) for seen, mean in zip(drawn, expected, strict=True) if mean > 0]
    statistic = sum((seen - mean) ** 2 / mean for seen, mean in pairs)
    # Wilson and Hilferty's approximation of the quantile of chi-square at 0.999.
    freedom = len(pairs) - 1
    assert statistic < freedom * (1 - 2 / (9 * freedom) + 3.09 * (2 / (9 * freedom)) ** 0.5) ** 3


LOGS = st.lists(
    st.one_of(st.just(-math.inf), st.floats(-30, 0), st.sampled_from([-1.0, -2.0])),
    min_size=V,
    max_size=V,
).filter(lambda logs: max(logs) > -math.inf)


@given(
    LOGS,
    st.floats(0, 1, exclude_max=True),
    st.sampled_from([0.01, 0.5, 1.0, 4.0]),
    st.sampled_from([0, 1, 3, V, 50]),
    st.sampled_from([0.02, 0.5, 0.9, 1.0]),
    st.sampled_from([0.0, 0.001, 0.1, 0.9]),
)
@example([-1.0] * V, 1 - 2**-53, 1.0, 0, 1.0, 0.0)
def test_draw_inverts_the_cumulative_distribution(
    logs: list[float], uniform: float, temperature: float, top_k: int, top_p: float, epsilon: float
) -> None:
    options: dict[str, Any] = {"temperature": temperature, "top_k": top_k}
    options |= {"top_p": top_p, "epsilon": epsilon}
    log_1V = torch.tensor([logs], dtype=torch.float64)
    token = int(draw(log_1V, torch.tensor([uniform]), **options))
    exact = distribution(logs, options)
    before = math.fsum(exact[:token])
    assert logs[token] > -math.inf
    # If only rounding decides whether a sum reaches top_p, one token more or less may be in.
    edge = {"top_p": min(1.0, top_p * (1 + 1e-9))}, {"top_p": top_p * (1 - 1e-9)}
    options_near = [options, *({**options, **near} for near in edge if top_p < 1)]
    assert any(
        near[token] > 0
        and math.fsum(near[:token]) - 1e-9 <= uniform <= math.fsum(near[: token + 1]) + 1e-9
        for near in (distribution(logs, changed) for changed in options_near)
    ), before


def test_draw_one_token_left_is_the_likeliest() -> None:
    dice = torch.Generator().manual_seed(2)
    log_AV = torch.randn(A, V, generator=dice).log_softmax(1)
    uniform_A = torch.linspace(0, 1 - 1e-9, A)
    for changes in ({"top_k": 1}, {"top_p": 1e-9}, {"epsilon": 0.999}, {"temperature": 1e-9}):
        token_A = draw(log_AV, uniform_A, **{**OFF, **changes})
        assert token_A.tolist() == log_AV.argmax(1).tolist()


def test_draw_top_k_with_ties_keeps_exactly_k() -> None:
    uniform_A = torch.linspace(0, 1 - 1e-9, 101)
    token_A = draw(torch.zeros(101, V), uniform_A, **{**OFF, "top_k": 3})
    assert sorted(set(token_A.tolist())) == [0, 1, 2]


def test_draw_top_p_of_a_flat_distribution_keeps_as_many_as_it_takes() -> None:
    size = 1000
    uniform_A = torch.linspace(0, 1 - 1e-9, 4 * size)
    log_AV = torch.zeros(4 * size, size).log_softmax(1)
    log_AV[0, 0] = 9.0  # one row that needs few tokens
    token_A = draw(log_AV, uniform_A, **{**OFF, "top_p": 0.6999})
    assert set(token_A.tolist()) == set(range(700))


def test_draw_extremes_of_the_uniform_number_stay_inside() -> None:
    log_AV = torch.full((2, V), -math.inf)
    log_AV[:, 4], log_AV[:, 9] = -1.0, -300.0
    uniform_A = torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64)
    assert draw(log_AV, uniform_A, **OFF).tolist() == [4, 4]
    log_AV[:, 9] = -1.0
    assert draw(log_AV, uniform_A, **OFF).tolist() == [4, 9]


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_draw_rows_do_not_depend_on_neighbors(precision: torch.dtype) -> None:
    dice = torch.Generator().manual_seed(3)
    log_AV = torch.randn(A, V, generator=dice).log_softmax(1).to(precision)
    uniform_A = torch.rand(A, generator=dice, dtype=torch.float64)
    options = {**OFF, "top_p": 0.8, "temperature": 1.3}
    together_A = draw(log_AV, uniform_A, **options)
    alone = [draw(log_AV[row, None], uniform_A[row, None], **options) for row in range(A)]
    assert together_A.tolist() == Tensor.tolist(torch.cat(alone))


def test_uniforms_depend_only_on_seed_and_key() -> None:
    numbers = uniforms(["a", "b", "a"], 1, 5)
    assert numbers.shape == (3, 5)
    assert numbers.dtype == np.float64
    assert ((numbers >= 0) & (numbers < 1)).all()
    assert (numbers[0] == numbers[2]).all()
    assert (numbers[0] != numbers[1]).any()
    assert (uniforms(["b"], 1, 5)[0] == numbers[1]).all()
    assert (uniforms(["b"], 1, 9)[0, :5] == numbers[1]).all()
    assert (uniforms(["b"], 2, 5)[0] != numbers[1]).any()
    assert uniforms([], 1, 5).shape == (0, 5)
