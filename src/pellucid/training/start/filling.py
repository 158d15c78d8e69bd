"""Fill in what a recipe leaves open: from the run that it continues, or chosen for its text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pellucid.config import parse_toml
from pellucid.files import read_bytes
from pellucid.training.run.folder import RECIPE_FILE, read_chosen
from pellucid.training.start.choices import complete
from pellucid.training.start.kept_pairs import KeptText
from pellucid.training.start.preparation import Say, be_silent

LIMITS = ("max_steps", "patience")
"""Settings that a run keeps if its recipe no longer gives them, whatever their value."""


class FilledRecipe(NamedTuple):
    """A recipe that leaves nothing open.

    Attributes:
        values: all of it.
        choices: a sentence for each setting that was chosen now.
        chosen: these settings, ``section.name``, with their values.
        text: what was learned of the text on the way; None if nothing was chosen.
    """

    values: dict[str, Any]
    choices: list[str]
    chosen: dict[str, Any]
    text: KeptText | None = None

    @property
    def reasons(self) -> dict[str, str]:
        """The sentence about each of these settings, as far as there is one."""
        return {
            key: sentence
            for key in self.chosen
            for sentence in self.choices
            if sentence.startswith(f"{key} = ")
        }


def fill_in(
    values: Mapping[str, Any], run: Path, recipe_folder: Path, say: Say = be_silent
) -> FilledRecipe:
    """Fill in what a recipe leaves open.

    Settings that were once chosen for a run stay, and no others are chosen: changing a limit must
    not change the rest. Settings that the user once gave the run, and the recipe no longer has, are
    not filled in; the run then reports that the recipe differs.

    Args:
        values: the recipe as its file has it, with all changes.
        run: the run folder, which need not exist.
        recipe_folder: the folder that the recipe's relative names start from.
        say: takes a line for people while a large text is read.

    Raises:
        ConfigurationError: the run's own recipe is damaged.
    """
    recipe_file = run / RECIPE_FILE
    chosen = read_chosen(run)
    if chosen is None or not recipe_file.is_file():
        text = KeptText(recipe_folder, say)
        filled, choices = complete(values, recipe_folder, text)
        return FilledRecipe(filled, choices, _added(values, filled), text)
    earlier = parse_toml(read_bytes(recipe_file), str(recipe_file))
    kept = {f"training.{name}": _entry(earlier, "training", name) for name in LIMITS} | chosen
    kind = _entry(values, "tokenizer", "kind") or "sentencepiece"
    filled = dict(values)
    for key, value in kept.items():
        section, _, name = key.partition(".")
        entries = filled.get(section, {})
        is_of_another_kind = section == "tokenizer" and kind != _entry(earlier, section, "kind")
        if isinstance(entries, Mapping) and value is not None and not is_of_another_kind:
            filled[section] = {name: value, **entries}
    return FilledRecipe(filled, [], {})


def _entry(values: Mapping[str, Any], section: str, name: str) -> Any:
    """Look up a setting of a recipe, which may lack it or not be a recipe."""
    entries = values.get(section)
    return entries.get(name) if isinstance(entries, Mapping) else None


def _added(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Collect the settings, ``section.name``, that only the second of two recipes has."""
    return {
        f"{section}.{name}": value
        for section, entries in after.items()
        if isinstance(entries, Mapping)
        for name, value in entries.items()
        if name not in before.get(section, {})
    }
