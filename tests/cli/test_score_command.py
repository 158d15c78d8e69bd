"""``pellucid score`` over many lines, several models, and packed files."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import pellucid
from pellucid.cli.lines import streams
from pellucid.corpora import make_split

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]


@pytest.fixture(scope="module")
def pairs() -> list[tuple[str, str]]:
    return [(example.source, example.target) for example in make_split("test", count=23)]


@pytest.fixture
def files(pairs: list[tuple[str, str]], write_lines: WriteLines) -> tuple[str, ...]:
    sources, targets = zip(*pairs, strict=True)
    return (
        *("--source", write_lines("source", *sources)),
        *("--target", write_lines("target", *targets)),
    )


def test_score_in_windows_keeps_order_and_numbers(
    run_here: Run,
    files: tuple[str, ...],
    pairs: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "MAX_LINES", 7)
    sources, targets = map(list, zip(*pairs, strict=True))
    expected = [s.log_probability for s in pellucid.load("demo").score(sources, targets)]
    plain = run_here("score", "demo", *files)
    assert (plain.returncode, plain.stderr) == (0, "")
    assert [float(line) for line in plain.stdout.splitlines()] == pytest.approx(expected, abs=1e-4)
    records = [
        json.loads(line) for line in run_here("score", "demo", *files, "--json").stdout.splitlines()
    ]
    assert [record["line"] for record in records] == list(range(len(pairs)))
    assert [(record["source"], record["target"]) for record in records] == pairs
    assert all(record["error"] is None for record in records)


def test_score_windows_are_bounded_by_characters(
    files: tuple[str, ...], pairs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_CHARACTERS", 150)
    windows = list(streams.parallel_windows({"--source": files[1], "--target": files[3]}))
    longest = max(len(source) + len(target) for source, target in pairs)
    for sources, targets in windows:
        assert sum(map(len, (*sources, *targets))) < 150 + longest
    assert [pair for window in windows for pair in zip(*window, strict=True)] == pairs
    assert len(windows) > 5


def test_score_packed_files_give_the_same_and_output_may_be_packed(
    run_here: Run, files: tuple[str, ...], tmp_path: Path
) -> None:
    plain = run_here("score", "demo", *files, "--tokens").stdout
    for name in ("source", "target"):
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress((tmp_path / name).read_bytes()))
    packed = ("--source", f"{tmp_path}/source.gz", "--target", f"{tmp_path}/target.gz")
    output = tmp_path / "scores.gz"
    done = run_here("score", "demo", *packed, "--tokens", "-o", str(output))
    assert (done.returncode, done.stdout) == (0, "")
    assert gzip.decompress(output.read_bytes()).decode() == plain
    refused = run_here("score", "demo", *packed, "-o", str(output))
    assert refused.returncode == 2
    assert "--overwrite" in refused.stderr


def test_score_pair_that_is_too_long_gives_empty_line_a_sentence_and_3(
    run_here: Run, write_lines: WriteLines
) -> None:
    words = (
        *("--source", write_lines("source", "The pizza", "pizza " * 400, "The oven")),
        *("--target", write_lines("target", "La pizza", "La pizza", "Le four")),
    )
    done = run_here("score", "demo", *words)
    assert done.returncode == 3
    assert done.stderr.startswith("error: line 2: ")
    assert [bool(line) for line in done.stdout.split("\n")] == [True, False, True, False]
    record = json.loads(run_here("score", "demo", *words, "--json").stdout.splitlines()[1])
    assert record["log_probability"] is None
    assert record["error"]


def test_score_of_a_model_and_itself_is_its_own(run_here: Run, files: tuple[str, ...]) -> None:
    alone = run_here("score", "demo", *files).stdout.splitlines()
    done = run_here("score", "demo", *files, "--ensemble", "demo")
    assert (done.returncode, done.stderr) == (0, "")
    together = [float(line) for line in done.stdout.splitlines()]
    assert together == pytest.approx([float(line) for line in alone], abs=1e-4)


def test_score_prefers_the_right_translation(run_here: Run, write_lines: WriteLines) -> None:
    source = "The pizza came out of the oven"
    words = (
        *("--source", write_lines("source", source, source)),
        *("--target", write_lines("target", "La pizza est sortie du four", "Le four est là")),
    )
    right, wrong = map(float, run_here("score", "demo", *words).stdout.splitlines())
    assert right > wrong + 1
