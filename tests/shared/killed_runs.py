"""A training that tests resuming: its settings, and what an interruption must not change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from small_runs import NO_REPORT, make_recipe, write_text

MAX_STEPS = 54
VALIDATE_EVERY = 6

SETTINGS: dict[str, Any] = {
    "max_steps": MAX_STEPS,
    "validate_every": VALIDATE_EVERY,
    "log_every": 1,
    "learning_rate": 0.01,
    "device": "cpu",
    "dropout": 0.1,
    "feed_forward_dropout": 0.1,
    "token_dropout": 0.1,
    "dropout_warmup_steps": 17,
    "subword_samples": 5,
    "r_drop": 2.0,
    "token_cut": 0.05,
    "both_directions_steps": 31,
    "accumulate": 2,
    "optimizer": "muon",
    "max_gradient_norm": 1.0,
    "averaging": "running",
}
"""All that a resumed run could get wrong, except dropout of attention's weights: with it attention
would not be computed in blocks. Another test resumes a run with that dropout."""


DIE_AT_CALL = f"""
{NO_REPORT}
import os, pkgutil, signal, sys
from pellucid.cli.main import main

holder_name, name, at_call = sys.argv[1:4]
del sys.argv[1:4]
holder = pkgutil.resolve_name(holder_name)
plain, calls = getattr(holder, name), []

def call(*arguments, **settings):
    calls.append(name)
    if len(calls) == int(at_call):
        os.kill(os.getpid(), signal.SIGKILL)
    return plain(*arguments, **settings)

setattr(holder, name, call)
main()
"""
"""A program that dies at a call. Its arguments are a module or class, a function of it, and the
number of the call, then a command."""


def write_recipe(folder: Path, settings: Mapping[str, Any]) -> Path:
    """Write a small text and its recipe, and hand back the recipe's file."""
    from pellucid.config import to_toml

    write_text(folder)
    # Only a unigram model has subwords to sample.
    tokenizer = {"model_type": "unigram", "vocabulary_size": 300}
    path = folder / "recipe.toml"
    text = to_toml(make_recipe(training=dict(settings), tokenizer=tokenizer))
    # A recipe may still have this key; only the command writes it no longer.
    lines = f"[training]\nlog_every = {settings.get('log_every', 50)}\n"
    path.write_text(text.replace("[training]\n", lines, 1))
    return path


def fingerprints(run: Path) -> dict[str, str]:
    """Hash what must be the same however often a run was interrupted."""
    last = max((run / "checkpoints").glob("step-*"))
    names = ("model.safetensors", "optimizer.safetensors", "averaging.safetensors")
    contents = {f"{last.name}/{name}": (last / name).read_bytes() for name in names}
    contents["bundle/model.safetensors"] = (run / "bundle" / "model.safetensors").read_bytes()
    contents["samples.jsonl"] = (run / "samples.jsonl").read_bytes()
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    untimed = [{k: v for k, v in record.items() if k != "seconds"} for record in metrics]
    contents["metrics.jsonl without seconds"] = json.dumps(untimed).encode()
    contents["leftovers"] = " ".join(sorted(path.name for path in run.rglob(".*"))).encode()
    return {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
