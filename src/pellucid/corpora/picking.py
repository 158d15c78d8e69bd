"""Choices that are a pure function of the numbers behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Pick:
    """Choices made with numbers from [0, 1), which the caller provides one by one."""

    def __init__(self, uniform: Callable[[], float]) -> None:
        self._uniform = uniform

    def one(self, options: Sequence[T]) -> T:
        """Choose one of several, all with the same probability."""
        return options[int(self._uniform() * len(options))]

    def chance(self, probability: float) -> bool:
        """Return True with this probability."""
        return self._uniform() < probability
