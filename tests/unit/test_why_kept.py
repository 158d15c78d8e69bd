"""Kept parts of long measurements, their seeds and their intervals."""

from __future__ import annotations

import importlib.util
import json
import math
from pathlib import Path

import pytest

from pellucid.errors import DataError
from pellucid.lessons.why import Setting, measure_claim
from pellucid.lessons.why.cells import interval, write
from pellucid.lessons.why.kept import KeptCells
from pellucid.lessons.why.record import to_record

PAGE = Path(__file__).parents[2] / "benchmarks" / "claims" / "page.py"


def test_kept_cell_is_not_computed_again(tmp_path: Path) -> None:
    calls = []

    def make() -> dict[str, float]:
        calls.append(1)
        return {"loss": 0.5}

    for _ in range(2):  # The second reads the file.
        setting = Setting(size="full", kept=KeptCells(tmp_path / "norm.json", "norm"))
        assert setting.cell("post, seed 1", make) == {"loss": 0.5}
    assert len(calls) == 1
    assert setting.cell("post, seed 2", lambda: 7) == 7


def test_interrupted_measurement_keeps_its_finished_cells(tmp_path: Path) -> None:
    path = tmp_path / "norm.json"
    setting = Setting(size="full", kept=KeptCells(path, "norm"))
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
    monkeypatch.setattr("pellucid.lessons.why.kept._describe_machine", lambda: machine)
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


def test_quick_setting_has_one_seed_and_full_three() -> None:
    assert Setting(seed=5).seeds == (5,)
    assert Setting(seed=5, size="full").seeds == (5, 6, 7)
    assert Setting(size="full").choose(1, 2) == 1
    assert Setting(size="full").choose(1, 2, 3) == 3
    assert Setting(size="toy").choose(1, 2, 3) == 2


def test_interval_is_that_of_student() -> None:
    mean, low, high = interval([1.0, 2.0, 3.0])
    assert mean == 2
    # t(0.975, 2) = 4.302653, the standard error 1 / √3.
    assert high == pytest.approx(2 + 4.302653 / math.sqrt(3), abs=1e-3)
    assert low == pytest.approx(4 - high)
    assert write([1.0, 2.0, 3.0]) == "2 ± 2.5"
    assert write([4.0]) == "4"
    assert math.isnan(interval([])[0])
    assert math.isnan(interval([1.0, math.inf])[2])


def test_page_restores_a_measurement_from_its_record() -> None:
    spec = importlib.util.spec_from_file_location("page_of_claims", PAGE)
    assert spec is not None
    assert spec.loader is not None
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    measured = measure_claim("scale", Setting(size="toy"))
    record = json.loads(json.dumps(to_record(measured)))
    assert to_record(page.from_record(record)) == record
    assert page.from_record(record).findings == measured.findings
