"""The tests of the engine in C under AddressSanitizer and UndefinedBehaviorSanitizer.

python benchmarks/sanitize.py [--full]    # --full runs every architecture

Builds each library of the engine with both sanitizers and with checks of all sizes (-DCHECKED), and
runs the engine's tests on them in another process. A fault ends that process with a report. The
exit code is 77 if this machine cannot run Python with the sanitizers.

The sample of those tests is enough here, also for continuous integration: it runs every line and
branch of the engine that all of them run (`DIFFERENT` in tests/shared/small_native.py).
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pellucid.native.libraries import build, libraries

ROOT = Path(__file__).parent.parent
NAMES = ("test_native", "test_native_samples", "test_native_steps")
TESTS = [ROOT / "tests" / "unit" / "native" / f"{name}.py" for name in NAMES]
OPTIONS = (
    "-O1 -g -DCHECKED -fno-omit-frame-pointer -fsanitize=address,undefined "
    "-fno-sanitize-recover=undefined"
)
CANNOT = 77
"""The exit code of a check that cannot be made here."""

RUN = """
import pathlib, sys
import pytest
from pellucid.native import loading
loading.BUILT = pathlib.Path(sys.argv[1])
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[2:]]))
"""


def main() -> None:
    """Build, run the tests, and end with their exit code."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with tempfile.TemporaryDirectory() as folder:
        environment = make_environment(compiler)
        if environment is None:
            print("Not run: the compiler has no sanitizers, or Python does not start with them.")
            sys.exit(CANNOT)
        engines = [one for one in libraries() if one.folder.name == "decoding"]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(
                pool.map(
                    lambda one: build(
                        one, compiler, Path(folder) / one.path.name, *OPTIONS.split()
                    ),
                    engines,
                )
            )
        arguments = [sys.executable, "-c", RUN, folder, *map(str, TESTS), *sys.argv[1:]]
        sys.exit(subprocess.run(arguments, env=environment, cwd=ROOT).returncode)


def make_environment(compiler: list[str]) -> dict[str, str] | None:
    """Load the sanitizers before Python, which is not built with them; None if that fails."""
    try:
        found = [
            subprocess.run(
                [*compiler, f"-print-file-name={name}"], check=True, capture_output=True, text=True
            ).stdout.strip()
            for name in ("libasan.so", "libubsan.so")
        ]
    except (OSError, subprocess.CalledProcessError):
        return None
    environment = os.environ | {
        "LD_PRELOAD": " ".join(found),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python itself frees little at its end.
        "OMP_NUM_THREADS": "1",
        "CI": "",  # It would imply --full.
    }
    starts = subprocess.run([sys.executable, "-c", ""], env=environment, capture_output=True)
    # A name that cannot be loaded is only complained about.
    return environment if starts.returncode == 0 and not starts.stderr else None


if __name__ == "__main__":
    main()
