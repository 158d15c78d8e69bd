"""Hash the kernels' C sources; without imports of the package, since its build runs this file."""

import hashlib
from pathlib import Path

__all__ = ["hash_of_sources"]


def hash_of_sources(folder: Path) -> str:
    """Hash the names and contents of the C files of a folder."""
    found = hashlib.sha256()
    for path in sorted([*folder.glob("*.c"), *folder.glob("*.h")]):
        found.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    return found.hexdigest()
