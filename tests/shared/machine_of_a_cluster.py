"""The command line on a machine of a cluster, as a program: it has a name of its own.

It takes a moment to finish a piece, so that something can happen meanwhile, and misses the dead
after seconds.
"""

from __future__ import annotations

import os
import socket
import time
from typing import Any

from pellucid.bulk import board, driver
from pellucid.cli.main import main

NAME = "PELLUCID_TEST_MACHINE"
"""The variable with the name of the machine."""

_finish = board.Board.finish


def _finish_slowly(self: board.Board, *arguments: Any) -> None:
    time.sleep(0.1)
    _finish(self, *arguments)


if __name__ == "__main__":
    socket.gethostname = lambda: os.environ[NAME]
    for module in (board, driver):
        module.SECONDS_BETWEEN_BEATS = 0.3  # type: ignore[attr-defined]
    board.SECONDS_TO_DIE = 3.0
    board.Board.finish = _finish_slowly  # type: ignore[method-assign]
    main()
