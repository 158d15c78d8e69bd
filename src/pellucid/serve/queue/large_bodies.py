"""Large bodies are read one at a time, so that reading them leaves time to the other requests."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from weakref import WeakKeyDictionary

from pellucid.serve.answers.responses import Problem
from pellucid.serve.settings import Limits

# A body up to here is read in a millisecond, whatever it holds.
SMALL_BYTES = 16_384

# Time after a body in which no other large one is read. The parsers of a megabyte take less.
MOST_PAUSE_SECONDS = 0.3

# Keys of a body beyond those that the limits allow; to find 80,000 unknown ones takes 0.4 s.
SPARE_KEYS = 10_000

# The end of a key in JSON. Within a text its quotation mark has an odd number of backslashes.
_KEY = re.compile(rb'(?:[^\\]|\\\\)"\s*+:')

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


def check_keys(content: bytes, limits: Limits) -> None:
    """Refuse JSON with more keys than any request needs, before a parser holds Python's lock.

    Raises:
        Problem: 413, it has more.
    """
    most = SPARE_KEYS + 4 * (limits.texts + limits.phrases)
    if content.count(b":") > most and sum(1 for _ in _KEY.finditer(content)) > most:
        raise Problem(413, f"The body must have at most {most:,} keys. Send less at once.")
