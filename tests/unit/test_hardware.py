"""The available memory, as Linux and its control groups report it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pellucid.machine.hardware import available_memory, leave_lasting_objects, reachable_memory

MEBIBYTE = 2**20
CPU = torch.device("cpu")


def write_machine(root: Path, groups: str) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal: 9000000 kB\nMemAvailable:    2097152 kB\n")
    (root / "proc/self/cgroup").write_text(groups)


def write_group(
    folder: Path, version: int, limit: object, used: int, files: tuple[int, int]
) -> None:
    limit_name, used_name, prefix = {
        2: ("memory.max", "memory.current", ""),
        1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    }[version]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / limit_name).write_text(f"{limit}\n")
    (folder / used_name).write_text(f"{used}\n")
    kinds = zip(("active_file", "inactive_file"), files, strict=True)
    lines = [f"{prefix}{kind} {count}" for kind, count in kinds]
    (folder / "memory.stat").write_text("anon 5\n" + "\n".join(lines) + "\n")


def test_without_a_group_it_is_the_machines(tmp_path: Path) -> None:
    write_machine(tmp_path, "0::/\n")
    assert available_memory(CPU, root=tmp_path) == 2048 * MEBIBYTE


def test_what_a_group_holds_of_files_is_free(tmp_path: Path) -> None:
    write_machine(tmp_path, "0::/\n")
    files = (200 * MEBIBYTE, 600 * MEBIBYTE)
    write_group(tmp_path / "sys/fs/cgroup", 2, 1000 * MEBIBYTE, 990 * MEBIBYTE, files)
    assert available_memory(CPU, root=tmp_path) == 810 * MEBIBYTE


def test_a_group_without_a_limit_leaves_the_machines(tmp_path: Path) -> None:
    write_machine(tmp_path, "0::/job\n")
    write_group(tmp_path / "sys/fs/cgroup/job", 2, "max", 990 * MEBIBYTE, (0, 0))
    assert available_memory(CPU, root=tmp_path) == 2048 * MEBIBYTE


@pytest.mark.parametrize(
    ("version", "groups", "top"),
    [
        (2, "0::/slurm/job/step\n", "sys/fs/cgroup"),
        (1, "7:cpu,cpuacct:/x\n5:memory:/slurm/job/step\n", "sys/fs/cgroup/memory"),
    ],
)
def test_the_least_of_a_group_and_those_above_it_counts(
    version: int, groups: str, top: str, tmp_path: Path
) -> None:
    write_machine(tmp_path, groups)
    limits = {"slurm/job/step": 900, "slurm/job": 300, "slurm": 700}
    for name, limit in limits.items():
        write_group(tmp_path / top / name, version, limit * MEBIBYTE, 100 * MEBIBYTE, (0, MEBIBYTE))
    assert available_memory(CPU, root=tmp_path) == 201 * MEBIBYTE


def test_a_container_that_does_not_see_its_own_name_looks_at_the_top(tmp_path: Path) -> None:
    write_machine(tmp_path, "5:memory:/docker/0123\n")
    write_group(tmp_path / "sys/fs/cgroup/memory", 1, 300 * MEBIBYTE, 100 * MEBIBYTE, (0, 0))
    assert available_memory(CPU, root=tmp_path) == 200 * MEBIBYTE


def test_reachable_memory_counts_what_is_held_already() -> None:
    free, before = available_memory(CPU), reachable_memory(CPU)
    assert free is not None
    assert before is not None
    assert before - free > 50 * MEBIBYTE  # PyTorch takes more.
    held = torch.ones(300 * MEBIBYTE // 4)
    after = reachable_memory(CPU)
    assert after is not None
    assert abs(after - before) < 250 * MEBIBYTE
    del held


@pytest.fixture
def _nothing_frozen() -> Iterator[None]:
    """Let Python look for cycles among all objects, which `conftest.py` prevents."""
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.usefixtures("_nothing_frozen")
def test_lasting_objects_are_left_alone_within_a_block_and_no_longer() -> None:
    assert gc.get_freeze_count() == 0
    with leave_lasting_objects():
        assert gc.get_freeze_count() > 10_000
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("_nothing_frozen")
def test_what_others_left_alone_stays_so() -> None:
    gc.freeze()
    with leave_lasting_objects():
        pass
    assert gc.get_freeze_count() > 0
