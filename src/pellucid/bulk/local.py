"""Workers as processes of this machine."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path
from subprocess import TimeoutExpired
from typing import Any

from pellucid.bulk.driver import Worker, WorkerWindow
from pellucid.errors import PellucidError
from pellucid.machine.processes import Child, to_bytes

ADVICE = "Use fewer workers (--workers), since each has the model in its own memory."
_SECONDS_TO_END = 1.0
# Time in which a process that has something to do must get some of a processor, however busy.
SECONDS_TO_MOVE = 60.0


class LocalWorker(Child):
    """A process that answers windows.

    Attributes:
        num_owed: the number of its replies that are to come, of which its start is the first.
        device: what it was given of the devices that workers share out.
    """

    num_owed = 1
    device = ""
    _ticks: int | None = None
    _seconds_still = 0.0

    def is_still(self, seconds: float) -> bool:
        """Tell whether it owes a reply, but has long been stopped, or hangs in the system.

        Args:
            seconds: the time since the last look.
        """
        ticks = _processor_ticks(self.process.pid) if self.num_owed else None
        is_still = ticks is not None and ticks == self._ticks
        self._seconds_still = self._seconds_still + seconds if is_still else 0.0
        self._ticks = ticks
        return self._seconds_still > SECONDS_TO_MOVE

    def send_window(self, window: WorkerWindow) -> None:
        """Send a window; its answer comes later."""
        self.num_owed += 1
        with suppress(PellucidError):  # If it has ended, its connection says so next.
            self.send(to_bytes(window.place()), window.raw)


class LocalCrew:
    """Processes, each with the model in its own memory.

    Args:
        run: the function that a process runs, as ``module:function``; see `Child`.
        task: its task.
        size: the number of processes.
        threads: the threads of each.
        devices: what they share out by turns, see `share_devices`.
    """

    def __init__(
        self,
        run: str,
        task: Mapping[str, Any],
        *,
        size: int,
        threads: int,
        devices: Sequence[str] = ("",),
    ) -> None:
        self.size = size
        self._devices = devices
        self._run = run
        self._arguments = {"task": dict(task), "threads": threads}
        self._workers: list[LocalWorker] = []

    def start(self) -> None:
        """Start one more worker."""
        taken = [worker.device for worker in self._workers]
        # One that ended has left its device to the next one.
        device = min(self._devices, key=taken.count)
        arguments = {**self._arguments, "visible": device}
        worker = LocalWorker(self._run, arguments, advice=ADVICE)
        worker.device = device
        self._workers.append(worker)

    def receive(self, seconds: float) -> list[tuple[Worker, Any]]:
        """Wait so long for replies; an exception is the end of a worker."""
        replies: list[tuple[Worker, Any]] = []
        began = time.monotonic()
        ready = wait([worker.connection for worker in self._workers], seconds)
        # No more than was asked for, as this process may have been stopped together with them.
        passed = min(time.monotonic() - began, seconds)
        # A copy, as workers that have ended are removed.
        for worker in list(self._workers):
            if worker.connection not in ready:
                if worker.is_still(passed):
                    self.drop(worker)
                    stopped = f"A worker process stood still for {SECONDS_TO_MOVE:.0f} s."
                    replies.append((worker, PellucidError(stopped)))
                continue
            try:
                reply = worker.receive()
                if reply != "ready":
                    worker.num_owed -= 1
                    replies.append((worker, reply))
                else:
                    # It has started; without a place this asks it to introduce itself.
                    worker.send(b"null")
            except Exception as error:
                self.drop(worker)
                replies.append((worker, error))
        return replies

    def drop(self, worker: LocalWorker) -> None:
        """End a worker, without waiting for it: it may hang in a call of the system."""
        self._workers.remove(worker)
        worker.process.kill()
        worker.connection.close()
        with suppress(TimeoutExpired):
            worker.process.wait(_SECONDS_TO_END)

    def close(self) -> None:
        """End all workers."""
        for worker in list(self._workers):
            self.drop(worker)


def _processor_ticks(pid: int) -> int | None:
    """Read how much of a processor a process has used; None where the system does not say."""
    try:
        # Its name, in brackets, may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[11]) + int(fields[12])
