"""What every measured process does: load, warm up, translate once by the clock, report.

Standard library only, since it runs inside each system's own environment.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Sentence = dict[str, Any]
"""``ids`` and ``tokens`` of a source, the latter without ``</s>``, and its ``limit``."""

Translate = Callable[[list[Sentence]], list[Any]]
"""Gives the target ids or tokens of each sentence, ``</s>`` included where it was written."""


def measure(load: Callable[[dict[str, Any]], tuple[Translate, dict[str, str]]]) -> None:
    """Do the work in the file of the first argument, and put the result into the second.

    Args:
        load: gives the system ready to translate, and the versions of what it is made of.
    """
    work_path, result_path = map(Path, sys.argv[1:])
    work = json.loads(work_path.read_text())
    started = time.perf_counter()
    translate, versions = load(work)
    load_seconds = time.perf_counter() - started
    sentences = work["sentences"]
    translate(sentences[: max(8, work["batch"])])
    started = time.perf_counter()
    outputs = translate(sentences)
    seconds = time.perf_counter() - started
    result = {
        "seconds": seconds,
        "load_seconds": load_seconds,
        "peak_megabytes": peak_megabytes(),
        "outputs": outputs,
        "versions": {"python": sys.version.split()[0], **versions},
    }
    result_path.write_text(json.dumps(result))


def peak_megabytes() -> float:
    """The most memory that this process has had at once, program and libraries included."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    # Without /proc this is macOS, which counts in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
