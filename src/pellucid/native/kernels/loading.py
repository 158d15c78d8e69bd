"""Find the compiled kernels that this machine's processor can run.

They are built with the package if a C compiler is available: one library for each vector width and
precision. Everything that uses them falls back on PyTorch without them.
"""

from __future__ import annotations

import ctypes
import sys
from functools import lru_cache
from pathlib import Path
from typing import Literal

import torch

from pellucid.native.libraries import hash_of_sources

FOLDER = Path(__file__).parent

HASH_LENGTH = 64


def library_name(precision: Literal["float32", "bfloat16"]) -> str | None:
    """Name the library for this processor, such as ``avx2_float32``; None if no library fits.

    PyTorch reports what the processor has, so ``ATEN_CPU_CAPABILITY`` applies here too. Processors
    without bfloat16 instructions get a library that computes in float32, which is slow but correct.
    """
    capability = torch.backends.cpu.get_cpu_capability()
    if not sys.platform.startswith("linux") or capability not in ("AVX2", "AVX512"):
        return None
    is_wide = capability == "AVX512"
    if precision == "bfloat16":
        is_wide = is_wide and torch.cpu._is_avx512_bf16_supported()
    return f"{'avx512' if is_wide else 'avx2'}_{precision}"


@lru_cache(maxsize=2)
def find_library(precision: Literal["float32", "bfloat16"]) -> ctypes.CDLL | str:
    """Load the library for this processor, or return why it is unavailable."""
    name = library_name(precision)
    if name is None:
        return "this kind of processor or system is not supported"
    path = FOLDER / f"{name}.so"
    if not path.is_file():
        return f"{name}.so was not built with the package, which needs a C compiler"
    try:
        library = ctypes.CDLL(str(path))
        built_from = (ctypes.c_char * HASH_LENGTH).in_dll(library, "sources").value.decode()
    except (OSError, ValueError) as error:
        return f"{name}.so cannot be read: {error}"
    if built_from != hash_of_sources(FOLDER):
        return f"{name}.so was built from other sources: install the package again"
    return library
