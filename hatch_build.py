"""Build the code in C: the kernels of training, and the engine that decodes.

The kernels are one library for each kind of processor and precision, and need Linux and an x86-64
processor. The engine is one library for each set of instructions. Both need a C compiler; without
one, or if it fails, the package is built without them, and everything runs on PyTorch's operations.
"""

from __future__ import annotations

import os
import platform
import runpy
import shlex
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path(__file__).parent / "src" / "pellucid"

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
    "avx512": f"{ENGINE} {AVX512}",
    "avx512_vnni": f"{ENGINE} {AVX512} -mavx512vnni",
}


class Library(NamedTuple):  # Hatchling runs this file in a way that dataclasses do not support.
    """A library to build from the C files of a folder, with some options of the compiler."""

    folder: Path
    name: str
    flags: str

    @property
    def path(self) -> Path:
        """The file to build."""
        return self.folder / f"{self.name}.so"


def libraries() -> list[Library]:
    """List what this machine can use."""
    is_x86 = platform.machine() in ("x86_64", "AMD64")
    found = []
    if is_x86 and platform.system() == "Linux":
        flags = {name: f"{one} -fopenmp" for name, one in KERNELS.items()}
        found += [Library(PACKAGE / "kernels", name, one) for name, one in flags.items()]
    if platform.system() in ("Linux", "Darwin"):
        names = ENGINES if is_x86 else ("portable",)
        found += [Library(PACKAGE / "native", name, ENGINES[name]) for name in names]
    return found


class BuildKernels(BuildHookInterface):
    """A build hook: Hatchling calls `initialize` before it packs the files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what can be built, and mark the package as one for this kind of machine."""
        if self.target_name == "sdist":
            return
        compiler = shlex.split(os.environ.get("CC", "cc"))
        wanted = libraries()
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            is_built = list(pool.map(lambda one: self._build(compiler, one), wanted))
        built = [one.path for one, is_there in zip(wanted, is_built, strict=True) if is_there]
        if built:
            build_data["pure_python"] = False
            if platform.system() == "Linux":
                build_data["tag"] = f"py3-none-linux_{platform.machine()}"
            else:
                build_data["infer_tag"] = True
            root = PACKAGE.parent.parent
            build_data["artifacts"] += [f"/{path.relative_to(root).as_posix()}" for path in built]

    def _build(self, compiler: list[str], library: Library) -> bool:
        sources = sorted(str(path) for path in library.folder.glob("*.c"))
        with tempfile.TemporaryDirectory() as folder:
            compiled = Path(folder) / library.path.name
            defined = f'-DSOURCES="{_hash_of_sources(library.folder)}"'
            options = [*GENERAL.split(), *library.flags.split(), defined, "-o", str(compiled)]
            try:
                subprocess.run(
                    [*compiler, *options, *sources, "-lm"],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                # Replaced in one step, so that a process that loads it never sees half a file.
                partial = library.path.with_suffix(f".{os.getpid()}")
                shutil.copyfile(compiled, partial)
                partial.replace(library.path)
            except (OSError, subprocess.CalledProcessError) as error:
                reason = getattr(error, "stderr", None) or error
                self.app.display_warning(f"The library {library.name} is left out: {reason}")
                with suppress(OSError):
                    library.path.unlink(missing_ok=True)
                return False
        return True


def _hash_of_sources(folder: Path) -> str:
    """Hash with the package's own function; the package cannot be imported before its build."""
    path = PACKAGE / "native" / "sources.py"
    found: str = runpy.run_path(str(path))["hash_of_sources"](folder)
    return found
