"""The time limit of a training: preparation and validation are inside it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pellucid.config import TrainingConfig
from pellucid.errors import ConfigurationError
from pellucid.training.console import messages
from pellucid.training.console.messages import LogTimes
from pellucid.training.run import resume
from pellucid.training.run.checkpoint import TrainingState
from pellucid.training.run.limit import FEWEST_PAIRS, TimeLimit
from pellucid.training.run.run_end import describe_next, has_reached_limit

TEN_MINUTES = TrainingConfig(max_minutes=10.0)


def test_limit_counts_what_came_before_the_first_update() -> None:
    state = TrainingState()
    TimeLimit(TEN_MINUTES, state, 150.0)
    assert state.stop_at == 445
    assert not has_reached_limit(TEN_MINUTES, state)
    state.seconds = 445.0
    assert has_reached_limit(TEN_MINUTES, state)


def test_limit_that_preparation_used_up_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"took 11\.0 of 10 minutes \(minutes\)"):
        TimeLimit(TEN_MINUTES, TrainingState(), 660.0)


def test_limit_leaves_time_for_the_last_validation() -> None:
    state = TrainingState()
    limit = TimeLimit(TEN_MINUTES, state, 0.0)
    limit.note_validation(20.0)
    assert state.stop_at == 575
    limit.note_validation(5.0)
    assert state.stop_at == 590


@pytest.mark.parametrize(("a_pair", "expected"), [(0.01, 0), (0.3, 595), (100.0, FEWEST_PAIRS)])
def test_limit_lets_validation_read_as_many_pairs_as_fit(a_pair: float, expected: int) -> None:
    state = TrainingState()
    seconds = TimeLimit(TEN_MINUTES, state, 0.0).plan_validation(a_pair, 1000)
    assert state.validation_pairs == expected
    assert seconds == pytest.approx(a_pair * (expected or 1000))
    assert state.stop_at == pytest.approx(max(1e-6, 595 - seconds))


def test_limit_is_planned_once_after_ten_steps_or_a_tenth_of_the_time() -> None:
    for now in ({"step": 10, "seconds": 1.0}, {"step": 2, "seconds": 60.0}):
        state = TrainingState()
        limit = TimeLimit(TEN_MINUTES, state, 0.0)
        assert not limit.must_plan()
        state.step, state.seconds = int(now["step"]), now["seconds"]
        assert limit.must_plan()
        assert not limit.must_plan()
    late = TrainingState(step=300)
    limit = TimeLimit(TEN_MINUTES, late, 0.0)
    late.step = 400
    assert not limit.must_plan()


def test_run_that_its_limit_ended_stays_ended_and_a_longer_limit_continues_it() -> None:
    ended = {"step": 90, "seconds": 595.0, "stop_at": 560.0, "stop_minutes": 10.0, "reserved": 40.0}
    state = TrainingState(**ended)
    TimeLimit(TEN_MINUTES, state, 3.0)
    assert has_reached_limit(TEN_MINUTES, state)
    longer = TrainingConfig(max_minutes=20.0)
    TimeLimit(longer, state, 3.0)
    assert not has_reached_limit(longer, state)
    assert state.stop_at == 1195 - 3 - 40


def test_resumed_run_reserves_the_same_time_and_counts_only_its_own_preparation() -> None:
    state = TrainingState()
    TimeLimit(TEN_MINUTES, state, 100.0).note_validation(10.0)
    assert state.stop_at == 595 - 100 - 10
    state.seconds = 50.0
    TimeLimit(TEN_MINUTES, state, 7.0)
    assert state.stop_at == 595 - 7 - 10


def test_slow_updates_are_estimated_and_logged_by_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock: dict[str, Any] = {"now": 100.0}
    monkeypatch.setattr(messages.time, "monotonic", lambda: clock["now"])
    times, state = LogTimes(TrainingState()), TrainingState(step=2, seconds=19.0)
    assert not times.knows_speed(state)
    assert not times.is_line_due
    state.seconds, clock["now"] = 21.0, 111.0
    assert [times.knows_speed(state), times.knows_speed(state)] == [True, False]
    assert times.is_line_due
    times.note_line(state)
    assert not times.is_line_due
    quick = LogTimes(TrainingState(step=40, seconds=9.0))
    assert not quick.knows_speed(TrainingState(step=59, seconds=9.5))
    assert quick.knows_speed(TrainingState(step=60, seconds=9.5))


def test_each_line_of_the_log_has_the_loss_since_the_last_one() -> None:
    times, state = LogTimes(TrainingState()), TrainingState(step=50)
    state.unlogged_tokens, state.unlogged_loss = 100, 700.0
    line = messages.describe_interval(messages.Interval(), state, times, 0, 0.1)
    assert "loss  7.000" in line
    state.unlogged_tokens, state.unlogged_loss = 150, 900.0
    line = messages.describe_interval(messages.Interval(), state, times, 0, 0.1)
    assert "loss  4.000" in line
    # The counts begin again at a line of the metrics, or after going back to a checkpoint.
    state.unlogged_tokens, state.unlogged_loss = 40, 120.0
    assert times.loss_since_line(state) == 3.0


@pytest.mark.parametrize(
    ("changes", "minutes", "is_found"),
    [
        ({}, 10.0, True),
        ({}, 5.0, True),
        ({}, 20.0, False),
        ({"step": 91}, 10.0, False),
        ({"course": {"max_steps": 90}}, 20.0, True),
    ],
)
def test_finished_run_is_found_unless_a_later_limit_continues_it(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    changes: dict[str, Any],
    minutes: float,
    is_found: bool,
) -> None:
    ended = {"step": 90, "seconds": 595.0, "stop_at": 560.0, "stop_minutes": 10.0} | changes
    checkpoint = SimpleNamespace(state=TrainingState(**ended))
    monkeypatch.setattr(resume, "load_newest_checkpoint", lambda _: (checkpoint, []))
    monkeypatch.setattr(resume, "load_bundle", lambda _: None)
    (tmp_path / "finished").write_text("90\n")
    said: list[str] = []
    run: Any = SimpleNamespace(
        say=said.append, finished=tmp_path / "finished", bundle="", checkpoints=""
    )
    training = TrainingConfig(max_minutes=minutes)
    assert (resume.find_finished(run, training) is not None) is is_found
    assert len(said) == is_found
    (tmp_path / "finished").unlink()
    assert resume.find_finished(run, training) is None


@pytest.mark.parametrize(
    ("state", "pairs", "words", "absent"),
    [
        (
            {"stop_at": 9.0},
            50,
            "--minutes 40, with the same command. BLEU below 10",
            "another folder (-o)",
        ),
        ({"stop_at": 9.0}, 50, "50 pairs are few", "max_steps"),
        ({"course": {"max_steps": 8}}, 50, "--minutes 40 and another folder (-o),", "max_steps"),
        ({"best_step": 4, "best_bleu": 30.0}, 30_000, "more text helps more than", "few"),
        (
            {"best_bleu": 30.0},
            30_000,
            "--set training.max_steps=16 and another folder (-o)",
            "BLEU",
        ),
    ],
)
def test_end_says_what_would_help_next(
    state: dict[str, Any], pairs: int, words: str, absent: str
) -> None:
    training = TrainingConfig(max_minutes=10.0, max_steps=8)
    ended = {"best_step": 7, "validated_step": 8, "seconds": 10.0, "best_bleu": 4.0} | state
    said = describe_next(training, TrainingState(step=8, **ended), pairs)
    assert words in said
    assert absent not in said
