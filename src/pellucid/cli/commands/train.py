"""``pellucid train``: from a recipe to a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer

from pellucid.cli.ending import note
from pellucid.cli.options import Changes
from pellucid.cli.train.check_text import NUM_WORST, check_text
from pellucid.errors import ConfigurationError, InputFileNotFoundError, suggestion


def train(
    recipe: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE", help="A recipe file, or the name of one that comes with pellucid."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="RUN", help="The run folder; runs/NAME by default."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="MODEL", help="Start from a trained model: weights and tokenizer."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check the text, report what is odd, and stop.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="MODEL", help="With --check: list the pairs it finds least likely."
        ),
    ] = None,
    worst: Annotated[
        int | None,
        typer.Option("--worst", metavar="N", help="With --model: list N pairs; 20 by default."),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="With --check: write the report as one JSON object.")
    ] = False,
    changes: Changes = None,
) -> int:
    """Train a model from a recipe; the same command again resumes.

    The best model so far is in RUN/bundle, which every other command takes. Ctrl-C saves first.
    """
    _refuse_without(check, "--check", {"--model": model is not None, "--json": json})
    _refuse_without(model is not None, "--model", {"--worst": worst is not None})
    if worst is not None and worst < 1:
        raise ConfigurationError(f"--worst must be at least 1, but is {worst}. Change it.")
    path, folder = find_recipe(recipe)
    values = recipe_values(path, changes or ())
    if check:
        from pellucid.config import DataConfig, validate

        data = validate(DataConfig, values.get("data", {}), str(path))
        sizes = values.get("model", {})
        return check_text(
            data,
            folder,
            sizes=sizes if isinstance(sizes, Mapping) else {},
            start=start if start is not None else _start_of(values),
            model=model,
            num_worst=worst or NUM_WORST,
            is_json=json,
        )
    _train(values, path, folder, out or Path("runs") / path.stem, start)
    return 0


def recipe_values(path: Path, changes: Sequence[str]) -> dict[str, Any]:
    """Read a recipe and apply changes, ``section.key=value``."""
    from pellucid.config import apply_overrides, parse_toml
    from pellucid.files import read_bytes

    values = apply_overrides(parse_toml(read_bytes(path), str(path)), changes)
    if any(change.partition("=")[0].strip() == "data.folder" for change in changes):
        values = _with_folder_from_here(values)
    return dict(values)


def _refuse_without(is_given: bool, needed: str, options: Mapping[str, bool]) -> None:
    """Refuse options that have no effect without another one."""
    for name, is_used in options.items():
        if is_used and not is_given:
            raise ConfigurationError(f"{name} needs {needed}, but that was not given. Add it.")


def _train(
    values: Mapping[str, Any], path: Path, folder: Path, run: Path, start: str | None
) -> None:
    """Complete the recipe's values and train with them."""
    from pellucid.config import Recipe, validate
    from pellucid.train import train as run_training
    from pellucid.train.run.folder import repair_recipe
    from pellucid.train.start.choices import fill_in
    from pellucid.train.start.from_model import with_start

    repair_recipe(run)
    start = start if start is not None else _start_of(values)
    if start is not None:
        values = with_start(values, start, run)
    values, choices, chosen = fill_in(values, run, folder)
    recipe = validate(Recipe, values, str(path))
    run_training(recipe, run, recipe_folder=folder, progress=True, choices=choices, chosen=chosen)
    note(str(run / "bundle"))


def _start_of(values: Mapping[str, Any]) -> str | None:
    """Find the model that a recipe says to start from.

    A resolved recipe, which has the model's hash, already holds what the model gives.
    """
    section = values.get("start")
    if not isinstance(section, Mapping) or section.get("model_hash"):
        return None
    model = section.get("model")
    return model if isinstance(model, str) and model else None


def find_recipe(name: str) -> tuple[Path, Path]:
    """Find the file of a recipe, and the folder that its relative names start from.

    For a recipe that comes with the package, that is the current folder.
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
    """Resolve a data folder from the command line against the current folder, not the recipe's."""
    data = dict(values["data"])
    if not str(data["folder"]).startswith("$"):
        data["folder"] = str(Path.cwd() / str(data["folder"]))
    return {**values, "data": data}
