"""Dataclasses from the JSON files that a run keeps for itself, and that others may have changed."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from pellucid.errors import BundleError

Record = TypeVar("Record")


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
        fault = first["msg"].removeprefix("Input should be ")
        fault = "there" if first["type"] == "missing" else fault
    else:
        numbers = {name: one for name, one in vars(found).items() if isinstance(one, int | float)}
        # Early versions write -1 for figures that were not measured.
        bad = [name for name, one in numbers.items() if not -1 <= one < float("inf")]
        if not bad:
            return found
        field, fault = bad[0], "a finite number that is not negative"
    raise BundleError(
        f"{field} must be {fault}, but is not ({where}). The file was changed or damaged: copy it "
        "again."
    )
