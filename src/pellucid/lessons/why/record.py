"""A measurement as a record for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pellucid.config.parsing import finite_values
from pellucid.lessons.why.result import Measurement


def to_record(measurement: Measurement) -> dict[str, Any]:
    """Turn a measurement into lists and dictionaries; a number that is not finite becomes null."""
    record = finite_values(asdict(measurement))
    for finding, found in zip(record["findings"], measurement.findings, strict=True):
        finding["verdict"]["sentence"] = found.verdict.sentence
    return dict(record)
