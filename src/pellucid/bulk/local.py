"""Workers as processes of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import wait
from subprocess import TimeoutExpired
from typing import Any

from pellucid.bulk.driver import Worker, WorkerWindow
from pellucid.errors import PellucidError
from pellucid.machine.processes import Child, to_bytes

ADVICE = "Use fewer workers (--workers), since each has the model in its own memory."
_SECONDS_TO_END = 1.0


class LocalWorker(Child):
    """A process that answers windows."""

    def send_window(self, window: WorkerWindow) -> None:
        """Send a window; its answer comes later."""
        with suppress(PellucidError):  # If it has ended, its connection says so next.
            self.send(to_bytes(window.place()), window.raw)


class LocalCrew:
    """Processes, each with the model in its own memory.

    Args:
        run: the function that a process runs, as ``module:function``; see `Child`.
        task: its task.
        size: the number of processes.
        threads: the threads of each.
    """

    def __init__(self, run: str, task: Mapping[str, Any], *, size: int, threads: int) -> None:
        self.size = size
        self._run = run
        self._arguments = {"task": dict(task), "threads": threads}
        self._workers: list[LocalWorker] = []

    def start(self) -> None:
        """Start one more worker."""
        self._workers.append(LocalWorker(self._run, self._arguments, advice=ADVICE))

    def receive(self, seconds: float) -> list[tuple[Worker, Any]]:
        """Wait so long for replies; an exception is the end of a worker."""
        replies: list[tuple[Worker, Any]] = []
        ready = wait([worker.connection for worker in self._workers], seconds)
        # A copy, as workers that have ended are removed.
        for worker in [one for one in self._workers if one.connection in ready]:
            try:
                reply = worker.receive()
                if reply != "ready":
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
        for worker in self._workers:  # All end side by side.
            worker.process.kill()
        for worker in list(self._workers):
            self.drop(worker)
