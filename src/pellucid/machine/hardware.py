"""The machine: device, precision, threads and memory."""

from __future__ import annotations

import gc
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pellucid.errors import ConfigurationError, PellucidError, fault_of_machine
from pellucid.machine.groups import find_groups, find_quota, read_system_lines

if TYPE_CHECKING:
    import torch

_planned: list[int] = []
"""The number of threads to use, if one was chosen that PyTorch does not know yet."""


def set_threads(threads: int | None) -> int:
    """Use this many processor threads, at most one for each processor.

    None keeps the number that was set or planned before. Without one it is that of
    `default_threads`, or PyTorch's own if that is lower.

    A process that is forked from this one uses one thread, because a fork copies none of them, and
    PyTorch would wait for those that are missing.

    Returns:
        The number of threads in use.

    Raises:
        ConfigurationError: fewer than one, more than a thousand, or several in a process that was
            forked from one with threads.
        PellucidError: the system does not start as many.
    """
    import torch

    first_process = _process_with_threads()
    if threads is None and _planned:
        threads = _planned[0]
    if threads is not None:
        threads = _bound_threads(threads)
        if threads > 1 and os.getpid() != first_process:
            raise ConfigurationError(
                f"A process that is forked after a model was loaded must use one thread, but is to "
                f"use {threads}. Leave threads out, or start the process with "
                'multiprocessing.get_context("spawn").'
            )
        torch.set_num_threads(threads)
    _planned.clear()
    in_use = torch.get_num_threads()
    _require_threads(in_use)
    return in_use


def use_threads(threads: int | None) -> None:
    """Set PyTorch's threads if it is imported, or plan how many to use without it.

    Arguments and errors are those of `set_threads`.
    """
    if "torch" in sys.modules:
        set_threads(threads)
    elif threads is not None:
        _planned[:] = [_bound_threads(threads)]
    elif not _planned:
        _planned[:] = [default_threads()]


def limit_threads() -> None:
    """Limit this command, its libraries and its children to the threads of `default_threads`.

    Works only before PyTorch is imported, because libgomp reads the environment when it loads.
    """
    if "torch" not in sys.modules:
        use_threads(None)
        os.environ["OMP_NUM_THREADS"] = str(threads_in_use())


def default_threads(root: Path = Path("/")) -> int:
    """Choose the number of threads that is used unless another one is asked for.

    That is the least of the processors that this process may use, those whose time its control
    groups allow (containers, batch systems), and ``OMP_NUM_THREADS``.

    Args:
        root: the folder with ``proc`` and ``sys``.
    """
    limits = [num_processors(), find_quota(root)]
    # As OpenMP reads it: a list has a number for each level of nesting, and others do not count.
    given = os.environ.get("OMP_NUM_THREADS", "")
    if re.fullmatch(r"\s*0*[1-9]\d{0,8}\s*(,\s*0*[1-9]\d{0,8}\s*)*", given, re.ASCII):
        limits.append(int(given.partition(",")[0]))
    return min(one for one in limits if one is not None)


def _bound_threads(threads: int) -> int:
    """Check a number of threads; return it, at most one for each processor."""
    if not 1 <= threads <= 1000:
        raise ConfigurationError(
            f"The number of threads must be between 1 and 1000, but is {threads} (--threads)."
        )
    return min(threads, num_processors())


def threads_in_use() -> int:
    """Return the number of threads in use: the planned one until PyTorch knows it, then PyTorch's.

    Another thread may be importing PyTorch, which at first knows nothing of the plan.
    """
    if planned := _planned[:1]:
        return planned[0]
    find = getattr(sys.modules.get("torch"), "get_num_threads", default_threads)
    return int(find())


@cache
def _process_with_threads() -> int:
    """Return the process that set its threads first, and let its forks use one thread each.

    Its threads are then at most those of `default_threads`.
    """
    import torch

    torch.set_num_threads(min(torch.get_num_threads(), default_threads()))
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: torch.set_num_threads(1))
    return os.getpid()


def num_processors() -> int:
    """Count the processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _require_threads(count: int) -> None:
    """Start threads for a moment: if OpenMP cannot start its own, it ends the process.

    Raises:
        PellucidError: the system does not start as many.
    """
    may_end = threading.Event()
    started: list[threading.Thread] = []
    try:
        # This thread is one of the team.
        for _ in range(count - 1):
            thread = threading.Thread(target=may_end.wait, daemon=True)
            thread.start()
            started.append(thread)
    except RuntimeError as error:
        raise PellucidError(fault_of_machine(error) or str(error)) from None
    finally:
        may_end.set()
        for thread in started:
            thread.join()


def share_threads(processes: int) -> int:
    """Divide the processor threads in use among processes: threads for each, at least one."""
    return max(1, threads_in_use() // processes)


@contextmanager
def some_threads(threads: int) -> Iterator[None]:
    """Use this many processor threads within the block."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def describe_machine() -> str:
    """Describe processor, threads and versions in one line, for logs and manifests."""
    import platform

    import torch

    return (
        f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}, "
        f"{torch.get_num_threads()} of {os.cpu_count()} threads, {platform.system()}, "
        f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    )


