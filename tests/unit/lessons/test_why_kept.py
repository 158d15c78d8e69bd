"""Kept parts of long measurements, their seeds and their intervals."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from pellucid.errors import DataError
from pellucid.lessons.why import MeasurementSetting
from pellucid.lessons.why.cells import average
from pellucid.lessons.why.setting import KeptCells


def test_kept_cell_is_not_computed_again(tmp_path: Path) -> None:
    calls = []

    def make() -> dict[str, float]:
        calls.append(1)
        return {"loss": 0.5}

    for _ in range(2):  # The second reads the file.
        setting = MeasurementSetting(size="full", kept=KeptCells(tmp_path / "norm.json", "norm"))
        assert setting.cell("post, seed 1", make) == {"loss": 0.5}
    assert len(calls) == 1
    assert setting.cell("post, seed 2", lambda: 7) == 7


def test_interrupted_measurement_keeps_its_finished_cells(tmp_path: Path) -> None:
    path = tmp_path / "norm.json"
    setting = MeasurementSetting(size="full", kept=KeptCells(path, "norm"))
    setting.cell("first", lambda: 1)

    def stop() -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        setting.cell("second", stop)
    assert list(json.loads(path.read_text())["cells"]) == ["first"]


def test_timed_cells_of_another_machine_are_measured_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = KeptCells(tmp_path / "cache.json", "cache")
    machine = "fast"
    monkeypatch.setattr("pellucid.lessons.why.setting._describe_machine", lambda: machine)
    assert kept.get("64 tokens", lambda: 0.25, is_timed=True) == 0.25
    machine = "slow"
    assert kept.get("64 tokens", lambda: 0.75, is_timed=True) == 0.75
    assert kept.get("64 tokens", lambda: 9.0, is_timed=True) == 0.75


def test_finished_measurement_drops_cells_of_other_settings(tmp_path: Path) -> None:
    path = tmp_path / "norm.json"
    KeptCells(path, "norm").get("old", lambda: 1)
    kept = KeptCells(path, "norm")
    kept.get("new", lambda: 2)
    kept.finish({"claim": "norm"})
    assert list(json.loads(path.read_text())["cells"]) == ["new"]


@pytest.mark.parametrize("text", ["", "[]", '{"claim": "mask", "cells": {}, "measurement": null}'])
def test_file_of_something_else_is_refused_and_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "norm.json"
    path.write_text(text)
    with pytest.raises(DataError, match=r"claim norm.*norm\.json"):
        KeptCells(path, "norm")
    assert path.read_text() == text


def test_quick_setting_has_one_seed_and_full_three_or_five() -> None:
    assert MeasurementSetting(seed=5).seeds == MeasurementSetting(seed=5).seeds_of(5) == (5,)
    assert MeasurementSetting(seed=5, size="full").seeds == (5, 6, 7)
    assert MeasurementSetting(seed=5, size="full").seeds_of(5) == (5, 6, 7, 8, 9)
    assert MeasurementSetting(size="full").choose(1, 2) == 1
    assert MeasurementSetting(size="full").choose(1, 2, 3) == 3
    assert MeasurementSetting(size="toy").choose(1, 2, 3) == 2


def test_average_of_a_missing_number_is_missing() -> None:
    assert average([1.0, 2.0, 6.0]) == 3
    assert average([1.0, 100.0], in_logarithms=True) == pytest.approx(10)
    assert math.isnan(average([]))
    assert math.isnan(average([1.0, math.inf]))


def test_judging_again_takes_times_of_any_machine_and_measures_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "cache.json"
    monkeypatch.setattr("pellucid.lessons.why.setting._describe_machine", lambda: "fast")
    KeptCells(path, "cache").get("64 tokens", lambda: 0.25, is_timed=True)
    monkeypatch.setattr("pellucid.lessons.why.setting._describe_machine", lambda: "slow")
    kept = KeptCells(path, "cache", is_judged_again=True)
    assert kept.get("64 tokens", lambda: 9.0, is_timed=True) == 0.25
    with pytest.raises(DataError, match=r"times of '128 tokens'.*claim cache --full"):
        kept.get("128 tokens", lambda: 9.0, is_timed=True)
    assert kept.get("untimed", lambda: 7) == 7
    kept.finish({})
    assert list(json.loads(path.read_text())["cells"]) == ["64 tokens [fast]", "untimed"]


RESULTS = sorted((Path(__file__).parents[3] / "benchmarks" / "results" / "claims").glob("*.json"))


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_page_and_log_of_claims_have_the_kept_answers_and_verdicts(path: Path) -> None:
    measurement = json.loads(path.read_text(encoding="utf-8"))["measurement"]
    page = (Path(__file__).parents[3] / "docs" / "claims.md").read_text(encoding="utf-8")
    log = (path.parent / "README.md").read_text(encoding="utf-8")
    answered, logged = (
        text.partition(f"\n## {path.stem}\n")[2].partition("\n## ")[0] for text in (page, log)
    )
    first = measurement["findings"][0]["verdict"]
    begin = measurement["number"].partition(": ")[0]
    assert f"| [`{path.stem}`](#{path.stem}) | {measurement['question']} | {begin} |\n" in page
    assert begin.lower().startswith(("yes", "no", "open", "only if " + first["condition"].lower()))
    assert f"**{measurement['question']}**\n\n{measurement['number']}\n" in answered
    assert f"(../benchmarks/results/claims/README.md#{path.stem})" in answered
    for finding in measurement["findings"]:
        verdict = finding["verdict"]
        said = "open" if verdict["outcome"] == "open" else verdict["sentence"]
        row = f"“{finding['statement']['says']}” ({finding['statement']['text']}"
        assert re.search(f"{re.escape(row)}.*{re.escape(f'| **{said}** | ')}", answered)
        # A verdict without its number leaves a reader to guess.
        assert f" | {verdict['reason']} |\n" in answered
        assert re.search(r"\d", verdict["reason"])
        # Averages alone may pass a rule that one of the seeds fails.
        assert verdict["reason"].endswith("so it is open.") == (verdict["outcome"] == "open")
        assert f": **{verdict['sentence']}**." in logged
    assert " ± " not in page + log


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_sentences_of_an_answer_are_short_and_of_one_piece(path: Path) -> None:
    measurement = json.loads(path.read_text(encoding="utf-8"))["measurement"]
    reasons = [finding["verdict"]["reason"] for finding in measurement["findings"]]
    for said in (measurement["number"], *reasons):
        sentences = re.split(r"[.?] (?=[A-Z0-9])", said)
        assert [one for one in sentences if len(one.split()) > 45 or ";" in one] == []
        # An aside between numbers is where a first reading stops.
        assert re.findall(r"\([^()]*\d[^()]*\)", said) == []
        # What a number that is missing would leave behind.
        assert not re.search(r"\bnan\b|\{|infinitely many", said)
        # A minus sign, as texts print it.
        assert not re.search(r" -\d", said)


def test_answers_of_all_claims_stand_in_one_place() -> None:
    root = Path(__file__).parents[3]
    answers = [
        json.loads(path.read_text(encoding="utf-8"))["measurement"]["number"] for path in RESULTS
    ]
    assert len(answers) == 18
    for page in (root / "README.md", *(root / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        found = sum(answer in text for answer in answers)
        assert found == 18 * (page == root / "docs" / "claims.md"), page
