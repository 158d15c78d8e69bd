"""``pellucid train``: requests that it refuses before it trains."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["multi30k-en-fx"], "Did you mean 'multi30k-en-fr'?"),
        (["missing.toml"], "missing.toml"),
        (["multi30k-en-fr", "--set", "training.max_step=3"], "Did you mean 'max_steps'?"),
        (["multi30k-en-fr", "--set", "nonsense"], "SECTION.KEY=VALUE"),
        (["multi30k-en-fr", "--keep", "every:100"], "Give --keep-every N instead"),
        (["multi30k-en-fr", "--keep-every", "0"], "--keep-every must be at least 1"),
        (["multi30k-en-fr", "--set", "data.folder=missing-folder"], "missing-folder"),
    ],
)
def test_train_impossible_request_gives_one_sentence_2_and_no_run(
    run_here: Run, tmp_path: Path, arguments: list[str], expected: str
) -> None:
    done = run_here("train", *arguments, "-o", str(tmp_path / "run"))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert expected in done.stderr
    assert not (tmp_path / "run").exists()


def test_train_recipe_that_is_not_toml_names_file_and_line(run_here: Run, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[data]\nfolder = \n")
    done = run_here("train", str(recipe), "-o", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "recipe.toml" in done.stderr
    assert "line 2" in done.stderr


def test_text_whose_ending_says_nothing_is_told_the_endings(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "bars.txt").write_text("A cat. ||| Un chat.\n")
    done = run_here("train", str(tmp_path / "bars.txt"), "-o", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "must be a recipe (.toml) or have both sides (.tsv, .csv, .jsonl, .po," in done.stderr
    (tmp_path / "bars.txt").rename(tmp_path / "bars.tsv")
    done = run_here("train", str(tmp_path / "bars.tsv"), "-o", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "columns stand between |||" in done.stderr
    assert "sed 's/ *||| */\\t/'" in done.stderr
