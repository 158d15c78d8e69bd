"""Pairs that are left out of training, and the report of it."""

from __future__ import annotations

import pytest

from pellucid.text.reading.drops import reason_to_drop


@pytest.mark.parametrize(
    ("source", "target", "source_length", "target_length", "reason"),
    [
        ("a", "b", 7, 7, None),
        ("", "b", 1, 7, "empty source"),
        (" \u00a0", "b", 3, 7, "empty source"),
        ("?!", "b", 1, 7, "empty source"),
        ("a", "", 7, 1, "empty target"),
        ("a", "b", 11, 7, None),
        ("a", "b", 12, 7, "source too long"),
        ("a", "b", 7, 12, "target too long"),
        ("a", "b", 3, 7, None),
        ("a", "b", 3, 8, "length ratio"),
        ("a", "b", 8, 3, "length ratio"),
    ],
)
def test_reason_to_drop_pair_gives_reason(
    source: str, target: str, source_length: int, target_length: int, reason: str | None
) -> None:
    found = reason_to_drop(
        source,
        target,
        range(source_length),
        range(target_length),
        max_length=11,
        max_length_ratio=3.0,
    )
    assert found == reason
