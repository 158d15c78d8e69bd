"""Pack what ``gpu.py`` needs on a machine with a GPU, PyTorch, and no network.

    MULTI30K=DIR python benchmarks/on_gpu/parcel.py build/gpu-parcel --python 3.12
    bash build/gpu-parcel/run.sh --steps products graphs updates     (on the other machine)

The first line, here, fills a folder two below the root of the repository: with the other packages
that this one needs, as wheels for that version of Python on Linux (x86-64), the compiled engine,
and Multi30k. The folder goes with the repository to the same place there, where the second line
unpacks it next to the sources and runs ``gpu.py``.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

PACKAGES = (
    *("pydantic", "pydantic-core", "annotated-types", "annotated-doc", "typing-inspection"),
    *("py3langid", "tomli-w", "typer", "click", "shellingham", "rich", "markdown-it-py", "mdurl"),
    *("pygments", "sacrebleu", "portalocker", "regex", "tabulate", "colorama", "lxml"),
    *("sentencepiece", "safetensors"),
)
"""What commands import, without PyTorch and NumPy, which the other machine has."""

PLATFORMS = ("2_28", "2_27", "2_17", "2_12", "2_5")

RUN = """#!/bin/sh
# Unpack the parcel next to the sources, and run the benchmark.
set -e
parcel=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$parcel/../.." && pwd)
python=${PYTHON:-python3}
site=${TMPDIR:-/tmp}/pellucid-site
$python -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade \\
    --target "$site" "$parcel"/wheels/*.whl
cp -r "$parcel/native" "$root/src/pellucid/"
export PYTHONPATH="$root/src:$site" PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
[ -d "$parcel/multi30k" ] && export MULTI30K="$parcel/multi30k"
cd "$root"
exec $python benchmarks/gpu.py "$@"
"""


def main() -> None:
    """Fill the folder."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--python", default="3.12", help="version on the other machine")
    asked = parser.parse_args()
    shutil.rmtree(asked.folder, ignore_errors=True)
    (asked.folder / "wheels").mkdir(parents=True)
    pins = read_pins((ROOT / "constraints.txt").read_text())
    platforms = [f"--platform=manylinux_{one}_x86_64" for one in PLATFORMS]
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:"),
            *(f"--python-version={asked.python}", "--implementation=cp", *platforms),
            *("-d", str(asked.folder / "wheels")),
            *(f"{name}=={pins[name]}" for name in PACKAGES),
        ],
        check=True,
    )
    native = ROOT / "src/pellucid/native"
    for library in native.rglob("*.so"):
        place = asked.folder / "native" / library.relative_to(native)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library, place)
    if text := os.environ.get("MULTI30K"):
        (asked.folder / "multi30k").mkdir()
        for path in Path(text).glob("*.lc.norm.tok.*.gz"):
            shutil.copyfile(path, asked.folder / "multi30k" / path.name)
    (asked.folder / "run.sh").write_text(RUN)
    size = sum(path.stat().st_size for path in asked.folder.rglob("*") if path.is_file())
    print(f"{asked.folder}: {size / 2**20:.0f} MiB")


def read_pins(constraints: str) -> dict[str, str]:
    """Read the versions of packages by their normalized names."""
    found = re.findall(r"^([\w.-]+)==([^\s;]+)", constraints, re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in found}


if __name__ == "__main__":
    main()
