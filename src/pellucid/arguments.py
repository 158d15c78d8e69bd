"""Checks of what a caller gives to a public function: one sentence that names the argument."""

from __future__ import annotations

import functools
import inspect
import numbers
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import UnionType
from typing import Any, Literal, NoReturn, ParamSpec, TypeVar, Union, get_args, get_origin

from pellucid.errors import DataError, InputError, suggestion
from pellucid.wording.other_names import hint_of
from pellucid.wording.value_rules import describe_value, word_type

P = ParamSpec("P")
R = TypeVar("R")

_WITHIN = ("pellucid.", "torch.", "contextlib")
_SEVERAL = (Sequence, Iterable, Collection, tuple)


def warn_caller(sentence: str) -> None:
    """Warn at the line of the program that called this package, however deep the reason lies."""
    level = 2
    frame = sys._getframe(1)
    # A program runs inside `torch.inference_mode` and the like as well, whose lines say nothing.
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_WITHIN):
        frame = frame.f_back
        level += 1
    warnings.warn(sentence, stacklevel=level)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check a public function's arguments by its signature and annotations, before it runs.

    Raises:
        InputError: an argument has another type, is unknown or missing; the sentence names it.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        if mistake := find_mistake(function, args, options):
            raise mistake
        bound = signature.bind(*args, **options)
        given = bound.arguments
        for name, (hint, text) in _hints(function).items():
            if name not in given:
                continue
            # Otherwise reading a generator here would leave nothing for the function.
            if isinstance(given[name], Iterator) and _fits(given[name], hint):
                given[name] = list(given[name])
            check_kind(name, given[name], hint, text)
        return function(*bound.args, **bound.kwargs)

    return call


