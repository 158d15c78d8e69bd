"""Measure the minutes in which a recipe reaches a goal on the test text, over several seeds.

    MULTI30K=DIR python benchmarks/speedrun.py --goal 61.8 --validation 60.5 \\
        --steps 1500 2000 2500 3000 --share training.both_directions_steps=0.33 \\
        --share training.dropout_warmup_steps=0.36 --share training.validate_every=0.25 \\
        --change "the recipe with fewer steps"
    python benchmarks/speedrun.py --table

The number of steps is chosen on validation: the first of ``--steps`` with which a seed that is not
measured reaches ``--validation``. ``--share`` sets a setting to a share of the steps. Then
``--seeds`` train from scratch, and each translates the test text once. The goal is reached if the
mean of their BLEU is above it with p < 0.01 (one-sided t test). Minutes are those of the whole
command that a user types, from text to model, by the clock and by the processor.

The same command resumes: finished seeds are kept, and of a killed training its minutes so far (not
those of the processor, which the system reports only at the end). The second command prints the
dated table of all results, with what changed from one to the next. For another recipe or text, see
``--recipe``, ``--source``, ``--reference`` and ``--tokenize``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from side_by_side.machine import describe

RESULTS = Path(__file__).parent / "results"
NAME = "speedrun"
LIMIT = 0.01
CHOOSING_SEED = 1000
"""A seed for the choice of the steps, so that no measured seed decides about itself."""
HEADING = (
    "| date | goal | recipe | minutes | of the processor | BLEU | p | machine | what changed |"
)


def p_value(scores: Sequence[float], goal: float) -> float:
    """Return the probability of so high a mean if the true mean were the goal.

    Args:
        scores: of at least two seeds.
        goal: the score to beat.

    Source:
        Student 1908, "The probable error of a mean".
    """
    mean = statistics.mean(scores)
    deviation = statistics.stdev(scores)
    if deviation == 0:
        return 0.0 if mean > goal else 1.0
    statistic = (mean - goal) / (deviation / math.sqrt(len(scores)))
    return upper_tail(statistic, len(scores) - 1)


def upper_tail(statistic: float, freedom: int) -> float:
    """Return the probability that Student's t exceeds a value, for whole degrees of freedom.

    Source:
        Abramowitz and Stegun 1964, equations 26.7.3 and 26.7.4.
    """
    angle = math.atan(statistic / math.sqrt(freedom))
    cosine = math.cos(angle)
    is_odd = freedom % 2 == 1
    term = cosine if is_odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(3 if is_odd else 2, freedom - 1, 2):
        term *= cosine**2 * (k - 1) / k
        total += term
    within = math.sin(angle) * total
    if is_odd:
        within = 2 / math.pi * (angle + within)
    return (1 - within) / 2


def run_command(words: Sequence[str]) -> str:
    """Run a pellucid command and return its standard output."""
    command = [sys.executable, "-m", "pellucid", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


class Clock:
    """The minutes of one training, kept in a file, so that those of killed parts count too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept = {"seconds": 0.0, "processor_seconds": 0.0, "starts": 0}
        if path.is_file():
            self._kept = json.loads(path.read_text(encoding="utf-8"))

    def run(self, words: Sequence[str], every_seconds: float = 5.0) -> None:
        """Run a pellucid command, and write the time that it has taken while it runs."""
        before = dict(self._kept)
        used = processor_seconds()
        began = time.monotonic()
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._kept["starts"] += 1
        process = subprocess.Popen([sys.executable, "-m", "pellucid", *words])
        code = None
        while code is None:
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=every_seconds)
            self._kept["seconds"] = before["seconds"] + time.monotonic() - began
            self._kept["processor_seconds"] = processor_seconds() - used
            self._path.write_text(json.dumps(self._kept), encoding="utf-8")
        if code != 0:
            raise SystemExit(f"Training ended with exit code {code}. The same command resumes it.")

    def minutes(self) -> dict[str, float | None]:
        """Return the minutes so far, by the clock and, of an uninterrupted run, the processor."""
        is_whole = self._kept["starts"] == 1
        return {
            "minutes": self._kept["seconds"] / 60,
            "processor_minutes": self._kept["processor_seconds"] / 60 if is_whole else None,
        }


