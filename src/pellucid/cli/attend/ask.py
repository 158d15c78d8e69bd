"""Reading what a user types in a terminal: the next page, or the answer to a question."""

from __future__ import annotations

import signal
import sys


def is_terminal() -> bool:
    """Return True if a user reads standard output and types standard input."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def read_line() -> str:
    """Read a line of standard input; empty at its end.

    Raises:
        KeyboardInterrupt: Ctrl-C was typed. It ends the reading, not the command.
    """
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):
        return sys.stdin.readline()
    # The command's handler would remember the signal and end the command with an error.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)


def ask(prompt: str) -> str | None:
    """Show a prompt and read a line; None if the user ends it by Ctrl-C or Ctrl-D."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    try:
        line = read_line()
    except (KeyboardInterrupt, UnicodeDecodeError):
        line = ""
    if not line:
        sys.stdout.write("\n")
        return None
    return line.strip()
