"""Runs that a full disk or a kill stops: nothing is lost, and nothing is recorded twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_runs import make_recipe, model_bytes, read_metrics, write_text

from pellucid.errors import ConfigurationError, OutputError
from pellucid.training.loop import train
from pellucid.training.run import saving, validator
from pellucid.training.run.run_end import TrainingSummary
from pellucid.training.validation import Validation

NEVER_SAVED = "no-checkpoint-yet"


def run_in(folder: Path, **training: Any) -> TrainingSummary:
    recipe = make_recipe(training=training)
    return train(recipe, folder / "run", recipe_folder=folder, progress=False)


def untimed(run: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in one.items() if k != "seconds"} for one in read_metrics(run)]


def refuse(*_: Any, **__: Any) -> None:
    raise OutputError("No space left on the disk.")


def test_run_whose_disk_took_no_checkpoint_starts_over_and_ends_like_any_other(
    trained: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_text(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(saving, "save_checkpoint", refuse)
        with pytest.raises(OutputError, match="No space left"):
            run_in(tmp_path)
    run = tmp_path / "run"
    assert (run / NEVER_SAVED).is_file()
    assert run_in(tmp_path).steps == 23
    assert "No checkpoint could be saved before this run stopped after step 23" in (
        capsys.readouterr().err
    )
    assert not (run / NEVER_SAVED).exists()
    assert model_bytes(run / "bundle") == model_bytes(trained / "run" / "bundle")
    assert untimed(run) == untimed(trained / "run")
    assert (run / "samples.jsonl").read_bytes() == (trained / "run" / "samples.jsonl").read_bytes()


def test_run_whose_disk_took_only_later_checkpoints_continues_from_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    whole, count = saving.save_checkpoint, 0

    def save_from_the_second(*arguments: Any, **options: Any) -> None:
        nonlocal count
        count += 1
        (refuse if count == 1 else whole)(*arguments, **options)

    monkeypatch.setattr(saving, "save_checkpoint", save_from_the_second)
    run_in(tmp_path)
    assert not (tmp_path / "run" / NEVER_SAVED).exists()
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    with pytest.raises(ConfigurationError, match="no checkpoint to continue"):
        run_in(tmp_path, max_steps=30)


def test_run_killed_right_after_its_first_checkpoint_is_known_to_have_one(
    finished_run: Path, tmp_path: Path
) -> None:
    (finished_run / NEVER_SAVED).write_text("")
    run_in(tmp_path, max_steps=24)
    assert not (finished_run / NEVER_SAVED).exists()


def test_validation_interrupted_and_then_killed_before_its_checkpoint_is_recorded_once(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)

    def interrupt(*_: Any, **__: Any) -> Validation:
        raise KeyboardInterrupt

    def kill(*_: Any, **__: Any) -> None:
        raise SystemExit(137)

    with monkeypatch.context() as patch:
        patch.setattr(validator, "validate_model", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run_in(tmp_path)
    run = tmp_path / "run"
    assert [one["step"] for one in read_metrics(run) if one["kind"] == "validation"] == []
    with monkeypatch.context() as patch:
        patch.setattr(saving, "save_checkpoint", kill)
        with pytest.raises(SystemExit):
            run_in(tmp_path)
    assert [one["step"] for one in read_metrics(run) if one["kind"] == "validation"] == [10]
    run_in(tmp_path)
    assert untimed(run) == untimed(trained / "run")
    assert (run / "samples.jsonl").read_bytes() == (trained / "run" / "samples.jsonl").read_bytes()


def test_last_validation_repeated_for_a_lost_model_adds_no_samples(
    finished_run: Path, tmp_path: Path
) -> None:
    before = (finished_run / "samples.jsonl").read_bytes()
    state = max((finished_run / "checkpoints").glob("step-*")) / "state.json"
    assert json.loads(state.read_text())["best_step"] > 0
    shutil.rmtree(finished_run / "bundle")
    run_in(tmp_path)
    assert (finished_run / "bundle" / "manifest.json").is_file()
    assert (finished_run / "samples.jsonl").read_bytes() == before
