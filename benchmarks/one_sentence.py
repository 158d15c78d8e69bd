"""Python's part of one sentence: text to text, in a process that has the model.

    python benchmarks/one_sentence.py [--source OTHER_CHECKOUT/src] [--rounds 9] [--note "..."]

The time of `translator.translate([one])` on the packaged model, that of the engine in C within it,
and the rest, which is Python's. With --source another checkout is measured too, in turn, each in
its own process: medians of the rounds' medians. It also follows the calls from file to file: a
return is a call into a file that was left before.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results"

PROGRAM = """
import ctypes, json, statistics, sys, time
from pathlib import Path
import pellucid

SENTENCE = "The pizza came out of the oven and it tasted good."
package = str(Path(pellucid.__file__).parent)
translator = pellucid.load("demo", threads=1, precision="float32")
translator.translate([SENTENCE])
path = []

def follow(frame, event, argument):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(package) and path[-1:] != [name]:
        path.append(name)

sys.setprofile(follow)
translator.translate([SENTENCE])
sys.setprofile(None)
returns = sum(name in path[:place] for place, name in enumerate(path))

from pellucid.native import engine
spent = []
run = engine._Call.run

def timed(self, library):
    start = time.perf_counter()
    try:
        return run(self, library)
    finally:
        spent.append(time.perf_counter() - start)

engine._Call.run = timed
whole = []
for _ in range(1500):
    start = time.perf_counter()
    translator.translate([SENTENCE])
    whole.append(time.perf_counter() - start)
whole, spent = (statistics.median(part[200:]) * 1e6 for part in (whole, spent))
print(json.dumps({"microseconds": whole, "engine": spent, "python": whole - spent,
                  "files": len(set(path)), "returns": returns}))
"""


def measure(source: Path) -> dict[str, Any]:
    """Measure one checkout in a new process."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--source", type=Path, help="the folder src of another checkout")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--note", default="")
    options = parser.parse_args()
    sources = {"here": ROOT / "src"}
    if options.source is not None:
        sources["other"] = options.source
    rounds = [{name: measure(one) for name, one in sources.items()} for _ in range(options.rounds)]
    figures: dict[str, Any] = {"date": datetime.date.today().isoformat(), "note": options.note}
    for name in sources:
        each = [one[name] for one in rounds]
        figures[name] = {key: statistics.median(one[key] for one in each) for key in each[0]}
    text = json.dumps(figures, indent=1)
    (RESULTS / f"one-sentence-{figures['date']}.json").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
