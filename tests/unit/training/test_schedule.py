"""Learning rates as functions of the step."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from pellucid.config import TrainingConfig
from pellucid.training.run.checkpoint import TrainingState
from pellucid.training.start.course import plan_course
from pellucid.training.weights.schedule import dropout_share, learning_rate, muon_learning_rate

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


CHOSEN = [
    f"training.{name}"
    for name in ("warmup_steps", "dropout_warmup_steps", "validate_every", "averaging_decay")
]


def planned(
    training: TrainingConfig, *, seconds_a_step: float = 0.5, validation: float = 11.0
) -> tuple[dict[str, Any], str]:
    """Plan after ten steps."""
    now = TrainingState(step=10, seconds=10 * seconds_a_step, target_tokens=20_000)
    return plan_course(training, TrainingState(), now, validation, [*CHOSEN, "training.max_steps"])


LONG = {"max_steps": 4600, "warmup_steps": 300, "dropout_warmup_steps": 1533}
LONG |= {"validate_every": 306, "averaging": "running", "averaging_decay": 0.996}


def test_plan_of_a_short_time_shortens_the_course() -> None:
    course, sentence = planned(TrainingConfig(**LONG, max_minutes=4.0))
    assert 300 < 3 * course["warmup_steps"] < 480
    assert 2 <= 400 / course["validate_every"] <= 5
    assert 0 <= course["averaging_decay"] < 0.96
    assert not {"max_steps", "dropout_warmup_steps"} & course.keys()
    assert "of 4,600 steps fit into 4 minutes (training.max_minutes); the course" in sentence


def test_plan_of_a_schedule_with_an_end_moves_it() -> None:
    training = TrainingConfig(**LONG, max_minutes=4.0, schedule="cosine")
    course, _ = planned(training)
    assert course["warmup_steps"] < course["max_steps"] < 480


@pytest.mark.parametrize("minutes", [0.0, 60.0])
def test_plan_of_enough_time_changes_nothing(minutes: float) -> None:
    training = TrainingConfig(**LONG, max_minutes=minutes or 1e6)
    assert planned(training) == ({}, "")


def test_plan_keeps_what_was_given_and_says_so() -> None:
    now = TrainingState(step=10, seconds=5.0, target_tokens=20_000)
    training = TrainingConfig(**LONG, max_minutes=4.0)
    course, sentence = plan_course(training, TrainingState(), now, 11.0, CHOSEN[2:])
    assert course.keys() == {"validate_every", "averaging_decay"}
    assert "too long for that, but given: training.warmup_steps" in sentence


@pytest.mark.parametrize("minutes", [1e-4, 0.09, 0.1, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("seconds_a_step", [1e-4, 0.1, 30.0])
@pytest.mark.parametrize("validation", [0.0, 1.0, 1e4])
def test_plan_of_any_time_is_a_possible_course(
    minutes: float, seconds_a_step: float, validation: float
) -> None:
    for schedule in ("linear", "inverse_square_root"):
        training = TrainingConfig(**LONG, max_minutes=minutes, schedule=schedule)
        course, _ = planned(training, seconds_a_step=seconds_a_step, validation=validation)
        TrainingConfig.model_validate(training.model_dump() | course)
        assert course.get("max_steps", 11) > 10
