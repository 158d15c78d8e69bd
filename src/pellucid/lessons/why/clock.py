"""Time and memory of a function."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_SHORTEST = 0.02
"""Seconds that one timing lasts at least: a shorter call is repeated within it."""


def seconds_of(run: Callable[[], Any], *, repeats: int = 5) -> float:
    """Measure the time of a call in seconds: the shortest of several, the least disturbed one.

    Args:
        run: the call to time.
        repeats: the number of timings after a first call. A call that is too short to time is
            made several times in each.
    """
    started = time.perf_counter()
    run()
    first = time.perf_counter() - started
    calls = max(1, int(_SHORTEST / max(first, 1e-7)))
    # A first call that was too short to time says nothing.
    found = [first] if calls == 1 else []
    for _ in range(repeats):
        started = time.perf_counter()
        for _ in range(calls):
            run()
        found.append((time.perf_counter() - started) / calls)
    # Everything that disturbs a timing makes it longer.
    return min(found)


def thread_seconds() -> float:
    """Read the processor time of this thread: other programs on the machine hardly change it.

    Work in PyTorch counts only if it runs on one thread.
    """
    return time.thread_time()


def peak_bytes(run: Callable[[], Any]) -> int:
    """Count the most bytes of results that exist at once during a call.

    Every operation of PyTorch is watched, and its results count until nothing refers to them. The
    count is the same on every machine. Room that one operation takes for itself and gives back at
    its end does not count.
    """
    watch = _Watch()
    with watch:
        result = run()
    del result
    return watch.most


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the storage that the results of operations hold."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._held: dict[int, tuple[StorageWeakRef, int]] = {}
        self.most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation and count its results."""
        # Results that share storage with an argument were written in place, or are views of it.
        given = {
            leaf.untyped_storage()._cdata
            for leaf in tree_leaves((args, kwargs))
            if isinstance(leaf, Tensor)
        }
        result = func(*args, **(kwargs or {}))
        # Freed results are forgotten first, as their place in memory may be given out again.
        self._held = {key: held for key, held in self._held.items() if _is_used(held[0])}
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                storage = leaf.untyped_storage()
                if storage._cdata not in given:  # A view holds nothing itself.
                    reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
                    self._held[storage._cdata] = reference, storage.nbytes()
        self.most = max(self.most, sum(size for _, size in self._held.values()))
        return result


def _is_used(reference: StorageWeakRef) -> bool:
    return not reference.expired()  # type: ignore[no-untyped-call]
