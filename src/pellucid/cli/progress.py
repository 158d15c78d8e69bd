"""The progress of a command: lines done, lines per second, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pellucid.cli.ending import warn

SECONDS_BETWEEN = 10.0
"""Minimum time between two lines about progress in a log."""


def is_terminal(name: str) -> bool:
    """Tell whether ``stdin``, ``stdout`` or ``stderr`` is a terminal."""
    stream = getattr(sys, name)
    return stream is not None and not stream.closed and bool(stream.isatty())


@contextmanager
def show_progress(
    *, is_wanted: bool, total: int | None, done: int = 0
) -> Iterator[Callable[[int], None]]:
    """Show progress on standard error: a bar on a terminal, otherwise lines for a log.

    Args:
        is_wanted: False shows nothing.
        total: number of lines, if known.
        done: number of lines done before this command started.

    Yields:
        A function to call with the number of lines done so far.
    """
    started = time.monotonic()

    def describe(now: int) -> str:
        return describe_progress(now, total=total, before=done, seconds=time.monotonic() - started)

    if not is_wanted:
        yield lambda now: None
    elif is_terminal("stderr"):
        with _bar(total, done) as update:
            yield lambda now: update(now, describe(now))
    else:
        last_written = started

        def log(now: int) -> None:
            nonlocal last_written
            if time.monotonic() - last_written >= SECONDS_BETWEEN or now == total:
                last_written = time.monotonic()
                warn(describe(now))

        yield log


def describe_progress(done: int, *, total: int | None, before: int, seconds: float) -> str:
    """Describe progress in words.

    Args:
        done: number of lines done so far.
        total: number of lines to do, if known.
        before: number of lines in ``done`` that were done before the start.
        seconds: time since the start.

    Returns:
        For instance ``4,000 of 20,000 lines, 512 lines/s, 0:31 left``.
    """
    rate = (done - before) / seconds if seconds > 0 else 0.0
    words = f"{done:,} lines" if total is None else f"{done:,} of {total:,} lines"
    if rate > 0:
        words += f", {rate:,.0f} lines/s" if rate >= 10 else f", {rate:.2g} lines/s"
        if total is not None:
            minutes, rest = divmod(round((total - done) / rate), 60)
            hours, minutes = divmod(minutes, 60)
            clock = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
            words += f", {clock} left"
    return words


@contextmanager
def _bar(total: int | None, done: int) -> Iterator[Callable[[int, str], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    console = Console(file=sys.stderr)
    columns = (BarColumn(bar_width=20), TextColumn("{task.description}", markup=False))
    # Standard output has the results and stays as it is. Warnings on standard error go above the
    # bar.
    with Progress(*columns, console=console, transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("starting", total=total, completed=done)
        yield lambda now, words: progress.update(task, completed=now, description=words)
