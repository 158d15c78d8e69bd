"""Ctrl-C, SIGTERM and a closed terminal: finish the step, save, then exit."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Delays signals to end: inside the context the first only sets a flag, a second ends at once.

    The signals are SIGINT, SIGTERM, and SIGHUP, which a closed terminal or a broken connection
    sends; SIGHUP only if it is not ignored, as under ``nohup``.

    ``signal`` is the signal that came, or None. The caller checks it whenever everything can be
    saved, and then calls `exit_if_signaled`. In an `abandonable` phase the first signal ends at
    once too. A signal that the caller did not act on is raised at the end, so that none is lost.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._may_abandon = self._is_passed_on = False
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in ending_signals():
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        for number, handler in self._previous.items():
            # None means a handler that Python did not set and cannot set again.
            signal.signal(number, handler or signal.SIG_DFL)  # type: ignore[arg-type]
        self._previous.clear()
        if kind is None:
            self.exit_if_signaled()

    @contextmanager
    def abandonable(self) -> Iterator[None]:
        """Mark a phase that may be abandoned without a loss: a signal ends it at once.

        A signal that came before ends it before it begins.

        Raises:
            KeyboardInterrupt: Ctrl-C.
            SystemExit: SIGTERM with code 143, SIGHUP with 129.
        """
        self.exit_if_signaled()
        self._may_abandon = True
        try:
            yield
        finally:
            self._may_abandon = False
        # An exception raised inside an object's __del__ is lost, but the flag is still set.
        self.exit_if_signaled()

    def exit_if_signaled(self) -> None:
        """Raise the signal's exception, now that everything is saved; without one, do nothing."""
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal is not None:
            raise SystemExit(128 + self.signal)

    def pass_on(self, number: int) -> None:
        """Take a signal that came to another process of this training, unless one came here.

        It may be called by any thread, and never counts as the second.
        """
        if self.signal is None and self._previous:
            self._is_passed_on = True
            signal.raise_signal(number)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        is_second = self.signal is not None and not self._is_passed_on
        self._is_passed_on = False
        self.signal = number
        if is_second or self._may_abandon:
            self.exit_if_signaled()


def ending_signals() -> list[signal.Signals]:
    """List the signals that ask this process to end."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)  # Not on Windows.
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:
        numbers.append(hangup)
    return numbers
