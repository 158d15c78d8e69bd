"""Pairs that are left out of training, and the reason."""

from __future__ import annotations

import pytest

from pellucid.config import DataConfig
from pellucid.training.start.kept_pairs import reason_to_leave_out


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
def test_reason_to_leave_out_a_pair_is_the_first_that_holds(
    source: str, target: str, source_length: int, target_length: int, reason: str | None
) -> None:
    data = DataConfig(
        train="a.tsv", validation="b.tsv", max_pair_length=11, max_source_target_ratio=3.0
    )
    found = reason_to_leave_out(data, source, target, range(source_length), range(target_length))
    assert found == reason
