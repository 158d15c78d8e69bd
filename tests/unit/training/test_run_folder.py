"""The run folder: its owner, changes of its recipe, and records on a full disk."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from failing_disk import FailingDisk
from small_runs import make_recipe

from pellucid.config import Recipe, load_recipe, to_toml
from pellucid.errors import ConfigurationError, OutputError
from pellucid.training.run.folder import MAY_CHANGE, RunFolder

RECORDS = ("metrics.jsonl", "samples.jsonl")


def make_run(path: Path, **training: Any) -> RunFolder:
    run = RunFolder(path, make_recipe(training=training))
    with run.locked(), run.created():
        pass
    return run


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_may_change_are_keys_of_a_recipe() -> None:
    known = {
        f"{section}.{key}" for section, keys in make_recipe().model_dump().items() for key in keys
    }
    assert known >= MAY_CHANGE


CHANGED: dict[str, Any] = {"max_steps": 99, "max_minutes": 3.5, "patience": 7, "log_every": 3}
CHANGED |= {"keep_checkpoints": 5, "validation_samples": 1, "tensorboard": True}
CHANGED |= {"device": "cpu", "save_minutes": 0, "keep_every": 7}


@pytest.mark.parametrize("key", CHANGED)
def test_run_goes_on_with_another_limit_or_log(key: str, tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    changed = make_run(tmp_path / "run", **{key: CHANGED[key]})
    assert (tmp_path / "run" / "recipe.toml").read_text() == changed.recipe_toml


def test_recipe_of_a_run_says_what_was_chosen_and_why_also_with_another_limit(
    tmp_path: Path,
) -> None:
    reasons = {
        "model.size": "model.size = tiny: larger models learn such text by heart.",
        "training.dropout": "training.dropout = 0.2: few words for a model of width 128.",
    }
    chosen = {"model.size": "tiny", "training.dropout": 0.2}
    file = tmp_path / "run" / "recipe.toml"
    for limit in (11, 99):
        recipe = make_recipe(training={"dropout": 0.2, "max_steps": limit})
        run = RunFolder(tmp_path / "run", recipe, *((chosen, reasons) if limit == 11 else ()))
        with run.locked(), run.created():
            pass
        lines = file.read_text().splitlines()
        assert f"dropout = 0.2  # chosen: {reasons['training.dropout']}" in lines
        sizes = [line for line in lines if line.startswith("d_model = ")]
        assert sizes[0].endswith(f"  # chosen: {reasons['model.size']}")
        assert f"max_steps = {limit}" in lines
        assert sum("#" in line for line in lines) == 2
        assert to_toml(load_recipe(file)) == run.recipe_toml
        # Bundles and checkpoints have the recipe without comments, the same whenever it was read.
        assert "#" not in run.recipe_toml


@pytest.mark.parametrize(
    "changes",
    [
        {"dropout": 0.3},
        {"precision": "bfloat16"},
        {"validate_every": 7, "seed": 3},
        {"averaging": "best"},
        {"accumulate": 2},
    ],
)
def test_run_with_another_setting_is_refused_naming_the_keys(
    changes: dict[str, Any], tmp_path: Path
) -> None:
    make_run(tmp_path / "run")
    before = (tmp_path / "run" / "recipe.toml").read_bytes()
    with pytest.raises(ConfigurationError) as caught:
        make_run(tmp_path / "run", **changes)
    assert all(f"training.{key}" in str(caught.value) for key in changes)
    assert caught.value.exit_code == 2
    assert (tmp_path / "run" / "recipe.toml").read_bytes() == before


@pytest.mark.parametrize(
    ("schedule", "is_fixed"),
    [("linear", True), ("cosine", True), ("constant", False), ("inverse_square_root", False)],
)
def test_max_steps_is_fixed_where_the_schedule_ends_there(
    schedule: str, is_fixed: bool, tmp_path: Path
) -> None:
    make_run(tmp_path / "run", schedule=schedule)
    if is_fixed:
        with pytest.raises(ConfigurationError, match=r"training\.max_steps differs"):
            make_run(tmp_path / "run", schedule=schedule, max_steps=99)
    else:
        make_run(tmp_path / "run", schedule=schedule, max_steps=99)


def test_a_second_training_is_kept_out_and_takes_nothing(tmp_path: Path) -> None:
    first, second = (RunFolder(tmp_path / "run", make_recipe()) for _ in range(2))
    with first.locked(), first.created():
        first.log("one")
        with (
            pytest.raises(ConfigurationError, match="another one is training in") as caught,
            second.locked(),
        ):
            raise AssertionError
        assert caught.value.exit_code == 2
        assert names(tmp_path / "run") == [
            "chosen.json",
            "log.txt",
            "no-checkpoint-yet",
            "recipe.toml",
        ]
    make_run(tmp_path / "run")


def test_a_training_that_began_with_another_recipe_meanwhile_is_refused(tmp_path: Path) -> None:
    first, second = (
        RunFolder(tmp_path / "run", make_recipe(training={"seed": seed})) for seed in (3, 5)
    )
    with first.locked(), first.created():
        pass
    with pytest.raises(ConfigurationError, match=r"training\.seed differs"), second.locked():
        raise AssertionError
    assert (tmp_path / "run" / "recipe.toml").read_text() == first.recipe_toml


def test_a_stray_key_in_the_runs_recipe_is_named(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    recipe = tmp_path / "run" / "recipe.toml"
    recipe.write_text("seed = 2\n" + recipe.read_text())
    with pytest.raises(ConfigurationError, match="but seed differs"):
        make_run(tmp_path / "run")


def test_crash_before_the_recipe_was_there_leaves_a_folder_that_can_be_used(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "recipe.toml.part").write_text("[da")
    make_run(run)
    assert names(run) == ["chosen.json", "no-checkpoint-yet", "recipe.toml"]


def test_best_bundle_that_had_to_make_room_is_put_back(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    older = run.path / ".bundle.older"
    older.mkdir()
    (older / "model").write_text("best")
    make_run(run.path)
    assert (run.bundle / "model").read_text() == "best"


@pytest.mark.parametrize("problem", [KeyboardInterrupt, SystemExit, ConfigurationError])
def test_new_run_whose_beginning_fails_leaves_nothing(
    problem: type[BaseException], tmp_path: Path
) -> None:
    run = RunFolder(tmp_path / "deep" / "run", make_recipe())

    def begin() -> None:
        with run.locked(), run.created():
            run.log("Reading the text.")
            raise problem

    with pytest.raises(problem):
        begin()
    assert names(tmp_path) == []


def test_earlier_run_stays_where_a_beginning_fails(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    run.log("one")
    with pytest.raises(KeyboardInterrupt), run.locked(), run.created():
        raise KeyboardInterrupt
    assert names(run.path) == ["chosen.json", "log.txt", "no-checkpoint-yet", "recipe.toml"]


def test_folder_that_cannot_be_written_raises_output_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for failing in range(3):
        with monkeypatch.context() as patch:
            disk = FailingDisk(patch, failing=failing)
            with pytest.raises(OutputError, match="No space left on device"):
                make_run(tmp_path / "run")
        assert len(disk.seen) > failing
        assert names(tmp_path) == []


def test_same_recipe_needs_no_room_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "run")
    with monkeypatch.context() as patch:
        disk = FailingDisk(patch)
        make_run(tmp_path / "run")
    assert not [what for what in disk.seen if what.startswith("write")]


def test_records_of_later_steps_and_damaged_lines_are_forgotten(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    for step in (3, 5, 7):
        run.add_metrics("train", {"step": step, "loss": step / 3})
        run.add_sample({"step": step, "source": "é\u2028", "reference": "r", "translation": "t"})
    for name in RECORDS:
        with (run.path / name).open("ab") as stream:
            stream.write(b'\xff\xfe\n[3]\n{"step": "4"}\n\n{"kind": "train", "st')
    run.drop_after(5, 5)
    metrics, samples = (read(run.path / name) for name in RECORDS)
    assert metrics == [{"kind": "train", "step": step, "loss": step / 3} for step in (3, 5)]
    assert [sample["step"] for sample in samples] == [3, 5]
    assert samples[0]["source"] == "é\u2028"
    run.add_metrics("train", {"step": 6, "loss": 2.0})
    assert [record["step"] for record in read(run.path / "metrics.jsonl")] == [3, 5, 6]


def test_validation_that_will_be_repeated_is_forgotten_and_its_update_stays(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    for step in (3, 7):
        run.add_metrics("train", {"step": step})
        run.add_metrics("validation", {"step": step})
        run.add_sample({"step": step, "source": "s", "reference": "r", "translation": "t"})
    run.drop_after(7, 3)
    kinds = [(record["kind"], record["step"]) for record in read(run.path / "metrics.jsonl")]
    assert kinds == [("train", 3), ("validation", 3), ("train", 7)]
    assert [sample["step"] for sample in read(run.path / "samples.jsonl")] == [3]


def test_full_disk_while_logging_is_said_once_and_training_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    with monkeypatch.context() as patch:
        FailingDisk(patch, failing=0, forever=True)
        for number in range(3):
            run.log(f"line {number}")
            run.add_metrics("train", {"step": number})
            run.add_sample({"step": number})
    said = capsys.readouterr().err
    assert [f"line {number}" in said for number in range(3)] == [True] * 3
    assert said.count("No space left on device") == 1
    assert said.count("Training continues") == 1


@pytest.mark.parametrize("way", ["link", "hard link", "pipe"])
def test_records_never_follow_a_link_and_training_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], way: str
) -> None:
    run = make_run(tmp_path / "run")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    for name in ("log.txt", "metrics.jsonl"):
        place = run.path / name
        if way == "pipe":
            os.mkfifo(place)
        elif way == "link":
            place.symlink_to(victim)
        else:
            place.hardlink_to(victim)
    run.log("line")
    run.add_metrics("train", {"step": 1})
    said = capsys.readouterr().err
    assert said.count("must be a file of its own, but is a link, a pipe or a device") == 1
    assert "Training continues" in said
    assert victim.read_text() == "precious"


def test_line_that_was_cut_short_by_a_full_disk_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run")
    run.add_metrics("train", {"step": 1})
    with monkeypatch.context() as patch:
        FailingDisk(patch, failing=0)
        run.add_metrics("train", {"step": 2, "loss": 3.0})
    run.add_metrics("train", {"step": 3})
    assert [record["step"] for record in read(run.path / "metrics.jsonl")] == [1, 2, 3]


def test_records_that_cannot_be_rewritten_stay_and_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_run(tmp_path / "run")
    run.add_metrics("train", {"step": 3})
    run.add_metrics("train", {"step": 9})
    with monkeypatch.context() as patch:
        FailingDisk(patch, failing=0, forever=True)
        run.drop_after(5, 5)
    assert "Training continues" in capsys.readouterr().err
    assert [record["step"] for record in read(run.path / "metrics.jsonl")] == [3, 9]


def test_log_is_kept_where_nobody_listens_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run")
    reading, writing = os.pipe()
    os.close(reading)
    nobody = io.TextIOWrapper(io.FileIO(writing, "w"), write_through=True)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", nobody)
        run.log("into the void")
        patch.setattr(sys, "stderr", None)
        run.log("to nothing")
    nobody.close()
    assert (run.path / "log.txt").read_text() == "into the void\nto nothing\n"


def test_resolved_recipe_is_what_is_written(tmp_path: Path) -> None:
    recipe: Recipe = make_recipe()
    make_run(tmp_path / "run")
    assert (tmp_path / "run" / "recipe.toml").read_text() == to_toml(recipe)


def test_lines_that_the_disk_did_not_take_are_written_later_in_their_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run")
    with monkeypatch.context() as patch:
        FailingDisk(patch, failing=0, forever=True)
        for step in (1, 2, 3):
            run.add_sample({"step": step})
            run.add_metrics("train", {"step": step})
        run.drop_after(2, 2)
    run.add_sample({"step": 4})
    run.write_waiting_lines()
    steps = {name: [line["step"] for line in read(run.path / name)] for name in RECORDS}
    assert steps == {"samples.jsonl": [1, 2, 4], "metrics.jsonl": [1, 2]}
