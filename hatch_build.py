"""Build the kernels in C: one library for each kind of processor and precision.

This needs Linux, an x86-64 processor and a C compiler. Without them, or if the compiler fails, the
package is built without kernels, and training runs on PyTorch's operations.
"""

from __future__ import annotations

import os
import platform
import runpy
import shlex
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KERNELS = Path(__file__).parent / "src" / "pellucid" / "kernels"

GENERAL = "-O3 -std=gnu11 -fno-strict-aliasing -fopenmp -fPIC -shared -fvisibility=hidden"

AVX512 = "-mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mprefer-vector-width=512 -DLANES=16"

LIBRARIES = {
    "avx2_float32": "-mavx2 -mfma -DLANES=8",
    "avx2_bfloat16": "-mavx2 -mfma -DLANES=8 -DBF16",
    "avx512_float32": AVX512,
    "avx512_bfloat16": f"{AVX512} -mavx512bf16 -DBF16",
}


class BuildKernels(BuildHookInterface):
    """A build hook: Hatchling calls `initialize` before it packs the files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what can be built, and mark the package as one for this kind of machine."""
        is_for_sources = self.target_name == "sdist"
        if is_for_sources or platform.system() != "Linux" or platform.machine() != "x86_64":
            return
        compiler = shlex.split(os.environ.get("CC", "cc"))
        built = [name for name, flags in LIBRARIES.items() if self._build(compiler, name, flags)]
        if built:
            build_data["pure_python"] = False
            build_data["tag"] = "py3-none-linux_x86_64"
            build_data["artifacts"] += [f"/src/pellucid/kernels/{name}.so" for name in built]

    def _build(self, compiler: list[str], name: str, flags: str) -> bool:
        target = KERNELS / f"{name}.so"
        sources = sorted(str(path) for path in KERNELS.glob("*.c"))
        with tempfile.TemporaryDirectory() as folder:
            compiled = Path(folder) / target.name
            defined = f'-DSOURCES="{_hash_of_sources()}"'
            command = [*compiler, *GENERAL.split(), *flags.split(), defined, "-o", str(compiled)]
            try:
                subprocess.run(
                    [*command, *sources, "-lm"], check=True, capture_output=True, text=True
                )
                # Replaced in one step, so that a process that loads it never sees half a file.
                partial = target.with_suffix(f".{os.getpid()}")
                shutil.copyfile(compiled, partial)
                partial.replace(target)
            except (OSError, subprocess.CalledProcessError) as error:
                reason = getattr(error, "stderr", None) or error
                self.app.display_warning(f"The kernels {name} are left out: {reason}")
                with suppress(OSError):
                    target.unlink(missing_ok=True)
                return False
        return True


def _hash_of_sources() -> str:
    """Hash with the package's own function; the package cannot be imported before its build."""
    found: str = runpy.run_path(str(KERNELS / "sources.py"))["hash_of_sources"](KERNELS)
    return found
