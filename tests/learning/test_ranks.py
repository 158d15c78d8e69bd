"""Ranks that share every update: no number of them and no interruption changes a bit."""

from __future__ import annotations

import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from forked import Forked
from killed_runs import SETTINGS, fingerprints, write_recipe
from many_ranks import Job, by_srun, free_port
from small_runs import NO_REPORT

from pellucid.errors import ConfigurationError
from pellucid.machine.launch import RankPlace, find_place

MAIN = f"{NO_REPORT}\nfrom pellucid.cli.main import main\nmain()"
LATE = f"""
import time
from pellucid.training import loop
prepare = loop.prepare_data
loop.prepare_data = lambda *a, **k: (time.sleep(3), prepare(*a, **k))[1]
{MAIN}
"""
"""Rank 0, whose preparation takes a while."""

OLD = "import pellucid\npellucid.__version__ = '0.0'\nfrom pellucid.cli.main import main\nmain()"
HOST = re.escape(socket.gethostname())

Start = Callable[..., Job]


@pytest.fixture
def start_job(tmp_path: Path) -> Iterator[Start]:
    """Start ranks in the test's folder; what still runs at the end is killed."""
    jobs: list[Job] = []

    def start(number: int, words: str, **options: Any) -> Job:
        options["program"] = {0: MAIN, **options.get("program", {})}
        jobs.append(Job(tmp_path, number, words.split(), popen=Forked, **options))
        return jobs[-1]

    yield start
    for job in jobs:
        job.end()


def write(folder: Path, **settings: Any) -> None:
    """Write a recipe of four pieces an update, which end in 24 steps."""
    write_recipe(folder, SETTINGS | {"accumulate": 4, "max_steps": 24} | settings)


LOST = "ended or fell silent. The same command continues"


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("settings", "plan"),
    [
        (
            {"precision": "float32", "kernels": "auto"},
            [
                (2, 1, signal.SIGKILL, 2, 1, LOST),
                (4, 3, signal.SIGTERM, 7, 143, ""),
                (1, 0, signal.SIGKILL, 13, -9, ""),
            ],
        ),
        (
            {"precision": "bfloat16", "kernels": "pytorch", "optimizer": "adam", "r_drop": 0.0},
            [(2, 0, signal.SIGTERM, 4, 143, "")],
        ),
    ],
    ids=["own kernels, float32, muon", "pytorch, bfloat16, adam"],
)
def test_ranks_that_change_and_die_leave_the_bytes_of_one_process(
    tmp_path: Path, start_job: Start, settings: dict[str, Any], plan: list[Any]
) -> None:
    write(tmp_path, max_steps=18, **settings)
    log = tmp_path / "many" / "log.txt"
    for number, rank, sent, step, code, said in plan:
        job = start_job(number, "train recipe.toml -o many")
        assert job.wait_for(log, f"step {step:6d} "), job.said
        job.send(rank, sent)
        codes = job.wait()
        assert codes[0] == code, (number, codes, job.said)
        assert said in job.said[0]
        assert not any("Traceback" in one or "a bug" in one for one in job.said), job.said
        assert number == 1 or sent == signal.SIGKILL or codes[rank] == 143
        if code != -signal.SIGKILL:  # The last whole step was saved.
            last = max((tmp_path / "many" / "checkpoints").glob("step-*")).name
            stopped = [line for line in log.read_text().splitlines() if "Stopped" in line]
            assert f"step {int(last[5:])};" in stopped[-1]
    assert start_job(4, "train recipe.toml -o many").wait() == [0, 0, 0, 0]
    assert start_job(1, "train recipe.toml -o one").wait() == [0]
    assert fingerprints(tmp_path / "many") == fingerprints(tmp_path / "one")
    assert "in 4 processes" in log.read_text()
    assert " % not computing" in log.read_text()


def test_srun_alone_starts_ranks_and_they_wait_while_rank_0_prepares(
    tmp_path: Path, start_job: Start
) -> None:
    write(tmp_path, max_steps=6, processes="auto", accumulate=1, kernels="auto")
    words = "train recipe.toml -o run"
    job = start_job(2, words, program={0: LATE}, variables=by_srun)
    assert job.wait() == [0, 0], job.said
    assert "in 2 processes" in (tmp_path / "run" / "log.txt").read_text()


