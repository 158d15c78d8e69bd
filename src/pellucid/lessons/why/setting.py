"""The setting of a measurement: its size, its seed, and where it reports what it is doing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

__all__ = ["Setting", "Size", "say_nothing"]

Size = Literal["quick", "toy"]
T = TypeVar("T")


def say_nothing(doing: str) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class Setting:
    """The setting of a measurement.

    Attributes:
        size: ``quick`` takes less than a minute on two cores; ``toy`` takes a second or two, and
            its numbers prove nothing.
        seed: of everything drawn.
        say: is told what is being computed, for a line of progress.
    """

    size: Size = "quick"
    seed: int = 1
    say: Callable[[str], None] = say_nothing

    def choose(self, quick: T, toy: T) -> T:
        """Choose by the size."""
        return quick if self.size == "quick" else toy
