"""Workers as actors of a Ray cluster: bytes go in and come out, so that no disk is shared."""

from __future__ import annotations

import logging
import socket
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from pellucid.bulk.driver import Worker, WorkerWindow
from pellucid.bundle import resolve_model
from pellucid.errors import PellucidError, need_library
from pellucid.files import read_bytes
from pellucid.machine.devices import CPU

# Ray's names of what an actor has one of.
_KINDS = ("CPU", "GPU")

SECONDS_TO_JOIN = 90.0
# Time in which a cluster must start its first worker.
SECONDS_TO_START = 180.0

# Ray's C++ ends a process whose cluster is gone, with code 1 and no word. Another process speaks.
_SPEAKER = 'read -r word || printf "%s\\n" "$1" >&2'
_LAST_WORDS = (
    "error: This command was killed, or Ray ended it, as it does when its cluster is lost (see "
    "/tmp/ray/session_latest/logs). Finished pieces are kept: give the command again."
)


class Actor:
    """A worker on some machine of the cluster; it loads the model when it introduces itself.

    Args:
        make: the class of the work, as ``module:class``.
        task: its task, with numbers for the names of files.
        files: their content.
    """

    def __init__(self, make: str, task: Mapping[str, Any], files: Mapping[str, bytes]) -> None:
        self._make = make
        self._task = task
        self._files = files
        self._work: Any = None

    def introduce(self) -> Any:
        """Load the model, and return what the worker does."""
        # Kept as long as the actor, since the model reads its files from there.
        self._folder = tempfile.TemporaryDirectory()
        for name, data in self._files.items():
            path = Path(self._folder.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        module, _, name = self._make.partition(":")
        task = _rename(self._task, lambda number: str(Path(self._folder.name, number)))
        self._work = getattr(import_module(module), name)(task, 1)
        return self._work.introduce()

    def answer(self, place: list[Any], raw: bytes) -> Any:
        """Answer a window."""
        return self._work.answer(place, raw)


class RayWorker:
    """An actor, with the answers that it owes."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.owed: deque[Any] = deque([actor.introduce.remote()])

    def send_window(self, window: WorkerWindow) -> None:
        """Send a window; its answer comes later."""
        self.owed.append(self.actor.answer.remote(window.place(), window.raw))


class RayCrew:
    """Actors, with one processor each, or one GPU.

    Args:
        address: of the cluster; ``auto`` finds one, ``local`` starts one on this machine.
        make: the class of the work, as ``module:class``.
        task: its task.
        size: the number of actors; None for one a processor, or one a GPU if they compute there.

    Raises:
        InputError: Ray is not installed.
        PellucidError: the cluster cannot be joined.
    """

    def __init__(
        self, address: str, make: str, task: Mapping[str, Any], *, size: int | None
    ) -> None:
        self._ray = need_library("ray", "--ray")
        self._address = address
        self._begun = time.monotonic()
        self._workers: list[RayWorker] = []
        self._is_up = False
        # Its one thread lives as long as the crew: Ray's processes end with the thread that started
        # them. In a thread, Ray leaves SIGTERM to us, and need not be waited for.
        self._starter = ThreadPoolExecutor(1)
        self._speaker: subprocess.Popen[bytes] | None = None
        logging.getLogger("ray").setLevel(logging.CRITICAL)
        host, _, port = address.rpartition("/")[2].rpartition(":")
        with self._speaking():
            if port.isdecimal():  # Ray would wait for minutes.
                socket.create_connection((host, int(port)), SECONDS_TO_JOIN).close()
            self._starter.submit(
                self._ray.init, address, log_to_driver=False, logging_level="CRITICAL"
            ).result(SECONDS_TO_JOIN)
            self._speaker = subprocess.Popen(
                ["sh", "-c", _SPEAKER, "sh", _LAST_WORDS],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                process_group=0,
            )
            # Of devices, an actor sees those only that Ray gave it.
            is_on_gpu = task.get("device", CPU) != CPU
            self.size = size or int(self._ray.cluster_resources().get(_KINDS[is_on_gpu], 1))
            files: dict[str, bytes] = {}
            packed = _rename(task, lambda name: _pack(name, files))
            # The files travel once to each machine, not with each actor.
            arguments = {"make": make, "task": packed, "files": self._ray.put(files)}
            actor = self._ray.remote(num_cpus=1, num_gpus=int(is_on_gpu))(Actor)
            self._hire = partial(actor.remote, **arguments)

    def start(self) -> None:
        """Start one more worker."""
        with self._speaking():
            self._workers.append(RayWorker(self._hire()))

    def receive(self, seconds: float) -> list[tuple[Worker, Any]]:
        """Wait so long for replies; an exception is the end of a worker."""
        if not self._is_up and time.monotonic() - self._begun > SECONDS_TO_START:
            raise PellucidError(
                f"The Ray cluster at {self._address} started no worker within "
                f"{SECONDS_TO_START:.0f} s. Check with ray status that it has a free processor."
            )
        # An actor answers in order, so that only its oldest answer can come.
        first = {worker.owed[0]: worker for worker in self._workers if worker.owed}
        replies: list[tuple[Worker, Any]] = []
        # Nothing is owed: to ask again at once would keep a processor busy.
        if not first:
            time.sleep(seconds)
            return replies
        with self._speaking():
            ready, _ = self._ray.wait(list(first), timeout=seconds)
        for reference in ready:
            worker = first[reference]
            worker.owed.popleft()
            try:
                replies.append((worker, self._ray.get(reference)))
                self._is_up = True
            except Exception as error:
                self.drop(worker)
                # Ray wraps what its actor raised; our own errors have a sentence for users.
                cause = getattr(error, "cause", None)
                lost = PellucidError("its actor ended, as happens when memory runs out")
                replies.append((worker, cause if isinstance(cause, Exception) else lost))
        return replies

    def drop(self, worker: RayWorker) -> None:
        """End a worker, without waiting for it."""
        self._workers.remove(worker)
        with suppress(Exception):
            self._ray.kill(worker.actor)

    def close(self) -> None:
        """End all workers, and leave the cluster."""
        self._workers.clear()
        if self._speaker is not None:
            self._speaker.communicate(b"Bye\n")
            self._speaker = None
            with suppress(Exception):
                self._ray.shutdown()
        self._starter.shutdown(wait=False)

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.close()
            reason = " ".join(str(error).split()) or type(error).__name__
            raise PellucidError(
                f"The Ray cluster at {self._address} cannot be used: {reason.rstrip('.')}. Check "
                "the address, and that all machines have the same versions of Ray and Python."
            ) from error


def _rename(task: Mapping[str, Any], name: Callable[[str], str]) -> dict[str, Any]:
    """Give the files that a task names other names."""
    return {**task, "files": {kind: [*map(name, old)] for kind, old in task["files"].items()}}


def _pack(name: str, files: dict[str, bytes]) -> str:
    """Read a file, or those of a model, and return the number that names it."""
    path = Path(name)
    number = f"{len(files)}"
    if path.is_file():
        files[number] = read_bytes(path)
        return number
    parts = [part for part in resolve_model(name).iterdir() if part.is_file()]
    files |= {f"{number}/{part.name}": read_bytes(part) for part in parts}
    return number
