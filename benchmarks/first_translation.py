"""The time from the shell to the first translation, and the memory of that process.

    python benchmarks/first_translation.py [--runs 21] [--model demo] [--note "..."]

One sentence is piped through `pellucid translate MODEL`, in a new process each time. Python
keeps the compiled form of a module after the first start, unless PYTHONDONTWRITEBYTECODE forbids
it; here it may, in a new folder. The first start, which compiles every module of Python's
library too, is shown by itself.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pellucid.machine.hardware import describe_machine

RESULTS = Path(__file__).parent / "results"
SENTENCE = "The cat was sleeping.\n"


def measure(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Run a command with the sentence as its input; return seconds, and MiB at the peak."""
    with tempfile.TemporaryFile() as sentence, tempfile.TemporaryFile() as output:
        sentence.write(SENTENCE.encode())
        sentence.seek(0)
        started = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdin=sentence, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        output.seek(0)
        if status or not output.read().strip():
            raise SystemExit(f"{' '.join(command)} failed.")
    return seconds, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--model", default="demo")
    parser.add_argument("--note", default="")
    options = parser.parse_args()
    command = [sys.executable, "-m", "pellucid", "translate", options.model]
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = folder
        first, _ = measure(command, environment)
        found = [measure(command, environment) for _ in range(options.runs)]
    seconds = sorted(one for one, _ in found)
    figures: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "machine": describe_machine(),
        "note": options.note,
        "model": options.model,
        "first_start_seconds": round(first, 3),
        "seconds": [round(one, 3) for one in seconds],
        "median_seconds": round(statistics.median(seconds), 3),
        "peak_mib": round(max(memory for _, memory in found), 1),
    }
    print(
        f"{options.model}: {seconds[0]:.2f} to {seconds[-1]:.2f} s, median "
        f"{figures['median_seconds']:.2f}; {figures['peak_mib']:.0f} MiB; the first start "
        f"{first:.2f} s"
    )
    path = RESULTS / f"{figures['date']}-first-translation.json"
    path.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
