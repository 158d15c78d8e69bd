"""Pydantic's rules in the words of this package's errors: what a value must be, and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pellucid.errors import make_printable

# By pydantic's name of a fault; braces name what it tells about the rule.
_RULES: Mapping[str, str] = {
    "string_type": "text",
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


def word_fault(problem: Mapping[str, Any]) -> str:
    """Say what a value must be and what it is, as the end of a sentence.

    Args:
        problem: one of pydantic's errors, with its input and its context.

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
    rule = _RULES.get(kind)
    wanted = str(problem["msg"]).removeprefix("Input should be ") if rule is None else rule
    return f"must be {wanted.format(**context)}, but is {show_value(value)}"


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


def _length(value: Any, context: Mapping[str, Any]) -> int:
    length = context.get("actual_length")
    return len(value) if length is None else length
