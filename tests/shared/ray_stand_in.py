"""A stand-in for Ray: actors are processes, and so is the cluster, which lives and dies as Ray's.

Ray starts its processes with ``PR_SET_PDEATHSIG``: the kernel kills them when the thread that
started them has ended. Once the cluster is gone, Ray's C++ ends the process that speaks to it, with
code 1 and without a word.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from multiprocessing import get_context
from typing import Any

CPUS = 2
GPUS = 3

needs: dict[str, float] = {}
"""What each actor was given, as the driver asked for it last."""

_PR_SET_PDEATHSIG = 1
_state: dict[str, Any] = {}


def _die_with_thread() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def init(address: str, **_: Any) -> None:
    """Start the cluster of this machine."""
    assert address == "local", address
    command = [sys.executable, "-c", "import time; time.sleep(1000)"]
    _state["cluster"] = subprocess.Popen(command, preexec_fn=_die_with_thread)
    _state["actors"] = []


def _need_cluster() -> None:
    if _state["cluster"].poll() is not None:
        os._exit(1)


def cluster_resources() -> dict[str, float]:
    """Say how many processors and GPUs there are."""
    return {"CPU": float(CPUS), "GPU": float(GPUS)}


def put(value: Any) -> Any:
    """Keep a value in the cluster."""
    _need_cluster()
    return value


class _Method:
    def __init__(self, handle: _Handle, name: str) -> None:
        self._handle = handle
        self._name = name

    def remote(self, *arguments: Any) -> _Reference:
        self._handle.pipe.send((self._name, arguments))
        return _Reference(self._handle)


class _Reference:
    """A result to come; an actor answers in order."""

    def __init__(self, handle: _Handle) -> None:
        self.handle = handle


class _Handle:
    """An actor, seen by the driver."""

    def __init__(self, kind: type, arguments: dict[str, Any]) -> None:
        context = get_context("fork")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, kind, arguments), daemon=True)
        self.process.start()
        theirs.close()
        _state["actors"].append(self)

    def __getattr__(self, name: str) -> _Method:
        return _Method(self, name)


class _Class:
    def __init__(self, kind: type) -> None:
        self._kind = kind

    def remote(self, **arguments: Any) -> _Handle:
        _need_cluster()
        return _Handle(self._kind, arguments)


def remote(**asked: Any) -> Any:
    """Make a class one of actors."""
    needs.update(asked)
    return _Class


def wait(references: Sequence[_Reference], timeout: float) -> tuple[list[_Reference], list[Any]]:
    """Wait so long for results."""
    _need_cluster()
    deadline = time.monotonic() + timeout
    while True:
        ready = [one for one in references if one.handle.pipe.poll()]
        if ready or time.monotonic() > deadline:
            return ready, []
        time.sleep(0.01)


def get(reference: _Reference) -> Any:
    """Return a result, or raise what its actor raised."""
    try:
        is_error, value = reference.handle.pipe.recv()
    except (EOFError, OSError):
        raise RuntimeError("The actor died unexpectedly.") from None
    if is_error:
        error = RuntimeError("an actor's error")
        error.cause = value  # type: ignore[attr-defined]
        raise error
    return value


def kill(handle: _Handle) -> None:
    """End an actor."""
    handle.process.kill()


def shutdown() -> None:
    """End the cluster."""
    for handle in _state["actors"]:
        handle.process.kill()
    _state["cluster"].kill()


def _serve(pipe: Any, kind: type, arguments: dict[str, Any]) -> None:
    _die_with_thread()
    actor = kind(**arguments)
    while True:
        name, values = pipe.recv()
        try:
            pipe.send((False, getattr(actor, name)(*values)))
        except Exception as error:
            pipe.send((True, error))
