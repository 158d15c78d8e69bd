"""Rate of matrix products on this machine, to compare a training step with."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from side_by_side.processes import exchange

SIDE = {"cpu": 2048, "cuda": 8192}
REPETITIONS = 7


def measure(work: dict[str, Any]) -> dict[str, Any]:
    """Multiply two square matrices in each precision."""
    is_cuda = work["device"] == "cuda"
    return {
        "name": torch.cuda.get_device_name() if is_cuda else "",
        "operations_per_second": {
            precision: rate(work["device"], getattr(torch, precision))
            for precision in work["precisions"]
        },
        "versions": {"torch": torch.__version__},
    }


def rate(device: str, dtype: torch.dtype) -> float:
    """Return the median rate of some products, after an uncounted first one."""
    side = SIDE[device]
    left, right = (torch.rand(side, side, device=device).to(dtype) for _ in range(2))
    seconds = []
    for _ in range(REPETITIONS + 1):
        started = time.perf_counter()
        torch.mm(left, right)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - started)
    return 2 * side**3 / statistics.median(seconds[1:])


if __name__ == "__main__":
    exchange(measure)