def test_torchrun_starts_ranks_and_ends_them_saved(tmp_path: Path) -> None:
    write(tmp_path, max_steps=5000, validate_every=5000)
    launcher = ["-m", "torch.distributed.run", "--nproc-per-node", "2"]
    words = ["-m", "pellucid", "train", "recipe.toml", "-o", "run"]
    log = tmp_path / "run" / "log.txt"
    with (tmp_path / "said.txt").open("wb") as said:
        job = Forked([sys.executable, *launcher, *words], cwd=tmp_path, stderr=said, stdout=said)
    try:
        while not (log.exists() and "step      3 " in log.read_text()):
            assert job.poll() is None, (tmp_path / "said.txt").read_text()
            time.sleep(0.05)
        began = time.monotonic()
        job.send_signal(signal.SIGTERM)
        job.wait(60)
        assert time.monotonic() - began < 30
    finally:
        job.kill()
    assert "Stopped after step" in log.read_text()
    assert list((tmp_path / "run" / "checkpoints").glob("step-*"))


@pytest.mark.parametrize(
    ("number", "words", "codes", "said"),
    [
        (
            3,
            "",
            [2, 0, 0],
            r"number of ranks must be a power of two \(1, 2, 4, …\), but is 3\.",
        ),
        (
            2,
            "--set training.accumulate=1 --set training.processes=1",
            [2, 0],
            r"Every rank must get a piece of each update, but 2 ranks share 1 \(",
        ),
        (2, "--set training.accumulate=none", [2, 0], r"training\.accumulate"),
    ],
)
def test_ranks_that_cannot_share_are_one_sentence_of_rank_0(
    tmp_path: Path, start_job: Start, number: int, words: str, codes: list[int], said: str
) -> None:
    write(tmp_path)
    job = start_job(number, f"train recipe.toml -o run {words}")
    found = job.wait()
    lines = job.said[0].splitlines()
    assert re.search(said, lines[-1]), job.said
    assert found[0] == codes[0]
    assert all("Traceback" not in one for one in job.said)


def test_a_hand_of_another_version_is_named(tmp_path: Path, start_job: Start) -> None:
    write(tmp_path)
    job = start_job(2, "train recipe.toml -o run", program={1: OLD})
    assert job.wait() == [2, 2]
    for said in job.said:
        assert re.search(rf"same version .* and rank 1 \({HOST}\) has 0\.0\. Install", said)


def test_ranks_that_never_come_are_named_after_the_wait(tmp_path: Path, start_job: Start) -> None:
    write(tmp_path)
    words = "train recipe.toml -o run --wait 1"
    job = start_job(2, words, program={1: "pass"})
    assert job.wait()[0] == 1
    assert "Rank 1 of 2 did not come within 1 seconds (--wait)." in job.said[0]
    job = start_job(2, words, program={0: "pass"})
    assert job.wait()[1] == 1
    assert re.search(r"Rank 0 did not answer at 127\.0\.0\.1:\d+ within 1 seconds", job.said[1])


def test_a_rank_0_that_dies_while_ranks_connect_ends_the_others(
    tmp_path: Path, start_job: Start
) -> None:
    write(tmp_path)
    die = "import os\nfrom pellucid.training.update import ranks\n"
    die += "ranks.RankLink = lambda *_: os.kill(os.getpid(), 9)\n"
    job = start_job(2, "train recipe.toml -o run", program={0: die + MAIN})
    assert job.wait() == [-signal.SIGKILL, 1]
    # Only in a process that is not forked, PyTorch keeps its own messages to itself.
    assert job.said[1].endswith("error: Rank 0 ended, and so does rank 1.\n")


SILENT = """
import os, socket, time
from pathlib import Path
server = socket.create_server(("127.0.0.1", int(os.environ["MASTER_PORT"])))
kept = server.accept()
Path("ready").touch()
time.sleep(1000)
"""
"""A machine that took the connection and then vanished."""

DEAD = """
import os, socket, time
from pathlib import Path
from torch import distributed
port = int(os.environ["MASTER_PORT"])
server = socket.create_server(("127.0.0.1", port))
make = distributed.TCPStore
tcp = make("127.0.0.1", port, is_master=True, master_listen_fd=server.detach())
store = distributed.PrefixStore("pellucid/0", tcp)
while not store.check(["here/1"]):
    time.sleep(0.05)
Path("ready").touch()
time.sleep(1000)
"""
"""A launcher whose meeting point outlives rank 0."""

STOPPED = f"""
import os, signal
from pathlib import Path
from pellucid.training.update.ranks import Ranks
await_hands = Ranks._await_hands
def stop(*arguments):
    await_hands(*arguments)
    Path("ready").touch()
    os.kill(os.getpid(), signal.SIGSTOP)
Ranks._await_hands = stop
{MAIN}
"""
HURRIED = f"""
from pellucid.training.update import hands
hands.HURRIED_SECONDS = 0.5
{MAIN}
"""


