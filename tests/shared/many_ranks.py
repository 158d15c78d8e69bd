"""The ranks of one training, started as torchrun or srun would start them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

SECONDS = 240.0


def free_port() -> int:
    """Find a free port."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def by_torchrun(rank: int, number: int, port: int) -> dict[str, str]:
    """Give the variables that torchrun sets, without its own meeting point."""
    one_machine = {"LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": number, "MASTER_PORT": port}
    values = {"RANK": rank, "WORLD_SIZE": number, **one_machine}
    return {"MASTER_ADDR": "127.0.0.1", **{name: str(value) for name, value in values.items()}}


def by_srun(rank: int, number: int, port: int) -> dict[str, str]:
    """Give the variables that srun sets, and another port than Slurm's jobs would share."""
    values = {"PROCID": rank, "STEP_NUM_TASKS": number, "LOCALID": rank, "STEP_NUM_NODES": 1}
    values |= {"JOB_ID": 4711, "STEP_ID": 0, "NTASKS": number}
    return {"MASTER_PORT": str(port), **{f"SLURM_{name}": str(n) for name, n in values.items()}}


class Job:
    """The processes of one training.

    Args:
        folder: where they run; their standard errors are files there.
        number: of processes.
        words: of the command line, after ``pellucid``.
        program: Python to run in the place of the command, by rank; it gets the words.
        variables: of the launcher.
        popen: starts a process.
    """

    def __init__(
        self,
        folder: Path,
        number: int,
        words: Sequence[str],
        *,
        program: Mapping[int, str] | None = None,
        variables: Callable[[int, int, int], dict[str, str]] = by_torchrun,
        popen: Callable[..., subprocess.Popen[Any]] = subprocess.Popen,
    ) -> None:
        port, self.processes, self._errors = free_port(), list[subprocess.Popen[Any]](), []
        for rank in range(number):
            code = (program or {}).get(rank, "from pellucid.cli.main import main; main()")
            error = folder / f"rank-{rank}.txt"
            self._errors.append(error)
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            if number > 1:
                environment |= variables(rank, number, port)
            with error.open("wb") as stream:
                started = popen(
                    [sys.executable, "-c", code, *words],
                    cwd=folder,
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=stream,
                )
            self.processes.append(started)

    @property
    def said(self) -> list[str]:
        """What each has written to standard error."""
        return [error.read_text() for error in self._errors]

    def wait(self) -> list[int]:
        """Wait until all have ended, and return their exit codes."""
        deadline = time.monotonic() + SECONDS
        for process in self.processes:
            process.wait(max(0.1, deadline - time.monotonic()))
        return [process.returncode for process in self.processes]

    def wait_for(self, log: Path, words: str) -> bool:
        """Wait until a log has some words; return False if a process ended before."""
        while not (log.exists() and words in log.read_text()):
            if self.processes[0].poll() is not None:
                return False
            time.sleep(0.01)
        return True

    def send(self, rank: int, number: int) -> None:
        """Send a signal to a process, if it runs."""
        if self.processes[rank].poll() is None:
            self.processes[rank].send_signal(number)

    def end(self) -> None:
        """Kill what still runs."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                process.wait()
