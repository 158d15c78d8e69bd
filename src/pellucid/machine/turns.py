"""Turns: a long computation lets others compute in between, and stops when no caller waits for it.

What takes long calls `give_way` every few milliseconds. That does nothing unless the caller has
asked for turns in this thread, as the service does with `taking_turns`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Turn = Callable[[], None]
"""Lets others compute, and returns when it is this computation's turn again."""

# An argument instead would pass through some thirty functions (docs/decisions/0020).
_turn: ContextVar[Turn | None] = ContextVar("turn", default=None)


class StoppedError(BaseException):
    """No caller waits for this computation any more. No handler of faults may catch it."""


def give_way() -> None:
    """Let others compute now, if the caller asked for turns.

    Raises:
        StoppedError: no caller waits for this computation.
    """
    if (turn := _turn.get()) is not None:
        turn()


def has_turns() -> bool:
    """Tell whether the caller asked for turns in this thread."""
    return _turn.get() is not None


@contextmanager
def taking_turns(turn: Turn) -> Iterator[None]:
    """Call a function whenever the computation within the block gives way."""
    token = _turn.set(turn)
    try:
        yield
    finally:
        _turn.reset(token)
