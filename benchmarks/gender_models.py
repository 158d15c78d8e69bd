"""The models of the study of *it*: six variants of positions and norms, each with five seeds.

    OMP_NUM_THREADS=1 python benchmarks/gender_models.py --folder runs/gender

The text is the part of the built-in corpus whose pronoun is decided by the predicate only: *the
cows were next to the fridges and they were sleeping*. Variants of one seed read the same lines in
the same order. Each run is a cell in its own folder. A finished one is kept, so the same command
continues.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
from gender.pairs import write_text

from pellucid.config import load_recipe
from pellucid.training.loop import train
from pellucid.training.start.found_recipe import find_recipe

VARIANTS: dict[str, tuple[str, ...]] = {
    "sinusoidal": (),
    "rotary": ("model.positions=rotary",),
    "ALiBi": ("model.positions=alibi",),
    "relative": ("model.positions=relative", "model.max_relative_distance=16"),
    "pre-norm": ("model.norm=pre",),
    "RMS norm": ("model.norm_kind=rms",),
}
"""The first is the paper's; each other one differs from it in one key."""
LONGER = {"sinusoidal longer": "sinusoidal", "relative longer": "relative"}
"""Variants that are trained again for four times as many updates: none of the six."""
SEEDS = (1, 2, 3, 4, 5)


def main() -> None:
    """Train every cell that is not done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/gender"))
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument(
        "--variants", nargs="+", choices=[*VARIANTS, *LONGER], default=list(VARIANTS)
    )
    parser.add_argument("--steps", type=int, default=1200)
    given = parser.parse_args()
    torch.set_num_threads(1)
    text = write_text(given.folder / "text")
    for seed in given.seeds:
        for name in given.variants:
            cell = cell_of(given.folder, name, seed)
            if (cell / "trained").is_file():
                continue
            started = time.perf_counter()
            steps = given.steps * (4 if name in LONGER else 1)
            changes = VARIANTS[LONGER.get(name, name)]
            train_cell(text, cell, changes, seed=seed, steps=steps)
            (cell / "trained").touch()
            print(f"{cell.name}: {time.perf_counter() - started:.0f} seconds", flush=True)


def cell_of(folder: Path, variant: str, seed: int) -> Path:
    """Name the folder of a model."""
    return folder / f"{variant.replace(' ', '-')}-{seed}"


def train_cell(text: Path, cell: Path, changes: tuple[str, ...], *, seed: int, steps: int) -> None:
    """Train one model with PyTorch's operations: the package's kernels lack most variants."""
    recipe = load_recipe(
        find_recipe("tiny-en-fr")[0],
        (
            f"training.seed={seed}",
            f"training.max_steps={steps}",
            f"training.validate_every={steps}",
            "training.kernels=pytorch",
            "training.processes=1",
            "training.guided_head=",
            "training.max_tokens_per_batch=600",
            "training.warmup_steps=60",
            "training.score_penalty=0",
            "data.train_alignments=[]",
            "model.d_model=64",
            "model.d_ff=128",
            "model.num_encoder_layers=3",
            *changes,
        ),
    )
    train(recipe, cell, recipe_folder=text)


if __name__ == "__main__":
    main()
