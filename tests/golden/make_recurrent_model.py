"""Make the recurrent model in the package, from the text that the Transformer in it learned from.

    python tests/golden/make_recurrent_model.py [--folder runs/packaged-recurrent]

The text, the recipe and the seed decide everything but the last digits. An interrupted run resumes.
"""

from __future__ import annotations

import argparse
import shutil
from importlib.resources import files
from pathlib import Path

from make_demo_model import write_corpus

from pellucid.bundle import load_bundle
from pellucid.config import load_recipe
from pellucid.training.loop import train

PACKAGE = Path(str(files("pellucid")))


def main() -> None:
    """Write the text, train, and copy the model into the package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("runs/packaged-recurrent"))
    folder: Path = parser.parse_args().folder
    recipe = load_recipe(PACKAGE / "recipes" / "packaged-recurrent.toml")
    write_corpus(folder, seed=recipe.training.seed)
    train(recipe, folder / "run", recipe_folder=folder)

    models = PACKAGE / "models"
    made, demo = load_bundle(folder / "run" / "bundle"), load_bundle(models / "demo")
    for side in ("source", "target"):
        if made.tokenizer.vocabulary(side) != demo.tokenizer.vocabulary(side):
            raise SystemExit(f"The {side} vocabulary must be that of demo, but differs.")
    shutil.rmtree(models / "demo-recurrent", ignore_errors=True)
    shutil.copytree(folder / "run" / "bundle", models / "demo-recurrent")


if __name__ == "__main__":
    main()
