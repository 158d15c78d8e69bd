"""A measured run is a process of its own: work goes in as a file, and a result comes out as one.

Standard library only, since both ends of it run in every system's own environment.
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
    """Let a script do some work, and end the program with its last words where it fails.

    Args:
        python: whose Python runs it.
        script: ends in a call of `exchange`.
        work: what the script is to do.
        folder: where work and result are put down.

    Returns:
        What the script found.
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
    """Do the work in the file of the first argument, and put the result into the second.

    Args:
        do: gives the result of some work, with the ``versions`` of what did it.
    """
    work_path, result_path = map(Path, sys.argv[1:])
    result = do(json.loads(work_path.read_text()))
    versions = {"python": sys.version.split()[0], **result["versions"]}
    result_path.write_text(json.dumps(result | {"versions": versions}))


def peak_megabytes() -> float:
    """The most memory that this process has had at once, program and libraries included.

    Where there is /proc, what it started, with all that this started in turn, is added as far as it
    still runs, each process at its peak.
    """
    if not Path("/proc/self/status").is_file():
        return _maximum(resource.RUSAGE_SELF)
    return sum(_peaks_from(os.getpid()).values())


def peak_megabytes_of_children() -> float:
    """The same of the child, among those that have ended, which has had the most."""
    return _maximum(resource.RUSAGE_CHILDREN)


@contextmanager
def watch_peak() -> Iterator[list[float]]:
    """Watch the memory of what is started within the block, with all that it starts in turn.

    Yields:
        A list that holds, after the block, the most megabytes at once, each process at its peak
        and files that they share counted once; where there is no /proc, of the largest.
    """
    found: list[float] = []
    most, is_over = 0.0, threading.Event()
    looks_every = 5  # A look takes a tenth of a second of one core, and the system keeps the peaks.

    def watch() -> None:
        nonlocal most
        while not is_over.wait(looks_every):
            # In this order one that ends meanwhile is missing from the peaks.
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
    """The peaks, in megabytes, of a process and of all below it, by their ids."""
    found = [_read_status(path) for path in Path("/proc").glob("[0-9]*/status")]
    statuses = {status["Pid"]: status for status in found if "Pid" in status}
    family: set[str] = set()
    more = {str(ancestor)} & statuses.keys()
    while more:
        family |= more
        more = {pid for pid, status in statuses.items() if status["PPid"] in more}
    return {pid: int(statuses[pid].get("VmHWM", "0 kB").split()[0]) / 1024 for pid in family}


def _children(peaks: Mapping[str, float]) -> dict[str, float]:
    """All but this process."""
    return {process: peak for process, peak in peaks.items() if process != str(os.getpid())}


def _counted_again(processes: Iterable[str]) -> float:
    """The megabytes of files in memory that are in more than one of these processes, but once."""
    shared: dict[str, list[int]] = {}
    for process in processes:
        for file, kilobytes in _files_in_memory(process).items():
            shared.setdefault(file, []).append(kilobytes)
    return sum(sum(sizes) - max(sizes) for sizes in shared.values()) / 1024


def _files_in_memory(process: str) -> dict[str, int]:
    """The kilobytes of each file's pages, by device and inode, that a process may share."""
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
    """The fields of a process, none where it has just ended."""
    with suppress(OSError):
        lines = (line.partition(":") for line in path.read_text().splitlines())
        return {name: value.strip() for name, _, value in lines}
    return {}


def _maximum(whose: int) -> float:
    # macOS counts in bytes, Linux in kilobytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(whose).ru_maxrss / unit
