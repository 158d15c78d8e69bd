"""The available memory, as Linux and its control groups report it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from pellucid.machine import hardware
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


def write_quota(folder: Path, version: int, quota: int | str, period: int = 100_000) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if version == 2:
        (folder / "cpu.max").write_text(f"{quota} {period}\n")
        return
    (folder / "cpu.cfs_quota_us").write_text(f"{quota}\n")
    (folder / "cpu.cfs_period_us").write_text(f"{period}\n")


@pytest.fixture
def _many_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "num_processors", lambda: 61)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


V1, V2 = "4:cpu,cpuacct:/docker/01\n1:name=systemd:/\n", "0::/docker/01\n"
UNIFIED = "9 8 0:31 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.mark.usefixtures("_many_processors")
@pytest.mark.parametrize(
    ("groups", "mounts", "place", "version", "quota", "expected"),
    [
        ("0::/\n", UNIFIED, "sys/fs/cgroup", 2, 50_000, 1),
        ("0::/\n", UNIFIED, "sys/fs/cgroup", 2, 250_000, 3),
        ("0::/\n", UNIFIED, "sys/fs/cgroup", 2, 400_000, 4),
        ("0::/\n", "", "sys/fs/cgroup", 2, 700_000, 7),
        ("0::/\n", UNIFIED, "sys/fs/cgroup", 2, "max", 61),
        ("0::/\n", UNIFIED, "sys/fs/cgroup", 2, 9_900_000, 61),
        (V2, UNIFIED, "sys/fs/cgroup/docker/01", 2, 300_000, 3),
        (V2, UNIFIED, "sys/fs/cgroup/docker", 2, 300_000, 3),
        (V2, UNIFIED, "sys/fs/cgroup/docker/02", 2, 300_000, 61),
        ("1:cpu:/\n" + V2, "", "sys/fs/cgroup/cpu/docker/01", 1, 300_000, 61),
        (V2, UNIFIED.replace(" / /sys/fs/", " /docker /my/"), "my/cgroup/01", 2, 300_000, 3),
        (V2, UNIFIED.replace("/cgroup ", "/cgroup/all "), "sys/fs/cgroup/all", 2, 300_000, 3),
        ("5:cpu:/slurm/job\n", "", "sys/fs/cgroup/cpu/slurm", 1, 150_000, 2),
        ("5:cpu:/slurm/job\n", "", "sys/fs/cgroup/cpu/slurm", 1, -1, 61),
        (V1, "9 8 0:3 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n",
         "sys/fs/cgroup/cpu,cpuacct", 1, 120_000, 2),
        (V1, "9 8 0:3 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
         "sys/fs/cgroup/memory", 1, 120_000, 61),
        ("nonsense\n", "nonsense\n", "sys/fs/cgroup", 2, 100_000, 61),
    ],
)  # fmt: skip
def test_threads_are_at_most_the_quota_of_the_groups_rounded_up(
    groups: str, mounts: str, place: str, version: int, quota: int | str, expected: int,
    tmp_path: Path,
) -> None:  # fmt: skip
    write_machine(tmp_path, groups)
    (tmp_path / "proc/self/mountinfo").write_text(mounts)
    write_quota(tmp_path / place, version, quota)
    assert hardware.default_threads(tmp_path) == expected


@pytest.mark.usefixtures("_many_processors")
def test_threads_are_the_least_of_all_groups_above(tmp_path: Path) -> None:
    write_machine(tmp_path, "0::/pods/one/box\n")
    for name, quota in (("pods/one/box", 900_000), ("pods/one", 530_000), ("pods", 700_000)):
        write_quota(tmp_path / "sys/fs/cgroup" / name, 2, quota)
    assert hardware.default_threads(tmp_path) == 6
    write_quota(tmp_path / "sys/fs/cgroup", 2, 1, period=0)
    assert hardware.default_threads(tmp_path) == 6


@pytest.mark.usefixtures("_many_processors")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        *(("3", 3), (" 3 ", 3), ("03", 3), ("4,2", 4), ("4 , 2", 4), ("900", 61)),
        *(("", 61), ("0", 61), ("-2", 61), ("two", 61), ("2x", 61), ("4,", 61), ("4,x", 61)),
        *(("1.5", 61), ("\u0663", 61), ("9" * 5000, 61)),
    ],
)
def test_threads_follow_a_valid_variable_of_openmp(
    given: str, expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", given)
    assert hardware.default_threads(tmp_path) == expected
