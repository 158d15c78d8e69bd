"""Train a shipped Multi30k recipe, translate test_2016_flickr, evaluate, write it down.

    MULTI30K=DIR python benchmarks/multi30k.py --recipe multi30k-en-fr --run runs/en-fr

Everything goes through the commands a user types; the result file holds them, the minutes by the
wall clock from the first to the last, the machine and the versions. An existing finished run is
only translated and evaluated again (its minutes are those of its training).
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import subprocess
import sys
import time
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


def run(*words: str) -> str:
    """Run one pellucid command and return its standard output."""
    completed = subprocess.run(
        [sys.executable, "-m", "pellucid", *words], stdout=subprocess.PIPE, text=True, check=True
    )
    return completed.stdout


def main() -> None:
    """Run the whole pipeline once."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="multi30k-en-fr")
    parser.add_argument("--run", type=Path, default=Path("runs/multi30k-en-fr"))
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    data = Path(os.environ["MULTI30K"])
    source, target = arguments.recipe.removeprefix("multi30k-").split("-")[:2]
    references = data / f"test_2016_flickr.{target}.gz"
    output = arguments.run / "test_2016_flickr.out"
    changes = [word for change in arguments.set for word in ("--set", change)]
    test_source = str(data / f"test_2016_flickr.{source}.gz")
    compared = ["evaluate", "--hypothesis", str(output), "--reference", str(references), "--json"]
    commands = {
        "train": ["train", arguments.recipe, "--out", str(arguments.run), *changes],
        "translate": ["translate", str(arguments.run), "-i", test_source, "-o", str(output)],
        "evaluate": compared,
        "evaluate, lower-cased tokenised": [*compared, "--lowercased-tokenized", target],
    }
    output.unlink(missing_ok=True)
    seconds, outputs = {}, {}
    for name, words in commands.items():
        started = time.monotonic()
        outputs[name] = run(*words)
        if name != "train":  # A finished run is not trained again: its manifest has the time.
            seconds[name] = round(time.monotonic() - started, 1)
    manifest = json.loads((arguments.run / "bundle" / "manifest.json").read_text())
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    result = {
        "date": date,
        "commands": {
            name: shlex.join(["pellucid", *words]).replace(str(data), "$MULTI30K")
            for name, words in commands.items()
        },
        "seconds": seconds,
        "training": manifest["training"] | manifest["durations"],
        "validation": manifest["metrics"],
        "library": manifest["library"],
        "machine": manifest["machine"],
        "cased": json.loads(outputs["evaluate"]),
        "lowercased_tokenized": json.loads(outputs["evaluate, lower-cased tokenised"]),
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{date}-{arguments.recipe}.json"
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    print(path.read_text())


if __name__ == "__main__":
    main()
