"""Checks of what callers give to functions that look inside: one sentence names the argument."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any

from pellucid.errors import InputError


def check_given(name: str, value: object, kind: type | tuple[type, ...], rule: str) -> None:
    """Make sure that an argument has the type that a function wants.

    Args:
        name: of the argument.
        value: what was given.
        kind: one or several types. True and False are numbers only for ``bool``.
        rule: what it must be, for the message: ``a text such as 'elle'``.

    Raises:
        InputError: it has another type.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    is_odd_number = isinstance(value, bool) and bool not in kinds
    if not isinstance(value, kinds) or is_odd_number:
        raise wrong_argument(name, value, rule)


def wrong_argument(name: str, value: object, rule: str) -> InputError:
    """Word the refusal of an argument."""
    shown = textwrap.shorten(repr(value), 60, placeholder=" …")
    return InputError(
        f"{name} must be {rule}, but is {shown} (of type {type(value).__name__}). Change it."
    )


def to_path(path: Any, name: str = "path") -> Path:
    """Turn the name of a file into a path.

    Raises:
        InputError: it is something else.
    """
    check_given(name, path, (str, os.PathLike), "the name of a file")
    return Path(path)
