"""``pellucid train``: from a recipe to a model."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer

from pellucid.cli.ending import note
from pellucid.errors import InputFileNotFoundError, suggestion

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
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="MODEL", help="Start from a trained model: weights and tokenizer."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Look at the text, say what is odd, and stop.")
    ] = False,
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
    from pellucid.config import Recipe, apply_overrides, parse_toml, validate
    from pellucid.files import read_bytes

    values = apply_overrides(parse_toml(read_bytes(path), str(path)), changes or ())
    if any(change.partition("=")[0].strip() == "data.folder" for change in changes or ()):
        values = _with_folder_from_here(values)
    if check:
        _check(values, folder, str(path))
        return
    run = out if out is not None else Path("runs") / path.stem
    from pellucid.train.run.folder import mend_recipe

    mend_recipe(run)
    start = start if start is not None else _start_of(values)
    if start is not None:
        from pellucid.train.start.from_model import with_start

        values = with_start(values, start, run)
    from pellucid.train.start.continued import fill_in

    values, choices, chosen = fill_in(values, run, folder)
    resolved = validate(Recipe, values, str(path))

    from pellucid.train import train as run_training

    run_training(resolved, run, recipe_folder=folder, progress=True, choices=choices, chosen=chosen)
    note(str(run / "bundle"))


def _check(values: Mapping[str, Any], folder: Path, where: str) -> None:
    """Print what the data check finds."""
    from pellucid.config import DataConfig, validate
    from pellucid.text.check import check_data

    data = validate(DataConfig, values.get("data", {}), where)
    report = check_data(data, folder)
    for line in report.lines():
        sys.stdout.write(f"{line}\n")
    if report.has_errors:
        raise typer.Exit(2)


def _start_of(values: Mapping[str, Any]) -> str | None:
    """The model that a recipe itself starts from; a resolved one already has all of it."""
    section = values.get("start")
    if not isinstance(section, Mapping) or section.get("model_hash"):
        return None
    model = section.get("model")
    return model if isinstance(model, str) and model else None


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


def _with_folder_from_here(values: Mapping[str, Any]) -> dict[str, Any]:
    """A folder typed on the command line starts from here, not from the recipe's place."""
    data = dict(values["data"])
    if not str(data["folder"]).startswith("$"):
        data["folder"] = str(Path.cwd() / str(data["folder"]))
    return {**values, "data": data}
