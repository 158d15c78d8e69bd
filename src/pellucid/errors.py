"""The exception tree, and the wording of messages.

A message is one sentence about the fault and one about what to do now::

    <what> must be <rule>, but is <value> (<file:line, field or option>). <What to do now.>

Each class is also the natural built-in, so that ``except ValueError`` keeps working::

    PellucidError                      exit code 1: the machine, the disk or the training failed
    ├── InputError (ValueError)        exit code 2: the user's input must change
    │   ├── ConfigurationError         a recipe, an option or a configuration file
    │   ├── DataError                  a text file
    │   ├── BundleError                a model folder
    │   └── InputFileNotFoundError     a missing file or folder (also FileNotFoundError)
    ├── OutputError (OSError)          the place to write to
    └── TrainingError (RuntimeError)   a training that cannot continue
"""

from __future__ import annotations

import difflib
import re
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
    "make_printable",
    "shorten",
    "suggestion",
]


class PellucidError(Exception):
    """The root of every error that this package raises on purpose.

    Attributes:
        exit_code: the exit code of a command that ends with this error.
    """

    exit_code = 1


class InputError(PellucidError, ValueError):
    """The user's input must change."""

    exit_code = 2


class ConfigurationError(InputError):
    """A recipe, an option or a configuration file asks for something impossible."""


class DataError(InputError):
    """A text file cannot be used as it is."""


class InputFileNotFoundError(InputError, FileNotFoundError):
    """A file or folder does not exist."""


class BundleError(InputError):
    """A model folder is damaged, incomplete, or of another format."""


class OutputError(PellucidError, OSError):
    """The place to write to cannot take the result."""


class TrainingError(PellucidError, RuntimeError):
    """Training cannot continue."""


def suggestion(name: str, known: Iterable[str]) -> str:
    """Word a hint about a name that does not exist.

    Args:
        name: the unknown name.
        known: the names that exist.

    Returns:
        ``"Did you mean 'x'?"`` if a known name is similar, otherwise ``"Known are: a, b, c."``
    """
    options = sorted(known)
    near = difflib.get_close_matches(name, options, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {near[0]!r}?"
    return f"Known are: {', '.join(options)}."


_LONGEST_WORD = 200
_LONGEST_SENTENCE = 1500
"""Characters of a message, of which few are this package's own."""


def make_printable(text: str) -> str:
    """Write control characters, and others that show nothing, as escapes."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def shorten(message: str) -> str:
    """Cut the middle out of long values in a message, such as a name of thousands of letters.

    The ends stay: a message begins with the fault and ends with what to do.
    """
    if len(message) <= _LONGEST_WORD:
        return message
    words = re.sub(rf"\S{{{_LONGEST_WORD + 1},}}", lambda word: _cut(word[0], 80, 40), message)
    return words if len(words) <= _LONGEST_SENTENCE else _cut(words, 900, 400)


def _cut(text: str, num_first: int, num_last: int) -> str:
    return f"{text[:num_first]}…({len(text):,} characters)…{text[-num_last:]}"
