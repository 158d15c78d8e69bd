"""How many hours the recipes of published corpora take on this machine, on stand-ins of their text.

    python benchmarks/recipe_hours.py [RECIPE …] [--updates 12] [--device cpu] [--text 60000]

The corpora are not here. A stand-in has their files, as many words a sentence, and words as
rare as in a language, made of syllables; so the vocabulary, the batches and the model are those of
the recipe. A command trains for some updates, and their mean time gives the hours of the whole
course; preparing the text and validating come on top.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
from side_by_side.results import write_result

from pellucid.config import load_recipe
from pellucid.training.start.found_recipe import find_recipe

WORDS_A_SENTENCE = {"iwslt14-de-en": 20, "wmt14-en-de-base": 25, "opus-100": 12}
FOLDERS = {"iwslt14-de-en": "IWSLT14", "wmt14-en-de-base": "WMT14", "opus-100": "OPUS100"}
NUM_WORDS = 120_000
HELD_OUT = 20


def main() -> None:
    """Time each recipe in turn, and write one result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("recipes", nargs="*", metavar="RECIPE", default=list(FOLDERS))
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--text", type=int, default=60_000, help="sentences of the stand-in")
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    found = {}
    for name in given.recipes:
        with tempfile.TemporaryDirectory() as folder:
            write_stand_in(name, Path(folder), given.text)
            seconds = time_updates(name, Path(folder), given.updates, given.device)
        steps = load_recipe(find_recipe(name)[0]).training.max_steps
        hours = seconds * steps / 3600
        found[name] = {"seconds_an_update": seconds, "updates": steps, "hours": hours}
        print(f"{name}: {seconds:.2f} s an update, {steps:,} updates: {hours:,.0f} h", flush=True)
    write_result("recipe-hours", {"device": given.device, "recipes": found}, (), None)


def write_stand_in(name: str, folder: Path, count: int) -> None:
    """Write the files that a recipe names, of invented words."""
    numbers = np.random.default_rng(1)
    parts = [consonant + vowel for consonant, vowel in product("bdfgklmnprstvz", "aeiou")]
    words = ["".join(numbers.choice(parts, size)) for size in numbers.integers(1, 5, NUM_WORDS)]
    frequency = 1 / np.arange(10, NUM_WORDS + 10)
    frequency /= frequency.sum()
    data = load_recipe(find_recipe(name)[0]).data
    for texts, size in ((data.train, count), (data.validation, HELD_OUT), (data.test, HELD_OUT)):
        lengths = numbers.poisson(WORDS_A_SENTENCE[name] - 1, size) + 1
        for text in texts[0]:
            path = folder / text
            path.parent.mkdir(parents=True, exist_ok=True)
            drawn = iter(numbers.choice(NUM_WORDS, lengths.sum(), p=frequency))
            path.write_text("".join(sentences(words, drawn, lengths)), encoding="utf-8")


def sentences(words: list[str], drawn: Iterator[int], lengths: np.ndarray) -> Iterator[str]:
    """Yield a line for each length."""
    for length in lengths:
        yield " ".join(words[next(drawn)] for _ in range(length)) + " .\n"


def time_updates(name: str, folder: Path, updates: int, device: str) -> float:
    """Train by the command; return the mean seconds of an update after the first ones."""
    run = folder / "run"
    given = (f"training.max_steps={updates}", f"training.validate_every={updates}")
    command = [sys.executable, "-m", "pellucid", "train", name, "-o", str(run), "--device", device]
    command += [part for one in given for part in ("--set", one)]
    subprocess.run(command, check=True, env={**os.environ, FOLDERS[name]: str(folder)})
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    logged = [one for one in map(json.loads, lines) if one["kind"] == "train"]
    first, last = logged[0], logged[-1]
    return (last["seconds"] - first["seconds"]) / (last["step"] - first["step"])


if __name__ == "__main__":
    main()
