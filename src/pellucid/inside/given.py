"""Arguments of functions that look inside, checked by their annotations."""

from __future__ import annotations

import functools
import inspect
import numbers
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin

from pellucid.arguments import refuse
from pellucid.errors import InputError, suggestion

P = ParamSpec("P")
R = TypeVar("R")

_SEVERAL = (Sequence, Iterable, Collection, tuple)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the types of a public function's arguments by its annotations, before it runs.

    Raises:
        InputError: an argument has another type; the sentence names it.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        given = signature.bind(*args, **options).arguments
        for name, (hint, text) in _hints(function).items():
            if name in given:
                _check(name, given[name], hint, text)
        return function(*args, **options)

    return call


def check_fields(record: Any) -> None:
    """Check the types of a dataclass's fields by their annotations, as `checked` does.

    Raises:
        InputError: a field has another type; the sentence names it.
    """
    for owner in type(record).__mro__:
        for name, (hint, text) in _hints(owner).items():
            _check(name, getattr(record, name), hint, text)


@functools.cache
def _hints(owner: Callable[..., Any] | type) -> dict[str, tuple[Any, str]]:
    """Read the annotations of a function or class: what they mean, and what they say."""
    owner = inspect.unwrap(owner)
    names = vars(sys.modules[owner.__module__])
    found = {}
    for name, text in inspect.get_annotations(owner).items():
        # Names that only a type checker imports stay unchecked.
        with suppress(NameError, TypeError):
            found[name] = eval(text, names), text
    return found


def _check(name: str, value: object, hint: Any, text: str) -> None:
    if _fits(value, hint):
        return
    options = [one for part in (hint, *get_args(hint)) for one in get_args(part)]
    known = [one for one in options if isinstance(one, str)]
    # One of several names, mistyped.
    if isinstance(value, str) and known:
        raise InputError(
            f"{name} must be one of {', '.join(dict.fromkeys(known))}, but is {value!r}. "
            f"{suggestion(value, known)}"
        )
    # The classes below `Pair` and `Trace` hold their data.
    refuse(name, f"of type {text.replace('Data', '')}", value)


def _fits(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    inner = get_args(hint)
    if hint is Any:
        return True
    if origin in (Union, UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is Literal:
        return any(value is one or (isinstance(value, str) and value == one) for one in inner)
    if origin is Callable:
        return callable(value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(_fits(one, inner[1]) for one in value.values())
    if origin in _SEVERAL:
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, origin):
            return False
        # What can be read only once is left to the function.
        return not isinstance(value, Collection) or all(_fits(one, inner[0]) for one in value)
    if hint in (int, float):
        kind = numbers.Integral if hint is int else numbers.Real
        return isinstance(value, kind) and not isinstance(value, bool)
    # Of a protocol, whoever uses the object finds out.
    is_class = isinstance(hint, type) and not getattr(hint, "_is_protocol", False)
    return isinstance(value, hint) if is_class else (hint is not None or value is None)
