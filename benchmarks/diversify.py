"""Measure what teachers bring: ``pellucid train --teachers N`` on Multi30k against one model.

    MULTI30K=DIR python benchmarks/diversify.py --recipe multi30k-en-de --teachers 2 --seeds 1 2 3

The teachers are made once, with the first seed. Further seeds repeat only the last training, on the
text that the teachers wrote: the spread over seeds leaves that of the teachers out. Models without
teachers make equally many steps (``--steps``). The result file has BLEU on validation and
test_2016_flickr for every model, and for each seed the p value of the difference (paired
bootstrap); means and standard deviations over seeds; and the report of the teachers. What is
finished is not trained again.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

from multi30k import BEAM, RECIPES, RESULTS, run

NAME = "diversify-multi30k"
SPLITS = ("val", "test_2016_flickr")


def score(folder: Path, recipe: str, against: Path | None = None) -> dict[str, Any]:
    """Translate and score the validation and the test text with a model, maybe next to another."""
    _, source, target, *_ = recipe.split("-")
    data = Path(os.environ["MULTI30K"])
    found: dict[str, Any] = {}
    for split in SPLITS:
        output = folder / f"{split}.beam"
        names = [str(data / f"{split}.{one}.gz") for one in (source, target)]
        run(("translate", str(folder), "-i", names[0], "-o", str(output), "--overwrite", *BEAM))
        words = ("evaluate", "--hypothesis", str(output), "--reference", names[1], "--json")
        if against is not None:
            words += ("--against", str(against / output.name))
        scores = json.loads(run(words))
        found[split] = scores["bleu"]["score"]
        if against is not None:
            found[f"{split}, against"] = scores["against"]["bleu"]
    return found


def train(words: tuple[str, ...], folder: Path) -> float:
    """Train one model; return the minutes that this call took."""
    began = time.monotonic()
    run(("train", *words, "-o", str(folder)))
    return (time.monotonic() - began) / 60


def measure(recipe: str, teachers: int, seeds: list[int], steps: int, runs: Path) -> dict[str, Any]:
    """Train and score all models."""
    rows = []
    first = runs / f"{recipe}-teachers-{teachers}-seed-{seeds[0]}"
    for seed in seeds:
        settings = ("--set", f"training.max_steps={steps}", "--set", f"training.seed={seed}")
        alone = runs / f"{recipe}-alone-seed-{seed}"
        minutes = train((recipe, *settings), alone)
        rows.append({"kind": "alone", "seed": seed, "minutes": minutes, **score(alone, recipe)})
        folder = runs / f"{recipe}-teachers-{teachers}-seed-{seed}"
        if folder == first:
            words: tuple[str, ...] = (recipe, *settings, "--teachers", str(teachers))
        else:
            # The resolved recipe of the first names the united text.
            words = (str(first / "recipe.toml"), "--set", f"training.seed={seed}")
        minutes = train(words, folder)
        scores = score(folder, recipe, against=alone)
        rows.append({"kind": "taught", "seed": seed, "minutes": minutes, **scores})
    report = json.loads((first / "teachers" / "report.json").read_text())
    return {"rows": rows, "summary": summarize(rows), "report": report}


def summarize(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Find mean and standard deviation over seeds, for both kinds of models."""
    found: dict[str, Any] = {}
    for split in SPLITS:
        for kind in ("alone", "taught"):
            scores = [row[split] for row in rows if row["kind"] == kind]
            deviation = statistics.stdev(scores) if len(scores) > 1 else None
            found[f"{split}, {kind}"] = {"mean": statistics.mean(scores), "deviation": deviation}
    return found


def main() -> None:
    """Measure, and write the result file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="multi30k-en-de", choices=RECIPES[::2])
    parser.add_argument("--teachers", type=int, default=2)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=14_000)
    parser.add_argument("--runs", type=Path, default=Path("runs/diversify"))
    given = parser.parse_args()
    found = measure(given.recipe, given.teachers, given.seeds, given.steps, given.runs)
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    settings = {"recipe": given.recipe, "teachers": given.teachers, "steps": given.steps}
    path = RESULTS / f"{date}-{NAME}-{given.recipe}.json"
    path.write_text(json.dumps({"date": date, **settings, **found}, indent=2) + "\n")
    print(json.dumps(found["summary"], indent=2))
    print(path)


if __name__ == "__main__":
    main()
