"""Matrices in TOML and CSV files, checked number by number."""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from pellucid.by_hand.sheet import matrix
from pellucid.config.parsing import ExcessError, read_toml_text
from pellucid.errors import DataError, suggestion
from pellucid.text.reading.lines import read_lines

MAX_NUMBERS = 4096
"""The most numbers in one matrix, scores included, that can be followed by hand."""

LARGEST_NUMBER = 1e50
"""Larger numbers could overflow when multiplied."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.I | re.A)


@dataclass(frozen=True)
class Given:
    """The content of a file: its values by name, and the line of each."""

    values: Mapping[str, Any]
    lines: Mapping[str, int]
    path: Path
    prefix: str = ""

    def where(self, name: str, *places: int) -> str:
        """Write the place of a value: ``file.toml:3, query[2][0]``."""
        inside = "".join(f"[{place}]" for place in places)
        line = f":{self.lines[name]}" if name in self.lines else ""
        return f"{self.path}{line}, {self.prefix}{name}{inside}"

    def check_keys(self, known: Sequence[str]) -> None:
        """Check that every key is known.

        Raises:
            DataError: one is not, with the nearest name.
        """
        for name in self.values:
            if name not in known:
                raise DataError(
                    f"Every key must be known, but {self.prefix + name!r} is not "
                    f"({self.where(name)}). {suggestion(name, known)}"
                )

    def table(self, name: str, known: Sequence[str]) -> Given:
        """Return a value that must be a table with known keys.

        Raises:
            DataError: it is not a table, or has other keys.
        """
        values = self.values[name]
        if not isinstance(values, dict):
            raise DataError(
                f"{name} must be a table with {', '.join(known)}, but is {shorten(values)} "
                f"({self.where(name)}). Write [{name}] on a line and its keys below."
            )
        own = self.lines.get(name, 0)
        lines = {key: max(self.lines.get(key, own), own) for key in values} if own else {}
        inside = Given(values, lines, self.path, f"{name}.")
        inside.check_keys(known)
        return inside

    def vector(self, name: str, width: int, meaning: str) -> Tensor:
        """Check a value that must be a row of numbers, and return it.

        Raises:
            DataError: it is not a list of as many finite numbers.
        """
        row = self.values[name]
        if not isinstance(row, list) or len(row) != width:
            has = f"has {len(row)}" if isinstance(row, list) else f"is {shorten(row)}"
            raise DataError(
                f"{self.prefix}{name} must be a list of {width} numbers, {meaning}, but {has} "
                f"({self.where(name)}). Write it so."
            )
        for index, value in enumerate(row):
            _check_number(value, self.where(name, index))
        return matrix(row)

    def matrix(self, name: str) -> Tensor:
        """Check a value that must be a matrix, and return it.

        Raises:
            DataError: it is not a matrix of finite numbers, or is too large.
        """
        rows = self.values[name]
        if not isinstance(rows, list) or not rows or not all(isinstance(r, list) for r in rows):
            raise DataError(
                "A matrix must be a list of rows such as [[1, 2], [3, 4]], but "
                f"{self.prefix}{name} is {shorten(rows)} ({self.where(name)}). Write it so."
            )
        for index, row in enumerate(rows):
            if not row:
                raise DataError(
                    f"A row must have at least one number, but this one is empty "
                    f"({self.where(name, index)}). Fill or remove it."
                )
            if len(row) != len(rows[0]):
                raise DataError(
                    f"All rows of a matrix must have the same length, but this row has {len(row)} "
                    f"numbers and the first has {len(rows[0])} ({self.where(name, index)}). "
                    "Make them equally long."
                )
            for column, value in enumerate(row):
                _check_number(value, self.where(name, index, column))
        if len(rows) * len(rows[0]) > MAX_NUMBERS:
            raise DataError(
                f"A matrix must have at most {MAX_NUMBERS} numbers to be followed by hand, but "
                f"has {len(rows)} × {len(rows[0])} ({self.where(name)}). For more use "
                "pellucid.attend in Python."
            )
        return matrix(rows)


def read_toml(path: Path) -> Given:
    """Read a TOML file, and find the line of each key.

    Raises:
        DataError: it is not TOML, with the line.
    """
    try:
        text = "\n".join(read_lines(path))
        values = read_toml_text(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        number = line[1] if line else text.rstrip().count("\n") + 1  # at the end of the file
        raise DataError(
            f"The file must be TOML, but is not: {error} ({path}:{number}). Correct it there."
        ) from None
    except ExcessError as error:
        raise DataError(
            f"The file must hold matrices and settings, but {error} ({path}). Correct it."
        ) from None
    found: dict[str, int] = {}
    for index, line_text in enumerate(text.split("\n"), start=1):
        named = re.match(r"""\s*\[*\s*["']?([\w-]+)["']?\s*(=|\])""", line_text)
        if named:
            found.setdefault(named[1], index)
    return Given(values, found, path)


def read_csv(path: Path) -> Given:
    """Read one matrix from CSV as ``x``, with ``tokens`` if the first line has names.

    Raises:
        DataError: it is not CSV or not a matrix, with the line.
    """
    rows: list[tuple[int, list[str]]] = []  # the number of each line, and its fields
    reader = csv.reader(read_lines(path), strict=True, skipinitialspace=True)
    try:
        for row in reader:
            fields = [field.strip() for field in row]
            if any(fields):
                rows.append((reader.line_num, fields))
    except csv.Error as error:
        raise DataError(
            f"The file must be CSV, but is not: {error} ({path}:{reader.line_num}). Correct it."
        ) from None
    given: dict[str, Any] = {}
    if rows and not any(_NUMBER.fullmatch(field) for field in rows[0][1]):
        given["tokens"] = rows.pop(0)[1]
    if not rows:
        raise DataError(f"The file must hold a matrix, but has no numbers ({path}). Write some.")
    width = len(rows[0][1])
    given["x"] = [_read_row(fields, width, f"{path}:{number}") for number, fields in rows]
    return Given(given, {"tokens": 1}, path)


def _read_row(row: Sequence[str], width: int, where: str) -> list[float]:
    values = []
    for column, field in enumerate(row, start=1):
        place = f"{where}, field {column}"
        if not _NUMBER.fullmatch(field):
            raise DataError(
                f"Each field must be a number such as 0.5, but is {shorten(field)} ({place}). "
                "Names of tokens go into the first line, one for each row of the matrix."
            )
        value = float(field)
        _check_number(value, place)
        values.append(value)
    if len(row) != width:
        raise DataError(
            f"All lines must have the same number of fields, but this line has {len(row)} and the "
            f"first line of numbers has {width} ({where}). Make them equal."
        )
    return values


def _check_number(value: Any, where: str) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(
            f"An entry must be a number such as 0.5, but is {shorten(value)} ({where})."
        )
    if not abs(value) <= LARGEST_NUMBER:
        raise DataError(
            f"A number must be finite and at most {LARGEST_NUMBER:g} in size, but is "
            f"{shorten(value)} ({where}). Change it."
        )


def shorten(value: Any) -> str:
    """Quote a value for a message, and cut it if it is long."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
