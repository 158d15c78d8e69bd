"""The cells of ``benchmarks/more_minutes.py``: which are measured, and what is kept."""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import more_minutes


def cell(pairs: int, minutes: float, bleu: float) -> dict[str, Any]:
    general = {"text": "toy", "languages": ["en", "fr"], "device": "cpu"}
    return {**general, "pairs": pairs, "minutes": minutes, "test": {"bleu": {"score": bleu}}}


def test_table_holds_the_first_pairs_without_tabs(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "a.gz", "wt", encoding="utf-8") as file:
        file.write("one\ntwo\tand\nthree\nfour\n")
    (tmp_path / "b").write_text("un\ndeux\ntrois\nquatre\n", encoding="utf-8")
    path = tmp_path / "pairs.tsv"
    assert more_minutes.write_table([tmp_path / "a.gz", tmp_path / "b"], 2, path) == 2
    assert path.read_text(encoding="utf-8") == "one\tun\nthree\ttrois\n"


@pytest.mark.parametrize("again", [False, True])
def test_only_cells_that_the_file_lacks_are_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    out = tmp_path / "cells.json"
    out.write_text(json.dumps({"rows": [cell(31, 5, 7.0), cell(13, 5, 3.0)]}), encoding="utf-8")
    measured = []

    def measure(given: argparse.Namespace, minutes: float, _: Path) -> dict[str, Any]:
        measured.append((given.pairs, minutes))
        return cell(given.pairs, minutes, 11.0)

    monkeypatch.setattr(more_minutes, "measure", measure)
    files = ["--train", "a", "b", "--test", "c", "d", "--languages", "en", "fr"]
    words = ["--name", "toy", "--minutes", "20", "5", "--pairs", "31", "--out", str(out)]
    more_minutes.main([*files, *words, *(["--again"] if again else [])])
    assert measured == ([(31, 5.0), (31, 20.0)] if again else [(31, 20.0)])
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"]
    scores = {(one["pairs"], one["minutes"]): one["test"]["bleu"]["score"] for one in rows}
    assert scores == {(13, 5): 3.0, (31, 5): 11.0 if again else 7.0, (31, 20): 11.0}


def test_text_without_a_test_text_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        more_minutes.parse(["--minutes", "5", "--pairs", "7", "--train", "a", "b"])
    assert "--train and --test must be given together" in capsys.readouterr().err
