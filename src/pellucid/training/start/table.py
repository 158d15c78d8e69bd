"""A recipe for text that comes without one: a table, a data set's folder, or two text files."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pellucid.check.foreign_text import main_language
from pellucid.config import DataConfig, apply_overrides, validate
from pellucid.documents.formats import PAIRED
from pellucid.errors import ConfigurationError, DataError, InputFileNotFoundError
from pellucid.files import endings
from pellucid.languages.codes import NAMES, find_languages, short_code
from pellucid.terminal.text import count_of
from pellucid.text.reading.bad_lines import BadLines
from pellucid.text.reading.pair_tables import kind_of_table, read_rows
from pellucid.text.reading.row_sides import NESTED, Fault, Row, named_sides
from pellucid.text.reading.sentence_pairs import read_pairs

HELD_OUT = 1000
"""Pairs set aside for each of validation and test, if there is enough text."""

SAMPLE = 400
"""Pairs that the languages are told from."""

_SPLITS = {
    "validation": re.compile(r"(?<![a-z])(valid|validation|dev|val)(?![a-z])"),
    "test": re.compile(r"(?<![a-z])test(?![a-z])"),
}
"""How the files of a data set's folder say which text they hold; the others are for training."""


def is_text(names: Sequence[str]) -> bool:
    """Tell whether arguments name text rather than a recipe."""
    return len(names) > 1 or kind_of_table(names[0]) is not None or Path(names[0]).is_dir()


def run_name(names: Sequence[str]) -> str:
    """Return the name of the run for text: that of its first file without endings."""
    name = _place(Path(names[0])).name
    return Path(name[: len(name) - len(endings(name).packing)]).stem


def _place(path: Path) -> Path:
    """Return the absolute path of a file under its own name, which may be a link to another."""
    if path.name in ("", ".."):
        return path.resolve()
    # The cache of Hugging Face's hub links names with endings to hashes without.
    return path.parent.resolve() / path.name


def describe_direction(data: DataConfig) -> str:
    """Name both languages, and the columns that are set; empty if a language is unknown."""
    codes = data.source_language, data.target_language
    names = " → ".join(NAMES.get(short_code(code), code) for code in codes)
    columns = " and ".join(map(str, data.columns))
    return f"{names}{columns and f', from columns {columns}'}" if all(codes) else ""


def recipe_for(
    names: Sequence[str],
    folder: Path,
    languages: tuple[str | None, str | None],
    changes: Sequence[str] = (),
) -> dict[str, Any]:
    """Make a recipe that leaves everything open but the text.

    Args:
        names: a table, a folder of a data set, or a source and a target file.
        folder: that of the recipe, which its names start from.
        languages: the codes of source and target; None to tell them from the text.
        changes: ``section.key=value``, which come on top.

    Raises:
        ConfigurationError: the languages cannot be told, or are the other way round.
        DataError: the text cannot be read.
        InputFileNotFoundError: a file is missing.
    """
    files = _find_files(names)
    start = Path(names[0]) if Path(names[0]).is_dir() else Path(names[0]).parent
    data: dict[str, Any] = {"folder": str(start.resolve())}
    for key, paths in files.items():
        found = [os.path.relpath(_place(path), start.resolve()) for path in paths]
        data[key] = [found] if len(names) > 1 else found
    if not files.keys() & {"validation", "test"}:
        # Unless the command names other text to validate on.
        if not any(change.strip().startswith("data.validation") for change in changes):
            data["split"] = HELD_OUT
    elif "validation" not in files:
        raise DataError(
            f"A folder with test text must have validation text too, but {start} has none. Rename "
            "a file to validation, or the test files to something else."
        )
    is_table = len(names) == 1 and kind_of_table(files["train"][0].name) not in PAIRED
    first = _first_row(files["train"][0]) if is_table else None
    told = languages if first is None else _in_header(first, languages)
    data |= _section(told) | ({} if first is None else _columns(first, told))
    values = apply_overrides({"data": data}, changes)
    section = validate(DataConfig, values["data"], "the command")
    for side, code in enumerate(_languages_of(section, folder, names)):
        key = ("source_language", "target_language")[side]
        if not values["data"].get(key):
            values["data"][key] = code
    return values


def _find_files(names: Sequence[str]) -> dict[str, list[Path]]:
    """Find the files, by the recipe's keys."""
    if len(names) > 2:
        raise ConfigurationError(
            f"Text must be one table, one folder, or two text files, but {len(names)} were named. "
            "For more, write a recipe (docs/start.md)."
        )
    paths = [Path(name) for name in names]
    for path in paths:
        if not path.exists():
            raise InputFileNotFoundError(
                f"{path} must be text to train on, but does not exist. Check the name and the "
                "folder."
            )
    if len(paths) == 2:
        return {"train": paths}
    if paths[0].is_file():
        return {"train": paths}
    found: dict[str, list[Path]] = {}
    for path in sorted(filter(Path.is_file, paths[0].rglob("*"))):
        if kind_of_table(path.name) is not None:
            place = str(path.relative_to(paths[0])).lower()
            split = next((key for key, word in _SPLITS.items() if word.search(place)), "train")
            found.setdefault(split, []).append(path)
    if "train" not in found:
        raise DataError(
            "A folder of text must hold .tsv, .csv, .jsonl, .parquet or .arrow files, but "
            f"{paths[0]} has {'no training text' if found else 'none'}. Name the files."
        )
    return found


