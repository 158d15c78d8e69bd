"""The peers' virtual environments: their packages, and how they are made."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

PEERS = {
    "hugging_face": (
        "transformers==5.23.0",
        "torch==2.13.0",
        "sentencepiece==0.2.3",
        "safetensors==0.8.0",
        "numpy==2.4.6",
    ),
    "ctranslate2": ("ctranslate2==4.8.5", "numpy==2.4.6"),
    "marian": ("pymarian==1.12.42",),
    "joeynmt": ("joeynmt==2.3.0", "importlib_metadata==10.2.0", "torch==2.13.0"),
}
"""Packages of each peer, at the measured versions; all others have pellucid's versions."""

CONSTRAINTS = Path(__file__).parents[2] / "constraints.txt"
OLDER = {"joeynmt": ("protobuf", "tensorboard")}
"""Packages that a peer needs in older versions than pellucid has."""

INSTALLED = "installed.txt"


def set_up(folder: Path, peers: Iterable[str]) -> None:
    """Make the environment of every peer that lacks one, with pip's own settings."""
    for peer in peers:
        if is_ready(folder, peer):
            continue
        packages = PEERS[peer]
        print(f"installing {', '.join(packages)} in {folder / peer}", flush=True)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder / peer], check=True)
        constraints = folder / peer / "constraints.txt"
        constraints.write_text(_constraints_for(peer))
        install = [python_of(folder, peer), "-m", "pip", "install", "--quiet", "-c", constraints]
        subprocess.run([*install, *packages], check=True)
        (folder / peer / INSTALLED).write_text("\n".join(packages) + "\n")


def _constraints_for(peer: str) -> str:
    lines = CONSTRAINTS.read_text().splitlines(keepends=True)
    older = tuple(f"{package}==" for package in OLDER.get(peer, ()))
    return "".join(line for line in lines if not line.startswith(older))


def is_ready(folder: Path, peer: str) -> bool:
    """Tell whether a peer's environment has been made for these versions."""
    path = folder / peer / INSTALLED
    return path.is_file() and path.read_text().split() == list(PEERS[peer])


def require(folder: Path, peers: Iterable[str]) -> None:
    """End the program if a peer has no environment."""
    for peer in peers:
        if not is_ready(folder, peer):
            raise SystemExit(
                f"{folder} has no environment of {peer}, or one with other versions. Run this "
                "script with --setup first, or leave it out of --systems."
            )


def python_of(folder: Path, peer: str) -> str:
    """Return the Python of a peer's environment."""
    return str(folder.absolute() / peer / "bin" / "python")


def lend_ctranslate2(folder: Path) -> None:
    """Let this process import CTranslate2, whose library writes its format, from its environment.

    If CTranslate2 is installed together with pellucid, that one is used.
    """
    sys.path += [str(path) for path in (folder / "ctranslate2" / "lib").glob("*/site-packages")]
