"""Training on a device other than the processor, like a GPU: a pretended one, in forks."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import Forked
from safetensors.torch import load_file
from small_runs import NO_REPORT, make_recipe, model_bytes, read_metrics, write_text

from pellucid.config.training_recipe import to_toml

Run = Callable[..., subprocess.CompletedProcess[str]]

PLAIN = {"dropout": 0.0, "precision": "float32", "learning_rate": 0.003, "max_steps": 7}

EVERYTHING = {
    "precision": "bfloat16",
    "optimizer": "muon",
    "attention_dropout": 0.1,
    "feed_forward_dropout": 0.1,
    "token_dropout": 0.1,
    "r_drop": 2.0,
    "token_cut": 0.05,
    "subword_samples": 3,
    "averaging": "last",
    "averaging_count": 2,
    "accumulate": 2,
    "both_directions_steps": 5,
    "max_gradient_norm": 1.0,
    "max_steps": 7,
    "validate_every": 3,
}

GUIDED = PLAIN | {"guided_head": "decoder.0.cross.1", "averaging": "running"}


TRAIN = f"""
{NO_REPORT}
from pellucid.cli.main import main
from pretended_device import pretended_device

with pretended_device():
    main()
"""


@pytest.fixture
def run_there(run_python: Run) -> Callable[..., str]:
    """Run a program in its own process, and hand back its output."""

    def run(program: str, *words: str) -> str:
        done = run_python("-c", program, *words, kind=Forked)
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return run


def write_recipe(folder: Path, training: dict[str, Any]) -> str:
    write_text(folder)
    for path in folder.glob("validation.*"):  # Every operation there is slow.
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:7]))
    data = {"train_alignments": "train.align"} if "guided_head" in training else {}
    recipe = make_recipe(training=training, data=data)
    path = folder / "recipe.toml"
    path.write_text(to_toml(recipe))
    return str(path)


@pytest.mark.sample(training=GUIDED)
@pytest.mark.parametrize("training", [PLAIN, GUIDED], ids=["plain", "guided"])
def test_a_run_there_has_the_losses_and_weights_of_one_on_the_processor(
    tmp_path: Path, training: dict[str, Any], run_here: Run, run_there: Callable[..., str]
) -> None:
    recipe = write_recipe(tmp_path, training)
    here, there = tmp_path / "here", tmp_path / "there"
    words = ["train", recipe, "--set=training.log_every=1"]
    done = run_here(*words, "-o", str(here), "--set=training.device=cpu")
    assert done.returncode == 0, done.stderr
    run_there(TRAIN, *words, "-o", str(there))
    assert len(read_metrics(here)) == 8
    for ours, theirs in zip(read_metrics(here), read_metrics(there), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    weights, expected = (load_file(run / "bundle" / "model.safetensors") for run in (there, here))
    for name, weight in expected.items():
        assert weights[name].sub(weight).abs().max() < 1e-5, name
    end = "of its best products ("
    assert end in (there / "log.txt").read_text()
    assert end not in (here / "log.txt").read_text()


def test_a_run_there_that_is_interrupted_ends_with_the_same_bytes(
    tmp_path: Path, run_there: Callable[..., str]
) -> None:
    recipe = write_recipe(tmp_path, EVERYTHING)
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    run_there(TRAIN, "train", recipe, "-o", str(whole))
    run_there(TRAIN, "train", recipe, "-o", str(resumed), "--set", "training.max_steps=4")
    run_there(TRAIN, "train", recipe, "-o", str(resumed))
    last = "checkpoints/step-00000007"
    assert model_bytes(whole / last) == model_bytes(resumed / last)
    for name in ("optimizer", "averaging"):
        file = f"{last}/{name}.safetensors"
        assert (whole / file).read_bytes() == (resumed / file).read_bytes()


VALIDATE = f"""
{NO_REPORT}
import json
import sys
from unittest import mock
import torch
from pretended_device import pretended_device
from taped_graphs import TapedGraphs
from pellucid.cli.main import main
from pellucid.training.run import validator

is_full = sys.argv.pop() == "full"
validate = validator.validate_model
graphs = []

def watch(translator, pairs, **how):
    place = translator.model.output_weight.device.type
    if is_full and place != "cpu":
        print(json.dumps([place]))
        raise torch.OutOfMemoryError("CUDA out of memory.")
    found = validate(translator, pairs, **how)
    print(json.dumps([place, id(translator), sum(one.num_repeated for one in graphs)]), flush=True)
    return found

