"""Build the code in C: the kernels of training, and the engine that decodes.

The kernels are one library for each kind of processor and precision, and need Linux and an x86-64
processor. The engine is one library for each set of instructions. Both need a C compiler; without
one, or if it fails, the package is built without them, and everything runs on PyTorch's operations.

With `PELLUCID_PLATFORM` the wheel is for other machines too: the engine is compiled by the package
`ziglang`, whose compiler knows the C libraries of these systems, old ones too. The kernels share
PyTorch's OpenMP, which it does not know: `CC` compiles them, for this kind of machine.
"""

from __future__ import annotations

import os
import platform
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path(__file__).parent / "src" / "pellucid"


class Platform(NamedTuple):
    """A platform that a wheel is for: as Python names it, and the target for the compiler."""

    system: str
    machine: str
    target: str


PLATFORMS = {
    "manylinux_2_28_x86_64": Platform("Linux", "x86_64", "x86_64-linux-gnu.2.28"),
    "manylinux_2_28_aarch64": Platform("Linux", "aarch64", "aarch64-linux-gnu.2.28"),
    "macosx_11_0_arm64": Platform("Darwin", "arm64", "aarch64-macos.11.0"),
    "macosx_11_0_x86_64": Platform("Darwin", "x86_64", "x86_64-macos.11.0"),
}

# The same processor, as the compiler of `ziglang` writes it.
SPELLINGS = {"-march=armv8.2-a+dotprod": "-mcpu=generic+v8_2a+dotprod"}

LIBRARIES = runpy.run_path(str(PACKAGE / "native" / "libraries.py"))
"""The names of that module."""


class BuildKernels(BuildHookInterface):
    """A build hook: Hatchling calls `initialize` before it packs the files."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what can be built, and mark the package as one for this kind of machine."""
        if self.target_name == "sdist":
            return
        name = os.environ.get("PELLUCID_PLATFORM", "")
        if name and name not in PLATFORMS:
            raise SystemExit(
                f"PELLUCID_PLATFORM is {name}, but must be one of {', '.join(PLATFORMS)}."
            )
        platform_wanted = PLATFORMS.get(name)
        wanted = self._wanted(version, platform_wanted)
        folder = Path(tempfile.mkdtemp())
        self.finished_with = folder
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            compiled = list(pool.map(lambda one: self._build(one, platform_wanted, folder), wanted))
        built = {library.path: file for library, file in zip(wanted, compiled, strict=True) if file}
        if not built:
            return
        build_data["pure_python"] = False
        if name:
            build_data["tag"] = f"py3-none-{name}"
        elif platform.system() == "Linux":
            build_data["tag"] = f"py3-none-linux_{platform.machine()}"
        else:
            build_data["infer_tag"] = True
        for place, file in built.items():
            if version == "editable":
                replace_whole(place, file)
            else:
                build_data["force_include"][str(file)] = str(place.relative_to(PACKAGE.parent))

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Delete what was compiled, once it is packed."""
        if folder := getattr(self, "finished_with", None):
            shutil.rmtree(folder, ignore_errors=True)

    def _wanted(self, version: str, wanted: Platform | None) -> list[Any]:
        if wanted:
            return LIBRARIES["libraries"](wanted.system, wanted.machine)
        every = LIBRARIES["libraries"]()
        # What is installed for editing stays here, and a compiler needs seconds for each library.
        return (
            [one for one in every if LIBRARIES["runs_here"](one)]
            if version == "editable"
            else every
        )

    def _build(self, library: Any, wanted: Platform | None, folder: Path) -> Path | None:
        compiler = shlex.split(os.environ.get("CC", "cc"))
        if wanted and library.folder.name == "decoding":
            compiler = [sys.executable, "-m", "ziglang", "cc", "-target", wanted.target, "-s"]
            flags = [SPELLINGS.get(flag, flag) for flag in library.flags.split()]
            library = library._replace(flags=" ".join(flags))
        compiled = folder / f"{library.folder.name}-{library.path.name}"
        try:
            LIBRARIES["build"](library, compiler, compiled)
        except (OSError, subprocess.CalledProcessError) as error:
            reason = getattr(error, "stderr", None) or error
            if wanted:
                # Whoever builds for others must not hand out half.
                raise SystemExit(f"The library {library.name} cannot be built: {reason}") from None
            self.app.display_warning(f"The library {library.name} is left out: {reason}")
            # One that was installed for editing was built from older sources.
            with suppress(OSError):
                library.path.unlink(missing_ok=True)
            return None
        return compiled


def replace_whole(place: Path, file: Path) -> None:
    """Replace a file in one step, so that a process that loads it never sees half of it."""
    partial = place.with_suffix(f".{os.getpid()}")
    shutil.copyfile(file, partial)
    partial.replace(place)
