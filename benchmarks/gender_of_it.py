"""Where the gender of *it* is decided: every intervention of the study, on every model of it.

    OMP_NUM_THREADS=1 python benchmarks/gender_of_it.py --folder runs/gender

`gender_models.py` trains the models. What was measured is kept in the folder of each, so the same
command continues. `--summary FILE` joins those that are there.
"""

from __future__ import annotations

import argparse
import datetime
import json
import time
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gender.conditions import all_conditions, head_slopes, head_weights
from gender.directions import Vectors, collect, is_test, probe_accuracies, steered
from gender.subject import DONORS, Subject, load_pairs
from gender.summary import summarize
from gender_models import LONGER, SEEDS, VARIANTS, cell_of
from side_by_side.machine import describe

import pellucid
from pellucid.translate.translator import Translator

PACKAGED = "demo"


def main() -> None:
    """Measure every model that is trained and not yet measured, then write the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/gender"))
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0, *SEEDS], help="0 is the packaged model"
    )
    names = [PACKAGED, *VARIANTS, *LONGER]
    parser.add_argument("--variants", nargs="+", choices=names, default=names)
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--summary", type=Path, default=None)
    given = parser.parse_args()
    torch.set_num_threads(1)
    pairs = load_pairs(given.folder / "text")[: given.pairs]
    models = {(PACKAGED, 0): PACKAGED}
    for seed in SEEDS:
        for variant in (*VARIANTS, *LONGER):
            models[variant, seed] = str(cell_of(given.folder, variant, seed))
    for (variant, seed), model in models.items():
        cell = given.folder / PACKAGED if variant == PACKAGED else Path(model)
        is_trained = variant == PACKAGED or (cell / "trained").is_file()
        if variant not in given.variants or seed not in given.seeds or not is_trained:
            continue
        started = time.perf_counter()
        cell.mkdir(exist_ok=True)
        if measure_model(model, cell, pairs):
            print(f"{variant} {seed}: {time.perf_counter() - started:.0f} seconds", flush=True)
    if given.summary is not None:
        cells = {key: cell_of(given.folder, *key) for key in models}
        cells[PACKAGED, 0] = given.folder / PACKAGED
        done = {key: cell for key, cell in cells.items() if (cell / "measured.json").is_file()}
        write_summary(given.summary, summarize(done, VARIANTS))


def write_summary(path: Path, found: dict[str, Any]) -> None:
    """Write the results with date and machine, a line for each model."""
    head = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "command": "python benchmarks/gender_of_it.py --summary RESULT",
        "machine": describe(),
        **{name: value for name, value in found.items() if name != "models"},
    }
    models = ",\n".join(json.dumps(one) for one in found["models"])
    path.write_text(json.dumps(head, indent=1)[:-2] + f',\n "models": [\n{models}\n]}}\n')


def measure_model(model: str, cell: Path, pairs: list[list[dict[str, Any]]]) -> bool:
    """Make every intervention that is missing on one model, and keep the margins."""
    translator = pellucid.load(model, precision="float32")
    assert translator.bundle is not None
    subject = Subject(translator.bundle, pairs)
    file = cell / "margins.npz"
    margins = dict(np.load(file)) if file.is_file() else {}
    num_kept = len(margins)
    vectors = collect(subject)
    for name, measured in chain(all_conditions(subject), steered(subject, vectors)):
        if name not in margins:
            margins[name] = measured()
    if len(margins) > num_kept:
        margins |= {f"donor {donor}": subject.donor_margins(donor) for donor in DONORS}
        margins["is_test"] = is_test(subject)
        margins["has_swap"] = np.array([run.donors["gender"] != run.source for run in subject.runs])
        np.savez_compressed(file, **margins)
    if not (cell / "measured.json").is_file():
        rest = measure_rest(translator, subject, vectors, pairs)
        (cell / "measured.json").write_text(json.dumps(rest, indent=1))
    return len(margins) > num_kept


def measure_rest(
    translator: Translator, subject: Subject, vectors: Vectors, pairs: list[list[dict[str, Any]]]
) -> dict[str, Any]:
    """Translate the pairs, and measure what is no intervention."""
    flat = [sentence for pair in pairs for sentence in pair]
    written = translator.translate([one["source"] for one in flat], split="none")
    right = []
    for one, answer in zip(flat, written, strict=True):
        at = one["target_pronoun"]
        right.append(answer.text.split()[at : at + 1] == [one["target"].split()[at]])
    return {
        "num_weights": sum(one.numel() for one in subject.model.parameters()),
        "sites": subject.sites,
        "num_heads": subject.config.num_heads,
        "translated_right": float(np.mean(right)),
        "translated_both_right": float(np.mean(np.reshape(right, (-1, 2)).all(axis=1))),
        "slopes": head_slopes(subject),
        "weights": head_weights(subject),
        "probes": probe_accuracies(subject, vectors),
    }


if __name__ == "__main__":
    main()
