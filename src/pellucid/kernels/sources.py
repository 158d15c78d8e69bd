"""Which sources of the kernels there are: a hash, without anything of the package or beyond."""

import hashlib
from pathlib import Path

__all__ = ["hash_of_sources"]


def hash_of_sources(folder: Path) -> str:
    """Hash the C files of a folder, names and contents."""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        found.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return found.hexdigest()
