"""One measured run of `pellucid train`, which resumes a copy of a run of one step."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch
from side_by_side.processes import exchange, watch_peak
from train_peers.text import read_metrics, resume


def measure(work: dict[str, Any]) -> dict[str, Any]:
    """Train, and read seconds and target tokens of all steps from the log."""
    start = Path(work["runs"][f"{work['precision']} {work['processes']}"])
    run = start.with_name("copy")
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(start, run)
    end = work["warm_up"] + work["steps"]
    with watch_peak() as peak:
        resume(start, run, end)
    by_step = {found["step"]: found for found in read_metrics(run)}
    shutil.rmtree(run)
    first, last = by_step[work["warm_up"]], by_step[end]
    return {
        "seconds": last["seconds"] - first["seconds"],
        "target_tokens": last["target_tokens"] - first["target_tokens"],
        "peak_megabytes": peak[0],
        "parameters": work["parameters"],
        "versions": {"torch": torch.__version__},
    }


if __name__ == "__main__":
    exchange(measure)
