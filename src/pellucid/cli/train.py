"""``pellucid train``: from a recipe to a model."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pellucid.errors import InputFileNotFoundError, suggestion

if TYPE_CHECKING:
    from pellucid.config import Recipe

__all__ = ["train"]


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE", help="A recipe file, or the name of one that comes with pellucid."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="RUN", help="The run folder; runs/NAME unless given."),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="SECTION.KEY=VALUE", help="Change one setting; may be repeated."
        ),
    ] = None,
) -> None:
    """Train a model as a recipe says; the same command again resumes.

    The best model so far is in RUN/bundle, which every other command takes. Ctrl-C saves first.
    """
    path, folder = _find_recipe(recipe)
    from pellucid.config import load_recipe

    resolved = load_recipe(path, changes or ())
    if any(change.partition("=")[0].strip() == "data.folder" for change in changes or ()):
        resolved = _with_folder_from_here(resolved)
    run = out if out is not None else Path("runs") / path.stem

    from pellucid.train import train as run_training

    run_training(resolved, run, recipe_folder=folder, progress=True)
    sys.stdout.write(f"{run / 'bundle'}\n")


def _find_recipe(name: str) -> tuple[Path, Path]:
    """The recipe's file, and the folder that its relative names start from.

    A recipe that comes with the package has no folder of its own: its names start from here.
    """
    path = Path(name)
    if path.is_file():
        return path, path.parent
    shipped = {
        Path(entry.name).stem: Path(str(entry))
        for entry in (files("pellucid") / "recipes").iterdir()
        if entry.name.endswith(".toml")
    }
    if name in shipped:
        return shipped[name], Path.cwd()
    raise InputFileNotFoundError(
        f"RECIPE must be a file or the name of a shipped recipe, but is {name!r}. "
        + suggestion(name, shipped)
    )


def _with_folder_from_here(recipe: Recipe) -> Recipe:
    """A folder typed on the command line starts from here, not from the recipe's place."""
    folder = recipe.data.folder
    if folder.startswith("$"):
        return recipe
    data = recipe.data.model_copy(update={"folder": str(Path.cwd() / folder)})
    return recipe.model_copy(update={"data": data})
