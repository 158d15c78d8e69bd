"""The compiled kernels of this machine: which there are, and which of them its processor can run.

They are built with the package where there is a C compiler, one library for each width of vectors
and each precision. Everything that uses them has another way where there are none.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from pathlib import Path
from typing import Literal

import torch

from pellucid.kernels.calls import STRUCTURES

__all__ = ["find_library", "library_name"]

FOLDER = Path(__file__).parent


def library_name(precision: Literal["float32", "bfloat16"]) -> str | None:
    """The library for this processor, as ``avx2_float32``; None where there can be none.

    PyTorch is asked what the processor has, so ``ATEN_CPU_CAPABILITY`` holds here too. In bfloat16
    processors without instructions for it compute in float32, which is slow and right.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    if not sys.platform.startswith("linux") or capability not in ("AVX2", "AVX512"):
        return None
    is_wide = capability == "AVX512"
    if precision == "bfloat16":
        is_wide = is_wide and torch.cpu._is_avx512_bf16_supported()
    return f"{'avx512' if is_wide else 'avx2'}_{precision}"


@lru_cache(maxsize=2)
def find_library(precision: Literal["float32", "bfloat16"]) -> ctypes.CDLL | None:
    """Load the library for this processor; None where it was not built, or from other sources."""
    name = library_name(precision)
    path = FOLDER / f"{name}.so"
    if name is None or not path.is_file():
        return None
    try:
        library = ctypes.CDLL(str(path))
        sizes = [ctypes.c_int64.in_dll(library, f"size_of_{one}").value for one in STRUCTURES]
    except (OSError, ValueError):
        return None
    return library if sizes == [*map(ctypes.sizeof, STRUCTURES.values())] else None
