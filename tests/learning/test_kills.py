"""A training that is killed again and again ends with the same bytes."""

from __future__ import annotations

from pathlib import Path

from killed_runs import AIMS, Forked, kill_and_compare


def test_twelve_kills_in_every_phase_end_with_the_same_bytes(tmp_path: Path) -> None:
    found = kill_and_compare(tmp_path, Forked, kills=12, seed=1)
    assert found.num_kills == 12
    assert found.finished >= 1
    assert not found.differing
    assert found.hits.keys() >= set(AIMS), found.hits
