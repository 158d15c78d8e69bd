"""Sections of configuration as lists of options, so that nothing else declares them again."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, get_origin

from annotated_types import Le
from pydantic import Field

from pellucid.config.base import Strict


class DeclaredSetting(NamedTuple):
    """One field of a section: its name, type, bounds, default and meaning."""

    name: str
    kind: Any
    bounds: tuple[Any, ...]
    default: Any
    meaning: str


@cache
def read_meanings(section: type[Strict]) -> Mapping[str, tuple[str, str]]:
    """Read the comments of a section's source.

    Returns:
        For each field the topic, from the comment that opens its group (empty without one), and
        the meaning, from the string below the field. Nothing if the source is not installed.
    """
    found = {}
    # The base first, so that a section's own meaning of a field replaces the base's.
    for kind in reversed(section.__mro__):
        if not issubclass(kind, Strict):
            continue
        try:
            source = Path(inspect.getfile(kind)).read_text(encoding="utf-8")
        except OSError:
            return {}
        lines = source.splitlines()
        topic = ""
        for field, text in itertools.pairwise(_body_of(kind.__name__, source)):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            # Lines of a tree count from 1, and the comment is one line higher.
            above = lines[field.lineno - 2].strip()
            topic = above.removeprefix("# ") if above.startswith("# ") else topic
            if isinstance(text, ast.Expr) and field.target.id in section.model_fields:
                meaning = " ".join(ast.literal_eval(text.value).split())
                found[field.target.id] = (topic, meaning)
    return found


def _body_of(name: str, source: str) -> list[ast.stmt]:
    """Find the statements of a class; `inspect.getsource` takes twice as long."""
    tree = ast.parse(source)
    return next(one.body for one in tree.body if isinstance(one, ast.ClassDef) and one.name == name)


def settings_of(section: type[Strict]) -> list[DeclaredSetting]:
    """List the fields of a section that a person may set one by one: all but lists."""
    meanings = read_meanings(section)
    return [
        DeclaredSetting(
            name,
            field.annotation,
            tuple(field.metadata),
            field.default,
            meanings.get(name, ("", ""))[1],
        )
        for name, field in section.model_fields.items()
        if get_origin(field.annotation) is not tuple
    ]


def request_fields(
    section: type[Strict],
    largest: Mapping[str, float] = MappingProxyType({}),
    *,
    keep: bool = False,
) -> dict[str, Any]:
    """Make the fields of a request from a section.

    Args:
        section: the section.
        largest: a server's own upper bounds, by field.
        keep: True to keep the section's defaults; otherwise a field left out is None.
    """
    fields: dict[str, Any] = {}
    for name, kind, bounds, default, meaning in settings_of(section):
        if name in largest:
            bounds = (*(one for one in bounds if not isinstance(one, Le)), Le(largest[name]))
        bounded = Annotated[kind, *bounds] if bounds else kind
        description = meaning.replace("``", "")
        fields[name] = (
            # None tells a field that was left out from one that was given its default.
            bounded if keep else bounded | None,
            Field(default if keep else None, description=description),
        )
    return fields
