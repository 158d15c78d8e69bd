"""Training in batches of few shapes: the same gradient, said at the start, and kept by the run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from small_model import V, make_model
from small_runs import make_recipe, write_text

from pellucid.config import TrainingConfig
from pellucid.config.training_recipe import to_toml
from pellucid.data import Batch, build_store, make_batch
from pellucid.model import Dropout
from pellucid.training.fast.attention_losses import AttentionLosses
from pellucid.training.fast.pytorch import ModelOnPyTorch

Run = Callable[..., subprocess.CompletedProcess[str]]


def gradient_of(batch: Batch, precision: str) -> tuple[float, dict[str, torch.Tensor]]:
    training = TrainingConfig.model_validate({"precision": precision, "dropout": 0.0})
    model = make_model()
    losses = AttentionLosses(model.config, training)
    passes = ModelOnPyTorch(model, training, training.precision, losses)  # type: ignore[arg-type]
    passes.refresh_weights()
    loss = passes.add_gradient(batch, Dropout(0.0, seed=1, step=1), smoothing=0.1, share=1.0)
    found = {name: one.grad for name, one in model.named_parameters() if one.grad is not None}
    return float(loss), found


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_rows_without_a_pair_and_padding_change_no_gradient(tmp_path: Path, precision: str) -> None:
    pairs = [([3, 4, 5, 2], [4, 6, 2]), ([7, 2], [5, 5, 8, 2])]
    sizes = {"source_vocabulary_size": V, "target_vocabulary_size": V}
    store = build_store(tmp_path / "store", pairs, **sizes)
    indices = np.arange(2)
    plain = make_batch(store, indices, pad_id=0, start_id=1)
    filled = make_batch(store, indices, pad_id=0, start_id=1, shape=(5, 6, 7))
    assert filled.source_BS.shape == (5, 6)
    assert filled.target_in_BT.shape == (5, 7)
    assert filled.num_target_tokens == plain.num_target_tokens
    turned = np.array([True, False])
    swapped = make_batch(store, indices, pad_id=0, start_id=1, shape=(5, 6, 7), turned=turned)
    assert swapped.source_BS.shape == swapped.target_in_BT.shape == (5, 7)
    loss, gradients = gradient_of(plain, precision)
    other_loss, others = gradient_of(filled, precision)
    tolerance = 1e-5 if precision == "float32" else 2e-2
    assert other_loss == pytest.approx(loss, rel=tolerance)
    for name, gradient in gradients.items():
        assert torch.allclose(others[name], gradient, atol=tolerance), name


def test_a_run_says_its_shapes_and_keeps_them(tmp_path: Path, run_here: Run) -> None:
    write_text(tmp_path)
    training = {"max_steps": 3, "validate_every": 3, "kernels": "pytorch", "processes": 1}
    path = tmp_path / "recipe.toml"
    path.write_text(to_toml(make_recipe(training=training)))
    run = str(tmp_path / "run")
    done = run_here("train", str(path), "-o", run, "--set", "training.shapes=few")
    assert done.returncode == 0, done.stderr
    log = (Path(run) / "log.txt").read_text()
    assert " of their positions are padding." in log
    more = ["--set", "training.shapes=few", "--set", "training.max_steps=5"]
    done = run_here("train", str(path), "-o", run, *more)
    assert done.returncode == 0, done.stderr
    assert json.loads((Path(run) / "plan.json").read_text())["few_shapes"] is True
