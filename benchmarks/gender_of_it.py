"""Where the gender of *it* is decided: every intervention of the study, on every model of it.

    OMP_NUM_THREADS=1 python benchmarks/gender_of_it.py --folder runs/gender

`gender_models.py` trains the models. Each model's results are kept in its folder, so the same
command continues. `--summary FILE` joins those that are there.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from gender.conditions import all_conditions, head_slopes, head_weights
from gender.directions import collect, is_test, probe_accuracies, steered
from gender.subject import Subject, load_pairs
from gender.summary import summarize
from gender_models import SEEDS, VARIANTS, cell_of

import pellucid

PACKAGED = "demo"


def main() -> None:
    """Measure every model that is trained and not yet measured, then write the summary."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/gender"))
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[0, *SEEDS], help="0 is the packaged model"
    )
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--summary", type=Path, default=None)
    given = parser.parse_args()
    torch.set_num_threads(1)
    pairs = load_pairs(given.folder / "text")[: given.pairs]
    models = {(PACKAGED, 0): PACKAGED}
    for seed in SEEDS:
        for variant in VARIANTS:
            models[variant, seed] = str(cell_of(given.folder, variant, seed))
    for (variant, seed), model in models.items():
        cell = given.folder / PACKAGED if variant == PACKAGED else Path(model)
        is_trained = variant == PACKAGED or (cell / "trained").is_file()
        if seed not in given.seeds or not is_trained or (cell / "measured.json").is_file():
            continue
        started = time.perf_counter()
        cell.mkdir(exist_ok=True)
        measure_model(model, cell, pairs)
        print(f"{variant} {seed}: {time.perf_counter() - started:.0f} seconds", flush=True)
    if given.summary is not None:
        cells = {key: cell_of(given.folder, *key) for key in models}
        cells[PACKAGED, 0] = given.folder / PACKAGED
        done = {key: cell for key, cell in cells.items() if (cell / "measured.json").is_file()}
        given.summary.write_text(json.dumps(summarize(done), indent=1) + "\n")


def measure_model(model: str, cell: Path, pairs: list[list[dict[str, object]]]) -> None:
    """Make every intervention on one model, and keep the margins and what else was found."""
    translator = pellucid.load(model, precision="float32")
    assert translator.bundle is not None
    subject = Subject(translator.bundle, pairs)
    vectors = collect(subject)
    margins = {name: measured() for name, measured in all_conditions(subject)}
    margins |= {name: measured() for name, measured in steered(subject, vectors)}
    for donor in ("choice", "gender"):
        found = subject.donor_margins(donor)
        margins[f"donor {donor}"] = found
    flat = [sentence for pair in pairs for sentence in pair]
    written = translator.translate([str(one["source"]) for one in flat], split="none")
    right = [
        answer.text.split()[one["target_pronoun"] :][:1]
        == str(one["target"]).split()[one["target_pronoun"] :][:1]
        for one, answer in zip(flat, written, strict=True)
    ]
    other = {
        "num_weights": sum(one.numel() for one in subject.model.parameters()),
        "sites": subject.sites,
        "num_heads": subject.config.num_heads,
        "translated_right": float(np.mean(right)),
        "translated_both_right": float(np.mean(np.reshape(right, (-1, 2)).all(axis=1))),
        "slopes": head_slopes(subject),
        "weights": head_weights(subject),
        "probes": probe_accuracies(subject, vectors),
    }
    np.savez_compressed(
        cell / "margins.npz",
        is_test=is_test(subject),
        has_swap=np.array([run.donors["gender"] != run.source for run in subject.runs]),
        **margins,
    )
    (cell / "measured.json").write_text(json.dumps(other, indent=1))


if __name__ == "__main__":
    main()
