"""A worked example as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pellucid.by_hand.sheet import Example, Step
__all__ = [
    "example_to_record",
]


def example_to_record(example: Example) -> dict[str, Any]:
    """Turn an example into what its JSON holds."""
    parts = [
        {
            "title": part.title,
            "note": part.note,
            "steps": [_step_record(step) for step in part.steps],
        }
        for part in example.parts
    ]
    record = {"name": example.name, "title": example.title, "text": example.text}
    return {**record, "note": example.note, "parts": parts}


def _step_record(step: Step) -> dict[str, Any]:
    return {
        "name": step.name,
        "formula": step.formula,
        "note": step.note,
        "tables": [
            {
                "title": table.title,
                "rows": table.rows,
                "columns": table.columns,
                "values": table.values_LX.tolist(),
            }
            for table in step.tables
        ],
        "lines": step.lines,
        "printed": [
            {
                "place": number.place,
                "printed": number.printed,
                "computed": number.computed,
                "is_right": number.is_right,
                "largest_difference": number.largest_difference,
                "cause": number.cause,
            }
            for number in step.printed
        ],
    }
