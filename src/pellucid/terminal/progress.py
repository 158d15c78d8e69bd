"""Progress on standard error: a line that is replaced on a terminal, or lines for a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal

from pellucid.terminal.text import count_of

# Minimum time between two lines about progress in a log.
SECONDS_BETWEEN = 10.0


def is_terminal(name: Literal["stdin", "stdout", "stderr"]) -> bool:
    """Tell whether a standard stream is a terminal."""
    stream = getattr(sys, name)
    # A stream that the shell closed is None.
    return stream is not None and not stream.closed and bool(stream.isatty())


class ProgressLine:
    """A line on standard error that is replaced, and erased at the end; only on a terminal.

    Warnings go above it.

    Args:
        is_wanted: False shows nothing.
        bar: a bar before the words: none, a short one, or one as wide as they leave room for. A
            line with a bar is drawn ten times a second, one without when its words change.
        total: what the work done counts up to; None if that is unknown.
        done: the work done before.
    """

    def __init__(
        self,
        *,
        is_wanted: bool = True,
        bar: Literal["none", "short", "wide"] = "none",
        total: float | None = None,
        done: int = 0,
    ) -> None:
        self.is_shown = is_wanted and is_terminal("stderr")
        if not self.is_shown:
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn
        from rich.table import Column

        wide = BarColumn(bar_width=None, table_column=Column(ratio=1))
        bars = {"none": (), "short": (BarColumn(bar_width=20),), "wide": (wide,)}
        self._line = Progress(
            *bars[bar],
            # The words may have brackets, as names of files do, which rich would read as styles.
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True)),
            console=Console(stderr=True),
            transient=True,
            expand=bar == "wide",
            redirect_stdout=False,  # It has the results, and stays as it is.
            auto_refresh=bar != "none",
        )
        self._is_drawn_at_once = bar == "none"
        self._task = self._line.add_task("starting", total=total, completed=done)

    def __enter__(self) -> ProgressLine:
        if self.is_shown:
            self._line.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_shown:
            with suppress(OSError):  # The terminal may have been closed.
                self._line.stop()

    def show(self, words: str, done: float | None = None) -> None:
        """Show words, and the work done."""
        if self.is_shown:
            self._line.update(
                self._task, completed=done, description=words, refresh=self._is_drawn_at_once
            )


@contextmanager
def show_progress(
    *, is_wanted: bool, total: int | None, log: Callable[[str], None], done: int = 0
) -> Iterator[Callable[[int], None]]:
    """Show the lines that are done: with a bar on a terminal, otherwise in sentences for a log.

    Args:
        is_wanted: False shows nothing.
        total: number of lines, if known.
        log: writes a sentence.
        done: number of lines done before this command started.

    Yields:
        A function to call with the number of lines done so far.
    """
    started = time.monotonic()
    last_logged = started

    def update(now: int) -> None:
        nonlocal last_logged
        seconds = time.monotonic() - started
        words = describe_progress(now, total=total, before=done, seconds=seconds)
        if line.is_shown:
            line.show(words, now)
        # The last line of a log says that all is done, however soon that is.
        elif is_wanted and (time.monotonic() - last_logged >= SECONDS_BETWEEN or now == total):
            last_logged = time.monotonic()
            log(words)

    with ProgressLine(is_wanted=is_wanted, bar="short", total=total, done=done) as line:
        yield update


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
    words = count_of(done, "line") if total is None else f"{done:,} of {count_of(total, 'line')}"
    if rate > 0:
        words += f", {rate:,.0f} lines/s" if rate >= 10 else f", {rate:.2g} lines/s"
        if total is not None:
            minutes, rest = divmod(round((total - done) / rate), 60)
            hours, minutes = divmod(minutes, 60)
            clock = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
            words += f", {clock} left"
    return words
