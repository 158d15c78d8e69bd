"""Steps of ``gpu.py`` from the shell: a recipe to its BLEU, and two runs of one seed."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from multi30k import commands_of
from on_gpu.gpu_setting import Note, Setting
from safetensors.torch import load_file

SEEDS_STEPS = 200

DETERMINISTIC = (
    "import torch; torch.use_deterministic_algorithms(True); "
    "from pellucid.cli.main import main; main()"
)


def measure_recipe(setting: Setting, note: Note, *, recipe: str) -> None:
    """Train a recipe, translate the test with beam 5, and score it."""
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        changes = _prepare(setting, Path(folder))
        commands = commands_of(recipe, 1, run, changes)
        began = time.monotonic()
        _pellucid(commands["train"])
        minutes = (time.monotonic() - began) / 60
        log = (run / "log.txt").read_text().splitlines()
        note({"minutes": minutes, "log": [line for line in log if _is_told(line)]})
        _pellucid(commands["translate, beam"])
        scores = json.loads(_pellucid(commands["tokenized, beam"]))
        note(
            {"bleu": scores["bleu"]["score"], "minutes_with_test": (time.monotonic() - began) / 60}
        )


def measure_seeds(setting: Setting, note: Note) -> None:
    """Train twice with one seed, as usual and with deterministic algorithms."""
    steps = 4 if setting.is_smallest else SEEDS_STEPS
    for kind, program in (("usual", ["-m", "pellucid"]), ("deterministic", ["-c", DETERMINISTIC])):
        weights = []
        with tempfile.TemporaryDirectory() as folder:
            changes = _prepare(setting, Path(folder))
            for name in ("training.max_steps", "training.validate_every"):
                changes = [one for one in changes if not one.startswith(f"{name}=")]
                changes.append(f"{name}={steps}")
            for run in (Path(folder) / "one", Path(folder) / "other"):
                words = commands_of("multi30k-en-fr-lowercased", 1, run, changes)["train"]
                _pellucid(words, program)
                (path,) = (run / "checkpoints").glob(f"step-*{steps}/model.safetensors")
                weights.append((path.read_bytes(), load_file(path)))
        (one_bytes, one), (other_bytes, other) = weights
        apart = max(float((one[key] - other[key]).abs().max()) for key in one)
        note({kind: {"steps": steps, "equal": one_bytes == other_bytes, "furthest": apart}})


def _is_told(line: str) -> bool:
    """Tell whether a line of the log says something about the device or the result."""
    begins = ("Machine", "Batches", "Updates", "On ", "The processor", "Done", "At this speed")
    return line.startswith(begins) or "validation: loss" in line


def _pellucid(words: Sequence[str], program: Sequence[str] = ("-m", "pellucid")) -> str:
    """Run a command, and return its standard output."""
    # cuBLAS asks for this before deterministic algorithms.
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    done = subprocess.run(
        [sys.executable, *program, *words],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr[-300:]}")
    return done.stdout


def _prepare(setting: Setting, folder: Path) -> list[str]:
    """Choose settings; the smallest run gets a text of its own in the place of Multi30k."""
    device = f"training.device={setting.device_name}"
    if not setting.is_smallest:
        if "MULTI30K" not in os.environ:
            raise RuntimeError("MULTI30K must name the folder of the text, but is not set.")
        return [device]
    os.environ["MULTI30K"] = str(folder)
    numbers = random.Random(1)
    for name, count in (("train", 60), ("val", 6), ("test_2016_flickr", 6)):
        lines = [" ".join(numbers.choices("abcdefgh", k=5)) for _ in range(count)]
        for language in ("en", "fr", "de"):
            with gzip.open(folder / f"{name}.lc.norm.tok.{language}.gz", "wt") as stream:
                stream.write("\n".join(lines) + "\n")
    small: dict[str, Any] = {
        "tokenizer.vocabulary_size": 270,
        "model.d_model": 16,
        "model.d_ff": 32,
        "model.num_heads": 2,
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "training.warmup_steps": 2,
        "training.dropout_warmup_steps": 2,
        "training.both_directions_steps": 2,
        "training.max_steps": 4,
        "training.validate_every": 4,
        "training.max_tokens_per_batch": 200,
    }
    return [device, *(f"{name}={value}" for name, value in small.items())]
