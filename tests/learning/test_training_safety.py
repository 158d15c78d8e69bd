"""Losses that are not finite, returns to earlier steps, models to start from, and averages."""

from __future__ import annotations

import json
import math
import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from small_runs import make_recipe, model_bytes, read_metrics, write_text
from torch import Tensor

from pellucid.bundle import load_bundle
from pellucid.config import Recipe, validate
from pellucid.errors import ConfigurationError, OutputError, TrainingError
from pellucid.training.learner import Learner
from pellucid.training.loop import train
from pellucid.training.plain import UpdateResult
from pellucid.training.run import saving, validator
from pellucid.training.start.from_model import with_start
from pellucid.training.update.passes import Passes
from pellucid.training.update.step import Updater
from pellucid.training.validation import Validation

Losses = Callable[..., Tensor]


def set_bleus(monkeypatch: pytest.MonkeyPatch, *bleus: float) -> None:
    """Set the BLEU of each validation, in order."""
    set_validations(monkeypatch, *((1.0, bleu) for bleu in bleus))


def set_validations(monkeypatch: pytest.MonkeyPatch, *found: tuple[float, float]) -> None:
    """Set the loss and BLEU of each validation, in order."""
    left = iter(found)

    def validate(translator: Any, pairs: Any) -> Validation:
        return Validation(*next(left), 50.0, tuple(pair.target for pair in pairs))

    monkeypatch.setattr(validator, "validate_model", validate)


def poison(monkeypatch: pytest.MonkeyPatch, is_bad: Callable[[int], bool]) -> list[int]:
    """Make the gradient of some steps NaN; returns the steps that were computed."""
    asked: list[int] = []
    sum_gradients: Any = Passes.sum_gradients

    def poisoned(self: Passes, step: int, pieces: Any) -> Tensor:
        asked.append(step)
        loss: Tensor = sum_gradients(self, step, pieces)
        if is_bad(step):
            gradients = (weight.grad for weight in self.way._model.parameters())
            next(grad for grad in gradients if grad is not None).mul_(math.nan)
        return loss

    monkeypatch.setattr(Passes, "sum_gradients", poisoned)
    return asked


def log_of(run: Path) -> str:
    return (run / "log.txt").read_text()