def _first_row(path: Path) -> Row:
    """Read the first row of a table.

    Raises:
        DataError: there is none, or it has one cell.
    """
    row = next((row for *_, row in read_rows(path, str(kind_of_table(path.name)))), None)
    if row is None:
        raise DataError(f"A table must not be empty, but {path} is empty.")
    if isinstance(row, Fault):
        raise DataError(row.sentence)
    if len(row) == 1 and isinstance(row, list):
        advice = "Name two text files: pellucid train SOURCE_FILE TARGET_FILE."
        for separator, name in ((";", "semicolons"), (",", "commas"), ("|", "bars")):
            if endings(path).kind == ".tsv" and row[0].count(separator) == 1:
                advice = f"If its columns stand between {name}, rename it to .csv."
        if "|||" in row[0]:
            advice = (
                "Its columns stand between |||. Write tabs instead: "
                f"sed 's/ *||| */\\t/' {path} > {path.stem}-tabs.tsv."
            )
        raise DataError(
            f"A table must have a column for each language, but {path} has one column. {advice}"
        )
    return row


def _in_header(row: Row, languages: tuple[str | None, str | None]) -> tuple[str | None, str | None]:
    """Tell the languages that were not named from the names of columns or keys, if they say it."""
    _, keys = _keys_of(row)
    known = list(dict.fromkeys(map(short_code, filter(None, find_languages(keys)))))
    given = {short_code(language) for language in languages if language}
    if not known or (isinstance(row, list) and len(known) < 2):
        return languages
    if isinstance(row, dict) and not given <= set(known) and "source" not in keys:
        raise ConfigurationError(
            f"The text must be in {' and '.join(sorted(given))}, but it has "
            f"{', '.join(sorted(known))}. Name two of these as --source-language and "
            "--target-language."
        )
    rest = [code for code in known if code not in given]
    if len(rest) + len(given & set(known)) != 2:
        return languages
    source, target = languages
    return source or rest.pop(0), target or rest.pop(0)


def _section(languages: tuple[str | None, str | None]) -> dict[str, str]:
    sides = zip(("source_language", "target_language"), languages, strict=True)
    return {key: language for key, language in sides if language}


def _keys_of(row: Row) -> tuple[str, list[str]]:
    """List the cells of a row, or the keys of an object, with what stands before nested ones."""
    inner = row.get(NESTED) if isinstance(row, dict) else None
    if isinstance(inner, dict):
        return f"{NESTED}.", list(map(str, inner))
    return "", [str(key).strip() for key in row]


def _columns(row: Row, languages: tuple[str | None, str | None]) -> dict[str, list[str]]:
    """Name the columns if the first row names both sides, or the keys if they are no codes."""
    before, names = _keys_of(row)
    section = DataConfig.model_construct(None, **_section(languages))
    places = named_sides(names, section)
    if places is None or (isinstance(row, dict) and set(names) >= set(languages)):
        return {}
    return {"columns": [f"{before}{names[place]}" for place in places]}


def _languages_of(data: DataConfig, base: Path, names: Sequence[str]) -> tuple[str, str]:
    """Tell both languages of the text, as they were named or from a sample.

    Raises:
        ConfigurationError: they cannot be told, or those that were named are exchanged.
    """
    readable = data.model_copy(update={"on_bad_line": "skip", "split": 0})
    bad = BadLines()
    pairs = list(islice(read_pairs(readable, "train", base, bad=bad), SAMPLE))
    if not pairs:
        none = f"The text must hold at least one pair. {bad.about_entries()}".strip()
        raise DataError(bad.sentence(0) if bad.count else none)
    named = data.source_language, data.target_language
    ends = [endings(name).kind.removeprefix(".") for name in names]
    found = [
        language or (short_code(end) if len(names) == 2 and short_code(end) in NAMES else "")
        for language, end in zip(named, (ends * 2)[:2], strict=True)
    ]
    heard = [main_language(pair.source for pair in pairs), main_language(p.target for p in pairs)]
    if all(heard) and [short_code(code) for code in found] == heard[::-1] != heard:
        source, target = (NAMES.get(str(code), code) for code in heard)
        raise ConfigurationError(
            f"The sources seem to be {source} and the targets {target}, the other way round than "
            "named. Exchange --source-language and --target-language, or set data.columns (--set "
            "'data.columns=[2, 1]')."
        )
    codes = [code or other for code, other in zip(found, heard, strict=True)]
    for code, what in zip(codes, ("source", "target"), strict=True):
        if not code:
            pairs_seen = count_of(len(pairs), "pair")
            raise ConfigurationError(
                f"The {what} language could not be told from {pairs_seen}. Name it with "
                f"--{what}-language, such as --{what}-language en."
            )
    return str(codes[0]), str(codes[1])
