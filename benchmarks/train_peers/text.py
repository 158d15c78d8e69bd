"""The text on which all systems train, as lines and as token ids."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w

from pellucid.bundle import load_bundle
from pellucid.config import load_recipe
from pellucid.data import plan_epoch
from pellucid.text.reading.lines import read_lines
from pellucid.training.start.kept_pairs import reason_to_leave_out

VALIDATION_PAIRS = 8
"""Validation runs once, at the end, on so few pairs that it takes no time."""

SEED = 1
BUDGET = 4096


@dataclass(frozen=True)
class Text:
    """The text of one measurement, and its sizes.

    Attributes:
        folder: holds ``train.source``, ``train.target`` and the same of ``validation``, and with
            ``.ids`` behind them token ids; and ``batches.json``, batch after batch of pairs.
        vocabulary: number of tokens.
        lengths: tokens of source and target of every pair, ``</s>`` included.
        parameters: number of weights of pellucid's model.
    """

    folder: Path
    vocabulary: int
    lengths: list[tuple[int, int]]
    parameters: int

    def work(self) -> dict[str, Any]:
        """The work of a measured process."""
        source, target = map(sum, zip(*self.lengths, strict=True))
        return {
            "text": str(self.folder),
            "vocabulary": self.vocabulary,
            "source_tokens_per_target_token": source / target,
            "max_tokens_per_batch": BUDGET,
            "parameters": self.parameters,
        }


def write_lines(files: tuple[Path, Path], most: int, folder: Path) -> None:
    """Copy the text; its last pairs become validation text."""
    both = (islice(read_lines(path), most or None) for path in files)
    pairs = [pair for pair in zip(*both, strict=True) if pair[0].strip() and pair[1].strip()]
    if len(pairs) <= VALIDATION_PAIRS:
        raise SystemExit(f"There must be more than {VALIDATION_PAIRS} pairs, but are {len(pairs)}.")
    cut = len(pairs) - VALIDATION_PAIRS
    for name, part in (("train", pairs[:cut]), ("validation", pairs[cut:])):
        for side, lines in zip(("source", "target"), zip(*part, strict=True), strict=True):
            (folder / f"{name}.{side}").write_text("\n".join(lines) + "\n")


def start_run(
    text: Path, size: str, vocabulary: int, training: Mapping[str, Any], run: Path
) -> None:
    """Let `pellucid train` begin a run.

    Args:
        text: the folder of the text.
        size: the model, one of pellucid's own sizes.
        vocabulary: number of tokens.
        training: options of training.
        run: the run folder; its recipe is written next to it.
    """
    recipe = {
        "data": {
            "folder": str(text),
            **{
                f"{name}_{side}": f"{name}.{side}"
                for name in ("train", "validation")
                for side in ("source", "target")
            },
        },
        "tokenizer": {"vocabulary_size": vocabulary},
        # The other systems have these biases.
        "model": {"size": size, "projection_bias": True},
        "training": {
            "seed": SEED,
            "max_tokens_per_batch": BUDGET,
            "optimizer": "adam",
            "learning_rate": 0.001,
            "warmup_steps": 4000,
            "schedule": "inverse_square_root",
            "label_smoothing": 0.1,
            "dropout": 0.3,
            "validate_every": 1_000_000,
            **training,
        },
    }
    run.with_suffix(".toml").write_text(tomli_w.dumps(recipe))
    resume(run, run, training["max_steps"])


def resume(recipe: Path, run: Path, steps: int) -> None:
    """Let `pellucid train` train up to some number of steps.

    Args:
        recipe: the run folder whose recipe is used.
        run: the run folder.
        steps: total number of updates.
    """
    command = [sys.executable, "-m", "pellucid", "train", recipe.with_suffix(".toml")]
    changes = ["-o", run, "--set", f"training.max_steps={steps}"]
    done = subprocess.run([*command, *changes], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"pellucid train failed:\n{done.stderr[-3000:]}")


def read_metrics(run: Path) -> list[dict[str, Any]]:
    """Read the training metrics of a run."""
    lines = (run / "metrics.jsonl").read_text().splitlines()
    return [found for found in map(json.loads, lines) if found["kind"] == "train"]


def write_ids(folder: Path, run: Path, num_batches: int) -> Text:
    """Write the text as the token ids of a run, and the batches that its first steps take.

    Args:
        folder: the text's folder.
        run: the run whose tokenizer is used.
        num_batches: number of batches to lay out.
    """
    bundle = load_bundle(run / "bundle")
    tokenizer = bundle.tokenizer
    data = load_recipe(run / "recipe.toml").data
    ids: dict[str, list[list[int]]] = {}
    for name in ("train", "validation"):
        lines = [list(read_lines(folder / f"{name}.{side}")) for side in ("source", "target")]
        sources = tokenizer.encode_sources(lines[0])
        targets = [tokenizer.encode_target(line) for line in lines[1]]
        pairs = [
            (source_ids, target_ids)
            for source, target, source_ids, target_ids in zip(*lines, sources, targets, strict=True)
            if reason_to_leave_out(data, source, target, source_ids, target_ids) is None
        ]
        for side, rows in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            ids[f"{name}.{side}"] = list(rows)
            text = "".join(" ".join(map(str, row[:-1])) + "\n" for row in rows)
            (folder / f"{name}.{side}.ids").write_text(text)
    lengths = [[len(row) for row in ids[f"train.{side}"]] for side in ("source", "target")]
    (folder / "batches.json").write_text(json.dumps(_lay_out(lengths, num_batches)))
    return Text(
        folder,
        tokenizer.target_vocabulary_size,
        list(zip(*lengths, strict=True)),
        sum(parameter.numel() for parameter in bundle.model.parameters()),
    )


def _lay_out(lengths: list[list[int]], num_batches: int) -> list[list[int]]:
    """Return the pairs of each batch, in the order in which pellucid takes them."""
    batches: list[list[int]] = []
    source, target = (np.array(one, dtype=np.int32) for one in lengths)
    for epoch in count():
        if len(batches) >= num_batches:
            return batches[:num_batches]
        plan = plan_epoch(source, target, seed=SEED, epoch=epoch, max_tokens_per_batch=BUDGET)
        batches += [pairs.tolist() for pairs in plan]
    raise AssertionError
