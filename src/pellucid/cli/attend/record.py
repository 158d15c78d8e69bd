"""A worked example as JSON."""

from __future__ import annotations

from typing import Any

from pellucid.by_hand.sheet import Example, Step


def example_to_record(example: Example) -> dict[str, Any]:
    """Turn an example into plain dictionaries."""
    parts = [
        {
            **_pick(part, "title", "note", "corrections"),
            "steps": [_step_to_record(step) for step in part.steps],
        }
        for part in example.parts
    ]
    return {**_pick(example, "name", "title", "text", "note"), "parts": parts}


def _step_to_record(step: Step) -> dict[str, Any]:
    number_fields = ("place", "printed", "computed", "is_right", "largest_difference", "cause")
    return {
        **_pick(step, "name", "formula", "note"),
        "tables": [
            {**_pick(table, "title", "rows", "columns"), "values": table.values_LX.tolist()}
            for table in step.tables
        ],
        "lines": step.lines,
        "printed": [_pick(number, *number_fields) for number in step.printed],
    }


def _pick(source: object, *names: str) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}
