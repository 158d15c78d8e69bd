"""The base of every section of configuration: frozen, strict, with errors a person can act on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pellucid.errors import ConfigurationError
from pellucid.wording.other_names import hint_of
from pellucid.wording.value_rules import describe_value, word_fault

Count = Annotated[int, Field(gt=0, le=2**24)]
"""A number of things that take memory; the bound is far above any real use."""

Width = Annotated[int, Field(gt=0, le=2**16)]
"""One side of a matrix, or the number of matrices that lie next to each other."""

Steps = Annotated[int, Field(gt=0, le=10**12)]
"""A number of things that take time."""

Rate = Annotated[float, Field(ge=0, le=100)]
"""A learning rate, or a factor of one."""


# TOML and JSON have lists, which pydantic, being strict, does not take for a tuple.
def _listed(value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


Item = TypeVar("Item")
Several = Annotated[tuple[Item, ...], BeforeValidator(_listed)]
"""A list; a single text may be written without brackets."""


class Strict(BaseModel):
    """A frozen section of configuration that refuses unknown keys.

    Each field's meaning is the string below it, and a comment opens each group of fields;
    docs/reference/recipes.md is made from them. Pydantic would read the strings itself with
    ``use_attribute_docstrings``, but that would add 50 ms to the start of every command.
    """

    short_cuts: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Keys that a validator replaces by others, for each section; suggested like fields."""

    written_by_programs: ClassVar[Collection[str]] = ()
    """Fields that people do not set: neither documented nor suggested."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        # Pydantic claims names that begin with model_, such as our model_type and model_hash.
        protected_namespaces=(),
        # Validators are built at first use: most commands need few sections.
        defer_build=True,
    )

    def find_set(self, served: Collection[str]) -> str | None:
        """Find the first field that is not served and has another value than its default."""
        for name, field in type(self).model_fields.items():
            if name not in served and getattr(self, name) != field.default:
                return name
        return None


Section = TypeVar("Section", bound=Strict)


def validate(section: type[Section], values: Mapping[str, Any], where: str) -> Section:
    """Build a section from plain values.

    Args:
        section: the class to build.
        values: the content of a TOML or JSON file.
        where: the file, for the message; ``""`` for the arguments of a call.

    Raises:
        ConfigurationError: one sentence about the first problem, with the dotted key, the value,
            the file, and for an unknown key the name that was probably meant.
    """
    try:
        return section.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        raise ConfigurationError(describe_problem(section, dict(first), where)) from None


def describe_problem(section: type[Strict], problem: Mapping[str, Any], where: str) -> str:
    """Word one of pydantic's errors about a section of this kind."""
    path = [str(part) for part in problem["loc"]]
    key = ".".join(path) or section.__name__
    place = f" ({where})" if where else ""
    if problem["type"] == "extra_forbidden":
        short_cuts = section.short_cuts.get(".".join(path[:-1]), ())
        known = [*_known_keys(section, path[:-1]), *short_cuts]
        keys = keys_of_sections(section).items()
        elsewhere = {one: f"It belongs to [{where}]: {where}.{one}." for one, where in keys}
        hint = hint_of(path[-1], known, elsewhere)
        return f"The key {key!r} is unknown{place}. {hint}"
    if problem["type"] == "missing":
        return f"The key {key!r} is missing{place}. Add it."
    if problem["type"] == "value_error":  # from a validator of ours, which words the sentence
        if where and path:
            place = f" ({where}, {key})"
        return f"{problem['ctx']['error']}{place}."
    fault = word_fault(problem, None if where else describe_value)
    return f"{key} {fault}{place}. Change it."


def keys_of_sections(section: type[Strict]) -> dict[str, str]:
    """Find the nested section of each key, the first one if several have it."""
    found: dict[str, str] = {}
    for name, field in section.model_fields.items():
        for key in _known_keys(section, [name]) if _is_section(field.annotation) else ():
            found.setdefault(key, name)
    return found


def _known_keys(section: type[Strict], path: list[str]) -> Iterator[str]:
    """List the keys of the nested section at a path."""
    current: Any = section
    for part in path:
        field = current.model_fields.get(part) if _is_section(current) else None
        if field is None:
            break
        options = [field.annotation, *get_args(field.annotation)]
        current = next((option for option in options if _is_section(option)), current)
    yield from (name for name in current.model_fields if name not in current.written_by_programs)


def _is_section(candidate: Any) -> bool:
    return isinstance(candidate, type) and issubclass(candidate, BaseModel)