def processor_seconds() -> float:
    """Return the processor time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def settings_of(given: argparse.Namespace, steps: int, seed: int) -> list[str]:
    """Return the settings of one training, those given as shares of the steps included."""
    settings = [f"training.seed={seed}", f"training.max_steps={steps}"]
    for one in given.share:
        key, _, share = one.partition("=")
        settings.append(f"{key}={round(float(share) * steps)}")
    return [*settings, *given.set]


def train(given: argparse.Namespace, steps: int, seed: int) -> dict[str, Any]:
    """Train one seed with so many steps, or return what an earlier call measured."""
    folder = given.runs / f"{Path(given.recipe).stem}-{steps}-steps-seed-{seed}"
    kept = folder.with_suffix(".json")
    if kept.is_file():
        return dict(json.loads(kept.read_text(encoding="utf-8")))
    words = [word for one in settings_of(given, steps, seed) for word in ("--set", one)]
    clock = Clock(folder.with_suffix(".clock"))
    clock.run(("train", given.recipe, "-o", str(folder), *words))
    manifest = json.loads((folder / "bundle" / "manifest.json").read_text(encoding="utf-8"))
    found = {
        "seed": seed,
        "folder": str(folder),
        "validation_bleu": manifest["metrics"]["validation_bleu"],
        "best_step": manifest["training"]["step"],
        **clock.minutes(),
    }
    kept.write_text(json.dumps(found), encoding="utf-8")
    return found


def choose_steps(given: argparse.Namespace) -> tuple[int | None, list[dict[str, Any]]]:
    """Return the first number of steps that is good enough on validation, and all tried ones."""
    tried = []
    for steps in sorted(given.steps):
        one = train(given, steps, CHOOSING_SEED)
        tried.append({"steps": steps, "validation_bleu": one["validation_bleu"]})
        print(f"{steps} steps: validation {one['validation_bleu']:.2f}", flush=True)
        if one["validation_bleu"] >= given.validation:
            return steps, tried
    return None, tried


def score(given: argparse.Namespace, one: dict[str, Any]) -> dict[str, Any]:
    """Translate the test text with a trained seed, and return its row with the BLEU."""
    folder = Path(one["folder"])
    output = folder / "test.beam"
    options = ("--beam", str(given.beam), "--overwrite")
    run_command(("translate", str(folder), "-i", str(given.source), "-o", str(output), *options))
    words = ["evaluate", "--hypothesis", str(output), "--reference", str(given.reference), "--json"]
    if given.tokenize:
        words += ["--tokenize", given.tokenize]
    bleu = json.loads(run_command(words))["bleu"]
    row = {key: value for key, value in one.items() if key != "folder"}
    return {**row, "bleu": bleu["score"], "signature": bleu["signature"]}


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Choose the steps, train and score all seeds, and judge."""
    steps, tried = choose_steps(given)
    found: dict[str, Any] = {"tried": tried, "steps": steps, "seeds": [], "is_reached": False}
    if steps is None:
        return found
    found["seeds"] = [score(given, train(given, steps, seed)) for seed in given.seeds]
    return found | judge(found["seeds"], given.goal)


def judge(seeds: Sequence[dict[str, Any]], goal: float) -> dict[str, Any]:
    """Return mean and deviation of minutes and BLEU, p, and whether the goal is reached."""
    scores = [one["bleu"] for one in seeds]
    p = p_value(scores, goal)
    found: dict[str, Any] = {"p": p, "is_reached": p < LIMIT}
    for name in ("minutes", "processor_minutes", "bleu"):
        numbers = [one[name] for one in seeds if one[name] is not None]
        if len(numbers) > 1:
            found[name] = {"mean": statistics.mean(numbers), "deviation": statistics.stdev(numbers)}
    return found


