"""What all configuration shares: frozen, strict, and errors a person can act on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pellucid.errors import ConfigurationError, suggestion

__all__ = ["Count", "Rate", "Steps", "Strict", "Width", "validate"]

Count = Annotated[int, Field(gt=0, le=2**24)]
"""How many of something that takes memory: more than anybody has, few enough to be added up."""

Width = Annotated[int, Field(gt=0, le=2**16)]
"""One side of a matrix, or how many matrices there are side by side."""

Steps = Annotated[int, Field(gt=0, le=10**12)]
"""How many of something that takes time."""

Rate = Annotated[float, Field(ge=0, le=100)]
"""A learning rate, or what is multiplied by one."""


class Strict(BaseModel):
    """A frozen section of configuration that refuses what it does not know."""

    short_cuts: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Keys that a validator turns into others, by section, so that they are suggested too."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, protected_namespaces=()
    )


Section = TypeVar("Section", bound=Strict)


def validate(section: type[Section], values: Mapping[str, Any], where: str) -> Section:
    """Build a section from plain values.

    Args:
        section: the class to build.
        values: what a TOML or JSON file said.
        where: the file, for the message.

    Raises:
        ConfigurationError: one sentence about the first thing that is wrong, with the dotted
            key, the value, the file, and the nearest known name for an unknown key.
    """
    try:
        return section.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigurationError(_sentence(section, dict(first), where)) from None


def _sentence(section: type[Strict], problem: dict[str, Any], where: str) -> str:
    path = [str(part) for part in problem["loc"]]
    key = ".".join(path) or section.__name__
    given = problem.get("input")
    if problem["type"] == "extra_forbidden":
        known = [
            *_known_keys(section, path[:-1]),
            *section.short_cuts.get(".".join(path[:-1]), ()),
        ]
        return f"Every key must be known, but {key!r} is not ({where}). " + suggestion(
            path[-1], known
        )
    if problem["type"] == "missing":
        return f"The key {key!r} must be given, but is missing ({where}). Add it."
    if problem["type"] == "value_error":
        message = str(problem["ctx"]["error"])
        return f"{message} ({where}{', ' + key if path else ''})."
    rule = problem["msg"].removeprefix("Input should be ").removeprefix("Value should be ")
    return f"{key} must be {rule}, but is {given!r} ({where}). Change it."


def _known_keys(section: type[Strict], path: list[str]) -> Iterator[str]:
    """The keys of the nested section that a path leads to."""
    current: Any = section
    for part in path:
        field = current.model_fields.get(part) if _is_section(current) else None
        if field is None:
            break
        options = [field.annotation, *get_args(field.annotation)]
        current = next((option for option in options if _is_section(option)), current)
    yield from current.model_fields


def _is_section(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)