def make(device):
    if device.type == "cpu":
        return None
    graphs.append(TapedGraphs(device, is_taped=False))
    return graphs[-1]

validator.validate_model = watch
with pretended_device(), mock.patch("pellucid.decode.on_pytorch.make_graphs", make):
    main()
"""


def validations(said: str) -> list[list[Any]]:
    return [json.loads(line) for line in said.splitlines() if line.startswith("[")]


@pytest.mark.parametrize("averaging", ["none", "running"])
def test_validation_is_made_there_with_the_figures_of_the_processor(
    tmp_path: Path, averaging: str, run_here: Run, run_there: Callable[..., str]
) -> None:
    recipe = write_recipe(tmp_path, PLAIN | {"validate_every": 3, "averaging": averaging})
    here, there = tmp_path / "here", tmp_path / "there"
    done = run_here("train", recipe, "-o", str(here), "--set=training.device=cpu")
    assert done.returncode == 0, done.stderr
    said = run_there(VALIDATE, "train", recipe, "-o", str(there), "room")
    places, translators, repeated = zip(*validations(said), strict=True)
    assert places == ("pretended",) * 3
    # One translator, so that what the device has recorded serves in the next validation, too.
    assert len(set(translators)) == 1
    assert 0 < repeated[0] < repeated[1]
    for ours, theirs in zip(read_metrics(here), read_metrics(there), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
        assert ours.get("bleu") == theirs.get("bleu")


def test_validation_goes_to_the_processor_once_if_memory_runs_out(
    tmp_path: Path, run_there: Callable[..., str]
) -> None:
    recipe = write_recipe(tmp_path, PLAIN | {"validate_every": 3})
    run = tmp_path / "run"
    said = run_there(VALIDATE, "train", recipe, "-o", str(run), "full")
    assert [one[0] for one in validations(said)] == ["pretended", "cpu", "cpu", "cpu"]
    words = "Validation runs on the processor from here on: pretended:0 has no memory left."
    assert (run / "log.txt").read_text().count(words) == 1
    assert sum("bleu" in one for one in read_metrics(run)) == 3


UPDATE = """
import json, sys
from pretended_device import leave, pretended_device, waits
from small_model import make_batch, make_model
from pellucid.config import TrainingConfig
from pellucid.training.weights.optimizer import Optimizer
from pellucid.training.update.step import Updater

with pretended_device() as device:
    for values in json.loads(sys.argv[1]):
        training = TrainingConfig.model_validate(values)
        model = make_model(has_output_bias=True).to(device)
        optimizer = Optimizer(model, training, training.precision)
        updater = Updater(model, optimizer, training, training.precision)
        batches = [make_batch(seed=seed, has_guide=bool(training.guided_head)) for seed in (3, 5)]
        for step in (1, 2):
            waits.clear()
            updater.update(step, batches, rate=0.01, muon_rate=0.01)
        print(json.dumps(waits))
leave()
"""

SETTINGS = (
    {"precision": "float32"},
    {"precision": "bfloat16", "optimizer": "muon", "max_gradient_norm": 0.1},
    {"precision": "bfloat16", "optimizer": "adamw", "token_dropout": 0.1, "dropout": 0.3},
    {"precision": "float32", "guided_head": "decoder.0.cross.1", "attention_dropout": 0.1},
)


def test_an_update_waits_for_the_device_once(run_there: Callable[..., str]) -> None:
    """It waits when it has loss and gradient, and must know whether they are finite."""
    found = run_there(UPDATE, json.dumps(SETTINGS)).splitlines()
    assert [json.loads(line) for line in found] == [{"tolist": 1}] * len(SETTINGS)


PLACES = """
import json
import torch
from pretended_device import pretended_device, waits

with pretended_device() as device:
    there, here = torch.ones(3, device=device), torch.ones(3)
    found = {"device": str((there + 1).device), "numbers": (there * there.sum()).tolist()}
    there[there > 0].sum().item()
    found["waits"] = sum(waits.values())
    try:
        there + here
    except AssertionError as error:
        found["refused"] = str(error)
print(json.dumps(found))
"""


def test_tensors_of_two_places_are_refused_and_waits_are_counted(
    run_there: Callable[..., str],
) -> None:
    found = json.loads(run_there(PLACES))
    assert found["device"] == "pretended:0"
    assert found["numbers"] == [3, 3, 3]
    assert found["waits"] == 3  # The list, the selection, and the item.
    assert "of the device and of the processor" in found["refused"]
