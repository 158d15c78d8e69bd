"""Processes that work for this one, each with memory of its own.

Threads of one Python wait for each other at its lock; processes do not. One here is a fresh
Python: no fork, which the threads of PyTorch do not survive, and no second run of the user's
script, as `multiprocessing` makes it. Parent and child are the two ends of a socket pair that
nobody else holds. What they say is bytes, mostly JSON, which gives floats back bit for bit: nothing
is pickled, and nothing goes to a disk or a network. A child leaves Ctrl-C and SIGTERM to its
parent, and ends by itself as soon as its parent has.
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

__all__ = ["Child", "end_all", "serve_parent", "to_bytes"]

_PROGRAM = """
import signal, sys
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    if hasattr(signal, name):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
from importlib import import_module
from json import loads
told = loads(sys.argv[1])
sys.path[:] = told["path"]
module, _, function = told["run"].partition(":")
getattr(import_module(module), function)(**told["arguments"])
"""

Take = Callable[[], bytes]


class Child:
    """A process as its parent sees it.

    Args:
        run: the function that it runs, as ``module:function``. It is called with ``descriptor``,
            its end of the socket pair, besides ``arguments``, and calls `serve_parent`.
        arguments: for that function, as JSON has them.
        descriptors: open files that it keeps, under the same numbers.
        advice: what to do where it cannot start, or ends too soon; a sentence.

    Raises:
        PellucidError: the system refused to start it.
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
        with theirs:
            told = {
                "run": run,
                "arguments": {**arguments, "descriptor": theirs.fileno()},
                "path": [str(place) for place in sys.path],
            }
            try:
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-c", _PROGRAM, json.dumps(told)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno(), *descriptors],
                    process_group=0,  # Ctrl-C at a terminal is for the parent alone.
                )
            except OSError as error:
                self.connection.close()
                raise PellucidError(
                    "A worker process must be able to start, but the system refused: "
                    f"{error.strerror or error}. {advice}"
                ) from error

    def send(self, *messages: bytes) -> None:
        """Hand over some messages, in order.

        Raises:
            PellucidError: the process has ended.
        """
        try:
            for message in messages:
                self.connection.send_bytes(message)
        except OSError:
            raise self._death() from None

    def receive(self) -> Any:
        """Wait for a reply; an error that the process met with is raised here.

        Raises:
            PellucidError: the process has ended, or met with one.
            MemoryError: its memory ran out.
            RuntimeError: it met with something unforeseen.
        """
        try:
            reply = json.loads(self.connection.recv_bytes())
        except (EOFError, OSError):
            raise self._death() from None
        if isinstance(reply, dict):
            raise _error_of_json(**reply)
        return reply

    def _death(self) -> PellucidError:
        code = self.process.wait()
        how = f"ended with exit code {code}"
        if code < 0:
            how = f"was ended by signal {-code}"
        if code == -signal.SIGKILL:
            how += ", as happens when memory runs out"
        return PellucidError(
            f"A worker process must last until the end, but one {how}. {self._advice}"
        )


def end_all(children: list[Child]) -> None:
    """End processes and forget them; they hold nothing that could get lost."""
    for child in children:
        child.process.kill()
    for child in children:
        child.process.wait()
        child.connection.close()
    children.clear()


def serve_parent(descriptor: int, set_up: Callable[[], Callable[[Take], Any]]) -> NoReturn:
    """Be a child: answer what the parent sends, until it closes its end or an error ends it.

    Args:
        descriptor: of this process's end of the socket pair.
        set_up: gives the function that makes each reply, which JSON must be able to write and
            which is no object, from messages that it takes one after the other. Once it has
            returned, ``"ready"`` is sent.
    """
    connection = Connection(descriptor)
    messages: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(connection, messages), daemon=True).start()
    # A parent that went away does not want to hear of it.
    with suppress(OSError):
        try:
            answer = set_up()
            connection.send_bytes(to_bytes("ready"))
            while True:
                connection.send_bytes(to_bytes(answer(messages.get)))
        except Exception as error:
            connection.send_bytes(to_bytes(_error_to_json(error)))
    os._exit(0)


def to_bytes(message: Any) -> bytes:
    """JSON without a space."""
    return json.dumps(message, separators=(",", ":")).encode()


def _read(connection: Connection, messages: SimpleQueue[bytes]) -> None:
    """Take in what the parent sends; end the process with it, even in the middle of its work."""
    code = 1
    try:
        while True:
            messages.put(connection.recv_bytes())
    except (EOFError, OSError):
        code = 0
    finally:
        os._exit(code)


def _error_to_json(error: Exception) -> dict[str, str]:
    trace = "".join(traceback.format_exception(error))
    return {"kind": type(error).__name__, "message": str(error), "trace": trace}


def _error_of_json(kind: str, message: str, trace: str) -> Exception:
    """The error that a child met with, of its own kind where that is one of ours."""
    found = {**vars(errors), "MemoryError": MemoryError}.get(kind)
    if isinstance(found, type) and issubclass(found, PellucidError | MemoryError):
        error: Exception = found(message)
    else:
        error = RuntimeError(f"{kind} in a worker process: {message}")
    error.add_note(trace)
    return error
