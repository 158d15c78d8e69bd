"""A student learns from a teacher, in real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from forked import Forked
from small_runs import NO_REPORT, write_text

from pellucid.inside import Ask
from pellucid.training.distill import run, teacher
from pellucid.training.distill.teacher import TaughtPair, TeacherSettings, teach
from pellucid.translate.translator import load

PROGRAM = f"""
{NO_REPORT}
import sys
from pellucid.cli.main import main
from pellucid.training.distill import run
# Two rounds of a few lines are enough to see that there are speeds.
run.SECONDS, run.FEWEST_ROUNDS = 0.0, 2
run.SINGLE_LINES, run.BULK_LINES = 7, 50
sys.exit(main())
"""

RECIPE = """
[data]
train = ["train.en", "train.fr"]
validation = ["validation.en", "validation.fr"]
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
max_steps = 200
validate_every = 100
"""


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *arguments]
    with Forked(
        command,
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        output, errors = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, a recipe, and a teacher trained with it."""
    folder = tmp_path_factory.mktemp("distill")
    write_text(folder)
    (folder / "small.toml").write_text(RECIPE)
    done = _run(folder, "train", "small.toml", "-o", "teacher")
    assert done.returncode == 0, done.stderr
    return folder


def _distill(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return _run(folder, "distill", "teacher", "small.toml", *more)


OPTIONS = ("--layers", "2+1", "--guided", "--extra", "more.en", "-o", "d")


@pytest.fixture(scope="module")
def rows(folder: Path) -> list[dict[str, Any]]:
    """Distill once into the folder ``d``, and return the table."""
    (folder / "more.en").write_text("the red cat\n\nthe red cat\nhouse house\n")
    done = _distill(folder, *OPTIONS, "--beam", "2", "--json")
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout)["rows"])


def test_student_learns_the_teachers_translations(folder: Path, rows: list[dict[str, Any]]) -> None:
    assert [(row["name"], row["search"]) for row in rows] == [
        ("teacher", "greedy"), ("teacher", "beam 2"), ("student", "greedy"), ("student", "beam 2"),
    ]  # fmt: skip
    # Every word has one translation, so that few updates are enough for most of them.
    assert rows[0]["bleu"] > 60
    student = load(folder / "d" / "student")
    assert {row["precision"] for row in rows[2:]} == {student.options().precision}
    assert rows[2]["bleu"] > 0.8 * rows[0]["bleu"]
    assert json.loads((folder / "d" / "distill.json").read_text())["rows"] == rows
    config = json.loads((folder / "d" / "student" / "bundle" / "config.json").read_text())
    assert config["model"]["num_encoder_layers"] == 2
    assert rows[2]["num_bytes"] == rows[3]["num_bytes"] > rows[2]["parameters"] * 4


def test_student_with_recurrent_units_learns_from_a_teacher_with_attention(folder: Path) -> None:
    units = ("--layers", "2+1", "--set", "model.decoder=ssru")
    done = _distill(folder, *units, "-o", "units", "--beam", "2", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["rows"]
    assert rows[2]["name"] == "student"
    assert rows[2]["bleu"] > 0.8 * rows[0]["bleu"] > 48
    student = load(folder / "units" / "student")
    config = student.bundle.config.model
    assert (config.decoder, config.num_encoder_layers) == ("ssru", 2)
    # The engine in C translates with it, a trace shows its states, and words are linked.
    assert student.decoder.find_reason(student.options()) is None
    trace = student.look("the red cat", ask=Ask("decoder.0.recurrent", stages=("state",)))
    assert trace.checks["decode"] < 1e-4
    assert "decoder.0.recurrent.state" in trace.arrays
    assert student.translate("the red cat", align=True).alignment


def test_text_has_every_sentence_once_with_links(folder: Path, rows: list[dict[str, Any]]) -> None:
    sources = (folder / "d" / "text" / "train.source").read_text().splitlines()
    assert sources[-2:] == ["the red cat", "house house"]
    assert len(sources) == len(set((folder / "train.en").read_text().splitlines())) + 2
    links = (folder / "d" / "text" / "train.links").read_text().splitlines()
    assert len(links) == len(sources)


def test_same_command_translates_and_trains_nothing_again(
    folder: Path, rows: list[dict[str, Any]]
) -> None:
    part = folder / "d" / "teacher" / "part-000000.jsonl"
    weights = folder / "d" / "student" / "bundle" / "model.safetensors"
    before = (part.stat().st_mtime_ns, weights.read_bytes())
    again = _distill(folder, *OPTIONS, "--beam", "2")
    assert again.returncode == 0, again.stderr
    assert (part.stat().st_mtime_ns, weights.read_bytes()) == before
    assert again.stdout.splitlines()[0].split()[:2] == ["search", "precision"]


def test_another_search_or_a_damaged_part_is_refused(
    folder: Path, rows: list[dict[str, Any]]
) -> None:
    other = _distill(folder, *OPTIONS, "--beam", "3")
    assert other.returncode == 2
    assert "have beam 2, not 3" in other.stderr
    part = folder / "d" / "teacher" / "part-000000.jsonl"
    text = part.read_text()
    part.write_text(text.replace("source_sha256", "source"))
    damaged = _distill(folder, *OPTIONS, "--beam", "2")
    part.write_text(text)
    assert damaged.returncode == 2
    assert "part-000000.jsonl is damaged" in damaged.stderr


def test_n_best_takes_the_hypothesis_most_like_the_reference(folder: Path) -> None:
    from pellucid import load
    from pellucid.training.distill.teacher import TeacherSettings, teach

    translator = load(folder / "teacher")
    source = "the red cat"
    found = translator.translate([source], beam=3, n_best=3)[0].hypotheses
    wanted = found[-1].text
    assert wanted != found[0].text
    for n_best, text in ((1, found[0].text), (3, wanted)):
        how = TeacherSettings(beam=3, n_best=n_best)
        (lesson,) = teach(translator, [(source, wanted)], how, folder / f"best-{n_best}")
        assert lesson.target == text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--n-best", "7"), "--n-best must be at most --beam (5), but is 7"),
        (("--layers", "six"), "such as 6+1"),
        (("--extra", "nowhere.en"), "nowhere.en"),
    ],
)
def test_bad_option_is_one_sentence_and_leaves_nothing(
    folder: Path, options: tuple[str, ...], words: str
) -> None:
    done = _distill(folder, "-o", "none", *options)
    assert done.returncode == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (folder / "none").exists()


def test_teacher_ends_after_a_whole_part_when_its_time_is_up(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teacher, "LINES_IN_A_PART", 3)
    translator = load(folder / "teacher")
    lines = [(line, None) for line in (folder / "train.en").read_text().splitlines()[:7]]
    how = TeacherSettings(beam=1)
    late = list(teach(translator, lines, how, tmp_path / "t", until=0.0))
    assert [lesson.source for lesson in late] == [source for source, _ in lines[:3]]
    again = list(teach(translator, lines, how, tmp_path / "t"))  # the part that is there is read
    assert again[:3] == late
    assert len(again) == 7
    assert list(teach(translator, lines, how, tmp_path / "t", until=0.0)) == again


def test_time_that_the_teacher_takes_and_its_early_end_are_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run, "LINES_IN_A_PART", 2)
    said: list[str] = []
    lessons = iter([TaughtPair("a", "b")] * 4)
    found = list(run.with_estimate(lessons, 9, said.append, time.monotonic() - 20))
    assert len(found) == 4
    assert said[0] == "At this speed the teacher takes at most 2 min."
    assert "ends after 4 of 9 sentences" in said[1]
