"""Kernels for tests: those of this machine, and wide vectors on any processor with AVX2."""

from __future__ import annotations

import ctypes
import os
import shlex
import subprocess
from pathlib import Path
from typing import Literal

import pytest

from pellucid.native.kernels.kernels import FOLDER, Kernels, find_kernels

Precision = Literal["float32", "bfloat16"]


def kernels_of_machine(precision: Precision) -> Kernels:
    """The kernels that the package uses; without them a test is skipped, or fails with CI=1."""
    kernels = find_kernels(precision)
    if isinstance(kernels, str):
        if os.environ.get("CI"):
            pytest.fail(f"with CI=1 there must be kernels: {kernels}")
        pytest.skip(kernels)
    return kernels


def build_wide_kernels(folder: Path, precision: Precision) -> Kernels:
    """Build kernels for vectors of 16 numbers, as AVX-512 has them, from AVX2 instructions."""
    kernels_of_machine(precision)
    path = folder / f"wide_{precision}.so"
    flags = ["-O1", "-mavx2", "-mfma", "-DLANES=16", "-Wno-psabi"]
    flags += ["-DBF16"] if precision == "bfloat16" else []
    subprocess.run(
        [
            *shlex.split(os.environ.get("CC", "cc")),
            *(
                "-std=gnu11",
                "-fno-strict-aliasing",
                "-fopenmp",
                "-fPIC",
                "-shared",
                "-fvisibility=hidden",
            ),
            *flags,
            *("-o", str(path)),
            *(str(source) for source in sorted(FOLDER.glob("*.c"))),
            "-lm",
        ],
        check=True,
    )
    return Kernels(ctypes.CDLL(str(path)), precision)