def row_of(found: dict[str, Any]) -> Sequence[str]:
    """Return the cells of a result in the table."""
    if not found["seeds"]:
        best = max(one["validation_bleu"] for one in found["tried"])
        why = f"not begun: validation {best:.1f} of {found['validation']:.1f}"
        cells: Sequence[str] = ("", "", why, "")
    else:
        spread = [found.get(name) for name in ("minutes", "processor_minutes", "bleu")]
        written = [f"{one['mean']:.1f} ± {one['deviation']:.1f}" if one else "" for one in spread]
        p = f"{found['p']:.4f}" + ("" if found["is_reached"] else ", not reached")
        cells = (*written, p)
    machine = found["machine"]
    fastest = "AVX-512" if "avx512f" in machine["instructions"] else "AVX2"
    on = f"{machine['processor']}, {machine['cores']} cores, {fastest}{found['note']}"
    goal = f"{found['goal']:.1f}"
    return (found["date"], goal, f"`{found['recipe']}`", *cells, on, found["change"])


def table(folder: Path = RESULTS) -> str:
    """Write the results in a folder as a table, the oldest first."""
    files = sorted(folder.glob(f"*-{NAME}-*.json"))
    rows = [row_of(json.loads(path.read_text(encoding="utf-8"))) for path in files]
    line = "| --- | ---: | --- | --- | --- | --- | --- | --- | --- |"
    return "\n".join([HEADING, line, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--table", action="store_true", help="only print the table")
    add("--recipe", default="multi30k-en-fr-lowercased")
    add("--goal", type=float, help="the BLEU to beat on the test text")
    add("--validation", type=float, help="the BLEU on validation that ends the choice of steps")
    add("--steps", type=int, nargs="+", help="numbers of steps to choose from")
    add("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="as for train")
    add("--share", action="append", default=[], metavar="KEY=SHARE", help="of the steps")
    add("--source", type=Path, help="the test text (default: Multi30k's)")
    add("--reference", type=Path, help="its translation")
    add("--tokenize", default="", help="as for evaluate (default for Multi30k: none)")
    add("--beam", type=int, default=5)
    add("--change", default="", help="what changed since the result before")
    add("--note", default="", help="about the machine, such as a load")
    add("--runs", type=Path, default=Path("runs/speedrun"))
    add("--results", type=Path, default=RESULTS)
    given = parser.parse_args(arguments)
    if given.table:
        return given
    for name in ("goal", "validation", "steps"):
        if getattr(given, name) is None:
            parser.error(f"--{name} must be given")
    if len(set(given.seeds)) < 2 or CHOOSING_SEED in given.seeds:
        parser.error(f"--seeds must be two different ones or more, without {CHOOSING_SEED}")
    if (given.source is None) != (given.reference is None):
        parser.error("--source and --reference must be given together")
    if given.source is None:
        if "MULTI30K" not in os.environ:
            parser.error("MULTI30K must be set to the folder of Multi30k, or --source given")
        target = given.recipe.split("-")[2]
        data = Path(os.environ["MULTI30K"])
        given.source = data / "test_2016_flickr.lc.norm.tok.en.gz"
        given.reference = data / f"test_2016_flickr.lc.norm.tok.{target}.gz"
        given.tokenize = given.tokenize or "none"
    return given


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the result, or print the table."""
    given = parse(arguments)
    if not given.table:
        date = datetime.now(UTC).date().isoformat()
        general = {
            key: getattr(given, key) for key in ("recipe", "goal", "validation", "set", "share")
        }
        said = {"change": given.change, "note": f", {given.note}" if given.note else ""}
        found = {"date": date, **general, **said, "machine": describe(), **measure(given)}
        stem = Path(given.recipe).stem
        path = given.results / f"{date}-{NAME}-{stem}-{given.goal:g}.json"
        path.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        print(path)
    print(table(given.results), end="")


if __name__ == "__main__":
    main()
