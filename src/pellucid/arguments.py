"""Checks of what a caller gives to a public function: one sentence that names the argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn, get_args

from pellucid.errors import DataError, InputError, shorten


def describe_value(value: object) -> str:
    """Describe a value in a few words: what it is, and itself if that is short."""
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    kind = type(value).__name__
    if isinstance(value, bytes | bytearray):
        return kind
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    if isinstance(value, str):
        return shorten(repr(value))
    return f"{article} {kind}"


def refuse(name: str, rule: str, value: object, advice: str = "Change it.") -> NoReturn:
    """Refuse an argument.

    Raises:
        InputError: always.
    """
    raise InputError(f"{name} must be {rule}, but is {describe_value(value)}. {advice}")


def check_kind(
    name: str, value: object, kinds: type | tuple[type, ...], rule: str, advice: str = "Change it."
) -> None:
    """Refuse an argument that has none of the kinds; True and False are no numbers.

    Raises:
        InputError: it has none of them.
    """
    is_number_wanted = bool not in (kinds if isinstance(kinds, tuple) else (kinds,))
    if not isinstance(value, kinds) or (is_number_wanted and isinstance(value, bool)):
        refuse(name, rule, value, advice)


def check_count(name: str, value: object, least: int = 1) -> None:
    """Refuse an argument that is not a whole number, or too small.

    Raises:
        InputError: it is one of these.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        refuse(name, f"a whole number of at least {least}", value)


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
        DataError: it is something else, or one of them is no text; the message has its number.
    """
    is_several = isinstance(values, Iterable) and not isinstance(
        values, bytes | bytearray | Mapping
    )
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


def list_pairs(sources: object, targets: object) -> tuple[bool, list[str], list[str]]:
    """Return the two sides of pairs as lists, after telling whether each is a single text.

    Raises:
        DataError: only one side is a single text, or something is no text.
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


def check_choice(name: str, value: object, choices: Any) -> None:
    """Refuse an argument that is none of the values of a ``Literal``.

    Raises:
        InputError: it is none of them.
    """
    known = get_args(choices)
    if not isinstance(value, str) or value not in known:
        refuse(name, f"one of {', '.join(map(repr, known))}", value)
