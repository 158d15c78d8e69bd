"""Rates of this machine that decoding is compared with: matrix products, and reading memory."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from side_by_side.processes import exchange

SIDE = 2048
REPETITIONS = 7
READ_BYTES = 2**28


def measure(work: dict[str, Any]) -> dict[str, Any]:
    """Measure operations and bytes per second for each of some numbers of threads."""
    rates: dict[str, dict[str, float]] = {}
    for threads in work["threads"]:
        torch.set_num_threads(threads)
        rates[str(threads)] = {
            "float32": product_rate(),
            "int8": integer_rate(),
            "read": read_rate(),
        }
    return {"rates": rates, "versions": {"torch": torch.__version__}}


def product_rate() -> float:
    """Measure the operations per second of a float32 product of square matrices."""
    left, right = torch.rand(SIDE, SIDE), torch.rand(SIDE, SIDE)
    return 2 * SIDE**3 / _seconds(lambda: torch.mm(left, right))


def integer_rate() -> float:
    """Measure the operations per second of an int8 product with sums of 32 bits.

    PyTorch has two libraries for it, of which either may be the faster on a processor: oneDNN's
    takes bytes, FBGEMM's also quantizes the rows.
    """
    left, right = (torch.randint(-127, 128, (SIDE, SIDE)).to(torch.int8) for _ in range(2))
    choices: list[Callable[[], object]] = [lambda: torch._int_mm(left, right)]
    if "fbgemm" in torch.backends.quantized.supported_engines:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            linear = torch.ao.nn.quantized.dynamic.Linear(SIDE, SIDE, bias_=False)
        rows = torch.rand(SIDE, SIDE)
        choices.append(lambda: linear(rows))
    return 2 * SIDE**3 / min(map(_seconds, choices))


def read_rate() -> float:
    """Measure the bytes per second of a sum over more memory than the caches hold."""
    numbers = torch.ones(READ_BYTES // 4)
    return READ_BYTES / _seconds(numbers.sum)


@torch.inference_mode()
def _seconds(do: Callable[[], object]) -> float:
    """Return the median time of some calls, after an uncounted first one."""
    seconds = []
    for _ in range(REPETITIONS + 1):
        started = time.perf_counter()
        do()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:])


if __name__ == "__main__":
    exchange(measure)
