"""Ranks whose device would repeat updates by itself, with tapes in the place of graphs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from forked import Forked
from killed_runs import SETTINGS, fingerprints, write_recipe
from many_ranks import Job
from small_runs import NO_REPORT

TAPED = f"""
{NO_REPORT}
import sys
from pellucid.cli.main import main
from pellucid.training.update import recorded
from taped_graphs import TapedGraphs

class Told(TapedGraphs):
    def record(self, work):
        print("a tape was made", file=sys.stderr, flush=True)
        return super().record(work)

recorded.make_graphs = lambda device, generator: Told(device)
main()
"""

RECORDED = {
    "accumulate": 4,
    "shapes": "few",
    "kernels": "pytorch",
    "precision": "float32",
    "processes": 1,
    "max_steps": 14,
}


@pytest.fixture
def jobs() -> Iterator[list[Job]]:
    """Jobs of a test; what still runs at the end is killed."""
    started: list[Job] = []
    yield started
    for job in started:
        job.end()


def test_recorded_updates_of_two_ranks_have_the_bytes_of_one(
    tmp_path: Path, jobs: list[Job]
) -> None:
    write_recipe(tmp_path, SETTINGS | RECORDED)
    for number, name in ((2, "two"), (1, "one")):
        words = ["train", "recipe.toml", "-o", name]
        program = dict.fromkeys(range(number), TAPED)
        jobs.append(Job(tmp_path, number, words, program=program, popen=Forked))
        assert jobs[-1].wait() == [0] * number, jobs[-1].said
        assert all("a tape was made" in said for said in jobs[-1].said)
        log = (tmp_path / name / "log.txt").read_text()
        assert "step by step" not in log
    assert fingerprints(tmp_path / "two") == fingerprints(tmp_path / "one")
