"""The progress line on a terminal while a model trains."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pellucid.terminal.progress import ProgressLine

HALF_LIFE_SECONDS = 10.0
LONGEST_STEP_SECONDS = 2.0
SECONDS_BEFORE_GUESS = 5.0
"""Seconds to wait before estimating the remaining time."""


class Smoothed:
    """A running mean in which a value `HALF_LIFE_SECONDS` ago counts half as much as one now.

    A pause counts as `LONGEST_STEP_SECONDS`, so that values from before it still count.
    """

    def __init__(self) -> None:
        self.value = 0.0
        self._last: float | None = None

    def add(self, value: float, now: float) -> None:
        """Include a value at a time in seconds."""
        if self._last is None:
            self.value = value
        else:
            passed = min(max(0.0, now - self._last), LONGEST_STEP_SECONDS)
            self.value += (1 - 0.5 ** (passed / HALF_LIFE_SECONDS)) * (value - self.value)
        self._last = now


class TrainingProgress:
    """A live line on a terminal; nothing if standard error is not a terminal.

    The bar shows the share of the limit that is reached first, steps or minutes.

    Args:
        is_wanted: False shows nothing.
        clock: says the time in seconds.
    """

    def __init__(self, *, is_wanted: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._speed = Smoothed()
        self._description = "starting"
        self._start: tuple[float, float] | None = None
        self._line = ProgressLine(is_wanted=is_wanted, bar="wide", total=1.0)

    def __enter__(self) -> TrainingProgress:
        self._line.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._line.__exit__()

    def update(
        self, share: float, *, step: int, loss: float, speed: float, rate: float, bleu: float
    ) -> None:
        """Show the progress of training.

        Args:
            share: of all work, from 0 to 1.
            step: updates made.
            loss: per token.
            speed: target tokens per second at this step; it is smoothed here.
            rate: the learning rate of the last update.
            bleu: the best so far; below 0 before the first validation.
        """
        if not self._line.is_shown:
            return
        now = self._clock()
        if self._start is None:
            self._start = now, share
        self._speed.add(speed, now)
        self._description = describe_training(
            step=step,
            loss=loss,
            speed=self._speed.value,
            rate=rate,
            bleu=bleu,
            time_left=describe_time_left(share, since=self._start, now=now),
        )
        self._line.show(self._description, share)

    @contextmanager
    def busy(self, doing: str) -> Iterator[None]:
        """Show another activity, such as ``validating``."""
        self._line.show(doing)
        try:
            yield
        finally:
            self._line.show(self._description)


def describe_training(
    *, step: int, loss: float, speed: float, rate: float, bleu: float, time_left: str
) -> str:
    """Describe the progress in one line, for a terminal of 80 columns."""
    parts = [
        f"step {step}",
        f"loss {_short(loss)}",
        f"{_thousands(speed)} tokens/s",
        f"rate {rate:.1e}",
        f"BLEU {bleu:.1f}" if bleu >= 0 else "BLEU –",
        time_left,
    ]
    return "  ".join(part for part in parts if part)


def describe_time_left(share: float, *, since: tuple[float, float], now: float) -> str:
    """Estimate the remaining time from the speed since the start of this process.

    Args:
        share: of all work, done now.
        since: the time at the start of this process, and the share done then.
        now: the time.

    Returns:
        For instance ``4:05 left``, ``1h23m left`` or ``12 days left``; an empty text as long as an
        estimate would be a guess.
    """
    started, before = since
    if share <= before or now - started < SECONDS_BEFORE_GUESS:
        return ""
    seconds = (now - started) * (1 - min(1.0, share)) / (share - before)
    if seconds >= 100 * 3600:
        days = seconds / 86400
        return f"{days:.0f} days left" if days < 99.5 else "99+ days left"
    if seconds >= 3599.5:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours}h{minutes:02}m left"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02} left"


def _short(loss: float) -> str:
    """Write a loss in five characters, unless it is unusually large."""
    if abs(loss) < 10:
        return f"{loss:.3f}"
    return f"{loss:.2f}" if abs(loss) < 100 else f"{loss:.0e}"


def _thousands(speed: float) -> str:
    """Write a speed in at most five characters."""
    if speed < 9_999.5:
        return f"{speed:,.0f}"
    return f"{speed / 1000:.1f}k" if speed < 99_950 else f"{speed / 1000:.0f}k"
