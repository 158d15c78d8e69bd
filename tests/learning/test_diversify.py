"""A last model learns from what its teachers translate, and nothing is lost by a kill."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Forked
from killed_runs import DIE_AT_CALL
from small_runs import model_bytes, write_text

RunPython = Callable[..., subprocess.CompletedProcess[str]]
Run = Callable[..., subprocess.CompletedProcess[str]]

PROGRAM = f"""
from pellucid.training.distill import teacher, teacher_work
# Models of a few updates have no BLEU, and teach nevertheless.
teacher_work.POOR_BLEU = 0.0
teacher.LINES_IN_A_PART = 150
{DIE_AT_CALL}
"""

RECIPE = """
[data]
train = ["train.en", "train.fr"]
split = 20
[tokenizer]
kind = "words"
sharing = "separate"
vocabulary_size = 50
[model]
d_model = 32
d_ff = 64
num_heads = 2
num_encoder_layers = 1
num_decoder_layers = 1
tied_embeddings = "none"
[training]
max_tokens_per_batch = 400
warmup_steps = 10
learning_rate = 0.01
dropout = 0.0
max_steps = 24
validate_every = 10
"""

MOMENTS = [
    ("pellucid.training.distill.teacher_text", "write_pairs", 1),
    ("pellucid.training.update.step:Updater", "update", 15),
    ("pellucid.training.distill.teacher", "_translate", 2),
    ("pellucid.training.distill.teacher_work", "write_pairs", 1),
    ("pellucid.training.update.step:Updater", "update", 5),
    ("pellucid.training.distill.teacher", "_translate", 1),
    ("pellucid.training.distill.teacher_work", "write_pairs", 2),
    ("pellucid.training.update.step:Updater", "update", 15),
    ("pellucid.training.distill.teacher_work:TeacherWork", "report", 1),
]
"""The calls at which nine processes die: writing the text, in a teacher's training, in the second
part of its translations, at their end, in the other teacher's training and translations, joining
all pairs, in the last training, and before the report."""

NEVER = ("os", "rename", 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, its recipe, and more sentences in the target language."""
    folder = tmp_path_factory.mktemp("diversify")
    write_text(folder)
    (folder / "small.toml").write_text(RECIPE)
    # Two lines are in the training text's language and new, one is there twice.
    lines = ["le un petit grand", "rouge rouge rouge le", "rouge rouge rouge le"]
    (folder / "more.fr").write_text("".join(f"{line}\n" for line in lines))
    return folder


def _train(
    folder: Path, run_python: RunPython, *words: str, moment: tuple[str, str, int] = NEVER
) -> subprocess.CompletedProcess[str]:
    recipe = str(folder / "small.toml")
    command = (*map(str, moment), "train", recipe, *words)
    return run_python("-c", PROGRAM, *command, kind=Forked)


def test_kills_in_every_part_end_with_the_same_bytes(folder: Path, run_python: RunPython) -> None:
    options = ("--teachers", "1", "--more-target", str(folder / "more.fr"))
    for number, moment in enumerate(MOMENTS):
        # What a later start leaves out is as before.
        words = options if number < 2 else ()
        killed = _train(folder, run_python, "-o", str(folder / "killed"), *words, moment=moment)
        assert killed.returncode == -signal.SIGKILL, (moment, killed.stderr)
    for run in ("killed", "whole"):
        done = _train(folder, run_python, "-o", str(folder / run), *options)
        assert done.returncode == 0, done.stderr
    names = ("teachers/forward-1/bundle", "teachers/backward-1/bundle", "bundle")
    for name in names:
        killed_run, whole = (model_bytes(folder / run / name) for run in ("killed", "whole"))
        assert killed_run == whole, name
    report = json.loads((folder / "whole/teachers/report.json").read_text())
    assert report == json.loads((folder / "killed/teachers/report.json").read_text()) | {
        "teachers": report["teachers"]
    }
    _check_union(folder / "whole/teachers", report)
    # Said before anything begins, and at the end.
    assert "Plan: 2 teachers (forward-1, backward-1) for " in done.stderr
    assert "with 1 + 1 layers of width 32 as the last model" in done.stderr
    assert "backward-1 translates 2 more sentences" in done.stderr
    assert "Last model: validation BLEU" in done.stderr
    before = model_bytes(folder / "whole/bundle")
    again = _train(folder, run_python, "-o", str(folder / "whole"), *options)
    assert again.returncode == 0, again.stderr
    assert "learns in" not in again.stderr
    assert model_bytes(folder / "whole/bundle") == before


