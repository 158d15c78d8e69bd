"""Python's search for unreachable cycles of objects, kept short and out of the way of requests.

While it searches, no thread runs Python. It looks at all objects that have lasted for a while:
with PyTorch's modules, or with a request of thousands of lines, for a quarter of a second, again
and again. Here it never looks at what was there when the server started, and looks at what lasts
only when nothing is computed, or once a minute.
"""

from __future__ import annotations

import gc
import sys
import time

YOUNG = (1_000, 20)
"""New objects after which the youngest are searched, and such searches after which the others of
the last seconds are: a few milliseconds."""

NEVER = 2**31 - 1

IDLE_SECONDS = 5.0
BUSY_SECONDS = 60.0
"""Time between two searches of everything, if there is nothing to do and if there is."""


def leave_what_is_there() -> None:
    """Never again search the objects that exist now, and none that last unless told to."""
    gc.freeze()
    gc.set_threshold(*YOUNG, NEVER)


class Garbage:
    """Searches everything from time to time; for the computing thread."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._num_modules = len(sys.modules)

    def search(self, *, is_idle: bool) -> None:
        """Search if it is time to; what modules loaded since then have made is not searched again.

        Args:
            is_idle: True if nothing waits to be computed.
        """
        wait = IDLE_SECONDS if is_idle else BUSY_SECONDS
        if gc.get_threshold()[2] != NEVER or time.monotonic() - self._last < wait:
            return
        if len(sys.modules) > self._num_modules:
            self._num_modules = len(sys.modules)
            gc.freeze()
        else:
            gc.collect()
        self._last = time.monotonic()
