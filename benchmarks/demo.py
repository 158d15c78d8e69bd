"""The demo over several seeds: exact translations on its four tests, and minutes.

    python benchmarks/demo.py [--folder runs/demo] [--seeds 1 2 3]

Each seed makes another corpus and another model. A finished demo is not trained again, so minutes
are those of its training.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run every seed, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/demo"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    arguments = parser.parse_args()
    seeds = {}
    for seed in arguments.seeds:
        out = arguments.folder / f"seed-{seed}"
        words = ["demo", "-o", str(out), "--set", f"training.seed={seed}"]
        done = subprocess.run(
            [sys.executable, "-m", "pellucid", *words],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        shares = re.findall(r"^  (\w[\w ]*?) +(\d+\.\d)%", done.stdout, re.MULTILINE)
        manifest = json.loads((out / "bundle" / "manifest.json").read_text())
        seeds[seed] = {
            "percent": {name: float(share) for name, share in shares},
            "training_seconds": manifest["durations"]["training_seconds"],
            "machine": manifest["machine"],
        }
        print(seed, json.dumps(seeds[seed]), flush=True)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    RESULTS.mkdir(exist_ok=True)
    command = "pellucid demo -o DIR --set training.seed=SEED"
    result = {"date": date, "command": command, "seeds": seeds}
    (RESULTS / f"{date}-demo.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
