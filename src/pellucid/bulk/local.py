"""Workers as processes of this machine."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import Any

from pellucid.bulk.driver import Window, Worker
from pellucid.errors import PellucidError
from pellucid.machine.processes import Child, end_all, to_bytes

ADVICE = "Use fewer workers (--workers), since each has the model in its own memory."


class LocalWorker:
    """A process; it sends its identity as soon as it is ready."""

    def __init__(self, run: str, arguments: Mapping[str, Any]) -> None:
        self.child = Child(run, arguments, advice=ADVICE)
        with suppress(PellucidError):
            self.child.send(b"null")

    def send(self, window: Window) -> None:
        """Send a window; its answer comes later."""
        with suppress(PellucidError):  # If it has ended, its connection says so next.
            self.child.send(to_bytes(window.place()), window.raw)


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
        self._workers: dict[Connection, LocalWorker] = {}

    def start(self) -> None:
        """Start one more worker."""
        worker = LocalWorker(self._run, self._arguments)
        self._workers[worker.child.connection] = worker

    def receive(self, seconds: float) -> list[tuple[Worker, list[Any] | Exception]]:
        """Wait so long for replies; an exception is the end of a worker."""
        replies: list[tuple[Worker, list[Any] | Exception]] = []
        for connection in wait(list(self._workers), seconds):
            assert isinstance(connection, Connection)
            worker = self._workers[connection]
            try:
                reply = worker.child.receive()
            except Exception as error:
                del self._workers[connection]
                end_all([worker.child])
                replies.append((worker, error))
            else:
                if reply != "ready":
                    replies.append((worker, reply))
        return replies

    def close(self) -> None:
        """End all workers."""
        end_all([worker.child for worker in self._workers.values()])
        self._workers.clear()
