"""Whole runs whose updates a device would repeat by itself, with tapes in the place of graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from small_runs import make_recipe, model_bytes, read_metrics, write_text
from taped_graphs import TapedGraphs

from pellucid.errors import TrainingError
from pellucid.training.loop import train

SETTINGS: dict[str, Any] = {
    "shapes": "few",
    "kernels": "pytorch",
    "precision": "float32",
    "averaging": "running",
    "log_every": 5,
}


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[TapedGraphs]:
    """The tapes of all updaters that a test makes."""
    made: list[TapedGraphs] = []

    def make(device: Any, generator: Any) -> TapedGraphs:
        made.append(TapedGraphs(device))
        return made[-1]

    monkeypatch.setattr("pellucid.training.update.recorded.make_graphs", make)
    monkeypatch.setattr("pellucid.training.report.report_page.write_report", lambda run: None)
    return made


def run(folder: Path, name: str, **training: Any) -> Path:
    recipe = make_recipe(training={**SETTINGS, **training})
    train(recipe, folder / name, recipe_folder=folder, progress=False)
    return folder / name


def test_a_recorded_run_has_the_figures_of_one_on_the_processor(
    tmp_path: Path, graphs: list[TapedGraphs], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    recorded = run(tmp_path, "recorded", dropout=0.0)
    (one,) = graphs
    assert one.num_repeated > 2 * one.num_recorded > 0
    monkeypatch.setattr("pellucid.training.update.recorded.make_graphs", lambda *_: None)
    plain = run(tmp_path, "plain", dropout=0.0)
    for ours, theirs in zip(read_metrics(recorded), read_metrics(plain), strict=True):
        assert ours["step"] == theirs["step"]
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-4)
        assert ours.get("target_tokens") == theirs.get("target_tokens")
    weights, expected = (
        load_file(one / "bundle" / "model.safetensors") for one in (recorded, plain)
    )
    for name, weight in expected.items():
        assert weights[name].sub(weight).abs().max() < 1e-4, name


def test_a_recorded_run_that_is_resumed_ends_with_the_same_bytes(
    tmp_path: Path, graphs: list[TapedGraphs]
) -> None:
    write_text(tmp_path)
    settings = {"dropout": 0.2, "r_drop": 1.0, "accumulate": 2, "optimizer": "muon"}
    whole = run(tmp_path, "whole", **settings)
    run(tmp_path, "resumed", **settings, max_steps=11)
    resumed = run(tmp_path, "resumed", **settings)
    assert len(graphs) == 3
    last = "checkpoints/step-00000023"
    assert model_bytes(whole / last) == model_bytes(resumed / last)
    for name in ("optimizer", "averaging"):
        file = f"{last}/{name}.safetensors"
        assert (whole / file).read_bytes() == (resumed / file).read_bytes()


def test_a_run_whose_updates_are_not_finite_goes_back_and_names_the_first(
    tmp_path: Path,
    graphs: list[TapedGraphs],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_text(tmp_path)
    rates = "pellucid.training.weights.schedule._rate"
    monkeypatch.setattr(rates, lambda step, *_: 1e30 if step == 12 else 0.001)
    with pytest.raises(TrainingError, match="again after going back once"):
        run(tmp_path, "bad", max_steps=60)
    assert "Skipped update 13: its loss is" in capsys.readouterr().err


def test_a_device_that_cannot_record_says_so_once(
    tmp_path: Path,
    graphs: list[TapedGraphs],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    write_text(tmp_path)
    monkeypatch.setattr(TapedGraphs, "record", refuse)
    run(tmp_path, "run")
    said = "Updates are computed step by step, as the device cannot record them: operation not"
    assert capsys.readouterr().err.count(said) == 1