def named(
    elsewhere: Callable[[], Mapping[str, str]] = dict,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Word what is wrong with the names of a call; for functions that check types themselves.

    Args:
        elsewhere: makes a sentence about each name that belongs to another place.

    Raises:
        InputError: an argument is unknown, missing, or one too many.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            try:
                return function(*args, **options)
            except TypeError as error:
                fault: Exception = error
            # Looked for only now: most calls are right.
            raise find_mistake(function, args, options, elsewhere) or fault

        return call

    return decorate


def find_mistake(
    function: Callable[..., Any],
    args: Sequence[Any],
    options: Mapping[str, Any],
    elsewhere: Callable[[], Mapping[str, str]] = dict,
) -> InputError | None:
    """Word an argument that is unknown, missing or one too many; None if all fit."""
    signature = inspect.signature(function)
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        fault = str(error)
    else:
        return None
    name = function.__name__
    parameters = [one for key, one in signature.parameters.items() if key != "self"]
    known = [one.name for one in parameters]
    if not any(one.kind is one.VAR_KEYWORD for one in parameters):
        for key in options:
            if key not in known:
                hint = hint_of(key, known, elsewhere())
                return InputError(f"{name} has no argument {key!r}. {hint}")
    if fault.startswith("too many"):
        first = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        return InputError(
            f"{name} takes only {' and '.join(first) or 'arguments'} without a name, but is "
            "given more. Name the others, and give several of one kind as a list."
        )
    missing = re.findall("'(.*?)'", fault)
    return InputError(f"{name} needs {' and '.join(missing)}, but is called without. Add it.")


def check_fields(record: Any) -> None:
    """Check the types of a dataclass's fields by their annotations, as `checked` does.

    Raises:
        InputError: a field has another type; the sentence names it.
    """
    for owner in type(record).__mro__:
        for name, (hint, text) in _hints(owner).items():
            check_kind(name, getattr(record, name), hint, text)


@functools.cache
def _hints(owner: Callable[..., Any] | type) -> dict[str, tuple[Any, str]]:
    """Read the annotations of a function or class: what they mean, and as a rule."""
    owner = inspect.unwrap(owner)
    names = vars(sys.modules[owner.__module__])
    found = {}
    for name, text in inspect.get_annotations(owner).items():
        # Names that only a type checker imports stay unchecked.
        with suppress(NameError, TypeError):
            found[name] = eval(text, names), word_type(text)
    return found


def check_kind(name: str, value: object, hint: Any, rule: str = "") -> None:
    """Refuse an argument of another type; True and False do not count as numbers.

    Args:
        name: of the argument, for the message.
        value: what was given.
        hint: a type, as an annotation has it.
        rule: the same in words. The names of a ``Literal`` are listed without it.

    Raises:
        InputError: it has another type, or is not one of the names.
    """
    if _fits(value, hint):
        return
    options = [one for part in (hint, *get_args(hint)) for one in get_args(part)]
    known = [one for one in options if isinstance(one, str)]
    # One of several names, mistyped.
    if known and (isinstance(value, str) or get_origin(hint) is Literal):
        listed = ", ".join(dict.fromkeys(known))
        refuse(name, f"one of {listed}", value, suggestion(str(value), known))
    is_single = isinstance(value, str | bytes | Mapping)
    items: list[Any] = list(value) if isinstance(value, Collection) and not is_single else []
    for part in (hint, *get_args(hint)):
        if get_origin(part) in _SEVERAL:
            for number, one in enumerate(items):
                if not _fits(one, get_args(part)[0]):
                    shown = describe_value(one)
                    raise InputError(
                        f"{name} must be {rule}, but {name}[{number}] is {shown}. Change it."
                    )
    refuse(name, rule, value)


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


def refuse(name: str, rule: str, value: object, advice: str = "Change it.") -> NoReturn:
    """Refuse an argument.

    Raises:
        InputError: always.
    """
    raise InputError(f"{name} must be {rule}, but is {describe_value(value)}. {advice}")


def check_count(name: str, value: object) -> None:
    """Refuse an argument that is not a whole number, or below 1.

    Raises:
        InputError: it is one of these.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        refuse(name, "a whole number of at least 1", value)


def check_text(name: str, value: object) -> str:
    """Return an argument that is a text.

    Raises:
        DataError: it is something else.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        advice = "Decode it first: value.decode('utf-8')."
    elif value is None or value != value:  # not a number, as tables have it for a missing value
        advice = 'Leave it out, or put "" in its place.'
    elif isinstance(value, Iterable):
        advice = "Give its texts one by one."
    else:
        advice = "Convert it with str()."
    raise DataError(f"{name} must be a text, but is {describe_value(value)}. {advice}")


def list_texts(name: str, values: object) -> list[str]:
    """Return an argument that is several texts, as a list.

    Raises:
        DataError: it is something else, or one of them is not a text; the message has its number.
    """
    if values is None or isinstance(values, bytes | bytearray):
        check_text(name, values)
    is_several = isinstance(values, Iterable) and not isinstance(values, Mapping)
    if isinstance(values, str) or not is_several:
        raise DataError(
            f"{name} must be a list of texts, but is {describe_value(values)}. Change it."
        )
    assert isinstance(values, Iterable)
    found = list(values)
    for number, value in enumerate(found):
        if not isinstance(value, str):  # the name is only written if it is needed
            check_text(f"{name}[{number}]", value)
    return found


def list_some(what: str, values: str | Iterable[str], example: str) -> list[str]:
    """Return what is given as one text, or as several of any iterable, as a list.

    Args:
        what: the name of one, for the message.
        values: what was given.
        example: one of them.

    Raises:
        InputError: the list is empty.
    """
    found = [values] if isinstance(values, str) else list(values)
    if not found:
        raise InputError(f"No {what} was given. Name one such as {example}, or leave {what}s out.")
    return found


def list_pairs(sources: object, targets: object) -> tuple[bool, list[str], list[str]]:
    """Return the two sides of pairs as lists, after telling whether each is a single text.

    Raises:
        DataError: only one side is a single text, or something is not a text.
    """
    is_one = isinstance(sources, str)
    if is_one != isinstance(targets, str):
        raise DataError(
            "sources and targets must be two texts or two lists of texts, but are "
            f"{describe_value(sources)} and {describe_value(targets)}. Give both alike."
        )
    if is_one:
        sources = [sources]
        targets = [targets]
    return is_one, list_texts("sources", sources), list_texts("targets", targets)


def check_phrases(name: str, value: str | Sequence[str]) -> tuple[str, ...]:
    """Return an argument that is one phrase or several.

    Raises:
        InputError: it is something else, or a phrase is empty.
    """
    found = (value,) if isinstance(value, str) else tuple(list_texts(name, value))
    if not all(map(str.strip, found)):
        raise InputError(f"{name} must be phrases, but one is empty. Leave it out.")
    return found
