"""Make the model in the package, its untrained twin, and the filter of its training text.

    python tests/golden/make_demo_model.py [--folder runs/packaged]

The text, the recipe and the seed decide everything but the last digits. An interrupted run resumes.
"""

from __future__ import annotations

import argparse
import shutil
from importlib.resources import files
from pathlib import Path

from pellucid.bundle import load_bundle
from pellucid.config import load_recipe
from pellucid.corpora import Example, make_split, write_examples
from pellucid.corpora.seen import SeenSentences
from pellucid.files import new_folder
from pellucid.formats.exporting import export_bundle
from pellucid.training.loop import train

PACKAGE = Path(str(files("pellucid")))
NUM_SENTENCES = 240_000
NUM_VALIDATION = 1_000


def main() -> None:
    """Write the text, train, and copy what the package holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/packaged"))
    folder: Path = parser.parse_args().folder
    recipe = load_recipe(PACKAGE / "recipes" / "packaged.toml")
    examples = write_corpus(folder, seed=recipe.training.seed)
    train(recipe, folder / "run", recipe_folder=folder)

    models = PACKAGE / "models"
    shutil.rmtree(models / "demo", ignore_errors=True)
    shutil.copytree(folder / "run" / "bundle", models / "demo")
    shutil.rmtree(models / "demo-untrained", ignore_errors=True)
    untrained = load_bundle(folder / "run" / "untrained")
    export_bundle(untrained, models / "demo-untrained", precision="bfloat16")
    model_hash = load_bundle(models / "demo").model_hash
    seen = SeenSentences.of((example.source for example in examples), model_hash=model_hash)
    seen.write(models / "demo.seen")


def write_corpus(folder: Path, *, seed: int) -> list[Example]:
    """Write the text into ``folder/corpus``, unless an earlier call did; return what trains."""
    examples = make_split("train", seed=seed, count=NUM_SENTENCES, grammar="course")
    if not (folder / "corpus").is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        with new_folder(folder / "corpus") as part:
            write_examples(part, "train", examples)
            validation = make_split("validation", seed=seed, count=NUM_VALIDATION, grammar="course")
            write_examples(part, "validation", validation)
    return examples


if __name__ == "__main__":
    main()