def test_an_update_that_is_no_number_is_skipped_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    poison(monkeypatch, lambda step: step in (7, 8))
    summary = train(make_recipe(), tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert summary.steps == 23
    assert "Skipped update 7" in log_of(tmp_path / "run")
    last = tmp_path / "run" / "checkpoints" / "step-00000023"
    state = json.loads((last / "state.json").read_text())
    assert state["skipped_updates"] == 2
    assert state["skipped_in_a_row"] == 0
    weights = load_bundle(last).model.state_dict()
    assert all(bool(torch.isfinite(weight).all()) for weight in weights.values())


def test_the_run_goes_back_once_at_a_lower_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    bad_visits = iter([True] * 3 + [False] * 1000)
    asked = poison(monkeypatch, lambda step: step in (13, 14, 15) and next(bad_visits))
    train(make_recipe(), tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert asked == [*range(1, 16), *range(11, 24)]
    assert "Went back from step 15 to step 10" in log_of(tmp_path / "run")
    rates = {
        record["step"]: record["learning_rate"]
        for record in read_metrics(tmp_path / "run")
        if record["kind"] == "train"
    }
    assert sorted(rates) == [5, 10, 15, 20]
    # The inverse square root, halved after going back.
    assert rates[15] == pytest.approx(rates[10] * math.sqrt(10 / 15) / 2)


def test_tensorboard_shows_no_steps_that_were_gone_back_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    write_text(tmp_path)
    bad_visits = iter([True] * 3 + [False] * 1000)
    poison(monkeypatch, lambda step: step in (13, 14, 15) and next(bad_visits))
    recipe = make_recipe(training={"tensorboard": True, "log_every": 1})
    train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert "Went back from step 15 to step 10" in log_of(tmp_path / "run")
    events = EventAccumulator(str(tmp_path / "run" / "tensorboard"))
    events.Reload()
    assert [event.step for event in events.Scalars("train/loss")] == list(range(1, 24))


def test_going_back_to_the_beginning_keeps_batches_and_precision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    bad_visits = iter([True] * 3 + [False] * 1000)
    poison(monkeypatch, lambda step: step in (2, 3, 4) and next(bad_visits))
    train(make_recipe(), tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert "Went back from step 4 to step 0" in log_of(tmp_path / "run")
    last = tmp_path / "run" / "checkpoints" / "step-00000023"
    state = json.loads((last / "state.json").read_text())
    assert state["max_tokens_per_batch"] == 400
    assert state["precision"] in ("float32", "bfloat16")


def test_the_run_does_not_go_back_to_a_validation_amid_bad_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    bad_visits = iter([True] * 3 + [False] * 1000)
    asked = poison(monkeypatch, lambda step: step in (9, 10, 11) and next(bad_visits))
    recipe = make_recipe(training={"validate_every": 5})
    train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert asked == [*range(1, 12), *range(6, 24)]
    assert "Went back from step 11 to step 5" in log_of(tmp_path / "run")


def test_a_better_model_than_where_the_run_goes_back_to_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was validated at max_steps, a step that the run does not return to."""
    write_text(tmp_path)
    set_bleus(monkeypatch, 35.0, 38.0, 36.0, 37.0)
    first = make_recipe(training={"max_steps": 13})
    train(first, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    bad_visits = iter([True] * 3 + [False] * 1000)
    poison(monkeypatch, lambda step: step in (14, 15, 16) and next(bad_visits))
    summary = train(make_recipe(), tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert "Went back from step 16 to step 10" in log_of(tmp_path / "run")
    assert (summary.best_bleu, summary.best_step) == (38.0, 13)
    assert load_bundle(tmp_path / "run" / "bundle").manifest["metrics"]["best_step"] == 13


def test_where_the_run_goes_back_to_does_not_depend_on_interruptions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ignores the checkpoints of a signal and of save_minutes."""
    update, models = Updater.update, []
    for name, minutes, stopped_at in (("whole", 0, 0), ("stopped", 0, 14), ("saving", 1e-9, 0)):
        folder = tmp_path / name
        folder.mkdir()
        write_text(folder)
        recipe = make_recipe(training={"save_minutes": minutes})
        with monkeypatch.context() as patch:
            visits: Counter[int] = Counter()

            def is_bad(step: int, visits: Counter[int] = visits) -> bool:
                visits[step] += 1
                return step in (13, 14, 15) and visits[step] == 1

            def stopping(
                self: Any, step: int, *rest: Any, at: int = stopped_at, **rates: Any
            ) -> Any:
                if step == at:
                    os.kill(os.getpid(), signal.SIGTERM)
                return update(self, step, *rest, **rates)

            poison(patch, is_bad)
            patch.setattr(Updater, "update", stopping)
            if stopped_at:
                with pytest.raises(SystemExit):
                    train(recipe, folder / "run", recipe_folder=folder, progress=False)
                assert (folder / "run" / "checkpoints" / "step-00000014").is_dir()
                patch.setattr(Updater, "update", update)
            train(recipe, folder / "run", recipe_folder=folder, progress=False)
        assert "Went back from step 15 to step 10" in log_of(folder / "run")
        models.append(model_bytes(folder / "run" / "checkpoints" / "step-00000023"))
    assert models == [models[0]] * 3


def test_a_second_time_ends_the_run_with_its_checkpoint_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    poison(monkeypatch, lambda step: step > 12)
    with pytest.raises(TrainingError, match="again after going back once") as caught:
        train(make_recipe(), tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert caught.value.exit_code == 1
    (newest,) = (tmp_path / "run" / "checkpoints").iterdir()
    assert newest.name == "step-00000010"
    load_bundle(newest)


def test_a_rate_that_is_far_too_high_ends_with_a_sentence(tmp_path: Path) -> None:
    write_text(tmp_path)
    highest = {"learning_rate": 100.0, "optimizer": "adamw", "weight_decay": 100.0}
    recipe = make_recipe(training={**highest, "max_steps": 200, "warmup_steps": 1})
    with pytest.raises(TrainingError, match=r"lower training\.learning_rate"):
        train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)


NAME = "encoder.layers.0.feed_forward.inner.bias"


def test_weights_that_are_no_numbers_are_neither_judged_nor_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    plain = Learner.count

    def count(self: Learner, updated: UpdateResult) -> None:
        plain(self, updated)
        if self.state.step == 20:
            with torch.no_grad():
                dict(self.model.named_parameters())[NAME][7] = math.inf

    monkeypatch.setattr(Learner, "count", count)
    run = tmp_path / "run"
    with pytest.raises(TrainingError, match=rf"{re.escape(NAME)} are not finite after step 20"):
        train(make_recipe(), run, recipe_folder=tmp_path, progress=False)
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["step-00000010"]
    weights = load_bundle(run / "bundle").model.state_dict()
    assert bool(torch.isfinite(weights[NAME]).all())
    monkeypatch.setattr(Learner, "count", plain)
    train(make_recipe(), run, recipe_folder=tmp_path, progress=False)


def test_a_validation_without_a_loss_is_never_the_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    set_validations(monkeypatch, (1.0, 5.0), (math.nan, 90.0))
    recipe = make_recipe(training={"max_steps": 20})
    summary = train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert (summary.best_bleu, summary.best_step) == (5.0, 10)
    validations = [line for line in read_metrics(tmp_path / "run") if line["kind"] == "validation"]
    assert [line["loss"] for line in validations] == [1.0, None]


def test_a_run_without_any_loss_in_validation_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    recipe = make_recipe(training={"averaging": "best"})
    for times in (3, 0):
        set_validations(monkeypatch, *[(math.nan, 90.0)] * times)
        with pytest.raises(TrainingError, match="validation loss was never finite"):
            train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert not (tmp_path / "run/bundle").exists()


def fail_at(patch: pytest.MonkeyPatch, name: str, calls: list[int]) -> None:
    """Let some calls that save fail, counted from 1."""
    plain, seen = getattr(saving, name), []

    def failing(*arguments: Any, **settings: Any) -> None:
        seen.append(1)
        if len(seen) in calls:
            raise OutputError("The output must be writable, but is not: No space left on device.")
        plain(*arguments, **settings)

    patch.setattr(saving, name, failing)


def test_training_goes_on_where_a_checkpoint_cannot_be_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    fail_at(monkeypatch, "save_checkpoint", [1])
    summary = train(make_recipe(), tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert summary.steps == 23
    assert "The checkpoint of step 10 was not saved" in log_of(tmp_path / "run")
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert names == ["step-00000020", "step-00000023"]


@pytest.mark.parametrize("failing", [[2], [2, 3], [2, 3, 4]])
def test_a_best_model_that_the_disk_did_not_take_is_saved_later(
    failing: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    recipe = make_recipe(training={"averaging": "running"})
    bundles = {}
    for name, calls in (("good", []), ("faulty", failing)):
        with monkeypatch.context() as patch:
            set_bleus(patch, 10.0, 5.0, 5.0)
            fail_at(patch, "save_bundle", calls)  # The first call saves the random weights.
            train(recipe, tmp_path / name, recipe_folder=tmp_path, progress=False)
        bundles[name] = load_bundle(tmp_path / name / "bundle")
    assert "The model of step 10 could not be saved" in log_of(tmp_path / "faulty")
    assert bundles["faulty"].manifest["metrics"]["best_step"] == 10
    assert bundles["faulty"].manifest["training"]["step"] == 10
    assert bundles["faulty"].model_hash == bundles["good"].model_hash


def test_training_fails_where_the_best_model_is_never_saved_and_the_same_command_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    recipe = make_recipe()
    with monkeypatch.context() as patch:
        set_bleus(patch, 10.0, 20.0, 5.0)
        fail_at(patch, "save_bundle", list(range(3, 99)))
        with pytest.raises(OutputError, match="No space left"):
            train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    # The checkpoint of step 20 was saved before its validation counted; later ones were not.
    names = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert names == ["step-00000010", "step-00000020"]
    assert load_bundle(tmp_path / "run/bundle").manifest["metrics"]["best_step"] == 10
    set_bleus(monkeypatch, 20.0, 5.0)
    summary = train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert (summary.best_bleu, summary.best_step, summary.steps) == (20.0, 20, 23)
    assert load_bundle(tmp_path / "run/bundle").manifest["metrics"]["best_step"] == 20


def test_the_same_command_keeps_the_last_model_where_there_was_no_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    recipe = make_recipe(training={"validate_every": 23, "averaging": "best"})
    with monkeypatch.context() as patch:
        fail_at(patch, "save_bundle", [2, 3])
        with pytest.raises(OutputError, match="No space left"):
            train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert not (tmp_path / "run" / "bundle").exists()
    assert (tmp_path / "run" / "checkpoints" / "step-00000023").is_dir()
    train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert load_bundle(tmp_path / "run" / "bundle").manifest["metrics"]["best_step"] == 23


def test_models_of_a_history_are_all_there_or_training_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    recipe = make_recipe(training={"keep_every": 4})
    with monkeypatch.context() as patch:
        fail_at(patch, "save_bundle", list(range(2, 99)))
        with pytest.raises(OutputError, match="No space left"):
            train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    fail_at(monkeypatch, "save_bundle", [2])
    train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    names = sorted(path.name for path in (tmp_path / "run" / "history").iterdir())
    assert names == [f"step-{step:08d}" for step in range(4, 24, 4)]


def test_training_goes_on_without_tensorboard_where_it_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pellucid.training.run.metrics import TensorboardWriter

    def refuse(*_: Any) -> None:
        raise OutputError("The TensorBoard folder must be writable, but is not.")

    monkeypatch.setattr(TensorboardWriter, "add_metrics", refuse)
    write_text(tmp_path)
    recipe = make_recipe(training={"tensorboard": True})
    train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert log_of(tmp_path / "run").count("continues without TensorBoard") == 1


@pytest.mark.parametrize("name", ["train.fr", "validation.en"])
def test_other_text_than_the_run_began_with_is_refused(
    name: str, finished_run: Path, tmp_path: Path
) -> None:
    text = tmp_path / name
    before = text.read_text()
    text.write_text(before.replace("a", "o"))
    longer = make_recipe(training={"max_steps": 25})
    with pytest.raises(ConfigurationError, match=f"{name} has been changed") as caught:
        train(longer, finished_run, recipe_folder=tmp_path, progress=False)
    assert caught.value.exit_code == 2
    text.write_text(before)
    summary = train(longer, finished_run, recipe_folder=tmp_path, progress=False)
    assert summary.steps == 25


def start_from(model: Path, folder: Path, **training: Any) -> Recipe:
    """A recipe for the same text that starts from a model."""
    values = make_recipe().model_dump(mode="json")
    del values["model"], values["tokenizer"], values["start"]
    values["training"] |= {"max_steps": 5, "validate_every": 5, **training}
    return validate(Recipe, with_start(values, str(model), folder / "second"), "test")


def test_training_starts_from_a_model_with_its_weights_and_tokenizer(tmp_path: Path) -> None:
    write_text(tmp_path)
    first = make_recipe(training={"max_steps": 60, "validate_every": 60, "learning_rate": 0.02})
    train(first, tmp_path / "first", recipe_folder=tmp_path, progress=False)
    recipe = start_from(tmp_path / "first", tmp_path, log_every=1, learning_rate=1e-6)
    train(recipe, tmp_path / "second", recipe_folder=tmp_path, progress=False)
    losses = [
        [record["loss"] for record in read_metrics(tmp_path / name) if record["kind"] == "train"]
        for name in ("first", "second")
    ]
    assert losses[1][0] == pytest.approx(losses[0][-1], abs=0.5)
    assert losses[1][0] < losses[0][0] - 1
    bundles = [load_bundle(tmp_path / name / "bundle") for name in ("first", "second")]
    assert bundles[0].tokenizer.files() == bundles[1].tokenizer.files()
    assert bundles[1].manifest["training"]["started_from"] == bundles[0].model_hash


def test_frozen_parts_stay_byte_for_byte(finished_run: Path, tmp_path: Path) -> None:
    recipe = start_from(finished_run, tmp_path, freeze=["encoder", "embedding"])
    train(recipe, tmp_path / "second", recipe_folder=tmp_path, progress=False)
    before, after = (
        load_bundle(tmp_path / name / "bundle").model.state_dict() for name in ("run", "second")
    )
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved
    assert all(name.startswith("decoder.") for name in moved)


def test_freezing_what_does_not_exist_is_refused_before_training(tmp_path: Path) -> None:
    write_text(tmp_path)
    with pytest.raises(ConfigurationError, match="'encodr' does not exist"):
        train(
            make_recipe(training={"freeze": ["encodr"]}),
            tmp_path / "run",
            recipe_folder=tmp_path,
            progress=False,
        )
    assert not (tmp_path / "run").exists()
    recipe = make_recipe(training={"freeze": ["encoder"], "max_steps": 1})
    assert train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False).steps == 1


@pytest.mark.parametrize("averaging", ["running", "last", "best"])
def test_the_kept_model_is_the_average(
    averaging: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    set_bleus(monkeypatch, 10.0, 20.0)
    recipe = make_recipe(training={"averaging": averaging, "averaging_count": 2, "max_steps": 20})
    train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    folders = [tmp_path / "run" / "checkpoints" / f"step-{step:08d}" for step in (10, 20)]
    weights = [load_bundle(folder).model.state_dict() for folder in folders]
    expected = {name: (weights[0][name] + weights[1][name]) / 2 for name in weights[0]}
    if averaging == "running":
        saved = safetensors.torch.load_file(folders[1] / "averaging.safetensors")
        expected = {name: saved[f"running.{name}"] for name in expected}
    kept = load_bundle(tmp_path / "run" / "bundle").model.state_dict()
    assert any(not torch.equal(kept[name], weights[1][name]) for name in kept)
    for name in expected:
        torch.testing.assert_close(kept[name], expected[name], rtol=0, atol=1e-6)
