"""Large bodies are read one at a time, so that reading them leaves time to the other requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

# A body up to here is read in a millisecond, whatever it holds.
SMALL_BYTES = 16_384

# Time after a body in which no other large one is read. The parsers of a megabyte take less.
MOST_PAUSE_SECONDS = 0.3

_locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


@asynccontextmanager
async def in_turn(num_bytes: int) -> AsyncIterator[None]:
    """Read a body within this block; if it is large, alone, and with as long a pause afterwards.

    A parser in C holds Python's lock until it is done: 0.2 s for a megabyte of ``{},{},``. Many of
    them next to each other would stop the event loop for seconds.

    Args:
        num_bytes: the size of the body.
    """
    if num_bytes <= SMALL_BYTES:
        yield
        return
    async with _locks.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        began = time.perf_counter()
        try:
            yield
        finally:
            await asyncio.sleep(min(MOST_PAUSE_SECONDS, time.perf_counter() - began))
