"""Properties of the machine that decide the speed."""

from __future__ import annotations

import os
import platform
from pathlib import Path
from typing import Any

CPU_INFO = Path("/proc/cpuinfo")
MATTERING = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_bf16", "amx_int8")
BFLOAT16 = ("avx512_bf16", "amx_bf16")


def describe() -> dict[str, Any]:
    """Describe processor, cores, memory and the instructions that matter."""
    import torch

    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _cpu_field("model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory_gigabytes": round(pages / 2**30, 1),
        "instructions": [flag for flag in MATTERING if flag in _flags()],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_threads": torch.get_num_threads(),
    }


def has_fast_bfloat16() -> bool:
    """Tell whether the processor multiplies bfloat16; else bfloat16 is slower than float32."""
    return any(flag in _flags() for flag in BFLOAT16)


def has_vnni() -> bool:
    """Tell whether the processor multiplies and sums bytes in one instruction of 512 bits."""
    return "avx512_vnni" in _flags()


def _flags() -> set[str]:
    return set(_cpu_field("flags").split())


def _cpu_field(name: str) -> str:
    if not CPU_INFO.is_file():
        return ""
    lines = (line.partition(":") for line in CPU_INFO.read_text().splitlines())
    return next((value.strip() for key, _, value in lines if key.strip() == name), "")
