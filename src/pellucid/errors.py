"""The exception tree, and how a message is worded.

Every error a user can cause is one sentence: what must be, what it is, where, and what to do
now. Each class is also the natural built-in, so that ``except ValueError`` keeps working.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = [
    "BundleError",
    "ConfigurationError",
    "DataError",
    "InputError",
    "InputFileNotFoundError",
    "OutputError",
    "PellucidError",
    "TrainingError",
    "suggestion",
]


class PellucidError(Exception):
    """The root of everything this package raises on purpose.

    ``exit_code`` is what the command line ends with: 1 when the world failed, 2 when the input
    must change.
    """

    exit_code = 1


class InputError(PellucidError, ValueError):
    """Something that the user gave must be different."""

    exit_code = 2


class ConfigurationError(InputError):
    """A recipe, an option or a configuration file says something impossible."""


class DataError(InputError):
    """A text file cannot be used as it is."""


class InputFileNotFoundError(InputError, FileNotFoundError):
    """A file or folder that was named does not exist."""


class BundleError(InputError):
    """A model folder is damaged, incomplete, or not ours."""


class OutputError(PellucidError, OSError):
    """The place to write to cannot take the result."""


class TrainingError(PellucidError, RuntimeError):
    """Training cannot go on."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """Word a hint about a name that does not exist.

    Args:
        name: what was written.
        known: what could have been written.

    Returns:
        ``"Did you mean 'x'?"`` when something is near, otherwise ``"Known are: a, b, c."``
    """
    options = sorted(known)
    near = difflib.get_close_matches(name, options, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"Known are: {', '.join(options)}."
