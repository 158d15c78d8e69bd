"""Choices that are a pure function of the numbers behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TypeVar

from pellucid.corpora.lexicon import ADJECTIVES, Adjective, Kind, Noun

__all__ = ["Pick", "adjective_for", "adjectives_of"]

T = TypeVar("T")


class Pick:
    """Choices made with numbers from [0, 1), which the caller hands in one by one."""

    def __init__(self, uniform: Callable[[], float]) -> None:
        self._uniform = uniform

    def one(self, options: Sequence[T]) -> T:
        """One of several, all as likely."""
        return options[int(self._uniform() * len(options))]

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._uniform() < probability


def adjective_for(pick: Pick, noun: Noun) -> Adjective | None:
    """An adjective that can describe a noun, if there is one."""
    options = adjectives_of(noun.kind)
    return pick.one(options) if options else None


@cache
def adjectives_of(kind: Kind, *, is_predicative: bool = False) -> tuple[Adjective, ...]:
    """The adjectives that describe a kind of nouns.

    Args:
        kind: the nouns' kind.
        is_predicative: only those that can follow *is*.
    """
    return tuple(
        adjective
        for adjective in ADJECTIVES
        if (kind in adjective.kinds and (adjective.is_predicative or not is_predicative))
        or (is_predicative and kind in adjective.predicative_kinds)
    )
