"""Train a shipped Multi30k recipe, translate test_2016_flickr, evaluate, write a result file.

    MULTI30K=DIR python benchmarks/multi30k.py --recipe multi30k-en-fr --seed 1
    python benchmarks/multi30k.py --table

The first line trains one model from scratch and writes one result file, with the commands a user
types, signatures, minutes, machine and versions; of a finished run only translation and evaluation
are repeated. The second prints the table of all result files: means and spreads over the seeds that
share all other settings, the latest settings last.

A recipe `…-lowercased` reads and writes the lower-cased, tokenized files; its translations are
scored as they are. The others read and write raw text, which is scored as it is and, for
comparison, lower-cased and tokenized afterwards.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
NAME = "multi30k-quality"
BEAM = ("--beam", "5")
RECIPES = tuple(
    f"multi30k-en-{target}{suffix}" for target in ("fr", "de") for suffix in ("", "-lowercased")
)


def run(words: tuple[str, ...]) -> str:
    """Run one pellucid command and return its standard output."""
    command = [sys.executable, "-m", "pellucid", *words]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def commands_of(recipe: str, seed: int, folder: Path, changes: list[str]) -> dict[str, Any]:
    """Return the commands of one run, by what they do."""
    _, source, target, *suffix = recipe.split("-")
    data = Path(os.environ["MULTI30K"])
    ending = ".lc.norm.tok" if suffix else ""
    test, reference = (data / f"test_2016_flickr{ending}.{one}.gz" for one in (source, target))
    outputs = {"greedy": folder / "test.greedy", "beam": folder / "test.beam"}
    settings = [f"training.seed={seed}", *changes]
    commands: dict[str, tuple[str, ...]] = {
        "train": (
            *("train", recipe, "-o", str(folder)),
            *(word for setting in settings for word in ("--set", setting)),
        ),
    }
    for search, output in outputs.items():
        options = BEAM if search == "beam" else ()
        files = ("-i", str(test), "-o", str(output), "--overwrite")
        commands[f"translate, {search}"] = ("translate", str(folder), *files, *options)
        compared = ("evaluate", "--hypothesis", str(output), "--reference", str(reference))
        if suffix:
            commands[f"tokenized, {search}"] = (*compared, "--tokenize", "none", "--json")
            continue
        commands[f"cased, {search}"] = (*compared, "--json")
        lowered = ("--moses", target, "--json")
        commands[f"tokenized, {search}"] = (*compared, *lowered)
    return commands


def measure(recipe: str, seed: int, folder: Path, changes: list[str]) -> dict[str, Any]:
    """Run the whole pipeline once."""
    seconds, scores = {}, {}
    is_new = not folder.exists()
    commands = commands_of(recipe, seed, folder, changes)
    for name, words in commands.items():
        started = time.monotonic()
        output = run(words)
        if name != "train" or is_new:  # Only the manifest has the whole time of a resumed run.
            seconds[name] = round(time.monotonic() - started, 1)
        if "evaluate" in words:
            scores[name] = json.loads(output)
            print(name, scores[name]["bleu"], flush=True)
    manifest = json.loads((folder / "bundle" / "manifest.json").read_text())
    return {
        "recipe": recipe,
        "seed": seed,
        "commands": {
            name: shlex.join(["pellucid", *words]).replace(os.environ["MULTI30K"], "$MULTI30K")
            for name, words in commands.items()
        },
        "settings": settings_of(folder),
        "seconds": seconds,
        "training": manifest["training"] | manifest["durations"],
        "validation": manifest["metrics"],
        "library": manifest["library"],
        "machine": manifest["machine"],
        "scores": scores,
    }


def settings_of(folder: Path) -> dict[str, Any]:
    """Return the settings of a run, except text and seed."""
    resolved = tomllib.loads((folder / "recipe.toml").read_text())
    del resolved["training"]["seed"]
    return {name: resolved[name] for name in ("tokenizer", "model", "training", "decoding")}


def table() -> list[str]:
    """Write the result files as a table, one line for each recipe and settings."""
    runs = [json.loads(path.read_text()) for path in sorted(RESULTS.glob(f"*-{NAME}-*.json"))]
    lines = [
        "| recipe | measured | seeds | minutes | BLEU, cased | BLEU, lower-cased, tokenized |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for recipe in RECIPES:
        forms: dict[str, list[dict[str, Any]]] = {}
        for one in runs:
            if one["recipe"] == recipe:
                forms.setdefault(json.dumps(one.get("settings"), sort_keys=True), []).append(one)
        lines += [row(recipe, ours) for ours in forms.values()]
    return lines


def row(recipe: str, ours: list[dict[str, Any]]) -> str:
    """Write the line of runs that differ only in the seed."""
    minutes = [
        one["seconds"].get("train", one["training"]["training_seconds"]) / 60 for one in ours
    ]
    cells = (
        f"`{recipe}`",
        max(one["date"] for one in ours),
        ", ".join(str(one["seed"]) for one in ours),
        "\u2013".join(dict.fromkeys(f"{one:.0f}" for one in (min(minutes), max(minutes)))),
        *(
            spread([one["scores"].get(f"{kind}, beam") for one in ours])
            for kind in ("cased", "tokenized")
        ),
    )
    return f"| {' | '.join(cells)} |"


def spread(scores: list[dict[str, Any] | None]) -> str:
    """Write the mean of some runs, each of them, and their widest interval."""
    found = [score["bleu"] for score in scores if score is not None]
    if not found:
        return "\u2013"
    mean = statistics.mean(one["score"] for one in found)
    half = max(one["high"] - one["low"] for one in found) / 2
    each = ", ".join(f"{one['score']:.1f}" for one in found)
    return f"{mean:.1f} ({each}), each ±{half:.1f}"


def main() -> None:
    """Measure one run, and print the table of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="multi30k-en-fr", choices=RECIPES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--run", type=Path, help="its folder (default: in runs/)")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--table", action="store_true", help="only print the table")
    arguments = parser.parse_args()
    if not arguments.table:
        name = f"{arguments.recipe}-seed-{arguments.seed}"
        folder = arguments.run or Path("runs") / name
        found = measure(arguments.recipe, arguments.seed, folder, arguments.set)
        date = datetime.datetime.now(datetime.UTC).date().isoformat()
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{date}-{NAME}-{name}.json"
        path.write_text(json.dumps({"date": date, **found}, indent=2, ensure_ascii=False) + "\n")
        print(path)
    print("\n".join(table()))


if __name__ == "__main__":
    main()
