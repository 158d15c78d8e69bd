"""A bound on the time that idle threads spin, set before any OpenMP library loads.

A thread that waits for the others of its team spins at first, which is faster than sleeping if the
others need microseconds. libgomp spins 300,000 times, milliseconds in which no other program gets
the core. If other programs use the machine too, the thread that is waited for may be the one that
has no core, and everything stops for that long at every product.
"""

from __future__ import annotations

import os
import sys

# Not spinning at all took a third of the idle speed on one processor (docs/decisions/0017).
SPINS = 5000
"""Turns of libgomp's waiting loop before a thread sleeps: a tenth to a quarter of a millisecond.
``benchmarks/busy.py`` compares other bounds."""

CHOSEN_BY_USER = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")


def bound_spinning() -> None:
    """Bound the spinning of this process and its children, unless the user chose how to wait.

    Works only before PyTorch is imported, because libgomp reads the environment when it loads.
    """
    if "torch" not in sys.modules and not any(name in os.environ for name in CHOSEN_BY_USER):
        os.environ["GOMP_SPINCOUNT"] = str(SPINS)
