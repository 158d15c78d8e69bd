"""The door of the command line: run one command, and end with the right exit code."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from pellucid.cli.ending import end_output, prepare_output, report
from pellucid.cli.stopping import Stopping

__all__ = ["main", "run"]


def main() -> NoReturn:
    """Run the command that the process was started with, and exit.

    The process leaves at once: everything is written and closed by then, and taking PyTorch down
    piece by piece would cost up to a second of every command.
    """
    code = run(sys.argv[1:])
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.flush()
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command.

    Args:
        arguments: what follows the word ``pellucid``.

    Returns:
        The exit code: 0 fine, 1 the world failed, 2 the input must change, 130 Ctrl-C, 143
        SIGTERM. Whatever went wrong has been said in one sentence on standard error.
    """
    stopping = Stopping()
    try:
        prepare_output()
        # Imported late, so that Ctrl-C while Python reads the library ends without a traceback.
        from pellucid.cli.app import dispatch

        code = dispatch(list(arguments) or ["--help"])
    except BaseException as error:
        code = report(stopping.end() or error)
    else:
        stopped = stopping.end()
        code = code if stopped is None else report(stopped)
    return end_output(code)
