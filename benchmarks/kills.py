"""Trainings that are killed again and again end with the bytes of one that never was.

    python benchmarks/kills.py [--kills 60] [--seed 1]

A small model is trained on a generated corpus with dropout, subword sampling and averaging. The
command gets SIGKILL at random moments of training, of validation and of saving, and is then
repeated, up to the given number of kills; whenever a run ends, the next one begins. Every run must
end with the same final weights, optimizer and average, the same best model, and the same figures
except times. The tests include a dozen kills.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from pellucid.machine.hardware import describe_machine

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "shared"))  # The criterion stands in one place.

from killed_runs import (  # noqa: E402
    MAX_STEPS,
    SETTINGS,
    VALIDATE_EVERY,
    fingerprints,
    write_recipe,
)

RESULTS = Path(__file__).parent / "results"

AIMS = ("training", "validation", "saving")
SECONDS_BETWEEN_LOOKS = 0.001
PATIENCE_SECONDS = 120.0


@dataclass
class Found:
    """The outcome of the kills.

    Attributes:
        hits: kills by the phase that they hit.
        aims: kills by the phase that they were aimed at.
        finished: number of killed runs that came to their end.
        differing: files of theirs that differ from the uninterrupted run.
        seconds: mean duration of each phase in the uninterrupted run.
    """

    hits: Counter[str] = field(default_factory=Counter)
    aims: Counter[str] = field(default_factory=Counter)
    finished: int = 0
    differing: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def num_kills(self) -> int:
        return sum(self.hits.values())


def kill_and_compare(folder: Path, *, kills: int, seed: int) -> Found:
    """Kill runs at random moments of every phase, and compare each with an uninterrupted one.

    Args:
        folder: an empty folder.
        kills: number of kills.
        seed: decides the moments.
    """
    recipe = write_recipe(folder, SETTINGS)
    found = Found()
    whole = Watched(folder / "whole", recipe)
    found.seconds = whole.time_phases()
    expected = fingerprints(whole.run)
    rng = random.Random(seed)
    while found.num_kills < kills:
        run = folder / f"run-{found.finished}"
        is_first = True
        while True:
            watched = Watched(run, recipe)
            if found.num_kills < kills:
                aim = "starting" if is_first else AIMS[found.num_kills % len(AIMS)]
                is_first = False
                is_killed = watched.wait_for(aim, rng.randrange(2)) and watched.is_alive_after(
                    rng.random() * found.seconds[aim]
                )
                if is_killed and watched.kill():
                    found.aims[aim] += 1
                    found.hits[watched.phase()] += 1
                    continue
            watched.end_well()
            break
        found.finished += 1
        ended = fingerprints(run)
        found.differing += [
            f"{run.name}/{name}"
            for name in sorted(expected.keys() | ended.keys())
            if ended.get(name) != expected.get(name)
        ]
    return found


class Watched:
    """One start of the command, seen from outside through its run folder.

    The phase shows in ``metrics.jsonl``, and in the folders that a save makes and takes away.
    """

    def __init__(self, run: Path, recipe: Path) -> None:
        self.run = run
        self._checkpoints = run / "checkpoints"
        self._metrics = run / "metrics.jsonl"
        steps = [int(path.name[5:]) for path in self._checkpoints.glob("step-*")]
        self._resumed_at = max(steps, default=0)
        self._metrics_before = self._metrics_stamp()
        self._said = run.with_suffix(".said")
        self._began = time.monotonic()
        command = [sys.executable, "-m", "pellucid", "train", str(recipe), "-o", str(run)]
        with self._said.open("wb") as stream:
            self._running = subprocess.Popen(command, stdout=stream, stderr=stream)

    def phase(self) -> str:
        """Name the phase that it is in, or in which it was killed."""
        last = self._last_record()
        if last is None:
            return "starting"
        if any(self._checkpoints.glob(".step-*")) or any(self.run.glob(".bundle.*")):
            return "saving"
        if last["kind"] == "train":
            return "training" if last["step"] % VALIDATE_EVERY else "validation"
        return "ending" if last["step"] == MAX_STEPS else "training"

    def phases(self) -> Iterator[tuple[str, float]]:
        """Yield each phase that begins while it runs, with the time."""
        known = ""
        while self._running.poll() is None:
            if (phase := self.phase()) != known:
                known = phase
                yield phase, time.monotonic() - self._began
            if time.monotonic() - self._began > PATIENCE_SECONDS:
                self._running.kill()
                raise TimeoutError(f"the command still runs after {PATIENCE_SECONDS} seconds")
            time.sleep(SECONDS_BETWEEN_LOOKS)

    def wait_for(self, aim: str, times: int) -> bool:
        """Wait until a phase begins, after so many others of it; False if it ends before."""
        times *= aim != "starting"
        return any(phase == aim and (times := times - 1) < 0 for phase, _ in self.phases())

    def is_alive_after(self, seconds: float) -> bool:
        """Wait, and tell whether it still runs."""
        time.sleep(seconds)
        return self._running.poll() is None

    def kill(self) -> bool:
        """Kill it; False if it came to its end before."""
        self._running.kill()
        return self._running.wait() == -signal.SIGKILL

    def end_well(self) -> None:
        """Wait for its end.

        Raises:
            ChildProcessError: it failed.
        """
        if (code := self._running.wait()) != 0:
            said = self._said.read_text()[-2000:]
            raise ChildProcessError(f"pellucid train ended with {code}:\n{said}")

    def time_phases(self) -> dict[str, float]:
        """Let it run to its end, and measure the mean duration of its phases."""
        begun = list(self.phases())
        self.end_well()
        begun.append(("", time.monotonic() - self._began))
        lengths: dict[str, list[float]] = {"starting": [], **{aim: [] for aim in AIMS}}
        for (phase, begin), (_, end) in pairwise(begun):
            lengths.setdefault(phase, []).append(end - begin)
        return {phase: sum(found) / max(1, len(found)) for phase, found in lengths.items()}

    def _last_record(self) -> dict[str, Any] | None:
        """Read the last line of the metrics, if this process wrote it."""
        if self._metrics_stamp() == self._metrics_before:
            return None
        try:
            lines = self._metrics.read_bytes().split(b"\n")
            last: dict[str, Any] = json.loads(lines[-2])
        except (OSError, IndexError, ValueError):
            return None
        return last if last["step"] > self._resumed_at else None

    def _metrics_stamp(self) -> tuple[int, int] | None:
        try:
            status = self._metrics.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_size


def main() -> None:
    """Kill, compare, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        found = kill_and_compare(Path(name), kills=arguments.kills, seed=arguments.seed)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    result = {
        "date": date,
        "command": f"python benchmarks/kills.py --kills {arguments.kills} --seed {arguments.seed}",
        "machine": describe_machine(),
        "settings": SETTINGS,
        "kills": found.num_kills,
        "kills_by_phase_hit": dict(found.hits),
        "kills_by_phase_aimed_at": dict(found.aims),
        "runs_that_came_to_their_end": found.finished,
        "is_byte_equal": not found.differing,
        "differing": found.differing,
        "mean_seconds_of_a_phase": {
            phase: round(seconds, 3) for phase, seconds in found.seconds.items()
        },
        "minutes": round((time.monotonic() - began) / 60, 1),
    }
    arguments.results.mkdir(exist_ok=True)
    path = arguments.results / f"{date}-kills-{arguments.kills}.json"
    path.write_text(json.dumps(result, indent=2) + "\n")
    print(path.read_text())
    if found.differing:
        sys.exit("the results differ")


if __name__ == "__main__":
    main()
