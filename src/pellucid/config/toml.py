"""TOML in and out, and ``--set section.key=value`` on top of it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from pellucid.config.base import Strict, validate
from pellucid.config.parsing import ExcessError, read_toml_text
from pellucid.config.recipe import Recipe
from pellucid.errors import ConfigurationError
from pellucid.files import read_bytes


def parse_toml(data: bytes, where: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        ConfigurationError: the bytes are not UTF-8 or not TOML, with the line.
    """
    try:
        return read_toml_text(data.decode("utf-8-sig"))  # editors may write a byte-order mark
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"A recipe must be UTF-8 text, but byte {error.start + 1} is not ({where})."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"A recipe must be TOML, but is not: {error} ({where}).") from None
    except ExcessError as error:
        raise ConfigurationError(
            f"A recipe must hold settings, but {error} ({where}). Correct it there."
        ) from None


def load_recipe(path: Path, overrides: Iterable[str] = ()) -> Recipe:
    """Read a recipe file and put ``section.key=value`` changes on top.

    Raises:
        ConfigurationError: one sentence with the file, the dotted key and the nearest name.
        InputFileNotFoundError: the file does not exist.
    """
    values = parse_toml(read_bytes(path), str(path))
    return validate(Recipe, apply_overrides(values, overrides), str(path))


def apply_overrides(values: Mapping[str, Any], overrides: Iterable[str]) -> dict[str, Any]:
    """Put ``section.key=value`` changes on top of a nested mapping.

    A value is read as TOML if it is TOML (``3``, ``true``, ``["a", "b"]``), otherwise as text.

    Raises:
        ConfigurationError: an override does not have that form, or changes a key for the second
            time.
    """
    texts: dict[tuple[str, str], str] = {}
    changed = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in values.items()
    }
    for override in overrides:
        key, separator, text = override.partition("=")
        section, dot, name = key.strip().partition(".")
        if not separator or not dot or not section or not name:
            raise ConfigurationError(
                f"A change must be written section.key=value, but is {override!r} (--set). "
                "For example: --set training.max_steps=2000."
            )
        table = changed.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigurationError(f"{section!r} must be a section, but is a value (--set).")
        if (section, name) in texts:
            raise ConfigurationError(
                f"{section}.{name} must be set once, but is set to {texts[section, name]!r} and to "
                f"{text.strip()!r} (--set). Leave one out."
            )
        texts[section, name] = text.strip()
        try:
            table[name] = _parse_value(text.strip())
        except ExcessError as error:
            raise ConfigurationError(
                f"{section}.{name} must be a setting, but {error} (--set). Correct it."
            ) from None
    return changed


def _parse_value(text: str) -> Any:
    try:
        return read_toml_text(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def to_toml(section: Strict) -> str:
    """Write a section as TOML, with every default spelled out."""
    return tomli_w.dumps(section.model_dump(mode="json"))
