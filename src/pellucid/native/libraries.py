"""The libraries in C: their sources, the compiler's options, and how one is built.

Without imports of the package, since its build runs this file.
"""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

FOLDERS = {
    "kernels": Path(__file__).parent / "kernels",
    "engine": Path(__file__).parent / "decoding",
}

# Strict aliasing is off, because the code reads the bytes of numbers under several types.
GENERAL = "-O3 -std=gnu11 -fno-strict-aliasing -fPIC -shared -fvisibility=hidden"

AVX512 = "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mprefer-vector-width=512"

KERNELS = {
    "avx2_float32": "-mavx2 -mfma -DLANES=8",
    "avx2_bfloat16": "-mavx2 -mfma -DLANES=8 -DBF16",
    "avx512_float32": f"{AVX512} -DLANES=16",
    "avx512_bfloat16": f"{AVX512} -DLANES=16 -mavx512bf16 -DBF16",
}

# Multiply-adds are written out: every processor must round alike.
ENGINE = "-ffp-contract=off -pthread"

ENGINES = {
    "portable": ENGINE,
    "avx2": f"{ENGINE} -mavx2 -mfma",
    "avx_vnni": f"{ENGINE} -mavx2 -mfma -mavxvnni",
    "avx512": f"{ENGINE} {AVX512}",
    "avx512_vnni": f"{ENGINE} {AVX512} -mavx512vnni",
}
"""The engine for x86-64, the slowest first; `processor.c` numbers them in this order."""

# Every ARM processor of 64 bits has NEON, which the portable vectors use.
ARM_ENGINES = {"portable": ENGINE, "dotprod": f"{ENGINE} -march=armv8.2-a+dotprod"}

CPU_FLAGS = {"avx512bf16": "avx512_bf16", "avx512vnni": "avx512_vnni", "avxvnni": "avx_vnni"}
"""Instructions whose name in Linux's list of a processor differs from the compiler's."""


class Library(NamedTuple):  # The package's build runs this file in a way that excludes dataclasses.
    """A library to build from the C files of a folder, with some options of the compiler."""

    folder: Path
    name: str
    flags: str

    @property
    def path(self) -> Path:
        """The file to build."""
        return self.folder / f"{self.name}.so"


def libraries(system: str = "", machine: str = "") -> list[Library]:
    """List what machines of a kind can use; of this machine's kind, if none is named."""
    system = system or platform.system()
    machine = machine or platform.machine()
    found = []
    if machine in ("x86_64", "AMD64") and system == "Linux":
        flags = {name: f"{one} -fopenmp" for name, one in KERNELS.items()}
        found += [Library(FOLDERS["kernels"], name, one) for name, one in flags.items()]
    if system in ("Linux", "Darwin"):
        found += [Library(FOLDERS["engine"], *one) for one in engines(machine).items()]
    return found


def engines(machine: str = "") -> dict[str, str]:
    """Name the engine's sets of instructions on machines of a kind, with their flags."""
    machine = (machine or platform.machine()).lower()
    if machine in ("x86_64", "amd64"):
        return ENGINES
    return ARM_ENGINES if machine in ("aarch64", "arm64") else {"portable": ENGINE}


def runs_here(library: Library, processor: Path = Path("/proc/cpuinfo")) -> bool:
    """Tell whether this processor has a library's instructions; True if that is unknown."""
    try:
        text = processor.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    line = next((one for one in text.splitlines() if one.startswith("flags")), None)
    if line is None:
        return True
    has = set(line.split())
    options = [one.removeprefix("-m") for one in library.flags.split() if one.startswith("-m")]
    # -mprefer-vector-width is a wish to the compiler, and no instruction.
    needed = [CPU_FLAGS.get(one, one) for one in options if not one.startswith("prefer")]
    return has.issuperset(needed)


def build(library: Library, compiler: Sequence[str], target: Path, *more: str) -> None:
    """Compile a library.

    Args:
        library: the library.
        compiler: the command of the compiler.
        target: the file to write.
        more: further options.

    Raises:
        OSError: the compiler cannot be run.
        subprocess.CalledProcessError: it failed.
    """
    sources = sorted(str(path) for path in library.folder.glob("*.c"))
    defined = f'-DSOURCES="{hash_of_sources(library.folder)}"'
    options = [*GENERAL.split(), *library.flags.split(), defined, *more, "-o", str(target)]
    subprocess.run(
        [*compiler, *options, *sources, "-lm"], check=True, capture_output=True, text=True
    )


def hash_of_sources(folder: Path) -> str:
    """Hash the names and contents of the C files of a folder."""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        # With name and size, so that text moved from one file to the next gives another hash.
        found.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return found.hexdigest()
