"""Checks of what callers give to functions that look inside: one sentence names the argument."""

from __future__ import annotations

import functools
import inspect
import numbers
import os
import sys
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from pellucid.errors import InputError, suggestion

P = ParamSpec("P")
R = TypeVar("R")


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


def _wrong(name: str, value: object, hint: Any) -> InputError:
    options = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        options = tuple(name for one in options for name in get_args(one))
    names = [one for one in options if isinstance(one, str)]
    # The name of one of several things, mistyped.
    if isinstance(value, str) and names:
        rule = f"one of {', '.join(names)}"
        return InputError(f"{name} must be {rule}, but is {value!r}. {suggestion(value, names)}")
    return wrong_argument(name, value, _describe(hint))


def to_path(path: Any, name: str = "path") -> Path:
    """Turn the name of a file into a path.

    Raises:
        InputError: it is something else.
    """
    check_given(name, path, (str, os.PathLike), "the name of a file")
    return Path(path)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the types of a public function's arguments by its annotations, before it runs.

    Simple types, unions, literals and collections of them are checked; what is annotated in
    another way, such as a callable, is left to the function.

    Raises:
        InputError: an argument has another type; the sentence names it.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        bound = signature.bind(*args, **options)
        for name, value in bound.arguments.items():
            hint = _hints(function).get(name)
            is_one = signature.parameters[name].kind is not inspect.Parameter.VAR_KEYWORD
            if is_one and hint is not None and not _fits(value, hint):
                raise _wrong(name, value, hint)
        return function(*args, **options)

    return call


def check_fields(record: Any) -> None:
    """Check the types of a dataclass's fields by their annotations, as `checked` does.

    Raises:
        InputError: a field has another type; the sentence names it.
    """
    for owner in type(record).__mro__:
        for name, hint in _hints(owner).items():
            value = getattr(record, name)
            if not _fits(value, hint):
                raise _wrong(name, value, hint)


@functools.cache
def _hints(owner: Callable[..., Any] | type) -> dict[str, Any]:
    """Read the annotations of a function or class that are known when the program runs."""
    owner = inspect.unwrap(owner)
    names = vars(sys.modules[owner.__module__])
    found = {}
    for name, text in inspect.get_annotations(owner).items():
        # Names that only a type checker imports stay unchecked.
        with suppress(NameError):
            found[name] = eval(text, names) if isinstance(text, str) else text
    return found


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in get_args(hint))
    if origin is Literal:
        return isinstance(value, str | int) and value in get_args(hint)
    if hint in (int, float):
        kind = numbers.Integral if hint is int else numbers.Real
        return isinstance(value, kind) and not isinstance(value, bool)
    if hint is Any or hint is None:
        return hint is Any or value is None
    if origin is Callable:
        return callable(value)
    if origin is tuple:
        # Of any length, each of one type.
        return isinstance(value, tuple) and all(_fits(one, get_args(hint)[0]) for one in value)
    if origin is Mapping:
        inner = get_args(hint)
        return isinstance(value, Mapping) and all(
            _fits(key, inner[0]) and _fits(one, inner[1]) for key, one in value.items()
        )
    if origin in (Sequence, Iterable, Collection):
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, origin):
            return False
        # What can be read only once is left to the function.
        inner = get_args(hint)
        return not isinstance(value, Collection) or all(_fits(one, inner[0]) for one in value)
    # A protocol says what an object does; whoever uses it finds out.
    is_plain = isinstance(hint, type) and not getattr(hint, "_is_protocol", False)
    return isinstance(value, hint) if is_plain else True


def _describe(hint: Any) -> str:
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        parts = [_describe(one) for one in get_args(hint) if one is not NoneType]
        return " or ".join([*parts, *(["left out"] if NoneType in get_args(hint) else [])])
    if origin is Literal:
        return "one of " + ", ".join(map(repr, get_args(hint)))
    if origin is Callable:
        return "a function"
    if origin is Mapping:
        return "a dictionary, from names to functions"
    if origin in (Sequence, Iterable, Collection, tuple):
        return f"several, each {_describe(get_args(hint)[0])}"
    name = getattr(hint, "__name__", str(hint))
    article = "an" if name[:1] in "AEIOU" else "a"
    return _SAID.get(name, f"{article} {name}")


_SAID = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "bytes": "bytes",
    "Path": "the name of a file",
    "PairData": "a pair, as translator.pair(text) gives it",
    "TraceData": "a trace, as translator.look(text) gives it",
    "Bundle": "a model, as translator.bundle gives it",
}
