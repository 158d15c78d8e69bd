"""A training that is killed again and again ends with the same bytes."""

from __future__ import annotations

import signal
from pathlib import Path

from killed_runs import SETTINGS, Forked, fingerprints, write_recipe

MOMENTS = [
    ("pellucid.train.start.prepare", "learn_tokenizer", 1),
    ("pellucid.train.update.step:Updater", "update", 4),
    ("pellucid.train.loop", "validate_model", 1),
    ("os", "rename", 1),  # the first best model
    ("os", "fsync", 12),
    ("os", "rename", 2),
    ("os", "rename", 3),  # the first checkpoint
    ("pellucid.train.loop", "validate_model", 2),
    ("os", "rename", 1),
    ("os", "replace", 8),
    ("pellucid.train.update.step:Updater", "update", 9),
    ("pellucid.train.run.checkpoint", "delete_folder", 1),
]
"""Calls of the twelve processes at which they die: while preparing data, training, validating,
keeping the best model, writing, flushing, renaming and deleting. `benchmarks/kills.py` kills at
random moments."""


def test_twelve_kills_in_every_phase_end_with_the_same_bytes(tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path, SETTINGS | {"max_steps": 24})
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    said = tmp_path / "said"
    assert Forked(["train", str(recipe), "--out", str(whole)], said).wait() == 0, said.read_text()
    command = ["train", str(recipe), "--out", str(killed)]
    for moment in MOMENTS:
        assert Forked(command, said, die_at=moment).wait() == -signal.SIGKILL, moment
    assert Forked(command, said).wait() == 0, said.read_text()
    assert fingerprints(killed) == fingerprints(whole)
