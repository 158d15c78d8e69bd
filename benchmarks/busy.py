"""Speed of training and decoding while other programs use the processor.

    python benchmarks/busy.py
    python benchmarks/busy.py --rounds 1 --seconds 10 --ways default,spin,one

Other programs are two processes that compute without end, each in its own session, as a
browser or another user's work is: Linux divides the processor among sessions first. Every way of
waiting has its turn in every round, on the idle machine and on the busy one; the table gives the
median. Training is a recipe that --recipe names (Multi30k needs MULTI30K); decoding is the packaged
model, one sentence at a time and sixty-four at once.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WAYS: dict[str, dict[str, str]] = {
    "default": {},
    "spin": {"GOMP_SPINCOUNT": "300000"},
    "passive": {"OMP_WAIT_POLICY": "passive"},
    "one": {"OMP_NUM_THREADS": "1"},
}
"""Environment of each way to wait; ``spin`` is what libgomp does without a bound."""

SENTENCES = [
    "The pizza came out of the oven and it tasted good.",
    "The cat was sleeping.",
    "The old woman has a small dog.",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=15, help="of training, each time")
    parser.add_argument("--others", type=int, default=2, help="busy processes")
    parser.add_argument("--recipe", default="multi30k-en-fr")
    parser.add_argument("--ways", default=",".join(WAYS), help="or spinN for another bound")
    options = parser.parse_args()
    ways = options.ways.split(",")
    speeds: dict[tuple[str, str, bool], list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        prepare(options.recipe, place / "base")
        for number in range(options.rounds):
            for others in (0, options.others):
                for way in ways:
                    with Others(others):
                        found = measure(options, place, environment_of(way))
                    for what, speed in found.items():
                        speeds.setdefault((what, way, others > 0), []).append(speed)
                    print(number, "busy" if others else "idle", way, found, file=sys.stderr)
    print_table(speeds, ways)


def environment_of(way: str) -> dict[str, str]:
    """Return the environment of a way to wait."""
    own = WAYS.get(way) or ({} if way == "default" else {"GOMP_SPINCOUNT": way[len("spin") :]})
    left_out = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_NUM_THREADS"}
    return {name: value for name, value in os.environ.items() if name not in left_out} | own


class Others:
    """Busy processes, each in its own session."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        busy = [sys.executable, "-c", "while True: pass"]
        self._processes = [
            subprocess.Popen(busy, start_new_session=True) for _ in range(self._number)
        ]

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def prepare(recipe: str, run: Path) -> None:
    """Make the run's data, so that the measured runs only train."""
    train(recipe, run, dict(os.environ), seconds=0)
    for name in ("checkpoints", "metrics.jsonl", "log.txt"):
        if (run / name).is_dir():
            shutil.rmtree(run / name)
        else:
            (run / name).unlink(missing_ok=True)


def measure(
    options: argparse.Namespace, place: Path, environment: dict[str, str]
) -> dict[str, float]:
    """Measure target tokens per second: training, a sentence at a time, many at once."""
    run = place / "run"
    shutil.rmtree(run, ignore_errors=True)
    shutil.copytree(place / "base", run)
    lines = train(options.recipe, run, environment, seconds=options.seconds)
    tokens = lines[-1]["target_tokens"] - lines[0]["target_tokens"]
    found = {"training": tokens / (lines[-1]["seconds"] - lines[0]["seconds"])}
    done = subprocess.run(
        [sys.executable, __file__, "decode"],
        env=environment,
        capture_output=True,
        check=True,
        text=True,
    )
    return found | json.loads(done.stdout)


def train(recipe: str, run: Path, environment: dict[str, str], *, seconds: float) -> list[dict]:
    """Train for so many seconds after the first logged step; return the lines of the log."""
    command = [sys.executable, "-m", "pellucid", "train", recipe, "-o", str(run)]
    command += ["--set", "training.log_every=5", "--set", "training.validate_every=100000"]
    command += ["--set", "training.max_steps=100000", "--set", "training.validation_samples=0"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    metrics = run / "metrics.jsonl"
    try:
        lines: list[dict] = []
        while not lines or lines[-1]["seconds"] - lines[0]["seconds"] < seconds:
            time.sleep(0.2)
            if process.poll() is not None:
                raise SystemExit(process.stderr.read() if process.stderr else "training ended")
            text = metrics.read_text().splitlines() if metrics.exists() else []
            lines = [json.loads(line) for line in text]
        return lines
    finally:
        process.kill()
        process.wait()


def decode() -> None:
    """Decode with the packaged model; print tokens per second as JSON."""
    import pellucid

    translator = pellucid.load("demo")
    found = {}
    for name, batch in (("decoding 1", 1), ("decoding 64", 64)):
        texts = [SENTENCES[i % len(SENTENCES)] for i in range(batch)]
        translator.translate(texts)
        started, tokens = time.monotonic(), 0
        while time.monotonic() - started < 4:
            tokens += sum(len(one.tokens) for one in translator.translate(texts))
        found[name] = tokens / (time.monotonic() - started)
    print(json.dumps(found))


def print_table(speeds: dict[tuple[str, str, bool], list[float]], ways: list[str]) -> None:
    """Print medians: a row for each kind of work and state of the machine."""
    print("| target tokens/s | " + " | ".join(ways) + " |")
    print("| --- |" + " ---: |" * len(ways))
    for what in dict.fromkeys(what for what, _, _ in speeds):
        for is_busy in (False, True):
            cells = [f"{statistics.median(speeds[what, way, is_busy]):,.0f}" for way in ways]
            print(f"| {what}, {'busy' if is_busy else 'idle'} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    if sys.argv[1:] == ["decode"]:
        decode()
    else:
        main()
