"""Pairs of sentences from parallel files, tab-separated files and JSON Lines, plain or gzip."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal, get_args

from pellucid.config import DataConfig
from pellucid.errors import ConfigurationError, DataError, InputFileNotFoundError
from pellucid.files import read_lines

__all__ = ["Pair", "Split", "check_files", "read_pairs", "resolve_folder"]

Split = Literal["train", "validation", "test"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence and its translation.

    Attributes:
        source: the sentence, one line.
        target: its translation, one line.
        where: ``FILE:LINE`` of the source, lines from 1.
    """

    source: str
    target: str
    where: str


def resolve_folder(folder: str, base: Path) -> Path:
    """Find the folder that the file names of a data section are relative to.

    Args:
        folder: ``data.folder``; ``$NAME`` or ``$NAME/sub`` starts at an environment variable.
        base: the recipe's folder, where a relative folder starts.

    Raises:
        InputFileNotFoundError: the environment variable is not set.
    """
    if not folder.startswith("$"):
        return base / folder
    name, _, rest = folder[1:].partition("/")
    if not name:
        raise InputFileNotFoundError(
            f"data.folder must name an environment variable after its $, but is {folder!r}. "
            "Write $NAME, or use --set data.folder=DIR."
        )
    root = os.environ.get(name, "")
    if not root:
        raise InputFileNotFoundError(
            f"The environment variable {name} of data.folder must be set, but is not. "
            f"Set {name} to the folder of the text, or use --set data.folder=DIR."
        )
    return base / root / rest


def check_files(data: DataConfig, base: Path) -> None:
    """Check that every file that a recipe names exists and is not empty.

    Args:
        data: the recipe's data section.
        base: the recipe's folder.

    Raises:
        ConfigurationError: a file's kind is unknown.
        DataError: a file is empty or cannot be read.
        InputFileNotFoundError: a file is missing; the message names the key.
    """
    folder = resolve_folder(data.folder, base)
    for split in get_args(Split):
        for key in (f"{split}_source", f"{split}_target", split, f"{split}_alignments"):
            # Only training text has alignments.
            for name in getattr(data, key, ()):
                if key == split:
                    _kind_of(name, key)
                _check_file(folder / name, key)


def read_pairs(data: DataConfig, split: Split, base: Path) -> Iterator[Pair]:
    """Read the pairs of one split, file after file, in order.

    Args:
        data: the recipe's data section.
        split: ``"train"``, ``"validation"`` or ``"test"``.
        base: the recipe's folder.

    Yields:
        Each pair. Nothing is kept in memory.

    Raises:
        ConfigurationError: a file's kind is unknown.
        DataError: parallel files differ in length, a file is empty, or a line cannot be used; the
            message says which.
        InputFileNotFoundError: a file is missing.
    """
    folder = resolve_folder(data.folder, base)
    names = zip(getattr(data, f"{split}_source"), getattr(data, f"{split}_target"), strict=True)
    for source, target in names:
        _check_file(folder / source, f"{split}_source")
        _check_file(folder / target, f"{split}_target")
        yield from _read_parallel(folder / source, folder / target)
    for name in getattr(data, split):
        kind = _kind_of(name, split)
        _check_file(folder / name, split)
        yield from _read_tsv(folder / name) if kind == ".tsv" else _read_json(folder / name)


def _kind_of(name: str, key: str) -> str:
    """Tell the kind of a file with both sides by its name: ``.tsv`` or ``.jsonl``."""
    stem = name.lower().removesuffix(".gz")
    for kind in (".tsv", ".jsonl"):
        if stem.endswith(kind):
            return kind
    raise ConfigurationError(
        f"A file with both sides must end in .tsv or .jsonl (and .gz), but is {name!r} "
        f"(data.{key}). Rename it, or name parallel files in {key}_source and {key}_target."
    )


def _check_file(path: Path, key: str) -> None:
    """Check that a file exists and is not empty."""
    if not path.exists():
        raise InputFileNotFoundError(
            f"data.{key} must name a file, but {path} does not exist. Check the name and "
            "data.folder."
        )
    if next(read_lines(path), None) is None:
        raise DataError(f"A text file must not be empty, but {path} is empty (data.{key}).")


def _read_parallel(source_path: Path, target_path: Path) -> Iterator[Pair]:
    """Pair line i of one file with line i of the other."""
    sources, targets = read_lines(source_path), read_lines(target_path)
    for number, (source, target) in enumerate(zip_longest(sources, targets), start=1):
        if source is None or target is None:
            rest = sum(1 for _ in (sources if target is None else targets))
            counts = (number + rest, number - 1)
            num_sources, num_targets = counts if target is None else reversed(counts)
            raise DataError(
                "Parallel files must have equally many lines, but "
                f"{source_path} has {num_sources} and {target_path} has {num_targets}. "
                "Line i of one must translate line i of the other: check which lines are missing."
            )
        yield Pair(source, target, f"{source_path}:{number}")


def _read_tsv(path: Path) -> Iterator[Pair]:
    """Read source, tab, target."""
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise DataError(
                "A line must be source, tab, target, but has "
                f"{len(columns)} {'column' if len(columns) == 1 else 'columns'} "
                f"({path}:{number}). Correct it or remove it."
            )
        yield Pair(columns[0], columns[1], f"{path}:{number}")


def _read_json(path: Path) -> Iterator[Pair]:
    """Read objects with ``source`` and ``target``; other keys are ignored."""
    for number, line in enumerate(read_lines(path), start=1):
        where = f"{path}:{number}"
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(
                f"A line must be a JSON object, but cannot be read: {error} ({where}). Correct it "
                "or remove it."
            ) from None
        if not isinstance(value, dict):
            raise DataError(
                f"A line must be a JSON object, but is {_json_type(value)} ({where}). Write "
                '{"source": "…", "target": "…"}.'
            )
        yield Pair(_json_text(value, "source", where), _json_text(value, "target", where), where)


def _json_text(value: dict[str, Any], key: str, where: str) -> str:
    """Take one side of a JSON object."""
    if key not in value:
        raise DataError(f'A line must have "{key}", but does not ({where}). Add it.')
    text = value[key]
    if not isinstance(text, str):
        raise DataError(
            f'"{key}" must be text, but is {_json_type(text)} ({where}). Put it in quotes.'
        )
    if "\n" in text:
        raise DataError(
            f'"{key}" must be one line, but contains a line break ({where}). Replace it by a '
            "space, or make two pairs."
        )
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f'"{key}" must be Unicode text, but character {error.start + 1} is half of a '
            f"surrogate pair ({where}). Write the whole character."
        ) from None
    return text


def _json_type(value: Any) -> str:
    """Name a JSON value's type."""
    names = {bool: "true or false", int: "a number", float: "a number", str: "a string"}
    return {type(None): "null", list: "a list", dict: "an object", **names}[type(value)]
