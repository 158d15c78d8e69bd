"""Child processes that work for this one, each with its own memory.

Threads of one Python wait for each other at its lock; processes do not. A child is a fresh Python.
It is not a fork, because PyTorch's threads do not survive one, and it does not run the user's
script again, as `multiprocessing` would. Parent and child talk over a private socket pair. Messages
are bytes, mostly JSON, which returns floats bit for bit; nothing is pickled, and nothing touches a
disk or a network. A child leaves Ctrl-C and SIGTERM to its parent, and ends itself as soon as the
parent has ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from queue import SimpleQueue
from typing import Any, NoReturn

from pellucid import errors
from pellucid.errors import PellucidError

_PROGRAM = """
import signal, sys
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
from importlib import import_module
from json import loads
task = loads(sys.argv[1])
sys.path[:] = task["path"]
module, _, function = task["run"].partition(":")
getattr(import_module(module), function)(**task["arguments"])
"""

_SECONDS_TO_END = 10.0

Take = Callable[[], bytes]
"""Waits for the next message of the parent and returns it."""


class Child:
    """A child process as its parent sees it.

    Args:
        run: the function to run there, as ``module:function``. It takes ``arguments`` and
            ``descriptor``, the child's end of the socket pair, and calls `serve_parent`.
        arguments: keyword arguments of that function; JSON must be able to write them.
        descriptors: open files that the child inherits under the same numbers.
        advice: a sentence for the user if the child cannot start or ends too soon.

    Raises:
        PellucidError: the system refused to start the process.
    """

    def __init__(
        self,
        run: str,
        arguments: Mapping[str, Any],
        *,
        descriptors: Sequence[int] = (),
        advice: str,
    ) -> None:
        self._advice = advice
        self.connection, theirs = Pipe()
        # While this process holds the child's end, the child's death does not end the stream.
        with theirs:
            task = {
                "run": run,
                "arguments": {**arguments, "descriptor": theirs.fileno()},
                "path": [str(place) for place in sys.path],
            }
            try:
                self.process = subprocess.Popen(
                    # -P leaves out the current folder: the task brings the whole path.
                    [sys.executable, "-P", "-c", _PROGRAM, json.dumps(task)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno(), *descriptors],
                    process_group=0,  # Ctrl-C at a terminal then reaches only the parent.
                )
            except OSError as error:
                self.connection.close()
                raise PellucidError(
                    f"A worker process could not start: {error.strerror or error}. {advice}"
                ) from error

    def send(self, *messages: bytes) -> None:
        """Send messages, in order.

        Raises:
            PellucidError: the child has ended.
        """
        try:
            for message in messages:
                self.connection.send_bytes(message)
        except OSError:
            raise self._death() from None

    def receive(self) -> Any:
        """Wait for a reply. An error that the child reports is raised here.

        Raises:
            PellucidError: the child has ended, or reports such an error.
            MemoryError: the child ran out of memory.
            RuntimeError: the child reports any other error.
        """
        try:
            reply = json.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise self._death() from None
        if isinstance(reply, dict):  # an answer is never an object: see `serve_parent`
            raise _error_of_json(**reply)
        return reply

    def _death(self) -> PellucidError:
        try:
            code = self.process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            # The connection broke although the child lives; nobody could reach it any more.
            self.process.kill()
            code = self.process.wait()
        how = f"ended with exit code {code}"
        if code < 0:
            how = f"was ended by signal {-code}"
        if code == -signal.SIGKILL:
            how += ", as happens when memory runs out"
        return PellucidError(f"A worker process {how}. {self._advice}")


def end_all(children: list[Child]) -> None:
    """Kill processes and clear the list; they hold nothing that could get lost."""
    # All end side by side; only then each is waited for.
    for child in children:
        child.process.kill()
    for child in children:
        child.process.wait()
        child.connection.close()
    children.clear()


def serve_parent(descriptor: int, set_up: Callable[[], Callable[[Take], Any]]) -> NoReturn:
    """Be a child: answer the parent's messages until it closes its end or an error occurs.

    Args:
        descriptor: this process's end of the socket pair.
        set_up: returns the function that answers. That function takes as many messages as it
            needs and returns a reply, which JSON must be able to write and which must not be an
            object. ``"ready"`` is sent once ``set_up`` has returned.
    """
    connection = Connection(descriptor)
    messages: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(connection, messages), daemon=True).start()
    with suppress(OSError):  # the parent has ended: nothing is left to report
        try:
            answer = set_up()
            connection.send_bytes(to_bytes("ready"))
            while True:
                connection.send_bytes(to_bytes(answer(messages.get)))
        except Exception as error:
            connection.send_bytes(to_bytes(_error_to_json(error)))
    # At once: the reading thread still waits for the parent.
    os._exit(0)


def to_bytes(message: Any) -> bytes:
    """Write a message as JSON, without spaces."""
    return json.dumps(message, separators=(",", ":")).encode()


def _read(connection: Connection, messages: SimpleQueue[bytes]) -> None:
    """Receive the parent's messages; end this process with the parent, even amid its work."""
    code = 1
    try:
        while True:
            messages.put(connection.recv_bytes())
    except (EOFError, OSError):
        code = 0
    finally:
        # `sys.exit` would end only this thread, not the work of the other one.
        os._exit(code)


def _error_to_json(error: Exception) -> dict[str, str]:
    trace = "".join(traceback.format_exception(error))
    # The parent words it for its own caller.
    message = error.sentence if isinstance(error, PellucidError) else str(error)
    return {"kind": type(error).__name__, "message": message, "trace": trace}


def _error_of_json(kind: str, message: str, trace: str) -> Exception:
    """Rebuild a child's error: in its class if that is one of ours, else as a RuntimeError."""
    # A caller that runs out of memory makes its batches smaller.
    found = {**vars(errors), "MemoryError": MemoryError}.get(kind)
    if isinstance(found, type) and issubclass(found, PellucidError | MemoryError):
        error: Exception = found(message)
    else:
        error = RuntimeError(f"{kind} in a worker process: {message}")
    error.add_note(trace)
    return error
