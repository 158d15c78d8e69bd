"""``pellucid corpus``: the built-in corpus as files."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pellucid.corpora import make_split

Run = Callable[..., subprocess.CompletedProcess[str]]


def read(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").removesuffix("\n").split("\n")


def test_corpus_with_count_writes_four_parallel_files_a_split(
    run_here: Run, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "folder"
    done = run_here("corpus", "-o", str(out), "--part", "pronoun", "--part", "test",
                    "--count", "6", "--seed", "3")  # fmt: skip
    assert done.returncode == 0
    endings = ("en", "fr", "align", "antecedents")
    expected = [str(out / f"{name}.{end}") for name in ("pronoun", "test") for end in endings]
    assert done.stdout.split("\n") == [*expected, ""]
    examples = make_split("pronoun", seed=3, count=6)
    assert read(out / "pronoun.en") == [example.source for example in examples]
    assert read(out / "pronoun.fr") == [example.target for example in examples]
    links = [
        tuple(tuple(int(number) for number in link.split("-")) for link in line.split())
        for line in read(out / "pronoun.align")
    ]
    assert links == [example.alignment for example in examples]
    for line, example in zip(read(out / "pronoun.antecedents"), examples, strict=True):
        record = json.loads(line)
        assert record["construction"] == example.construction
        assert [pronoun["source"] for pronoun in record["pronouns"]] == [
            pronoun.source for pronoun in example.pronouns
        ]


def test_corpus_unknown_split_gives_one_sentence_and_2(run_here: Run, tmp_path: Path) -> None:
    done = run_here("corpus", "-o", str(tmp_path / "out"), "--part", "prnoun")
    assert done.returncode == 2
    assert "Did you mean 'pronoun'?" in done.stderr
    assert not (tmp_path / "out").exists()


def test_corpus_more_than_there_is_gives_one_sentence_and_2(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pellucid.corpora.splits._PATIENCE", 3)
    done = run_here("corpus", "-o", str(tmp_path), "--part", "pronoun", "--count", "99999999")
    assert done.returncode == 2
    assert "Ask for fewer" in done.stderr


def test_corpus_into_a_file_gives_one_sentence_and_1(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    done = run_here("corpus", "-o", str(tmp_path / "taken"), "--part", "test", "--count", "3")
    assert done.returncode == 1
    assert "must be a folder" in done.stderr
