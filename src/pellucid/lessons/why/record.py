"""A measurement as a record for JSON."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

from pellucid.lessons.why.result import Measurement


def to_record(measurement: Measurement) -> dict[str, Any]:
    """Turn a measurement into lists and dictionaries; a number that is not finite becomes null."""
    record = _plain(asdict(measurement))
    for finding, found in zip(record["findings"], measurement.findings, strict=True):
        finding["verdict"]["sentence"] = found.verdict.sentence
    return dict(record)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    # JSON has no word for it.
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
