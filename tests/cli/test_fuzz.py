"""A few cases of every kind of hostile input, and the jail that finds their faults."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from case_samples import Some
from forked import Forked

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from fuzzing.jail import Jail, Outcome, start  # noqa: E402
from fuzzing.kinds import KINDS  # noqa: E402
from fuzzing.mutations import mutate_file  # noqa: E402

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux")

OUTSIDE = Path("/tmp/written-by-a-case-outside-its-folder")


def test_cases_of_every_kind_end_with_a_result_or_a_sentence(
    run_python: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, some: Some[int]
) -> None:
    pytest.importorskip("transformers")
    count = len(some(range(2 * len(KINDS)), len(KINDS)))
    done = run_python(
        *(str(BENCHMARKS / "fuzz.py"), "--count", str(count), "--seed", "700001"),
        *("--jobs", "2", "--keep", str(tmp_path)),
        kind=Forked,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{count} cases" in done.stdout
    assert all(kind in done.stdout for kind in KINDS)


def end(
    body: Callable[[], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **limits: Any
) -> Outcome:
    """Run something in place of a command."""
    (tmp_path / "here").mkdir()
    monkeypatch.setattr("pellucid.cli.main.run", lambda _: body())
    return start(["x"], tmp_path, b"", Jail(**limits)).end()


def say(text: str, code: int) -> Callable[[], int]:
    def body() -> int:
        sys.stderr.write(text)
        return code

    return body


@pytest.mark.parametrize(
    ("text", "code", "fault"),
    [
        ("", 0, None),
        ("step 1\nerror: The file x must exist. Make it.\n", 2, None),
        ("", 2, "no sentence"),
        ("note: fine.\n", 4, "exit code 4"),
        ("Traceback (most recent call last):\nerror: Bad.\n", 1, "traceback"),
        ("error: This is a bug in pellucid. Please report it.\n", 1, "bug"),
        ("error: The name \x1b[2J must not be. Change it.\n", 2, "control"),
    ],
)
def test_jail_judges_messages_and_codes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, code: int, fault: str | None
) -> None:
    outcome = end(say(text, code), tmp_path, monkeypatch)
    assert outcome.code == code
    assert (fault is None) == (not outcome.faults)
    assert fault is None or any(fault in one for one in outcome.faults)


def test_jail_finds_a_signal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = end(lambda: os.kill(os.getpid(), signal.SIGKILL), tmp_path, monkeypatch)
    assert outcome.faults == ["ended by SIGKILL"]


def test_jail_ends_what_has_no_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = end(lambda: time.sleep(60), tmp_path, monkeypatch, wall_seconds=0.2)
    assert "no end within 0.2 s" in outcome.faults


@pytest.mark.parametrize("is_link", [False, True])
def test_jail_refuses_and_reports_writing_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_link: bool
) -> None:
    def body() -> int:
        name = OUTSIDE
        if is_link:
            name = Path("link")
            name.symlink_to(OUTSIDE)
        try:
            name.write_text("x")
        except PermissionError:
            return 0
        return 2

    outcome = end(body, tmp_path, monkeypatch)
    assert outcome.code == 0
    assert [fault[:26] for fault in outcome.faults] == ["written outside its folder"]
    assert not OUTSIDE.exists()


def test_jail_limits_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def body() -> int:
        try:
            bytearray(1 << 31)
        except MemoryError:
            return 0
        return 2

    assert end(body, tmp_path, monkeypatch).code == 0


@pytest.mark.parametrize("name", ["a.json", "a.toml", "a.jsonl", "a.txt", "a.safetensors", "a.npz"])
def test_mutations_change_files_and_repeat_with_the_same_dice(tmp_path: Path, name: str) -> None:
    whole = b'{"a": [1, {"b": "c"}], "x": 2.5}\n' if "json" in name else b"[a]\nx = 1\ny = 'z'\n"
    found = []
    for seed in range(25):
        for _ in range(2):
            path = tmp_path / name
            path.write_bytes(whole)
            mutate_file(path, random.Random(seed))
            found.append(path.read_bytes())
    assert found[::2] == found[1::2]
    assert len(set(found)) > 15
    assert sum(one != whole for one in found) > 40
