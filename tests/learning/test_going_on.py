"""Checks on resuming a run: its checkpoints, recipe, text, and best model."""

from __future__ import annotations

import math
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_runs import make_recipe, model_bytes, read_metrics, write_text

from pellucid.bundle import load_bundle
from pellucid.config import Recipe
from pellucid.errors import ConfigurationError
from pellucid.training.loop import train
from pellucid.training.run import validator
from pellucid.training.run.run_end import TrainingSummary
from pellucid.training.update.passes import Passes
from pellucid.training.validation import Validation, validate_model


def run_in(folder: Path, recipe: Recipe | None = None) -> TrainingSummary:
    return train(recipe or make_recipe(), folder / "run", recipe_folder=folder, progress=False)


@pytest.mark.parametrize("whole_folder", [True, False])
def test_a_model_whose_checkpoints_are_gone_is_never_replaced(
    finished_run: Path, tmp_path: Path, whole_folder: bool
) -> None:
    before, metrics = model_bytes(finished_run / "bundle"), read_metrics(finished_run)
    shutil.rmtree(finished_run / "checkpoints")
    if not whole_folder:
        (finished_run / "checkpoints").mkdir()
    with pytest.raises(
        ConfigurationError, match=r"no checkpoint to continue .* step \d+ in .*, with start="
    ):
        run_in(tmp_path)
    assert model_bytes(finished_run / "bundle") == before
    assert read_metrics(finished_run) == metrics


def test_what_a_crash_leaves_before_the_first_checkpoint_is_made_again(tmp_path: Path) -> None:
    write_text(tmp_path)
    run_in(tmp_path, make_recipe(training={"max_steps": 1}))
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    assert run_in(tmp_path).steps == 23


@pytest.mark.parametrize("damage", [None, b"", b"[data]\ntrain = [\n", b"x = 3\n"])
def test_a_recipe_that_is_gone_or_damaged_is_that_of_the_newest_checkpoint(
    finished_run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: bytes | None
) -> None:
    file = finished_run / "recipe.toml"
    before = file.read_bytes()
    file.unlink()
    if damage is not None:
        file.write_bytes(damage)
    run_in(tmp_path)
    assert "it was restored from step-00000023" in capsys.readouterr().err
    assert file.read_bytes() == before


def test_a_damaged_recipe_without_a_copy_is_said(tmp_path: Path) -> None:
    write_text(tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").write_bytes(b"[data]\n")
    with pytest.raises(ConfigurationError, match="no checkpoint holds a copy"):
        run_in(tmp_path)


def test_other_validation_text_is_refused_also_where_the_tokens_were_deleted(
    finished_run: Path, tmp_path: Path
) -> None:
    for path in tmp_path.glob("validation.*"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:20]))
    shutil.rmtree(finished_run / "data")
    with pytest.raises(ConfigurationError, match="The validation text must be what this run"):
        run_in(tmp_path, make_recipe(training={"max_steps": 29}))


@pytest.mark.parametrize("averaging", ["none", "last", "best"])
def test_a_lost_best_model_is_chosen_anew_and_nothing_counts_twice(
    tmp_path: Path, averaging: str
) -> None:
    write_text(tmp_path)
    recipe = make_recipe(training={"averaging": averaging, "averaging_count": 3})
    run_in(tmp_path, recipe)
    run = tmp_path / "run"
    metrics, checkpoint = read_metrics(run), "checkpoints/step-00000023/averaging.safetensors"
    average = (run / checkpoint).read_bytes()
    shutil.rmtree(run / "bundle")
    assert load_bundle(run_in(tmp_path, recipe).bundle).manifest["training"]["step"] == 23
    assert [line["step"] for line in read_metrics(run)] == [line["step"] for line in metrics]
    assert (run / checkpoint).read_bytes() == average


def test_a_run_that_patience_ended_stays_ended_without_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)

    def validate(translator: Any, pairs: Any) -> Validation:
        return Validation(2.0, 7.0, 50.0, tuple(pair.target for pair in pairs))

    monkeypatch.setattr(validator, "validate_model", validate)
    recipe = make_recipe(training={"patience": 2, "validate_every": 3})
    assert run_in(tmp_path, recipe).steps == 9
    shutil.rmtree(tmp_path / "run" / "bundle")
    summary = run_in(tmp_path, recipe)
    assert (summary.steps, summary.best_step) == (9, 9)


def test_a_run_made_from_a_model_names_it_where_it_is_left_out(
    finished_run: Path, tmp_path: Path
) -> None:
    text = (finished_run / "recipe.toml").read_text()
    changed = text.replace("[start]\n", f'[start]\nmodel_hash = "{"a" * 64}"\n')
    (finished_run / "recipe.toml").write_text(changed)
    with pytest.raises(ConfigurationError, match=r"the model to start from \(start, start\.model"):
        run_in(tmp_path)


def test_a_name_that_is_not_utf8_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    write_text(tmp_path)
    run = tmp_path / os.fsdecode(b"b\xff")
    with pytest.raises(ConfigurationError, match=r"name of a run folder must be UTF-8.*b.udcff"):
        train(make_recipe(), run, recipe_folder=tmp_path, progress=False)
    assert not run.exists()
    folder = tmp_path / os.fsdecode(b"d\xff")
    folder.mkdir()
    write_text(folder)
    with pytest.raises(ConfigurationError, match=r"recipe must be UTF-8.*d.udcff"):
        run_in(tmp_path, make_recipe(data={"folder": str(folder)}))


def test_a_skipped_update_leaves_no_line_of_the_log_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    sum_gradients: Any = Passes.sum_gradients

    def poisoned(self: Passes, step: int, pieces: Any) -> Any:
        loss = sum_gradients(self, step, pieces)
        return loss * (math.nan if step == 10 else 1.0)

    monkeypatch.setattr(Passes, "sum_gradients", poisoned)
    run_in(tmp_path)
    lines = [line for line in read_metrics(tmp_path / "run") if line["kind"] == "train"]
    assert [line["step"] for line in lines] == [5, 10, 15, 20]


def test_the_loss_of_validation_is_no_number_where_nothing_can_be_scored(
    trained: Path,
) -> None:
    from pellucid.text.reading.sentence_pairs import SentencePair
    from pellucid.translate.translator import Translator

    bundle = load_bundle(trained / "run" / "bundle")
    translator = Translator(bundle.model, bundle.tokenizer)
    long = " ".join(["dog"] * 2000)
    assert math.isnan(validate_model(translator, [SentencePair(long, long, "")]).loss)
    one = SentencePair("the dog sees", "le chien voit", "")
    both = validate_model(translator, [one, SentencePair(long, long, "")])
    alone = validate_model(translator, [one])
    assert both.loss == pytest.approx(alone.loss, rel=1e-5)
    assert "1 of 2 validation pairs are too long" in both.describe(20, best_by=None)
    assert "too long" not in alone.describe(20, best_by="BLEU")
