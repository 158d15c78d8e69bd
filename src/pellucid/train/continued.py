"""What a run that goes on takes from its folder: the settings that were chosen for it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pellucid.config import parse_toml
from pellucid.files import read_bytes
from pellucid.train.choices import SHAPE, TRAINING, VOCABULARY
from pellucid.train.run_folder import MAY_CHANGE, RECIPE_FILE, read_chosen

__all__ = ["keep_choices", "settings_added"]


def settings_added(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """The settings, ``section.name``, that the second of two recipes has and the first has not."""
    return [
        f"{section}.{name}"
        for section, entries in after.items()
        if isinstance(entries, Mapping)
        for name in entries
        if name not in before.get(section, {})
    ]


def keep_choices(values: Mapping[str, Any], run: Path) -> dict[str, Any]:
    """Take what the recipe leaves open from the run that it continues, if there is one.

    A limit that is changed must not choose the rest anew. What somebody gave the run, and the
    recipe no longer says, is not taken: the run then says that it differs.

    Args:
        values: the recipe as its file has it, with all changes.
        run: the run folder, which need not be there.

    Raises:
        ConfigurationError: its recipe is damaged.
    """
    same = dict(values)
    recipe_file = run / RECIPE_FILE
    if not recipe_file.is_file():
        return same
    earlier = parse_toml(read_bytes(recipe_file), str(recipe_file))
    chosen = read_chosen(run)
    sections = ("model", "tokenizer", "training")
    model, tokenizer, training = (same.get(name, {}) for name in sections)
    old_model, old_tokenizer, old_training = (earlier.get(name, {}) for name in sections)
    found = (model, tokenizer, training, old_model, old_tokenizer, old_training)
    if not all(isinstance(section, Mapping) for section in found):
        return same
    if not model.keys() & set(SHAPE) and (chosen is None or "model.size" in chosen):
        same["model"] = {**(old_model if chosen is None else _only(old_model, SHAPE)), **model}
    kind, old_kind = (part.get("kind", "sentencepiece") for part in (tokenizer, old_tokenizer))
    if kind == old_kind:
        names = _open_names(chosen, "tokenizer", VOCABULARY)
        same["tokenizer"] = {**_only(old_tokenizer, names), **tokenizer}
    names = {"warmup_steps"} if _gives_course(training, old_training) else set(TRAINING)
    names = _open_names(chosen, "training", names)
    same["training"] = {**_only(old_training, names), **training}
    return same


def _open_names(
    chosen: Collection[str] | None, section: str, where_unknown: Collection[str]
) -> set[str]:
    """What a section keeps of the run: what was chosen, and limits; earlier runs noted nothing."""
    if chosen is None:
        return set(where_unknown)
    return {name for name in where_unknown if f"{section}.{name}" in MAY_CHANGE | set(chosen)}


def _gives_course(training: Mapping[str, Any], earlier: Mapping[str, Any]) -> bool:
    """Whether the run's own recipe gave its course, so that no more than the warm-up was chosen."""
    given = training.keys() & {"learning_rate", "schedule", "warmup_steps"}
    return bool(given) and all(earlier.get(name) == training[name] for name in given)


def _only(section: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in section.items() if name in names}
