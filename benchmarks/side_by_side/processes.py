"""Measured runs as separate processes: work goes in as a file, a result comes out as a file.

Only the standard library is used, since both ends run in every system's environment.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

BENCHMARKS = Path(__file__).parents[1]


def run_script(python: str, script: Path, work: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Let a script do some work; if it fails, end the program with its last lines.

    Args:
        python: the Python that runs it.
        script: a file that ends in a call of `exchange`.
        work: the script's work.
        folder: for the files of work and result.

    Returns:
        The script's result.
    """
    work_path, result_path = folder / "work.json", folder / "result.json"
    work_path.write_text(json.dumps(work))
    result_path.unlink(missing_ok=True)
    places = [str(BENCHMARKS), *filter(None, [os.environ.get("PYTHONPATH")])]
    ours = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": os.pathsep.join(places)}
    done = subprocess.run(
        [python, script, work_path, result_path],
        env=os.environ | ours,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not result_path.is_file():
        raise SystemExit(f"{script.name} failed with {dict(work)}:\n{done.stderr[-3000:]}")
    found: dict[str, Any] = json.loads(result_path.read_text())
    return found


def exchange(do: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Do the work in the file of the first argument, and write the result into the second.

    Args:
        do: returns the result of some work, with the ``versions`` of its packages.
    """
    work_path, result_path = map(Path, sys.argv[1:])
    result = do(json.loads(work_path.read_text()))
    versions = {"python": sys.version.split()[0], **result["versions"]}
    result_path.write_text(json.dumps(result | {"versions": versions}))


def peak_megabytes() -> float:
    """Return the most memory that this process has had, program and libraries included.

    With /proc, running descendants are added, each at its peak.
    """
    if not Path("/proc/self/status").is_file():
        return _maximum(resource.RUSAGE_SELF)
    return sum(_peaks_from(os.getpid()).values())


def peak_megabytes_of_children() -> float:
    """Return the most memory that an ended child has had."""
    return _maximum(resource.RUSAGE_CHILDREN)


@contextmanager
def watch_peak() -> Iterator[list[float]]:
    """Watch the memory of processes started within the block, and of their descendants.

    Yields:
        A list that holds, after the block, the most megabytes at once, each process at its peak
        and files that they share counted once; without /proc, those of the largest process.
    """
    found: list[float] = []
    most, is_over = 0.0, threading.Event()
    looks_every = (
        5  # Looking takes a tenth of a second of one core, and the system keeps the peaks.
    )

    def watch() -> None:
        nonlocal most
        while not is_over.wait(looks_every):
            # In this order, a process that ends meanwhile is missing from the peaks.
            again = _counted_again(_children(_peaks_from(os.getpid())))
            most = max(most, sum(_children(_peaks_from(os.getpid())).values()) - again)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        is_over.set()
        thread.join()
        found.append(max(most, peak_megabytes_of_children()))


def _peaks_from(ancestor: int) -> dict[str, float]:
    """Return the peaks, in megabytes, of a process and its descendants, by their ids."""
    found = [_read_status(path) for path in Path("/proc").glob("[0-9]*/status")]
    statuses = {status["Pid"]: status for status in found if "Pid" in status}
    family: set[str] = set()
    more = {str(ancestor)} & statuses.keys()
    while more:
        family |= more
        more = {pid for pid, status in statuses.items() if status["PPid"] in more}
    return {pid: int(statuses[pid].get("VmHWM", "0 kB").split()[0]) / 1024 for pid in family}


def _children(peaks: Mapping[str, float]) -> dict[str, float]:
    """Leave out this process."""
    return {process: peak for process, peak in peaks.items() if process != str(os.getpid())}


def _counted_again(processes: Iterable[str]) -> float:
    """Return the megabytes of shared files in memory that the processes' sum counts too often."""
    shared: dict[str, list[int]] = {}
    for process in processes:
        for file, kilobytes in _files_in_memory(process).items():
            shared.setdefault(file, []).append(kilobytes)
    return sum(sum(sizes) - max(sizes) for sizes in shared.values()) / 1024


def _files_in_memory(process: str) -> dict[str, int]:
    """Return the kilobytes of each file's pages that a process may share, by device and inode."""
    found: dict[str, int] = {}
    file = ""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/smaps").read_text().splitlines():
            name, *rest = line.split()
            if not name.endswith(":"):
                _permissions, _offset, device, inode, *_path = rest
                file = f"{device} {inode}" if inode != "0" else ""
            elif file and name in ("Shared_Clean:", "Shared_Dirty:"):
                found[file] = found.get(file, 0) + int(rest[0])
    return found


def _read_status(path: Path) -> dict[str, str]:
    """Read the fields of a process; empty if it has just ended."""
    with suppress(OSError):
        lines = (line.partition(":") for line in path.read_text().splitlines())
        return {name: value.strip() for name, _, value in lines}
    return {}


def _maximum(whose: int) -> float:
    # macOS counts in bytes, Linux in kilobytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(whose).ru_maxrss / unit
