"""A training that is killed again and again ends with the same bytes."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from case_samples import Some
from forked import Forked
from killed_runs import DIE_AT_CALL, SETTINGS, fingerprints, write_recipe

MOMENTS = [
    ("pellucid.training.start.kept_pairs", "learn_tokenizer", 1),
    ("pellucid.training.update.step:Updater", "update", 4),
    ("pellucid.training.run.validator", "validate_model", 1),
    ("os", "rename", 1),  # the first best model
    ("os", "fsync", 12),
    ("os", "rename", 2),
    ("os", "rename", 3),  # the first checkpoint
    ("pellucid.training.run.validator", "validate_model", 2),
    ("os", "rename", 1),
    ("os", "replace", 8),
    ("pellucid.training.update.step:Updater", "update", 9),
    ("pellucid.training.run.checkpoint", "delete_folder", 1),
]
"""The calls at which the twelve processes die: while preparing data, training, validating, keeping
the best model, writing, flushing, renaming and deleting. `benchmarks/kills.py` kills at random
moments. Without `--full`, four die."""

NEVER = ("os", "rename", 0)


def test_kills_in_every_phase_end_with_the_same_bytes(
    tmp_path: Path, run_python: Callable[..., subprocess.CompletedProcess[str]], some: Some[Any]
) -> None:
    recipe = write_recipe(tmp_path, SETTINGS | {"max_steps": 24})

    def train(run: str, moment: tuple[str, str, int]) -> subprocess.CompletedProcess[str]:
        words = ("train", str(recipe), "-o", str(tmp_path / run))
        return run_python("-c", DIE_AT_CALL, *map(str, moment), *words, kind=Forked)

    for moment in some(MOMENTS, 4):
        assert train("killed", moment).returncode == -signal.SIGKILL, moment
    for run in ("killed", "whole"):
        done = train(run, NEVER)
        assert done.returncode == 0, done.stderr
    assert fingerprints(tmp_path / "killed") == fingerprints(tmp_path / "whole")


def test_a_kill_between_validations_loses_no_more_than_since_the_last_timed_checkpoint(
    tmp_path: Path, run_python: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    recipe = write_recipe(tmp_path, SETTINGS | {"max_steps": 8, "validate_every": 7})
    update = ("pellucid.training.update.step:Updater", "update")

    def train(run: str, minutes: str, at_call: int) -> int:
        words = ("train", str(recipe), "-o", str(tmp_path / run), "--set", minutes)
        done = run_python("-c", DIE_AT_CALL, *update, str(at_call), *words, kind=Forked)
        return done.returncode

    # Minutes that are over at once: every update is saved.
    assert train("killed", "training.save_minutes=1e-9", 6) == -signal.SIGKILL
    saved = max(path.name for path in (tmp_path / "killed" / "checkpoints").iterdir())
    assert saved == "step-00000005"
    assert train("killed", "training.save_minutes=1e-9", 0) == 0
    assert train("whole", "training.save_minutes=0", 0) == 0
    assert fingerprints(tmp_path / "killed") == fingerprints(tmp_path / "whole")
