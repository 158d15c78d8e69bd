"""Find the compiled libraries: one loader, and the engine for this machine's processor.

They are built with the package if a C compiler is available: the engine once for each set of
instructions. Everything that uses them falls back on PyTorch without them.
"""

from __future__ import annotations

import ctypes
import os
from functools import lru_cache
from pathlib import Path

from pellucid.errors import ConfigurationError
from pellucid.native.libraries import engines, hash_of_sources

FOLDER = Path(__file__).parent / "decoding"
"""The folder of the engine's sources."""

BUILT = FOLDER
"""The folder of the engine's libraries."""

VARIABLE = "PELLUCID_INSTRUCTIONS"
"""The environment variable that forces a set of instructions."""

SETS = tuple(engines())
"""Sets of instructions, each faster than the one before."""

HASH_LENGTH = 64


@lru_cache(maxsize=16)
def load_library(path: Path, sources: Path, called: str) -> ctypes.CDLL | str:
    """Load a compiled library, or return why it is unavailable.

    Args:
        path: the library.
        sources: the folder of the sources that it must have been built from.
        called: its name in the sentence that it was not built.
    """
    if not path.is_file():
        return f"{called} was not built with the package, which needs a C compiler"
    try:
        library = ctypes.CDLL(str(path))
        built_from = (ctypes.c_char * HASH_LENGTH).in_dll(library, "sources").value.decode()
    except (OSError, ValueError) as error:
        return f"{path.name} cannot be read: {error} (install the package again)"
    # Structures of other sources may have other fields, which Python would fill wrongly.
    if built_from != hash_of_sources(sources):
        return f"{path.name} was built from other sources: install the package again"
    return library


def instruction_sets() -> tuple[str, ...]:
    """List the sets of instructions that this processor has and the package was built for."""
    portable = _load("portable")
    if isinstance(portable, str):
        return ()
    # The portable library runs on every processor, so it is the one to ask.
    has = portable.instruction_sets()
    usable = [name for place, name in enumerate(SETS) if has >> place & 1]
    return tuple(name for name in usable if not isinstance(_load(name), str))


def chosen_set() -> str:
    """Name the set of instructions that the engine uses here; ``""`` if it is unavailable.

    Raises:
        ConfigurationError: the environment asks for instructions that are unavailable.
    """
    usable = instruction_sets()
    asked = os.environ.get(VARIABLE)
    if usable and asked and asked not in usable:
        raise ConfigurationError(
            f"{VARIABLE} must be one of {', '.join(usable)} on this machine, but is {asked}. "
            "Choose one of them, or unset it."
        )
    return asked or usable[-1] if usable else ""


def find_library() -> ctypes.CDLL | str:
    """Load the engine for this processor, or return why it is unavailable.

    Raises:
        ConfigurationError: the environment asks for instructions that are unavailable.
    """
    # Without the portable library no set is usable, and it knows why.
    return _load(chosen_set() or "portable")


def describe_processor() -> str:
    """Name the processor's instructions for results to depend on, without PyTorch if possible."""
    if sets := instruction_sets():
        return sets[-1]
    # Only here, because it takes longer than a first translation: docs/decisions/0019.
    import torch

    return str(torch.backends.cpu.get_cpu_capability())


def _load(name: str) -> ctypes.CDLL | str:
    return load_library(BUILT / f"{name}.so", FOLDER, "it")
