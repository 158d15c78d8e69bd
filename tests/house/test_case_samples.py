"""The sample of each proof: what runs by default, what waits for `--full`, and the summary."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from case_samples import find_waiting, spread

PROOFS = """
import pytest

@pytest.mark.sample(kind=("b", "d"))
@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("kind", ["a", "b", "c", "d", "e"])
def test_values(kind, size):
    print(f"{kind}{size} ran")

@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(10))
def test_count(number):
    print(f"number {number} ran")

@pytest.mark.sample(0)
def test_whole():
    print("whole ran")

def test_plain(some):
    print("loop", *some(range(100), 4), "ran")
"""
SAMPLE = ["b2", "b3", "d2", "d3", "number 0", "number 4", "number 9", "loop 0 33 66 99"]

Run = Callable[..., tuple[list[str], str]]


@pytest.fixture
def run(tmp_path: Path, root: Path) -> Run:
    """Run the proofs above in another process, and return the lines that they print."""
    (tmp_path / "test_proofs.py").write_text(PROOFS)
    quick = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(root / "tests" / "shared")}

    def run(*arguments: str, **variables: str) -> tuple[list[str], str]:
        command = [sys.executable, "-m", "pytest", "-p", "case_samples", "-rP", *arguments]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | {"CI": ""} | quick | variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        lines = done.stdout.splitlines()
        return sorted(line[:-4] for line in lines if line.endswith(" ran")), done.stdout

    return run


def test_sample_runs_by_default_and_the_summary_counts_the_rest_of_all_workers(run: Run) -> None:
    found, said = run("-p", "xdist", "-n", "2")
    assert found == sorted(SAMPLE)
    assert "14 of 22 cases wait for --full." in said
    assert "1 more ran a part of their loop." in said


@pytest.mark.parametrize(("arguments", "variables"), [(["--full"], {}), ([], {"CI": "1"})])
def test_full_runs_every_case(run: Run, arguments: list[str], variables: dict[str, str]) -> None:
    found, said = run(*arguments, **variables)
    assert len(found) == 22
    assert any(line.startswith("loop 0 1 2 3 ") for line in found)
    assert "--full" not in said


def test_test_that_is_named_runs_all_of_its_cases(run: Run) -> None:
    assert len(run("test_proofs.py::test_count")[0]) == 10


def test_cases_that_nobody_asked_for_are_not_counted(run: Run) -> None:
    found, said = run("-k", "count")
    assert len(found) == 3
    assert "7 of 10 cases wait" in said


class Case:
    """Stands in for a case whose values are their own places."""

    def __init__(self, marker: pytest.MarkDecorator, **values: Any) -> None:
        self.nodeid = f"test_it.py::test_it[{values}]"
        self.callspec = SimpleNamespace(params=values, indices=values)
        self._marker = marker

    def get_closest_marker(self, name: str) -> pytest.Mark:
        assert name == "sample"
        return self._marker.mark


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        (pytest.mark.sample(size=2), "no case has"),
        (pytest.mark.sample(kind="z"), "no case has"),
        (pytest.mark.sample(-1), "must be 0 or more"),
    ],
)
def test_guard_sample_that_selects_nothing_is_an_error(
    marker: pytest.MarkDecorator, message: str
) -> None:
    with pytest.raises(pytest.UsageError, match=message):
        list(find_waiting([Case(marker, kind=kind) for kind in "ab"]))


@pytest.mark.parametrize("count", [5, 7])
def test_sample_of_products_has_every_value_of_every_parameter(count: int) -> None:
    marker = pytest.mark.sample(count)
    sizes = product(range(2), range(4), range(5))
    cases = [Case(marker, a=a, b=b, c=c) for a, b, c in sizes]
    waiting = list(find_waiting(cases))
    kept = [case.callspec.params for case in cases if case not in waiting]
    assert len(kept) == count
    for name, size in {"a": 2, "b": 4, "c": 5}.items():
        assert {values[name] for values in kept} == set(range(size))


@pytest.mark.parametrize(
    ("count", "wanted"), [(0, []), (1, [0]), (2, [0, 6]), (3, [0, 3, 6]), (7, [*range(7)])]
)
def test_spread_takes_the_first_and_the_last(count: int, wanted: list[int]) -> None:
    assert list(spread(range(7), count)) == wanted
