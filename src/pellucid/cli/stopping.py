"""Ctrl-C and SIGTERM as exceptions, so that half-written files are removed.

An exception raised by a signal can get lost: a library's C code may drop or replace it, and in the
middle of an import it would leave a module half loaded. Therefore the signal is remembered, decides
how the command ends, and is raised again if the command keeps running.
"""

from __future__ import annotations

import signal
from types import FrameType

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
