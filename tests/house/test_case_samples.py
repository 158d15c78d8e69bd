"""The sample of each proof: what runs by default, what waits for `--full`, and that it is said."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from case_samples import spread

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


@pytest.fixture
def run(tmp_path: Path, root: Path) -> object:
    """Run the proofs above in another process, and return the lines that they print."""
    (tmp_path / "test_proofs.py").write_text(PROOFS)

    def run(*arguments: str, **variables: str) -> tuple[list[str], str]:
        kept = {name: value for name, value in os.environ.items() if name != "CI"}
        done = subprocess.run(
            [*(sys.executable, "-m", "pytest", "-p", "case_samples", "-rP"), *arguments],
            cwd=tmp_path,
            env=kept | {"PYTHONPATH": str(root / "tests" / "shared")} | variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        lines = done.stdout.splitlines()
        return sorted(line[:-4] for line in lines if line.endswith(" ran")), done.stdout

    return run


@pytest.mark.parametrize("workers", ["0", "2"])
def test_sample_runs_by_default_and_the_summary_counts_the_rest(run, workers: str) -> None:
    found, said = run("-n", workers)
    assert found == sorted(SAMPLE)
    assert "14 of 22 cases wait for --full." in said
    assert "1 more ran a part of their loop." in said


@pytest.mark.parametrize(("arguments", "variables"), [(["--full"], {}), ([], {"CI": "1"})])
def test_full_runs_every_case(run, arguments: list[str], variables: dict[str, str]) -> None:
    found, said = run("-n", "0", *arguments, **variables)
    assert len(found) == 22
    assert any(line.startswith("loop 0 1 2 3 ") for line in found)
    assert "--full" not in said


def test_named_test_runs_all_of_its_cases_and_others_are_not_counted(run) -> None:
    assert len(run("-n", "0", "test_proofs.py::test_count")[0]) == 10
    found, said = run("-n", "0", "-k", "count")
    assert len(found) == 3
    assert "7 of 10 cases wait" in said


@pytest.mark.parametrize(
    ("marker", "message"),
    [("size=2", "no case has"), ("kind='z'", "no case has"), ("-1", "must be 0 or more")],
)
def test_guard_marker_that_selects_nothing_is_an_error(
    tmp_path: Path, root: Path, marker: str, message: str
) -> None:
    text = f"import pytest\n@pytest.mark.sample({marker})\n"
    text += "@pytest.mark.parametrize('kind', 'ab')\ndef test_it(kind): pass\n"
    (tmp_path / "test_it.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "case_samples", "-n", "0"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(root / "tests" / "shared"), "CI": ""},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 4, done.stdout
    assert message in done.stderr


@pytest.mark.parametrize(
    ("count", "wanted"), [(0, []), (1, [0]), (2, [0, 6]), (3, [0, 3, 6]), (7, [*range(7)])]
)
def test_spread_takes_the_first_and_the_last(count: int, wanted: list[int]) -> None:
    assert list(spread(range(7), count)) == wanted
