"""Build the library that lets disks and clocks fail in programs that preload it."""

from __future__ import annotations

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("preload.c")


def build_library(folder: Path) -> dict[str, str]:
    """Compile it into a folder; return the variable that has a program preload it."""
    library = folder / "faults.so"
    command = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    return {"LD_PRELOAD": str(library)}