def has_fast_bfloat16(device: torch.device) -> bool:
    """Tell whether the device computes products in bfloat16 faster than in float32."""
    import torch

    if device.type == "cuda":
        # The first with bfloat16 in their matrix units (docs/decisions/0010).
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


def choose_precision(
    asked: Literal["auto", "float32", "bfloat16"], device: torch.device
) -> Literal["float32", "bfloat16"]:
    """Choose the precision of products: with ``auto`` bfloat16 if the device is fast at it."""
    if asked == "auto":
        return "bfloat16" if has_fast_bfloat16(device) else "float32"
    return asked


def available_memory(device: torch.device, *, root: Path = Path("/")) -> int | None:
    """Return the bytes that can still be allocated, or None if the system does not say.

    On Linux that is the least that the machine and the control groups of this process (containers,
    batch systems) leave. Cached files can be dropped and count as free.

    Args:
        device: the device whose memory is meant.
        root: the folder with ``proc`` and ``sys``.
    """
    if device.type == "cuda":
        import torch

        return int(torch.cuda.mem_get_info(device)[0])
    limits = []
    with suppress(OSError, ValueError, IndexError):
        fields = dict(line.split(":", 1) for line in read_system_lines(root / "proc/meminfo"))
        limits.append(1024 * int(fields["MemAvailable"].split()[0]))
    limits += [
        left for group in find_groups("memory", root) if (left := _left_in(group)) is not None
    ]
    if not limits:
        with suppress(OSError, ValueError):
            # Without /proc, as on macOS, all of the machine's memory is the best guess.
            limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits, default=None)


def reachable_memory(device: torch.device) -> int | None:
    """Return the bytes that this process can hold in total, or None if the system does not say."""
    left = available_memory(device)
    if left is None:
        return None
    if device.type == "cuda":
        import torch

        # PyTorch keeps what it has freed, and can use it again.
        return left + torch.cuda.memory_reserved(device)
    held = 0
    with suppress(OSError, ValueError, IndexError):
        held = int(read_system_lines(Path("/proc/self/statm"))[0].split()[1]) * os.sysconf(
            "SC_PAGE_SIZE"
        )
    return left + held


def _left_in(group: Path) -> int | None:
    """Return the bytes that a control group still allows, or None if it sets no limit."""
    for limit, used, prefix in (
        ("memory.max", "memory.current", ""),
        ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_"),
    ):
        with suppress(OSError, ValueError):
            left = int((group / limit).read_text()) - int((group / used).read_text())
            held = dict(line.split() for line in read_system_lines(group / "memory.stat"))
            # Used memory includes cached files, which the kernel drops when memory is needed.
            kinds = (f"{prefix}active_file", f"{prefix}inactive_file")
            return left + sum(int(held.get(kind, 0)) for kind in kinds)
    return None


def keep_freed_memory() -> None:
    """Keep freed memory in the process, for training, which needs the same blocks every step.

    glibc returns large blocks to the system, and every new block then begins with page faults,
    which cost up to a fifth of a training step. With another C library this does nothing.
    """
    import ctypes

    # Constants of malloc.h.
    trim_threshold = -1
    mmap_threshold = -3
    most = 2**31 - 1
    highest_of_older_versions = 1 << 25
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL("libc.so.6")
        library.mallopt(trim_threshold, most)
        if not library.mallopt(mmap_threshold, 1 << 30):
            library.mallopt(mmap_threshold, highest_of_older_versions)


@contextmanager
def leave_lasting_objects() -> Iterator[None]:
    """Let Python's garbage collector look only at objects made within the block.

    Older objects, such as PyTorch's modules, would be searched for cycles again and again for
    nothing, which costs two to four percent of a small model's step.
    """
    is_frozen_by_others = gc.get_freeze_count() > 0
    # What is garbage now would be frozen with the rest, and never freed.
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        # Unfreezing knows no owners: it would also free what a worker or the service has frozen.
        if not is_frozen_by_others:
            gc.unfreeze()


def search_garbage_rarely() -> None:
    """Let Python search for unreachable cycles of objects after 100,000 new ones, not after 700.

    For a process that makes many objects of lines that pass by, of which none is in a cycle: the
    searches took up to a third of Python's time.
    """
    gc.set_threshold(100_000, 20, 100)
