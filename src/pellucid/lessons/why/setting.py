"""The setting of a measurement: its size, its seeds, and where it reports and keeps results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pellucid.lessons.why.kept_results import KeptCells

Size = Literal["quick", "toy", "full"]
T = TypeVar("T")


def say_nothing(doing: str) -> None:
    """Take the place of a line of progress."""


@dataclass(frozen=True)
class MeasurementSetting:
    """The setting of a measurement.

    Attributes:
        size: ``quick`` takes a minute or two; ``full`` takes up to 25 minutes, with
            more sizes and three seeds, or five where each takes seconds; ``toy`` takes a second or
            two, and its numbers prove nothing.
        seed: of everything drawn; with ``full`` the first of three.
        say: receives what is being computed, for a line of progress.
        kept: holds the finished cells of a full measurement; None keeps nothing.
    """

    size: Size = "quick"
    seed: int = 1
    say: Callable[[str], None] = say_nothing
    kept: KeptCells | None = None

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds to measure with: three in a row for ``full``, otherwise one."""
        return self.seeds_of(3)

    def seeds_of(self, count: int) -> tuple[int, ...]:
        """List as many seeds in a row for ``full``, otherwise one."""
        # In a row, so that --seed 4 shares none with the seeds 1 to 3.
        return tuple(range(self.seed, self.seed + (count if self.size == "full" else 1)))

    @property
    def is_long(self) -> bool:
        """Whether to measure what only the long form has."""
        return self.size == "full"

    def choose(self, quick: T, toy: T, full: T | None = None) -> T:
        """Choose by the size; without a value for ``full`` that takes the quick one."""
        # Most numbers are the same in both forms.
        if self.size == "full" and full is not None:
            return full
        return toy if self.size == "toy" else quick

    def cell(self, key: str, make: Callable[[], Any], *, is_timed: bool = False) -> Any:
        """Compute a part of a measurement, or return it as it was kept.

        Args:
            key: names everything that the value depends on, in words: it is the only thing by which
                a kept value is recognized.
            make: computes the value from numbers, strings, lists and dictionaries, as JSON has
                them.
            is_timed: True if the value holds times: values of other machines are not returned.
        """
        # Also for a kept value, so that progress never stands still.
        self.say(key)
        return make() if self.kept is None else self.kept.get(key, make, is_timed=is_timed)
