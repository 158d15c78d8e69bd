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
import sys
import tempfile
import time
from pathlib import Path

from pellucid.hardware import describe_machine

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "shared"))  # The criterion stands in one place.

from killed_runs import SETTINGS, kill_and_compare, start_command  # noqa: E402

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Kill, compare, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        found = kill_and_compare(
            Path(name), start_command, kills=arguments.kills, seed=arguments.seed
        )
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
