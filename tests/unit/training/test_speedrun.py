"""The minutes to a goal in ``benchmarks/speedrun.py``, with a toy goal on the built-in corpus."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import speedrun

RECIPE = """
[data]
source_language = "en"
target_language = "fr"
train = ["train.en", "train.fr"]
validation = ["train.en", "train.fr"]
[tokenizer]
kind = "words"
[model]
d_model = 32
d_ff = 41
num_heads = 2
num_encoder_layers = 1
num_decoder_layers = 1
[training]
max_tokens_per_batch = 600
optimizer = "muon"
learning_rate = 0.01
schedule = "linear"
warmup_steps = 3
max_steps = 7
validate_every = 7
"""


@pytest.mark.parametrize(
    ("statistic", "freedom", "wanted"),
    # One-sided critical values of printed tables.
    [(6.314, 1, 0.05), (6.965, 2, 0.01), (4.541, 3, 0.01), (3.747, 4, 0.01), (3.365, 5, 0.01)],
)
def test_upper_tail_equals_printed_tables(statistic: float, freedom: int, wanted: float) -> None:
    assert speedrun.upper_tail(statistic, freedom) == pytest.approx(wanted, rel=0.001)
    assert speedrun.upper_tail(-statistic, freedom) == pytest.approx(1 - wanted, rel=0.001)
    assert speedrun.upper_tail(0.0, freedom) == pytest.approx(0.5)


def test_goal_needs_a_mean_that_is_surely_above() -> None:
    assert speedrun.p_value([63.4, 62.9, 62.6], 61.8) > 0.01  # 0.019: three seeds are too few
    assert speedrun.p_value([63.4, 62.9, 62.6, 63.0, 62.8], 61.8) < 0.001
    assert speedrun.p_value([61.0, 61.2], 61.8) > 0.9
    assert (speedrun.p_value([3.0, 3.0], 2.0), speedrun.p_value([3.0, 3.0], 3.0)) == (0.0, 1.0)


def seed_row(bleu: float, minutes: float, processor: float | None = 1.0) -> dict[str, Any]:
    return {"bleu": bleu, "minutes": minutes, "processor_minutes": processor}


def test_judge_leaves_out_processor_time_of_interrupted_seeds() -> None:
    seeds = [seed_row(7.0, 2.0), seed_row(7.2, 5.0, None), seed_row(7.1, 11.0, None)]
    found = speedrun.judge(seeds, 3.0)
    assert found["is_reached"]
    assert found["minutes"]["mean"] == pytest.approx(6.0)
    assert "processor_minutes" not in found
    assert not speedrun.judge(seeds, 7.1)["is_reached"]


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    words = ("corpus", "--part", "train", "--count", "60", "-o", str(tmp_path), "-q")
    speedrun.run_command(words)
    (tmp_path / "toy.toml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def arguments(folder: Path, validation: float) -> list[str]:
    given = {
        "--recipe": folder / "toy.toml",
        "--goal": 0.01,
        "--validation": validation,
        "--source": folder / "train.en",
        "--reference": folder / "train.fr",
        "--beam": 2,
        "--runs": folder / "runs",
        "--results": folder,
    }
    words = [str(word) for pair in given.items() for word in pair]
    shared = ["--steps", "29", "11", "--seeds", "1", "2", "--share", "training.validate_every=0.5"]
    return [*words, *shared, "--change", "a toy"]


def read_result(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("*-speedrun-toy-*.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


@pytest.mark.sample(0)  # nine commands
def test_toy_goal_is_measured_and_the_same_command_trains_nothing_again(
    toy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    speedrun.main(arguments(toy, validation=-1.0))
    found = read_result(toy)
    assert found["steps"] == 11, "the fewest steps are tried first"
    assert [one["seed"] for one in found["seeds"]] == [1, 2]
    assert all(one["best_step"] in (6, 11) for one in found["seeds"])
    scores = [one["bleu"] for one in found["seeds"]]
    assert found["bleu"]["mean"] == pytest.approx(statistics.mean(scores))
    assert found["p"] == pytest.approx(speedrun.p_value(scores, 0.01))
    assert found["processor_minutes"]["mean"] > 0
    assert capsys.readouterr().out.rstrip().endswith("| a toy |")

    def refuse(*_: Any) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(speedrun.Clock, "run", refuse)
    speedrun.main(arguments(toy, validation=-1.0))
    assert read_result(toy)["seeds"] == found["seeds"]


def test_steps_that_are_not_enough_on_validation_leave_the_test_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def trained(_: Any, steps: int, seed: int) -> dict[str, Any]:
        assert seed == speedrun.CHOOSING_SEED
        return {"validation_bleu": steps / 10}

    monkeypatch.setattr(speedrun, "train", trained)
    speedrun.main(arguments(tmp_path, validation=47.0))
    found = read_result(tmp_path)
    assert [one["steps"] for one in found["tried"]] == [11, 29]
    assert not found["seeds"]
    assert "not begun: validation 2.9 of 47.0" in capsys.readouterr().out


def test_minutes_of_killed_parts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = [-9, 0]
    started = subprocess.Popen

    def start(_: Any) -> Any:
        code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)" if codes.pop(0) else ""
        return started([sys.executable, "-c", f"import time; time.sleep(0.3); {code}"])

    monkeypatch.setattr(speedrun.subprocess, "Popen", start)
    path = tmp_path / "one.clock"
    with pytest.raises(SystemExit, match="exit code -9"):
        speedrun.Clock(path).run((), every_seconds=0.1)
    first = json.loads(path.read_text(encoding="utf-8"))["seconds"]
    assert first >= 0.3
    clock = speedrun.Clock(path)
    clock.run((), every_seconds=0.1)
    found = clock.minutes()
    assert found["minutes"] is not None
    assert 60 * found["minutes"] >= first + 0.3
    assert found["processor_minutes"] is None


def test_seed_of_the_choice_is_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--goal", "3", "--validation", "2", "--steps", "7", "--seeds", "1"]
    with pytest.raises(SystemExit):
        speedrun.parse([*given, str(speedrun.CHOOSING_SEED)])
    assert "--seeds must be two different ones" in capsys.readouterr().err
