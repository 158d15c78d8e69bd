"""A measurement as a record for JSON, and back."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from pellucid.lessons.why.result import (
    Finding,
    Measurement,
    Panel,
    Plot,
    Series,
    Statement,
    Table,
    Verdict,
)


def to_record(measurement: Measurement) -> dict[str, Any]:
    """Turn a measurement into lists and dictionaries; a number that is not finite becomes null."""
    record = _plain(asdict(measurement))
    for finding in record["findings"]:
        verdict = finding["verdict"]
        verdict["sentence"] = f"{verdict['outcome']} {verdict['condition']}".strip()
    return dict(record)


def from_record(record: dict[str, Any]) -> Measurement:
    """Restore a measurement from its record; null in a plot becomes a number that is not finite."""
    found = dict(record)
    found["findings"] = tuple(_finding(each) for each in record["findings"])
    found["tables"] = tuple(_table(each) for each in record["tables"])
    found["plot"] = Plot(tuple(_panel(each) for each in record["plot"]["panels"]))
    found["notes"], found["to_try"] = tuple(record["notes"]), tuple(record["to_try"])
    return Measurement(**found)


def _finding(record: dict[str, Any]) -> Finding:
    verdict = {key: text for key, text in record["verdict"].items() if key != "sentence"}
    return Finding(Statement(**record["statement"]), Verdict(**verdict))


def _table(record: dict[str, Any]) -> Table:
    return Table(
        record["title"], tuple(record["columns"]), tuple(record["forms"]),
        tuple(map(tuple, record["rows"])), record["is_of_this_machine"],
    )  # fmt: skip


def _panel(record: dict[str, Any]) -> Panel:
    found = dict(record)
    found["series"] = tuple(_series(each) for each in record["series"])
    found["names"] = tuple(record["names"])
    found["y_range"] = record["y_range"] and tuple(record["y_range"])
    return Panel(**found)


def _series(record: dict[str, Any]) -> Series:
    def numbers(name: str) -> tuple[float, ...]:
        return tuple(math.nan if value is None else value for value in record[name])

    return Series(
        record["name"], numbers("x"), numbers("y"), record["role"], numbers("low"),
        numbers("high"),
    )  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
