"""Make the recurrent model in the package, from the corpus without the beginner's course.

    python tests/golden/make_recurrent_model.py [--folder runs/packaged-recurrent]

The text, the recipe and the seed decide everything but the last digits. An interrupted run resumes.
"""

from __future__ import annotations

import argparse
import shutil
from importlib.resources import files
from pathlib import Path

from make_demo_model import write_corpus

from pellucid.config import load_recipe
from pellucid.training.loop import train

PACKAGE = Path(str(files("pellucid")))
NUM_SENTENCES = 240_000


def main() -> None:
    """Write the text, train, and copy the model into the package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/packaged-recurrent"))
    folder: Path = parser.parse_args().folder
    recipe = load_recipe(PACKAGE / "recipes" / "packaged-recurrent.toml")
    write_corpus(folder, seed=recipe.training.seed, count=NUM_SENTENCES, grammar="open")
    train(recipe, folder / "run", recipe_folder=folder)

    models = PACKAGE / "models"
    shutil.rmtree(models / "demo-recurrent", ignore_errors=True)
    shutil.copytree(folder / "run" / "bundle", models / "demo-recurrent")


if __name__ == "__main__":
    main()
