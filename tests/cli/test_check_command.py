"""``pellucid check``: it checks the text and trains nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

RECIPE = """
[data]
train = ["train.xx", "train.yy"]
validation = ["valid.xx", "valid.yy"]
"""


PAIRS = 1000
"""No fewer pairs than the check asks for."""


@pytest.fixture
def recipe(tmp_path: Path, write_lines: Callable[..., str]) -> str:
    """A recipe that names only its text, and the text."""
    for language, word in (("xx", "word"), ("yy", "mot")):
        write_lines(f"train.{language}", *(f"{word} {number} is here" for number in range(PAIRS)))
        write_lines(f"valid.{language}", *(f"{word} {number} is there" for number in range(7)))
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return str(path)


def test_check_clean_text_gives_one_line_and_no_run(
    run_here: Run, recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    done = run_here("check", recipe)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Data check: {PAIRS:,} training and 7 validation pairs; nothing odd.\n"
    assert sorted(tmp_path.iterdir()) == before


def test_check_says_what_is_odd_with_both_lines(
    run_here: Run, recipe: str, tmp_path: Path, write_lines: Callable[..., str]
) -> None:
    lines = (tmp_path / "train.yy").read_text().splitlines()
    lines[12] = "trÃ¨s cher"
    write_lines("train.yy", *lines)
    done = run_here("check", recipe)
    assert done.returncode == 0
    assert "1 warning" in done.stdout.splitlines()[0]
    assert "  train.xx:13 | train.yy:13\n    word 12 is here\n    trÃ¨s cher\n" in done.stdout


def test_check_missing_file_gives_one_sentence_and_2(
    run_here: Run, recipe: str, tmp_path: Path
) -> None:
    (tmp_path / "valid.yy").unlink()
    done = run_here("check", recipe)
    assert (done.returncode, done.stdout) == (2, "")
    assert "valid.yy" in done.stderr
    assert done.stderr.count("\n") == 1


def test_check_recipe_without_data_gives_one_sentence_and_2(run_here: Run, tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.write_text("[model]\nsize = 'tiny'\n")
    done = run_here("check", str(path))
    assert done.returncode == 2
    assert "name them in train" in done.stderr
    assert done.stderr.count("\n") == 1


def test_check_leaves_pytorch_unimported(run_python: Run, recipe: str) -> None:
    code = (
        "import sys; from pellucid.cli.main import run; "
        f"assert run(['check', {recipe!r}]) == 0; assert 'torch' not in sys.modules"
    )
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
