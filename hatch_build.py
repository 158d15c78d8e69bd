"""Builds the kernels in C, one library for each kind of processor and precision.

Only on Linux with an x86-64 processor and a C compiler; elsewhere, and where the compiler fails,
the package is built without them, and training takes PyTorch's operations.
"""

from __future__ import annotations

import importlib.util
import os
import platform
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
    """Hatchling calls `initialize` before it packs the files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what can be built, and say that the package is for this kind of machine then."""
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
            made = Path(folder) / target.name
            defined = f'-DSOURCES="{_hash_of_sources()}"'
            command = [*compiler, *GENERAL.split(), *flags.split(), defined, "-o", str(made)]
            try:
                subprocess.run(
                    [*command, *sources, "-lm"], check=True, capture_output=True, text=True
                )
                beside = target.with_suffix(f".{os.getpid()}")
                shutil.copyfile(made, beside)
                beside.replace(target)
            except (OSError, subprocess.CalledProcessError) as error:
                said = getattr(error, "stderr", None) or error
                self.app.display_warning(f"The kernels {name} are left out: {said}")
                with suppress(OSError):
                    target.unlink(missing_ok=True)
                return False
        return True


def _hash_of_sources() -> str:
    """As the package itself works it out, which cannot be imported before it is installed."""
    spec = importlib.util.spec_from_file_location("sources", KERNELS / "sources.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: str = module.hash_of_sources(KERNELS)
    return found
