"""Short pauses of the event loop: a few requests in each pass, cycles, and PyTorch's libraries.

The event loop runs everything that is ready before it looks for what has come in the meantime. A
new connection needs five passes until it is answered. If two hundred clients wait, and each pass
reads, checks and begins all their requests, even `/livez` takes half a second.

While Python searches for unreachable cycles of objects, no thread runs. It looks at all objects
that have lasted for a while: with PyTorch's modules, or with a request of thousands of lines, for a
quarter of a second, again and again. Here it never looks at what was there when the server started,
and looks at what lasts only when nothing is computed, or once a minute.

Python holds its lock while it loads the libraries of an extension. PyTorch's are so large that
nothing is answered meanwhile, for a quarter of a second or, if they come from a slow disk, for
seconds. They need not wait for Python: the system can load them first, without its lock. Importing
the rest takes a second or two, in which others compute.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import importlib.util
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from pellucid.machine.turns import has_turns

# Requests that begin, and that end, in one pass: one to three milliseconds.
A_PASS = 4


class Turns:
    """Lets `A_PASS` requests begin in each pass of the event loop; the others wait in order."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._num_left = A_PASS

    async def wait(self) -> None:
        """Wait for the turn; at once if few ask."""
        loop = asyncio.get_running_loop()
        if self._num_left == A_PASS:
            # The first to ask in a pass orders the next pass: an idle server runs none.
            loop.call_soon(self._begin_pass, loop)
        if self._num_left > 0:
            self._num_left -= 1
            return
        # Those who wait are let in by the order in which they came.
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _begin_pass(self, loop: asyncio.AbstractEventLoop) -> None:
        self._num_left = A_PASS
        while self._waiting and self._num_left > 0:
            turn = self._waiting.popleft()
            # A client that has left in the meantime does not use up a place.
            if not turn.done():
                turn.set_result(None)
                self._num_left -= 1
        if self._num_left < A_PASS:
            loop.call_soon(self._begin_pass, loop)


def call_in_passes(functions: Sequence[Callable[[], None]]) -> None:
    """Call functions in the running event loop, `A_PASS` in each pass."""
    for function in functions[:A_PASS]:
        function()
    if len(functions) > A_PASS:
        asyncio.get_running_loop().call_soon(call_in_passes, functions[A_PASS:])


# New objects after which the youngest are searched, and such searches after which the others of
# the last seconds are: a few milliseconds.
YOUNG = (1_000, 20)

NEVER = 2**31 - 1

# Time between two searches of everything, if there is nothing to do and if there is.
IDLE_SECONDS = 5.0
BUSY_SECONDS = 60.0


# glibc: the option for the number of pools that threads take memory from.
_M_ARENA_MAX = -8


def share_memory() -> None:
    """Let threads that start later take memory from one pool.

    Each would keep a pool of what it once needed.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def freeze_objects() -> None:
    """Exempt the objects that exist now from garbage collection, and leave old ones to us."""
    gc.freeze()
    # Only the two young generations: a search of everything took a fifth of a second
    # (docs/decisions/0020-service.md).
    gc.set_threshold(*YOUNG, NEVER)


class GarbageCollector:
    """Collects old garbage from time to time; for the computing thread."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._num_modules = len(sys.modules)

    def collect(self, *, is_idle: bool) -> None:
        """Collect if it is time to; objects of modules loaded since then are frozen instead.

        Args:
            is_idle: True if nothing waits to be computed.
        """
        wait = IDLE_SECONDS if is_idle else BUSY_SECONDS
        # Where the service is mounted in another program, collecting stays that program's affair.
        if gc.get_threshold()[2] != NEVER or time.monotonic() - self._last < wait:
            return
        # Objects of a module that was just imported, PyTorch most of all, last as long as the
        # process.
        if len(sys.modules) > self._num_modules:
            self._num_modules = len(sys.modules)
            gc.freeze()
        else:
            gc.collect()
            with suppress(OSError, AttributeError):
                # Else glibc keeps what a large request needed until the process ends.
                ctypes.CDLL(None).malloc_trim(0)
        self._last = time.monotonic()


# The library that needs all others.
LIBRARY = "lib/libtorch_python.so"


# What looking inside imports; the rest comes with it.
_MODULES = ("torch", "pellucid.translate.looking_inside", "pellucid.inside.replayed_pair")


class NeedsPyTorchError(BaseException):
    """A computation that has the turn needs PyTorch, which must be loaded without the turn."""


class _Watch:
    """Notices that PyTorch is about to be imported."""

    def __init__(self) -> None:
        self._is_loading = False
        self._lock = threading.Lock()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Leave finding the module to others.

        Raises:
            NeedsPyTorchError: it would be imported while others wait for the turn.
        """
        # Whoever imports our modules meanwhile would wait for PyTorch in the middle of them.
        needs_it = name == "torch" or (self._is_loading and name.startswith("pellucid."))
        if needs_it and has_turns():
            raise NeedsPyTorchError
        if needs_it and not self._is_loading:
            # Once is enough, and finding the module below must not come back here.
            sys.meta_path.remove(self)
            _load_libraries()
        return None

    def load(self) -> None:
        """Import PyTorch; a second caller waits until the first is done."""
        with self._lock:
            if self not in sys.meta_path:
                return
            self._is_loading = True
            try:
                _load_libraries()
                # What is missing shows when it is asked for again.
                with suppress(ImportError):
                    for name in _MODULES:
                        importlib.import_module(name)
            finally:
                sys.meta_path.remove(self)


def watch_for_pytorch() -> None:
    """From now on, let whoever imports PyTorch first load it in this way."""
    if "torch" not in sys.modules:
        sys.meta_path.insert(0, _Watch())


def load_pytorch() -> None:
    """Import PyTorch where `NeedsPyTorchError` said that it is needed."""
    for watch in [one for one in sys.meta_path if isinstance(one, _Watch)]:
        watch.load()


def _load_libraries() -> None:
    """Load the libraries that are found; the import later says what is wrong with the others."""
    if not sys.platform.startswith("linux"):
        return
    with suppress(OSError, AttributeError, ImportError):
        found = importlib.util.find_spec("torch")
        if found is None or found.origin is None:
            return
        # ctypes lets other threads run while it calls a function, but not in `ctypes.CDLL(path)`.
        load = ctypes.CDLL(None).dlopen
        load.argtypes = (ctypes.c_char_p, ctypes.c_int)
        load.restype = ctypes.c_void_p
        load(os.fsencode(Path(found.origin).parent / LIBRARY), os.RTLD_NOW | os.RTLD_LOCAL)
