"""A few at a time, so that no pass of the event loop takes long.

The event loop runs everything that is ready before it looks for what has come in the meantime. A
new connection needs five passes until it is answered. If two hundred clients wait, and each pass
reads, checks and begins all their requests, even `/livez` takes half a second.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence

A_PASS = 4
"""Requests that begin, and that end, in one pass: one to three milliseconds."""


class Turns:
    """Lets `A_PASS` requests begin in each pass of the event loop; the others wait in order."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._num_left = A_PASS

    async def wait(self) -> None:
        """Wait for the turn; at once if few ask."""
        loop = asyncio.get_running_loop()
        if self._num_left == A_PASS:
            loop.call_soon(self._begin_pass, loop)
        if self._num_left > 0:
            self._num_left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _begin_pass(self, loop: asyncio.AbstractEventLoop) -> None:
        self._num_left = A_PASS
        while self._waiting and self._num_left > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._num_left -= 1
        if self._num_left < A_PASS:
            loop.call_soon(self._begin_pass, loop)


def in_turns(functions: Sequence[Callable[[], None]]) -> None:
    """Call functions in the running event loop, `A_PASS` in each pass."""
    for function in functions[:A_PASS]:
        function()
    if len(functions) > A_PASS:
        asyncio.get_running_loop().call_soon(in_turns, functions[A_PASS:])
