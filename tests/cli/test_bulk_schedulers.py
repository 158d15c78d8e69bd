"""The files for Slurm and Kubernetes, played by stand-ins for both that end what they started."""

from __future__ import annotations

import os
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from machine_of_a_cluster import NAME
from page_code import ROOT
from schedulers import Kubernetes, Slurm, Task, end_group

from pellucid.cli.overview import SUBCOMMANDS

Run = Callable[..., subprocess.CompletedProcess[str]]
Event = Callable[[Any, Task], None]

WORDS = ["The", "pizza", "came", "out", "of", "the", "oven", "and", "it", "tasted", "good", "."]
SCRIPT = ROOT / "deploy" / "bulk.sbatch"
JOB = ROOT / "deploy" / "bulk.yaml"
MACHINE = ROOT / "tests" / "shared" / "machine_of_a_cluster.py"


@pytest.fixture
def text(tmp_path: Path) -> str:
    """The text of three packed shards, one of which has a bad line."""
    chance = random.Random(5)
    lines = [" ".join(chance.choices(WORDS, k=chance.randint(2, 9))) for _ in range(1200)]
    (tmp_path / "mono").mkdir()
    for number in range(3):
        part = "".join(f"{line}\n" for line in lines[400 * number :][:400])
        (tmp_path / "mono" / f"{number}.txt").write_text(part)
    return "".join(f"{line}\n" for line in lines)


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The variables of a machine on which the command is installed."""
    program = tmp_path / "bin" / "pellucid"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {MACHINE} "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "src")}


def replace_all(text: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def play(cluster: Any, running: Callable[[], list[Task]], job: Path, events: list[Event]) -> None:
    """Let things happen to tasks that work, one after the other, each after further pieces."""
    seen = 0
    while not cluster.is_over:
        time.sleep(0.02)
        cluster.poll()
        done = len(list((job / "pieces").glob("0*")))
        at_work = [task for task in running() if has_beaten(task, job)]
        if events and at_work and done >= seen + 2:
            events.pop(0)(cluster, at_work[0])
            seen = done
    assert not events


def has_beaten(task: Task, job: Path) -> bool:
    """Tell whether the command of a task works on the job."""
    found = Path(f"/proc/{task.process.pid}/task/{task.process.pid}/children")
    try:
        own = [task.process.pid, *map(int, found.read_text().split())]
    except OSError:
        return False
    return any(f"-{pid}-" in path.name for pid in own for path in (job / "workers").glob("*"))


@pytest.fixture
def slurm(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., Slurm]]:
    started: list[Slurm] = []

    def sbatch(changes: dict[str, str], size: int) -> Slurm:
        script = tmp_path / "bulk.sbatch"
        script.write_text(replace_all(SCRIPT.read_text(), changes))
        started.append(Slurm(script, tmp_path, environment, size))
        return started[-1]

    yield sbatch
    for one in started:
        for task in one.tasks:
            end_group(task.process, is_sudden=True)


@pytest.mark.timeout(300)
def test_an_array_of_slurm_is_ended_in_every_way_and_completes_with_the_bytes_of_one_translation(
    slurm: Callable[..., Slurm], run_here: Run, tmp_path: Path, text: str
) -> None:
    minutes = tmp_path / "minutes"
    minutes.write_text("0.01")  # No time for more than the start.
    job = tmp_path / "job"
    array = slurm(
        {
            "/models/en-fr": "demo",
            "/data/mono/*.gz": f"{tmp_path}/mono/*.txt --piece-bytes 1500",
            "/scratch": str(tmp_path),
            "--workers 8": "--workers 1",
            "--minutes 235": f'--minutes "$(cat {minutes})"',
        },
        2,
    )
    while min(task.starts for task in array.tasks) < 2:  # Each ended with 75 and is queued again.
        time.sleep(0.02)
        array.poll()
        assert not array.is_over
    minutes.write_text("100")
    events: list[Event] = [
        lambda array, task: array.lose(task, is_sudden=True),
        lambda array, task: array.warn(task),
        lambda array, task: array.lose(task, is_sudden=False),
    ]
    play(array, lambda: [task for task in array.tasks if task.state == "RUNNING"], job, events)
    assert [task.state for task in array.tasks] == ["COMPLETED"] * 2
    # What the file says about the job that follows.
    follow = re.search(r"--dependency=(\w+):\$id --wrap '(.*)'", SCRIPT.read_text())
    assert follow
    assert array.may_follow(follow[1])
    words = shlex.split(follow[2].replace("/scratch", str(tmp_path)))
    assert run_here(*words[1:]).returncode == 0
    assert (tmp_path / "all.txt").read_text() == run_here("translate", "demo", stdin=text).stdout
    # A killed command may leave a hidden file, which another one deletes when a minute has passed.
    assert not list((job / "claims").glob("[!.]*"))
    assert not list((job / "workers").glob("[!.]*"))


def stub(folder: Path, line: str) -> dict[str, str]:
    """Put a program in the place of the command."""
    (folder / "bin" / "pellucid").write_text(f"#!/bin/bash\n{line}\n")
    return {}


def wait_for(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("code", "state", "starts"),
    [(0, "COMPLETED", 1), (75, "COMPLETED", 2), (1, "FAILED", 1), (2, "FAILED", 1)],
)
def test_slurm_queues_a_task_again_only_if_that_helps(
    slurm: Callable[..., Slurm], tmp_path: Path, code: int, state: str, starts: int
) -> None:
    stub(tmp_path, f"[ -e {tmp_path}/again ] && exit 0; touch {tmp_path}/again; exit {code}")
    array = slurm({}, 1)
    while not array.is_over:
        array.poll()
        time.sleep(0.01)
    assert [(task.state, task.starts) for task in array.tasks] == [(state, starts)]
    assert array.may_follow("afterok") == (state == "COMPLETED")


@pytest.mark.parametrize(
    ("event", "state", "starts"),
    [("warn", "RUNNING", 2), ("cancel", "CANCELLED", 1), ("lose", "RUNNING", 2)],
)
def test_a_signal_reaches_the_command_and_a_cancelled_task_stays_cancelled(
    slurm: Callable[..., Slurm], tmp_path: Path, event: str, state: str, starts: int
) -> None:
    # It needs a moment to give up its claims.
    stub(
        tmp_path,
        f"trap 'sleep 0.2; touch {tmp_path}/gave-up; exit 143' TERM; touch {tmp_path}/works\n"
        "while true; do sleep 0.05; done",
    )
    array = slurm({}, 1)
    (task,) = array.tasks
    wait_for(tmp_path / "works")
    getattr(array, event)(task, **({"is_sudden": False} if event == "lose" else {}))
    array.poll()
    assert (tmp_path / "gave-up").exists()
    assert (task.state, task.starts) == (state, starts)


@pytest.fixture
def kubernetes(tmp_path: Path, environment: dict[str, str]) -> Iterator[Callable[..., Kubernetes]]:
    started: list[Kubernetes] = []

    def apply(changes: dict[str, str], size: int) -> Kubernetes:
        spec = yaml.safe_load(replace_all(JOB.read_text(), changes))["spec"]
        (container,) = spec["template"]["spec"]["containers"]
        rules = [one.get("onExitCodes") for one in spec["podFailurePolicy"]["rules"]]
        assert {one["containerName"] for one in rules if one} == {container["name"]}

        def start(number: int) -> subprocess.Popen[bytes]:
            words = [*container["command"], *container["args"]]
            return subprocess.Popen(
                ["env", *words], env={**environment, NAME: f"pod-{number}"}, start_new_session=True
            )

        started.append(Kubernetes(spec, start, size))
        return started[-1]

    yield apply
    for one in started:
        for pod in one.pods:
            end_group(pod.process, is_sudden=True)


@pytest.mark.timeout(300)
def test_pods_are_taken_away_and_the_job_completes_with_the_bytes_of_one_translation(
    kubernetes: Callable[..., Kubernetes], run_here: Run, tmp_path: Path, text: str
) -> None:
    # A bad line is no reason to start pods again.
    shard = tmp_path / "mono" / "1.txt"
    bad = shard.read_bytes() + b"The \xff oven\n"
    shard.write_bytes(bad)
    job = kubernetes(
        {
            "/models/en-fr": "demo",
            "s3://bucket": f"file://{tmp_path}",
            "*.gz": "*.txt",
            '"--workers", "4"': '"--workers", "1", "--piece-bytes", "1500"',
        },
        2,
    )
    events: list[Event] = [
        lambda job, pod: job.take_away(pod, is_sudden=False),
        lambda job, pod: job.take_away(pod, is_sudden=True),
        # A signal without a reason that Kubernetes knows.
        lambda _, pod: os.kill(pod.process.pid, signal.SIGTERM),
    ]
    play(job, lambda: job.pods, tmp_path / "job", events)
    assert (job.condition, job.num_failed) == ("Complete", 0)
    assert job.num_started == 5
    whole = b"".join(path.read_bytes() for path in sorted((tmp_path / "mono").iterdir()))
    collected = run_here("bulk", "collect", str(tmp_path / "job"))
    assert collected.returncode == 3
    assert collected.stdout == run_here("translate", "demo", stdin=whole).stdout


@pytest.mark.parametrize(
    ("codes", "condition", "started"),
    [
        ([0], "Complete", 1),
        ([75, 143, 75, 0], "Complete", 4),
        ([1, 137, 0], "Complete", 3),
        ([1, 2, 0], "Failed", 2),
        ([1] * 30, "Failed", 21),
    ],
)
def test_pods_are_replaced_only_if_that_helps(
    kubernetes: Callable[..., Kubernetes],
    tmp_path: Path,
    codes: list[int],
    condition: str,
    started: int,
) -> None:
    cases = " ".join(f"pod-{number}) exit {code};;" for number, code in enumerate(codes, 1))
    stub(tmp_path, f"case ${NAME} in {cases} esac")
    job = kubernetes({}, 1)
    while not job.is_over:
        job.poll()
        time.sleep(0.005)
    assert (job.condition, job.num_started) == (condition, started)


def test_what_both_files_start_is_a_command() -> None:
    container = yaml.safe_load(JOB.read_text())["spec"]["template"]["spec"]["containers"][0]
    assert container["command"] == ["pellucid"]
    in_script = re.findall(r"^pellucid (\w+) (\w+) ", SCRIPT.read_text(), re.MULTILINE)
    for words in (container["args"][:2], *in_script):
        assert words[1] in SUBCOMMANDS[words[0]]