@pytest.mark.parametrize("rank_0", [SILENT, DEAD, STOPPED], ids=["silent", "dead", "stopped"])
def test_a_hand_whose_rank_0_is_lost_early_ends_at_a_signal(
    tmp_path: Path, start_job: Start, monkeypatch: pytest.MonkeyPatch, rank_0: str
) -> None:
    write(tmp_path)
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", str(rank_0 == DEAD))
    job = start_job(2, "train recipe.toml -o run", program={0: rank_0, 1: HURRIED})
    while not (tmp_path / "ready").exists():
        assert job.processes[1].poll() is None, job.said
        time.sleep(0.05)
    time.sleep(0.5)
    job.send(1, signal.SIGTERM)
    assert job.processes[1].wait(30) == 143, job.said
    assert job.said[1] == ""


def test_a_busy_port_is_one_sentence(tmp_path: Path) -> None:
    write(tmp_path)
    port = free_port()
    with socket.create_server(("127.0.0.1", port)):
        job = Job(
            tmp_path,
            2,
            ["train", "recipe.toml", "-o", "run", "--wait", "1"],
            program={1: "pass"},
            variables=lambda rank, number, _: by_srun(rank, number, port),
            popen=Forked,
        )
        assert job.wait()[0] == 1
    assert f"must listen at 127.0.0.1:{port}, but that is not possible: Addr" in job.said[0]


def test_places_are_those_that_launchers_give() -> None:
    torchrun = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
    torchrun |= {"MASTER_ADDR": "node3", "MASTER_PORT": "29400"}
    assert find_place(torchrun) == RankPlace(5, 8, 1, 4, "node3", 29400)
    agent = {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "2"}
    assert find_place(torchrun | agent, 7) == RankPlace(5, 8, 1, 4, "node3", 29400, True, 2, 7)
    slurm = {"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "1"}
    slurm |= {"SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NODELIST": "gpu[03-04,9],cpu1"}
    slurm |= {"SLURM_JOB_ID": "1000", "SLURM_STEP_ID": "1"}
    assert find_place(slurm) == RankPlace(3, 4, 1, 1, "gpu03", 20_000 + 64_001 % 10_000)
    here = find_place(slurm | {"SLURM_STEP_NUM_NODES": "1"})
    assert here is not None
    assert (here.address, here.is_one_machine) == ("127.0.0.1", True)
    # A batch script without srun, and one rank, are a training by itself.
    assert find_place({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "1"}) is None
    assert find_place(torchrun | {"WORLD_SIZE": "1"}) is None


@pytest.mark.parametrize(
    ("changes", "wait", "said"),
    [
        ({"RANK": "8"}, None, r"RANK must be below WORLD_SIZE, but is 8\."),
        ({"WORLD_SIZE": "many"}, None, r"WORLD_SIZE must be a whole number, but is 'many'\."),
        ({"MASTER_PORT": ""}, None, r"MASTER_PORT must be a whole number, but is ''\."),
        ({}, 0.0, r"^wait must be above 0 and .*, but is 0 with 8\."),
        ({"WORLD_SIZE": "1"}, 5.0, r"^wait .* needs torchrun or srun .*, but is 5 with 1\."),
    ],
)
def test_places_that_make_no_sense_are_refused(
    changes: dict[str, str], wait: float | None, said: str
) -> None:
    given = {"RANK": "0", "WORLD_SIZE": "8", "MASTER_PORT": "29400"}
    with pytest.raises(ConfigurationError, match=said):
        find_place(given | changes, wait)


def test_no_rank_listens_beyond_the_machine(tmp_path: Path, start_job: Start) -> None:
    write(tmp_path, max_steps=5000, validate_every=5000)
    job = start_job(2, "train recipe.toml -o run")
    assert job.wait_for(tmp_path / "run" / "log.txt", "step      2 "), job.said
    found = []
    for process in job.processes:
        inodes = {
            link.readlink().name.strip("socket:[]")
            for link in Path(f"/proc/{process.pid}/fd").iterdir()
            if link.is_symlink() and "socket:" in str(link.readlink())
        }
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[3] == "0A" and fields[9] in inodes:  # listening
                    found.append(fields[1].partition(":")[0])
    assert found
    assert set(found) == {"0100007F"}
    job.send(0, signal.SIGTERM)
    assert job.wait()[0] == 143
