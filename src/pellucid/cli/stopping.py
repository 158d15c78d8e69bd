"""Ctrl-C and SIGTERM end a command by an exception, so that half-written files are removed.

An exception that a signal raises can be lost in a library's C code, which drops it or makes another
one of it, and in the middle of an import it leaves a module half read. So what has come is noted
and decides how the command ends; it comes again where nothing came of it.
"""

from __future__ import annotations

import signal
from types import FrameType

__all__ = ["Stopping"]

SECONDS_TO_IMPORT = 0.005
"""After how long a signal that came while a module was imported comes again: less than any work
between two imports, so that none is done to the end."""

SECONDS_TO_CLEAN_UP = 5.0
"""After how long it comes again where the command still runs."""


class Stopping:
    """Takes over both signals, unless Ctrl-C is ignored; `end` says what has come."""

    def __init__(self) -> None:
        self._noted: int | None = None
        signal.signal(signal.SIGTERM, self._stop)
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._stop)

    def end(self) -> BaseException | None:
        """Let nothing come again, and hand back what the signal that came means."""
        self._come_again(0)
        return None if self._noted is None else _meaning(self._noted)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._noted = number
        if hasattr(signal, "setitimer") and _is_importing(frame):
            self._come_again(SECONDS_TO_IMPORT)
        else:
            self._come_again(SECONDS_TO_CLEAN_UP)
            raise _meaning(number)

    def _come_again(self, seconds: float) -> None:
        number = self._noted
        if number is not None and hasattr(signal, "setitimer"):  # Windows has none
            signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(number))
            signal.setitimer(signal.ITIMER_REAL, seconds)


def _meaning(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False
