"""``pellucid bulk --device cuda``: its workers share out the GPUs, which are pretended."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pretended_workers import NOTES, read_notes

from pellucid.bulk.local import LocalCrew
from pellucid.cli.commands.bulk import _make_crew
from pellucid.machine.devices import share_devices

Run = Callable[..., subprocess.CompletedProcess[str]]
WORDS = ["The", "pizza", "came", "out", "of", "the", "oven"]


@pytest.fixture
def pretended(
    monkeypatch: pytest.MonkeyPatch, forked_children: None, tmp_path: Path
) -> dict[str, str]:
    """A machine with three GPUs."""
    notes = tmp_path / "notes"
    notes.mkdir()

    def make(_: str, task: Any, **options: Any) -> LocalCrew:
        return LocalCrew("pretended_workers:serve_windows", task, **options)

    monkeypatch.setenv(NOTES, str(notes))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("pellucid.machine.devices._chosen", [])
    monkeypatch.setattr("pellucid.machine.devices.resolve_device", str)
    monkeypatch.setattr("pellucid.machine.devices._count_devices", lambda: (3, ""))
    monkeypatch.setattr("pellucid.bulk.local.LocalCrew", make)
    monkeypatch.setattr("pellucid.cli.bulk.bulk_jobs.LINES_A_WORKER", 1)
    return {NOTES: str(notes)}


@pytest.fixture
def lines(tmp_path: Path) -> str:
    chance = random.Random(1)
    text = "".join(f"{' '.join(chance.choices(WORDS, k=5))}\n" for _ in range(24))
    (tmp_path / "in.txt").write_text(text)
    return text


def test_each_worker_takes_a_device_of_its_own_and_all_write_the_bytes_of_one_translation(
    run_here: Run, bundle_folder: Path, tmp_path: Path, pretended: dict[str, str], lines: str
) -> None:
    expected = run_here("translate", str(bundle_folder), stdin=lines).stdout
    done = run_here(
        *("bulk", "run", str(bundle_folder), str(tmp_path / "in.txt"), "-o", str(tmp_path / "job")),
        *("--piece-bytes", "90", "--device", "cuda"),
    )
    assert done.returncode == 0, done.stderr
    assert sorted(read_notes(pretended)) == ["cuda of 0", "cuda of 1", "cuda of 2"]
    assert run_here("bulk", "collect", str(tmp_path / "job")).stdout == expected


class Noted:
    """A worker without a process."""

    def __init__(self, run: str, arguments: dict[str, Any], *, advice: str) -> None:
        self.visible = arguments["visible"]


@pytest.mark.parametrize(
    ("device", "size", "seen"),
    [
        ("cuda", 3, ["0", "1", "2"]),
        ("cuda", 5, ["0", "0", "1", "1", "2"]),
        ("cuda:1", 1, [""]),
    ],
)
def test_a_worker_that_ended_leaves_its_device_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch, device: str, size: int, seen: list[str]
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("pellucid.machine.devices._chosen", [device])
    monkeypatch.setattr("pellucid.machine.devices._count_devices", lambda: (3, ""))
    monkeypatch.setattr("pellucid.bulk.local.LocalWorker", Noted)
    crew: Any = _make_crew(None if size in (1, 3) else size, None, {})
    assert crew.size == size
    for _ in range(size):
        crew.start()
    assert sorted(worker.visible for worker in crew._workers) == seen
    crew._workers.pop(size // 2)  # As `drop` does.
    crew.start()
    assert sorted(worker.visible for worker in crew._workers) == seen


@pytest.mark.parametrize(
    ("seen", "device", "shares"),
    [
        ("", "cuda", ["0", "1", "2"]),
        ("4,GPU-8f,7", "cuda", ["4", "GPU-8f", "7"]),
        ("4,5,6", "cuda:1", [""]),
        ("4,5,6", "cpu", [""]),
    ],
)
def test_what_a_scheduler_gave_is_shared_out_by_its_names(
    monkeypatch: pytest.MonkeyPatch, seen: str, device: str, shares: list[str]
) -> None:
    monkeypatch.setattr("pellucid.machine.devices._count_devices", lambda: (3, ""))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", seen)
    assert share_devices(device) == shares
