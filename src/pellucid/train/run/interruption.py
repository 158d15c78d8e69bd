"""Ctrl-C, SIGTERM and a closed terminal: finish the step, save, then leave."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

__all__ = ["Interruption"]


class Interruption:
    """While entered, the first signal to end only raises a flag; a second acts at once.

    The signals are SIGINT, SIGTERM, and SIGHUP, which a terminal that is closed or a connection
    that breaks off sends, unless that one is ignored, as ``nohup`` makes it.

    ``signal`` is what has come, or None. Who enters looks at it where everything can be saved, and
    then calls `leave`. In a phase that may be abandoned, `at_once`, the first acts at once too.
    A signal that nobody has acted on is raised at the end, so that none is lost.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._may_abandon = False
        self._previous: dict[int, object] = {}

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            for number in _signals():
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._previous.items():
            # None stands for a handler that Python did not set and cannot set again.
            signal.signal(number, handler or signal.SIG_DFL)  # type: ignore[arg-type]
        self._previous.clear()
        if kind is None:
            self.leave()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """A phase that loses nothing of worth when it is abandoned: a signal ends it at once.

        One that has come before ends it before it begins.

        Raises:
            KeyboardInterrupt: Ctrl-C.
            SystemExit: SIGTERM with code 143, SIGHUP with 129.
        """
        self.leave()
        self._may_abandon = True
        try:
            yield
        finally:
            self._may_abandon = False
        # Python drops what is raised while an object is taken down; the flag stays.
        self.leave()

    def leave(self) -> None:
        """Raise what the signal means, now that everything is saved; nothing where none came."""
        if self.signal == signal.SIGINT:
            raise KeyboardInterrupt
        if self.signal is not None:
            raise SystemExit(128 + self.signal)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        is_second = self.signal is not None
        self.signal = number
        if is_second or self._may_abandon:
            self.leave()


def _signals() -> list[signal.Signals]:
    numbers = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none.
    if hangup is not None and signal.getsignal(hangup) != signal.SIG_IGN:
        numbers.append(hangup)
    return numbers
