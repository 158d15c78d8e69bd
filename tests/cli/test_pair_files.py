"""PAIRS: every command that reads pairs takes one file with both sides, or two files."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

ROWS = [("The soup was cold.", "La soupe était froide."), ("The dog is here.", "Le chien est là.")]


@pytest.fixture
def texts(tmp_path: Path) -> dict[str, str]:
    """The same pairs in every form."""
    joined = [f"{source}\t{target}" for source, target in ROWS]
    objects = [{"translation": {"en": source, "fr": target}} for source, target in ROWS]
    contents = {
        "pairs.tsv": joined,
        "named.tsv": ["source\ttarget", *joined],
        "pairs.jsonl": [json.dumps(one) for one in objects],
        "lines.en": [source for source, _ in ROWS],
        "lines.fr": [target for _, target in ROWS],
    }
    for name, lines in contents.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {name: str(tmp_path / name) for name in contents}


@pytest.mark.parametrize(
    ("command", "second"),
    [
        (("score", "demo"), "--target"),
        (("align", "demo"), "--target"),
        (("evaluate", "demo"), "--reference"),
        (("patch", "demo"), "--target"),
    ],
)
def test_pairs_in_any_form_are_those_of_two_options(
    run_here: Run, texts: dict[str, str], command: tuple[str, ...], second: str
) -> None:
    expected = run_here(*command, "--source", texts["lines.en"], second, texts["lines.fr"])
    assert expected.returncode == 0, expected.stderr
    forms = [(texts["pairs.tsv"],), (texts["named.tsv"],), (texts["pairs.jsonl"],)]
    if command[0] != "patch":  # Two words are the two sentences there.
        forms.append((texts["lines.en"], texts["lines.fr"]))
    for words in forms:
        done = run_here(*command, *words)
        assert (done.returncode, done.stdout) == (0, expected.stdout), done.stderr


def test_hypotheses_are_scored_against_the_targets_of_pairs(
    run_here: Run, texts: dict[str, str]
) -> None:
    done = run_here("evaluate", "--hypothesis", texts["lines.fr"], texts["pairs.tsv"], "--json")
    assert json.loads(done.stdout)["bleu"]["score"] == pytest.approx(100)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["score", "demo"], "Add --source and --target"),
        (["score", "demo", "pairs.tsv", "--source", "x"], "PAIRS cannot be combined with --source"),
        (["score", "demo", "lines.en"], "A single file of lines is given with --source."),
        (["score", "demo", "pairs.tsv", "lines.fr"], "or a source and a target file, but score is"),
        (["study", "demo"], "study needs lines: PAIRS"),
        (["score", "demo", "no.tsv"], "no.tsv does not exist"),
        (["train", "--source", "x"], "Give the files as words: SOURCE TARGET instead"),
    ],
)
def test_pairs_that_are_no_pairs_are_refused(
    run_here: Run, texts: dict[str, str], words: list[str], said: str
) -> None:
    done = run_here(*(texts.get(word, word) for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_row_without_a_translation_is_named_before_anything_is_computed(
    run_here: Run, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("The dog\tLe chien\nThe cat\n", encoding="utf-8")
    done = run_here("score", "demo", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{path}:2" in done.stderr


@pytest.mark.parametrize("command", ["recipe", "check"])
def test_text_that_training_would_refuse_is_refused_by_what_comes_before_it(
    run_here: Run, texts: dict[str, str], command: str
) -> None:
    languages = ("--source-language", "en", "--target-language", "fr")
    done = run_here(command, texts["pairs.tsv"], *languages)
    assert done.returncode in (1, 2)
    assert "must have at least three pairs" in done.stdout + done.stderr


def test_single_file_of_lines_is_no_recipe(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").touch()
    done = run_here("check", str(tmp_path / "lines.txt"))
    assert done.returncode == 2
    assert "A single file must be a recipe (.toml) or have both sides" in done.stderr
