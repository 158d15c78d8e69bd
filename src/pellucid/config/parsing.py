"""TOML and JSON of strangers, with bounds on what they may hold; dataclasses from JSON."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from pellucid.errors import BundleError
from pellucid.wording.value_rules import word_rule

MOST_NESTED = 100
"""Depth of lists and tables in each other; Python's own functions fail near a thousand."""

_MOST_BITS = 1024
"""Bits of an integer in TOML: those of the largest float. A field's own bound is far below."""

_PART = r"(?:[\w-]++|\"[^\"\n]*+\"|'[^'\n]*+')"
_DEEP_KEY = re.compile(rf"(?<![\w-])(?:{_PART}[ \t]*+\.[ \t]*+){{{MOST_NESTED}}}")
"""The beginning of a dotted key that nests tables too deeply: tomllib joins its parts in quadratic
time before anything can look at them."""

Record = TypeVar("Record")


class ExcessError(ValueError):
    """The text is well formed, but holds more than any file that this package reads."""


def read_json_text(text: str | bytes) -> Any:
    """Read JSON.

    Raises:
        ValueError: the text is not JSON, or not UTF-8; its message says why.
        ExcessError: it is nested more than `MOST_NESTED` deep, or holds an integer of thousands of
            digits.
    """
    try:
        values = json.loads(text)
    except RecursionError:
        raise _too_deep() from None
    # Both are a ValueError, too, and say what is wrong.
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except ValueError:  # Python converts no integer of more than 4,300 digits.
        raise _too_long() from None
    # Counting is much faster than looking, and most texts have few brackets.
    if isinstance(text, bytes):
        num_opened = text.count(b"[") + text.count(b"{")
    else:
        num_opened = text.count("[") + text.count("{")
    if num_opened > MOST_NESTED:
        _check_depth(values)
    return values


def finite_values(value: Any) -> Any:
    """Turn a record into what JSON has; numbers that it lacks become None."""
    if isinstance(value, Mapping):
        return {str(key): finite_values(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [finite_values(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def read_toml_text(text: str) -> dict[str, Any]:
    """Read TOML.

    Raises:
        tomllib.TOMLDecodeError: the text is not TOML; the message says why and where.
        ExcessError: it is nested more than `MOST_NESTED` deep, or holds an integer of more than
            1,024 bits.
    """
    if _DEEP_KEY.search(text):
        raise _too_deep()
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise _too_deep() from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:
        raise _too_long() from None
    for level in _levels(values):
        for container in level:
            for value in _children(container):
                # Python limits the digits of decimal integers only, not of hexadecimal ones.
                if isinstance(value, int) and value.bit_length() > _MOST_BITS:
                    raise _too_long()
    return values


def read_record(kind: type[Record], values: Any, where: str) -> Record:
    """Build a dataclass from JSON, if every field has a value of its type.

    Args:
        kind: the dataclass.
        values: what the file holds for it.
        where: the file, for the message.

    Raises:
        BundleError: a field is missing, or holds something else; or a number is negative that
            counts something, or not finite.
    """
    try:
        # From Python, strictly, it would have to be an instance already.
        found = TypeAdapter(kind).validate_json(json.dumps(values), strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"]) or kind.__name__
        fault = "there" if first["type"] == "missing" else word_rule(first)
    else:
        numbers = {name: one for name, one in vars(found).items() if isinstance(one, int | float)}
        # -1 stands for a figure that was not measured yet.
        bad = [name for name, one in numbers.items() if not -1 <= one < float("inf")]
        if not bad:
            return found
        field = bad[0]
        fault = "a finite number that is not negative"
    raise BundleError(
        f"{field} must be {fault}, but is not ({where}). The file was changed or damaged: copy it "
        "again."
    )


def _check_depth(values: Any) -> None:
    for _ in _levels(values):
        pass


def _levels(values: Any) -> Iterator[list[Any]]:
    """Yield the lists and tables of each depth; never by recursion, which is what may fail."""
    level = [values] if isinstance(values, list | dict) else []
    for _ in range(MOST_NESTED):
        if not level:
            return
        yield level
        level = [
            value
            for container in level
            for value in _children(container)
            if isinstance(value, list | dict)
        ]
    if level:
        raise _too_deep()


def _children(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container


def _too_deep() -> ExcessError:
    return ExcessError(f"it is nested more than {MOST_NESTED} deep")


def _too_long() -> ExcessError:
    return ExcessError(f"it holds an integer of more than {_MOST_BITS:,} bits")