def _check_union(teachers: Path, report: dict[str, list[dict[str, int]]]) -> None:
    """Check that the last model's text has every pair once, and nothing that is held out."""

    def read(name: str) -> list[tuple[str, str]]:
        sides = [(teachers / f"{name}{side}").read_text().splitlines() for side in _SIDES]
        return list(zip(*sides, strict=True))

    union = read("union/")
    own = read("text/train.")
    assert len(union) == len(set(union))
    assert union[: len(set(own))] == list(dict.fromkeys(own))
    num_added = [row["added"] for row in report["teachers"]]
    assert len(union) == len(set(own)) + sum(num_added)
    assert max(num_added) > 0
    held_out = read("text/validation.") + read("text/test.")
    for side in (0, 1):
        assert not {pair[side] for pair in union} & {pair[side] for pair in held_out}
    assert "rouge rouge rouge le" in {target for _, target in union}


_SIDES = ("source", "target")


def test_another_plan_is_refused_and_nothing_is_changed(
    folder: Path, run_python: RunPython
) -> None:
    run = folder / "begun"
    moment = ("pellucid.training.update.step:Updater", "update", 15)
    options = ("-o", str(run), "--teachers", "1")
    assert _train(folder, run_python, *options, moment=moment).returncode == -signal.SIGKILL
    for words, sentence in (
        (("--teachers", "2"), "--teachers was 1 and is now 2"),
        (("--minutes", "90"), "--minutes was none and is now 90"),
        (("--set", "model.d_ff=32"), "model.d_ff differs"),
        (("--start", "demo"), "--start cannot be used with teachers"),
    ):
        refused = _train(folder, run_python, "-o", str(run), *words)
        assert refused.returncode == 2, refused.stderr
        assert sentence in refused.stderr
    text = folder / "train.en"
    before = text.read_text()
    text.write_text(before.replace("dog", "cat", 1))
    changed = _train(folder, run_python, *options)
    text.write_text(before)
    assert changed.returncode == 2
    assert "The text must be what this run started with" in changed.stderr
    done = _train(folder, run_python, "-o", str(run))
    assert done.returncode == 0, done.stderr


def test_translations_of_a_poor_teacher_are_left_out(folder: Path, run_python: RunPython) -> None:
    run = folder / "poor"
    program = PROGRAM.replace("POOR_BLEU = 0.0", "POOR_BLEU = 101.0")
    words = (*map(str, NEVER), "train", str(folder / "small.toml"), "-o", str(run))
    done = run_python("-c", program, *words, "--teachers", "1", kind=Forked)
    assert done.returncode == 0, done.stderr
    assert "most of its translations would be wrong, so they are left out" in done.stderr
    report = json.loads((run / "teachers/report.json").read_text())
    assert [row["added"] for row in report["teachers"]] == [0, 0]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--teachers", "99"), "--teachers must be a number from 0 to"),
        (("--teachers", "auto"), "--teachers auto needs --minutes"),
        (("--teachers", "1", "--minutes", "1.5"), "A teacher needs at least"),
        (("--teachers", "1", "--start", "demo"), "--start cannot be used with teachers"),
        (("--teachers", "1", "--set", "model.d_model=-3"), "d_model must be"),
        (("--teachers", "1", "--more-target", "nowhere.fr"), "does not exist"),
    ],
)
def test_a_plan_that_is_refused_leaves_no_recipe(
    words: tuple[str, ...],
    sentence: str,
    run_here: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    pairs = [f"cat {number}\tchat {number}" for number in range(40)]
    Path("pairs.tsv").write_text("".join(f"{pair}\n" for pair in pairs))
    languages = ("--source-language", "en", "--target-language", "fr")
    refused = run_here("train", "pairs.tsv", *languages, *words)
    assert refused.returncode == 2, refused.stderr
    assert sentence in refused.stderr
    assert [path.name for path in tmp_path.rglob("*")] == ["pairs.tsv"]
