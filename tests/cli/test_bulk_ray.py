"""``pellucid bulk run --ray``: actors of a real cluster of this machine, which are killed.

Where Ray is not installed, a stand-in shows what Ray's processes do to the command.
"""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import ray_stand_in

from pellucid.cli.commands.bulk import _make_crew

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="needs the package ray")

Run = Callable[..., subprocess.CompletedProcess[str]]
Start = Callable[..., subprocess.Popen[bytes]]

WORDS = ["The", "pizza", "came", "out", "of", "the", "oven", "and", "it", "tasted", "good"]
QUIET = {"RAY_DEDUP_LOGS": "0", "RAY_USAGE_STATS_ENABLED": "0"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a cluster with one machine, two raylets and two processors."""
    program = """
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
cluster.add_node(num_cpus=1)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""
    source = str(Path(__file__).parents[2] / "src")
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, **QUIET, "PYTHONPATH": source},
    )  # fmt: skip
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    while line and not line[0].isdigit():
        line = process.stdout.readline().strip()
    yield line
    process.communicate("", timeout=60)


def find_actors() -> list[int]:
    """List the processes of actors on this machine."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if path.read_bytes().startswith(b"ray::Actor"):
                found.append(int(path.parent.name))
        except OSError:
            pass
    return found


def faults(said: str) -> list[str]:
    """List what a command said, except how far it is."""
    return [line for line in said.splitlines() if not line.startswith("note: ")]


@pytest.fixture
def stand_in(tmp_path: Path) -> dict[str, str]:
    """The variables of a process that finds the stand-in for Ray."""
    shared = Path(__file__).parents[1] / "shared"
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "ray.py").write_text("from ray_stand_in import *\n")
    places = (tmp_path / "library", shared, shared.parents[1] / "src")
    return {"PYTHONPATH": os.pathsep.join(map(str, places))}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("kind", ["stand-in", pytest.param("ray", marks=needs_ray)])
def test_a_cluster_of_this_machine_translates_as_one_process(
    run_cli: Run, tmp_path: Path, stand_in: dict[str, str], kind: str
) -> None:
    chance = random.Random(2)
    lines = [" ".join(chance.choices(WORDS, k=chance.randint(1, 9))) for _ in range(1200)]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    job = str(tmp_path / "job")
    done = run_cli(
        *("bulk", "run", "demo", str(tmp_path / "in.txt"), "-o", job, "--piece-bytes", "4000"),
        *("--ray", "local", "--workers", "2"),
        env=QUIET if kind == "ray" else stand_in,
    )
    assert done.returncode == 0, done.stderr
    assert kind == "ray" or not faults(done.stderr)  # Ray may say something of its own.
    assert run_cli("bulk", "collect", job, "-o", str(tmp_path / "out")).returncode == 0
    expected = run_cli("translate", "demo", "-i", str(tmp_path / "in.txt"))
    assert (tmp_path / "out").read_text() == expected.stdout


@pytest.mark.timeout(240)
def test_a_cluster_that_is_lost_is_a_sentence_and_the_same_command_resumes(
    start: Start, run_cli: Run, tmp_path: Path, stand_in: dict[str, str]
) -> None:
    (tmp_path / "in.txt").write_text("The pizza came out of the oven .\n" * 3000)
    command = [
        *(sys.executable, "-m", "pellucid", "bulk", "run", "demo", str(tmp_path / "in.txt")),
        *("-o", str(tmp_path / "job"), "--piece-bytes", "9000", "--ray", "local"),
    ]
    process = start(command, stderr=subprocess.PIPE, env={**os.environ, **stand_in})
    while not list((tmp_path / "job").glob("pieces/*")):
        assert process.poll() is None, process.communicate()[1].decode()
        time.sleep(0.02)
    children = Path(f"/proc/{process.pid}/task").glob("*/children")
    pids = [int(pid) for path in children for pid in path.read_text().split()]
    (cluster,) = [
        pid for pid in pids if b"sleep(1000)" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    os.kill(cluster, signal.SIGKILL)
    said = faults(process.communicate(timeout=60)[1].decode())
    assert process.returncode == 1
    assert len(said) == 1
    assert "Ray ended it" in said[0]
    done = run_cli(*command[3:], env=stand_in)
    assert (done.returncode, faults(done.stderr)) == (0, [])


@needs_ray
@pytest.mark.timeout(240)
def test_killed_actors_and_commands_lose_nothing(
    start: Start, run_cli: Run, cluster: str, tmp_path: Path
) -> None:
    chance = random.Random(1)
    lines = [" ".join(chance.choices(WORDS, k=chance.randint(1, 9))) for _ in range(6000)]
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines))
    job = str(tmp_path / "job")
    command = [
        *(sys.executable, "-m", "pellucid", "bulk", "run", "demo", str(tmp_path / "in.txt")),
        *("-o", job, "--piece-bytes", "9000", "--ray", cluster),
    ]
    process = start(command, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 90
    while not find_actors() or not list((tmp_path / "job").glob("pieces/*")):
        assert process.poll() is None, process.communicate()[1].decode()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.kill(find_actors()[0], signal.SIGKILL)
    time.sleep(1)
    process.kill()
    process.wait()
    done = run_cli(*command[3:], env=QUIET)
    assert done.returncode == 0, done.stderr
    collected = run_cli("bulk", "collect", job, "-o", str(tmp_path / "out"), env=QUIET)
    assert collected.returncode == 0, collected.stderr
    assert all(line.startswith("note: ") for line in done.stderr.splitlines()), done.stderr
    expected = run_cli("translate", "demo", "-i", str(tmp_path / "in.txt"))
    assert (tmp_path / "out").read_text() == expected.stdout


@needs_ray
@pytest.mark.timeout(240)
def test_a_bad_line_is_listed_and_a_bad_model_is_a_sentence(
    run_cli: Run, cluster: str, tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_bytes(b"The pizza came\n\xff\n")
    common = (str(tmp_path / "in.txt"), "--ray", cluster, "--workers", "1")
    done = run_cli("bulk", "run", "demo", *common, "-o", str(tmp_path / "job"), env=QUIET)
    assert done.returncode == 0, done.stderr
    assert "0xff" in (tmp_path / "job" / "failed.tsv").read_text()
    bad = run_cli(
        "bulk", "run", "demo", *common, "--beam", "0", "-o", str(tmp_path / "bad"), env=QUIET
    )
    assert bad.returncode == 2, bad.stderr
    assert len(bad.stderr.splitlines()) == 1
    assert "beam" in bad.stderr
    assert not (tmp_path / "bad").exists()


@needs_ray
@pytest.mark.timeout(240)
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1"])
def test_a_cluster_that_is_not_there_is_a_sentence(
    run_cli: Run, tmp_path: Path, address: str
) -> None:
    (tmp_path / "in.txt").write_text("The oven\n")
    job = (str(tmp_path / "in.txt"), "-o", str(tmp_path / "job"), "--ray", address)
    done = run_cli("bulk", "run", "demo", *job, env=QUIET)
    assert done.returncode == 1, done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert f"The Ray cluster at {address} cannot be used" in done.stderr
    assert "bug" not in done.stderr


@needs_ray
@pytest.mark.timeout(240)
def test_a_cluster_that_is_silent_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from pellucid.bulk import on_ray
    from pellucid.errors import PellucidError

    monkeypatch.setattr(on_ray, "SECONDS_TO_JOIN", 0.5)
    monkeypatch.setattr("ray.init", lambda *_, **__: time.sleep(2))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(PellucidError, match="TimeoutError"):
            on_ray.RayCrew(address, "a:b", {"files": {}}, size=1)


@needs_ray
def test_a_cluster_of_another_version_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    from pellucid.bulk import on_ray
    from pellucid.errors import PellucidError

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("Version mismatch: The cluster was started with:\n    Ray: 1.0\n")

    monkeypatch.setattr("ray.init", refuse)
    with pytest.raises(
        PellucidError, match=r"cannot be used: Version mismatch: .* Ray: 1\.0\. Check"
    ):
        on_ray.RayCrew("auto", "a:b", {"files": {}}, size=1)


@pytest.mark.parametrize(
    ("device", "size", "needs"),
    [
        ("cpu", ray_stand_in.CPUS, {"num_cpus": 1, "num_gpus": 0}),
        ("cuda", ray_stand_in.GPUS, {"num_cpus": 1, "num_gpus": 1}),
        ("cuda:1", ray_stand_in.GPUS, {"num_cpus": 1, "num_gpus": 1}),
    ],
)
def test_an_actor_on_a_gpu_is_given_one(
    monkeypatch: pytest.MonkeyPatch, device: str, size: int, needs: dict[str, int]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", ray_stand_in)
    monkeypatch.setattr("pellucid.machine.devices._chosen", [device])
    crew: Any = _make_crew(None, "local", {"files": {}})
    try:
        assert crew.size == size
        assert ray_stand_in.needs == needs
        # Of the devices it sees its own only, whose number is 0.
        assert crew._hire.keywords["task"]["device"] == device.partition(":")[0]
    finally:
        crew.close()
