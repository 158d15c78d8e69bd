"""One line of progress that is replaced, and erased at the end."""

from __future__ import annotations

import contextlib
import sys
from types import TracebackType


class Doing:
    """Shows on standard error what is being computed, if that is a terminal."""

    def __init__(self) -> None:
        self._is_shown = bool(sys.stderr) and sys.stderr.isatty()

    def __enter__(self) -> Doing:
        """Begin."""
        return self

    def say(self, doing: str) -> None:
        """Replace the line."""
        self._write(f"\r\x1b[K{doing[:76]} …")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Erase the line."""
        self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        if not self._is_shown:
            return
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()
