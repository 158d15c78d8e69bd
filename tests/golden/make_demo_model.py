"""Make the model in the package, its untrained twin, and the filter of its training text.

    python tests/golden/make_demo_model.py [--folder runs/packaged]

The text, the recipe and the seed decide everything but the last digits. An interrupted run resumes,
and one that is finished is only put in place. What is made from the model comes after it:

    python docs/make_demo_files.py
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path

from pellucid.bundle import load_bundle
from pellucid.config import load_recipe
from pellucid.corpora import SplitName, make_split, write_examples
from pellucid.corpora.seen import SeenSentences
from pellucid.corpora.splits import Grammar
from pellucid.files import new_folder
from pellucid.formats.exporting import export_bundle
from pellucid.training.loop import train

PACKAGE = Path(str(files("pellucid")))
NUM_SENTENCES = 330_000
NUM_VALIDATION = 1_000


def main() -> None:
    """Write the text, train, and copy what the package holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/packaged"))
    folder: Path = parser.parse_args().folder
    recipe = load_recipe(PACKAGE / "recipes" / "packaged.toml")
    write_corpus(folder, seed=recipe.training.seed, count=NUM_SENTENCES, grammar="course")
    if not (folder / "run" / "finished").is_file():
        train(recipe, folder / "run", recipe_folder=folder)
    lines = (folder / "corpus" / "train.en").read_text(encoding="utf-8").splitlines()
    put_in_place(folder / "run", lines)


def put_in_place(run: Path, sentences: Iterable[str]) -> None:
    """Copy the models of a finished run into the package, with the filter of what they read."""
    models = PACKAGE / "models"
    shutil.rmtree(models / "demo", ignore_errors=True)
    # In half the bytes: the rounded weights, computed with in float32, write the same words.
    export_bundle(load_bundle(run / "bundle"), models / "demo", precision="bfloat16")
    shutil.rmtree(models / "demo-untrained", ignore_errors=True)
    export_bundle(load_bundle(run / "untrained"), models / "demo-untrained", precision="bfloat16")
    model_hash = load_bundle(models / "demo").model_hash
    SeenSentences.of(sentences, model_hash=model_hash).write(models / "demo.seen")


def write_corpus(folder: Path, *, seed: int, count: int, grammar: Grammar) -> None:
    """Write so many pairs of a grammar into ``folder/corpus``, unless an earlier call did."""
    if (folder / "corpus").is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    with new_folder(folder / "corpus") as part:
        counts: dict[SplitName, int] = {"train": count, "validation": NUM_VALIDATION}
        for name, size in counts.items():
            write_examples(part, name, make_split(name, seed=seed, count=size, grammar=grammar))


if __name__ == "__main__":
    main()
