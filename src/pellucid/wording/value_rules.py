"""What a value must be, and what it is, for pydantic's faults and for the types of arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from pellucid.errors import make_printable, shorten

# By pydantic's name of a fault; braces name what it tells about the rule.
_RULES: Mapping[str, str] = {
    "string_type": "a text",
    "string_unicode": "whole characters",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "literal_error": "{expected}",
    "greater_than": "greater than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
}

# By the name of a type in an annotation: a value of it, and several.
_TYPES: Mapping[str, tuple[str, str]] = {
    "str": (_RULES["string_type"], "texts"),
    "int": (_RULES["int_type"], "whole numbers"),
    "float": (_RULES["float_type"], "numbers"),
    "bool": ("True or False", "truth values"),
    "Path": ("a path", "paths"),
    "None": ("None", ""),
    "Mapping": ("a dict", "dicts"),
    "Callable": ("a function", "functions"),
}
_SEVERAL = ("Sequence", "Iterable", "Collection", "tuple", "list")

# What has a length, and the number of what.
_SIZES: Mapping[str, tuple[str, str]] = {
    "string_too_long": ("at most {max_length:,}", "characters"),
    "string_too_short": ("at least {min_length:,}", "characters"),
    "too_long": ("at most {max_length:,}", "entries"),
    "too_short": ("at least {min_length:,}", "entries"),
}

OUT_OF_BOUNDS = frozenset(
    {*_SIZES, "greater_than", "greater_than_equal", "less_than", "less_than_equal"}
)
"""The faults of a value of the right type that is too large or too small."""

_LONGEST_SHOWN = 40


def word_type(annotation: str) -> str:
    """Say what a value of an annotated type is, such as ``a text or a list of texts``.

    Args:
        annotation: as it is written in the code.
    """
    # The classes below `Pair` and `Trace` hold their data.
    parts = re.split(r" \| (?![^\[]*\])", annotation.replace("Data", ""))
    *first, last = dict.fromkeys(map(_word_part, parts))
    return f"{', '.join(first)} or {last}" if first else last


def _word_part(part: str) -> str:
    name, _, inner = part.removesuffix("]").partition("[")
    if name in _SEVERAL:
        entries = inner.split(", ")[0].split(" | ")
        several = [_TYPES[one][1] if one in _TYPES else f"{one} objects" for one in entries]
        return f"a list of {' or '.join(several)}"
    if name in _TYPES:
        return _TYPES[name][0]
    return f"{'an' if name[:1] in 'AEIOU' else 'a'} {name}"


def word_fault(problem: Mapping[str, Any], show: Callable[[Any], str] | None = None) -> str:
    """Say what a value must be and what it is, as the end of a sentence.

    Args:
        problem: one of pydantic's errors, with its input and its context.
        show: writes the value; as JSON has it unless given.

    Returns:
        Such as ``must be at most 16, but is 99``.
    """
    kind = problem["type"]
    context = problem.get("ctx", {})
    value = problem.get("input")
    if kind in _SIZES:
        bound, unit = _SIZES[kind]
        limit = bound.format(**context)
        if limit.endswith(" 1"):
            unit = {"characters": "character", "entries": "entry"}[unit]
        return f"must have {limit} {unit}, but has {_length(value, context):,}"
    return f"must be {word_rule(problem)}, but is {(show or show_value)(value)}"


def word_rule(problem: Mapping[str, Any]) -> str:
    """Say what a value must be, such as ``at most 16``; arguments as for `word_fault`."""
    rule = _RULES.get(problem["type"])
    if rule is None:
        # Rules that no setting of ours has, in pydantic's words.
        return str(problem["msg"]).removeprefix("Input should be ")
    bounds = problem.get("ctx", {}).items()
    # A bound of 10.0 is written 10.
    plain = {name: int(n) if isinstance(n, float) and n.is_integer() else n for name, n in bounds}
    return rule.format(**plain)


def show_value(value: Any) -> str:
    """Write a value as JSON has it, or say its kind if it is long."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float) and len(str(value)) <= _LONGEST_SHOWN:
        return str(value)
    if isinstance(value, str) and len(value) <= _LONGEST_SHOWN:
        return make_printable(repr(value))
    if isinstance(value, str):
        return f"text of {len(value):,} characters"
    if isinstance(value, list | tuple):
        return "a list"
    return "an object" if isinstance(value, Mapping) else "something else"


def is_device_name(name: object) -> bool:
    """Tell whether a device can have this name."""
    return isinstance(name, str) and re.fullmatch(r"auto|cpu|cuda(:[0-9]{1,3})?", name) is not None


def describe_value(value: object) -> str:
    """Describe a value of Python in a few words: what it is, and itself if that is short."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    kind = type(value).__name__
    if isinstance(value, bytes | bytearray):
        return kind
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    if isinstance(value, str):
        return shorten(repr(value))
    return f"{article} {kind}"


def _length(value: Any, context: Mapping[str, Any]) -> int:
    length = context.get("actual_length")
    return len(value) if length is None else length
