"""The recipe to train with: a file, a shipped one, or one made for text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import tomli_w

from pellucid.config import DataConfig, apply_overrides, parse_toml, validate
from pellucid.errors import ConfigurationError, InputFileNotFoundError, suggestion
from pellucid.files import endings, expand_home, read_bytes, write_text
from pellucid.text.reading.sentence_pairs import PAIRS
from pellucid.training.start.preparation import Say, be_silent
from pellucid.training.start.table import describe_direction, is_text, recipe_for, run_name


class FoundRecipe(NamedTuple):
    """A recipe, and the run that it is for.

    Attributes:
        path: its file.
        folder: the folder that its names start from.
        values: its values with all changes.
        run: the run folder.
        unwritten: of a recipe that was made for text, what its file is to hold.
    """

    path: Path
    folder: Path
    values: dict[str, Any]
    run: Path
    unwritten: Mapping[str, Any] | None = None

    def write(self, say: Say) -> None:
        """Write a recipe that was made for text, once nothing else can be refused."""
        if self.unwritten is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text(self.path, tomli_w.dumps(self.unwritten))
            say(f"The recipe is in {self.path}.")


def find_start(
    names: Sequence[str],
    languages: tuple[str | None, str | None],
    out: Path | None,
    changes: Sequence[str],
    *,
    is_checked: bool = False,
    say: Say = be_silent,
) -> FoundRecipe:
    """Find a recipe, or make one for text, which `FoundRecipe.write` keeps next to the run.

    Args:
        names: a recipe, or text.
        languages: the codes of the text's languages, as far as they were named.
        out: the run folder; None for that of the recipe's name.
        changes: ``section.key=value``.
        is_checked: True if nothing is to be written.
        say: takes a sentence about what was recognized.
    """
    if not names:
        raise ConfigurationError(
            "There is nothing to train on: give a recipe (pellucid train RECIPE.toml), a table "
            "(pellucid train PAIRS.tsv), or two text files (pellucid train TEXT.en TEXT.fr)."
        )
    names = [str(expand_home(name)) for name in names]
    if "-" in names:
        raise ConfigurationError(
            "The text must be a file, because it is read more than once, but is standard input "
            "('-'). Write it into a file first."
        )
    for name in names[:-1]:
        if name in shipped_recipes() or endings(name).kind == ".toml":
            raise ConfigurationError(
                f"A recipe must be given without text, which it names itself, but {name} is "
                f"followed by {names[-1]}. Leave one of them out."
            )
    if not is_text(names):
        if any(languages):
            raise ConfigurationError(
                f"Languages are named for text only, but {names[0]} is a recipe or does not exist. "
                "Set data.source_language and data.target_language in the recipe."
            )
        path, folder = find_recipe(names[0])
        values = recipe_values(path, changes)
        return FoundRecipe(path, folder, values, out or Path("runs") / path.stem)
    run = out or Path("runs") / run_name(names)
    path = run.with_name(f"{run.name}.toml")
    # These say which text is read, so the recipe is made with them. All others are applied to the
    # recipe each time that it is read.
    of_text = [change for change in changes if change.strip().startswith("data.")]
    values = recipe_for(names, path.parent, languages, of_text)
    unwritten = None
    if not is_checked:
        columns = (1, 2) if endings(names[0]).kind in (".tsv", ".csv") else ()
        data = validate(DataConfig, {"columns": columns, **values["data"]}, "the command")
        sentence = f"{describe_direction(data)}."
        if not all(languages):
            sentence += " The languages were recognized: name them if that is wrong."
        say(sentence)
        if path.exists():
            values = _read_earlier(path, values["data"])
        else:
            unwritten = values
    others = [change for change in changes if change not in of_text]
    return FoundRecipe(path, path.parent, apply_overrides(values, others), run, unwritten)


def _read_earlier(path: Path, own: Mapping[str, Any]) -> dict[str, Any]:
    """Read the recipe that an earlier start wrote for the same text.

    Raises:
        ConfigurationError: it is for other text.
    """
    earlier = parse_toml(read_bytes(path), str(path))
    data = earlier.get("data")
    if data != own:
        before = data if isinstance(data, dict) else {}
        keys = [key for key in {**own, **before} if own.get(key) != before.get(key)]
        raise ConfigurationError(
            f"{path} must be the recipe for this text, but differs from the command in "
            f"{', '.join(f'data.{key}' for key in keys)}. "
            "Choose another folder with -o, or delete it."
        )
    return earlier


def recipe_values(path: Path, changes: Sequence[str]) -> dict[str, Any]:
    """Read a recipe and apply changes, ``section.key=value``."""
    values = apply_overrides(parse_toml(read_bytes(path), str(path)), changes)
    if any(change.partition("=")[0].strip() == "data.folder" for change in changes):
        data = dict(values["data"])
        if not str(data["folder"]).startswith(("$", "~/")):
            data["folder"] = str(Path.cwd() / str(data["folder"]))
        values = {**values, "data": data}
    return dict(values)


# Their models are called so, and were trained with other recipes.
_RENAMED = {"demo": "tiny-en-fr", "demo-recurrent": "tiny-en-fr-recurrent"}


def find_recipe(name: str) -> tuple[Path, Path]:
    """Find the file of a recipe, and the folder that its relative names start from.

    For a recipe that comes with the package, that is the current folder.
    """
    path = Path(name)
    if path.is_file() and endings(name).kind != ".toml":
        raise ConfigurationError(
            f"A single file must be a recipe (.toml) or have both sides ({PAIRS}), but {name} is "
            "neither by its name. Give lines as two files, SOURCE and TARGET."
        )
    if path.is_file():
        return path, path.parent
    if name in _RENAMED:
        raise InputFileNotFoundError(
            f"The recipe {name!r} does not exist. Give {_RENAMED[name]!r}."
        )
    shipped = Path(str(files("pellucid") / "recipes" / f"{name}.toml"))
    if shipped.is_file():
        return shipped, Path.cwd()
    raise InputFileNotFoundError(
        f"A recipe must be a file or the name of a shipped recipe, but is {name!r}. "
        + suggestion(name, shipped_recipes())
    )


def shipped_recipes() -> list[str]:
    """List the names of the recipes that come with the package, without those of its models."""
    found = [Path(entry.name).stem for entry in (files("pellucid") / "recipes").iterdir()]
    return sorted(name for name in found if not name.startswith("packaged"))


def start_of(values: Mapping[str, Any]) -> str | None:
    """Find the model that a recipe says to start from.

    A resolved recipe, which has the model's hash, already holds what the model gives.
    """
    section = values.get("start")
    if not isinstance(section, Mapping) or section.get("model_hash"):
        return None
    model = section.get("model")
    return model if isinstance(model, str) and model else None
