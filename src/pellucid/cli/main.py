"""The entry point: run one command and exit with the right code.

An exception raised by a signal can get lost: a library's C code may drop or replace it, and in the
middle of an import it would leave a module half loaded. Therefore the signal is remembered, decides
how the command ends, and is raised again if the command keeps running.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from pellucid.cli.ending import drawing_folder, end_output, prepare_output, report, warn
from pellucid.errors import speaking_to
from pellucid.machine.hardware import limit_threads
from pellucid.machine.waiting import bound_spinning


def main() -> NoReturn:
    """Run the command that the process was started with, and exit.

    The process exits at once, without Python's clean-up. Everything is written and closed by then,
    and unloading PyTorch piece by piece would cost every command up to a second.
    """
    code = run(sys.argv[1:])
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Args:
        arguments: the command line after the word ``pellucid``.

    Returns:
        The exit code, of `pellucid.cli.ending.EXIT_CODES`. A failure has been reported in one
        sentence on standard error.
    """
    with speaking_to("command"):
        return _run_to_its_end(arguments)


def _run_to_its_end(arguments: Sequence[str]) -> int:
    stopping = Stopping()
    try:
        prepare_output()
        bound_spinning()
        limit_threads()
        # --quiet replaces standard error, which this puts back.
        quiet = contextlib.redirect_stderr(sys.stderr)
        with drawing_folder(), quiet, warnings.catch_warnings():
            # As any other warning of a command.
            warnings.showwarning = lambda message, *_, **__: warn(str(message))
            code = _run_command(list(arguments) or ["help"])
    except BaseException as error:
        code = report(stopping.end() or error)
    else:
        stopped = stopping.end()
        code = code if stopped is None else report(stopped)
    return end_output(code)


def _run_command(arguments: list[str]) -> int:
    """Show the list of commands, or run one of them; return the exit code."""
    # Imported late, so that Ctrl-C while Python loads the library ends without a traceback.
    from pellucid.cli.overview import asks_for_overview, show_overview

    if asks_for_overview(arguments):
        show_overview()
        return 0
    from pellucid.cli.app import dispatch

    return dispatch(arguments)


# Delay before a signal that came during an import is raised again. It is shorter than any work
# between two imports, so no such work is completed.
SECONDS_TO_IMPORT = 0.005

# Delay before a signal is raised again if the command still runs.
SECONDS_TO_CLEAN_UP = 5.0


class Stopping:
    """A handler of both signals. Ctrl-C stays ignored if it was."""

    def __init__(self) -> None:
        self._received: int | None = None
        signal.signal(signal.SIGTERM, self._stop)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._stop)

    def end(self) -> BaseException | None:
        """Stop raising, and return the exception for the signal that was received, if any."""
        self._raise_again_in(0)
        return None if self._received is None else _to_exception(self._received)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._received = number
        if hasattr(signal, "setitimer") and _is_importing(frame):
            self._raise_again_in(SECONDS_TO_IMPORT)
        else:
            self._raise_again_in(SECONDS_TO_CLEAN_UP)
            raise _to_exception(number)

    def _raise_again_in(self, seconds: float) -> None:
        """Set the timer; 0 cancels it."""
        number = self._received
        if number is not None and hasattr(signal, "setitimer"):  # Windows lacks it
            signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
            signal.setitimer(signal.ITIMER_REAL, seconds)


def _to_exception(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
