"""Learning rates as functions of the step."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pellucid.config import TrainingConfig
from pellucid.train.weights.schedule import dropout_share, learning_rate, muon_learning_rate

D = 128
FALLING: tuple[Any, ...] = ("inverse_square_root", "linear", "cosine")


def rates(**settings: Any) -> list[float]:
    training = TrainingConfig(**{"warmup_steps": 40, "max_steps": 500, **settings})
    return [learning_rate(step, training, D) for step in range(1, 501)]


def test_the_papers_formula() -> None:
    for step, rate in enumerate(rates(), start=1):
        assert rate == pytest.approx(D**-0.5 * min(step**-0.5, step * 40**-1.5), rel=1e-12)


@pytest.mark.parametrize("schedule", [*FALLING, "constant"])
def test_rate_rises_on_a_line_to_its_peak(schedule: Any) -> None:
    found = rates(schedule=schedule, learning_rate=0.01)
    assert found[:40] == pytest.approx([0.01 * step / 40 for step in range(1, 41)])
    assert max(found) == found[39] == pytest.approx(0.01)


@pytest.mark.parametrize("schedule", FALLING)
def test_rate_falls_without_a_jump(schedule: Any) -> None:
    found = rates(schedule=schedule, learning_rate=0.01)[39:]
    assert all(later < earlier for earlier, later in itertools.pairwise(found))
    assert max(a - b for a, b in itertools.pairwise(found)) < 0.01 / 40


def test_constant_stays() -> None:
    assert set(rates(schedule="constant", learning_rate=0.01)[39:]) == {0.01}


@pytest.mark.parametrize("schedule", ["linear", "cosine"])
@pytest.mark.parametrize("floor", [0.0, 0.001])
def test_rate_ends_at_its_floor(schedule: Any, floor: float) -> None:
    found = rates(schedule=schedule, learning_rate=0.01, min_learning_rate=floor)
    assert found[-1] == pytest.approx(floor, abs=1e-12)
    assert found[269] == pytest.approx((0.01 + floor) / 2, rel=1e-9)


def test_muon_takes_the_same_course_to_its_own_peak() -> None:
    training = TrainingConfig(
        warmup_steps=40,
        max_steps=500,
        schedule="cosine",
        learning_rate=0.01,
        muon_learning_rate=0.03,
    )
    for step in (1, 40, 41, 270, 500):
        ours = muon_learning_rate(step, training)
        assert ours == pytest.approx(3 * learning_rate(step, training, D), abs=1e-12)


def test_dropout_rises_on_a_line_and_stays() -> None:
    training = TrainingConfig(dropout=0.3, dropout_warmup_steps=8)
    shares = [dropout_share(step, training) for step in range(1, 12)]
    assert shares == [step / 8 for step in range(1, 9)] + [1.0] * 3
    assert dropout_share(1, TrainingConfig(dropout=0.3)) == 1
