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
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path(__file__).parent / "src" / "pellucid"

LIBRARIES = runpy.run_path(str(PACKAGE / "native" / "libraries.py"))
"""The names of that module."""


class BuildKernels(BuildHookInterface):
    """A build hook: Hatchling calls `initialize` before it packs the files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what can be built, and mark the package as one for this kind of machine."""
        if self.target_name == "sdist":
            return
        compiler = shlex.split(os.environ.get("CC", "cc"))
        wanted = LIBRARIES["libraries"]()
        if version == "editable":
            # It stays on this machine, and a compiler needs seconds for each library.
            wanted = [one for one in wanted if LIBRARIES["runs_here"](one)]
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

    def _build(self, compiler: list[str], library: Any) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            compiled = Path(folder) / library.path.name
            try:
                LIBRARIES["build"](library, compiler, compiled)
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
