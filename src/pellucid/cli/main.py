"""The entry point: run one command and exit with the right code."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

from pellucid.cli.ending import drawing_folder, end_output, prepare_output, report, warn
from pellucid.cli.stopping import Stopping
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
