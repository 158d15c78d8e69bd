"""PyTorch's libraries, loaded without stopping the other threads.

Python holds its lock while it loads the libraries of an extension. PyTorch's are so large that
nothing is answered meanwhile, for a quarter of a second or, if they come from a slow disk, for
seconds. They need not wait for Python: the system can load them first, without its lock.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

LIBRARY = "lib/libtorch_python.so"
"""The library that needs all others."""


def watch_for_pytorch() -> None:
    """From now on, let whoever imports PyTorch first load its libraries in this way."""
    if "torch" not in sys.modules and sys.platform.startswith("linux"):
        sys.meta_path.insert(0, _Watch())


class _Watch:
    """Notices that PyTorch is about to be imported."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Leave finding the module to others."""
        if name == "torch" and self in sys.meta_path:
            sys.meta_path.remove(self)
            _load_libraries()
        return None


def _load_libraries() -> None:
    """Load the libraries that are found; the import later says what is wrong with the others."""
    with suppress(OSError, AttributeError, ImportError):
        found = importlib.util.find_spec("torch")
        if found is None or found.origin is None:
            return
        # ctypes lets other threads run while it calls a function, but not in `ctypes.CDLL(path)`.
        load = ctypes.CDLL(None).dlopen
        load.argtypes, load.restype = (ctypes.c_char_p, ctypes.c_int), ctypes.c_void_p
        load(os.fsencode(Path(found.origin).parent / LIBRARY), os.RTLD_NOW | os.RTLD_LOCAL)
