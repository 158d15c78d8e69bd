"""Rows of files that hold both sides: tables, JSON Lines, and the columns of data sets."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import repeat
from pathlib import Path
from typing import Any

from pellucid.documents.formats import PAIRED
from pellucid.errors import DataError, need_library
from pellucid.files import endings
from pellucid.text.reading.lines import (
    CutLine,
    decode_line,
    not_a_line,
    read_lines,
)
from pellucid.text.reading.row_sides import Fault, Row, find_separator, read_object

ROWS_AT_ONCE = 1000


def kind_of_table(name: str) -> str | None:
    """Tell the kind of a file with both sides by its name, packed or not; None for others."""
    kind = endings(name).kind
    return kind if kind in (*_READERS, *PAIRED) else None


def read_rows(path: Path, kind: str) -> Iterator[tuple[int, int, Row | Fault]]:
    """Read a file row by row.

    Args:
        path: the file.
        kind: its kind, as `kind_of_table` tells it.

    Yields:
        The number of each row, the number of its first line, both from 1, and the row: cells, an
        object, or why it is neither.

    Raises:
        InputError: a data set's columns need a library that is not installed.
        DataError: the file cannot be read.
    """
    return _READERS[kind](path)


def find_damage(line: str, path: Path, number: int) -> Fault | None:
    """Describe a line that is too long, or not UTF-8."""
    if isinstance(line, CutLine):
        sentence = f"{line.fault()} ({path}:{number}). Break it into shorter ones."
        return Fault("too long", sentence)
    try:
        line.encode()
    except UnicodeEncodeError:
        # The bytes as they were, so that the message is the one of a strict reader.
        raw = line.encode("utf-8", "surrogateescape")
        try:
            decode_line(raw, path, number)
        except DataError as error:
            return Fault("not UTF-8", str(error))
    return None


def _read_tabs(path: Path) -> Iterator[tuple[int, int, Row | Fault]]:
    for number, line in enumerate(_lines(path), start=1):
        yield number, number, find_damage(line, path, number) or line.split("\t")


def _read_objects(path: Path) -> Iterator[tuple[int, int, Row | Fault]]:
    for number, line in enumerate(_lines(path), start=1):
        where = f"{path}:{number}"
        form = '{"source": "…", "target": "…"}'
        yield number, number, find_damage(line, path, number) or read_object(line, where, form)


def _read_csv(path: Path) -> Iterator[tuple[int, int, Row | Fault]]:
    """Read a table whose cells may be quoted, with line breaks in them.

    Source:
        RFC 4180, "Common Format and MIME Type for Comma-Separated Values (CSV) Files".
    """
    # Cells in quotes may go over several lines, whose breaks belong to the cell.
    lines = (f"{line}\n" for line in _lines(path))
    reader = csv.reader(lines, delimiter=find_separator(path), strict=True)
    line = 1
    try:
        for number, cells in enumerate(reader, start=1):
            damage = next(filter(None, map(not_a_line, cells)), None)
            fault = damage and Fault("not UTF-8", f"{damage} ({path}:{line})")
            yield number, line, fault or cells
            # A row may have taken more than one line.
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"A .csv must quote its cells in pairs, but cannot be read: {error} ({path}:{line}). "
            "Correct the quotes from this line on."
        ) from error


def _read_columns(path: Path) -> Iterator[tuple[int, int, Row | Fault]]:
    """Read a data set that is stored by columns: Parquet, or Arrow's stream or file."""
    purpose = f"{path}, which is stored by columns,"
    parquet = need_library("pyarrow.parquet", purpose)
    pyarrow = import_module("pyarrow")
    number = 0
    try:
        batches: Any
        if endings(path).kind == ".parquet":
            batches = parquet.ParquetFile(path).iter_batches(ROWS_AT_ONCE)
        else:
            # Mapped, because a data set may be larger than memory.
            batches = pyarrow.ipc.open_stream(pyarrow.memory_map(str(path)))
        for batch in batches:
            for row in batch.to_pylist():
                number += 1
                yield number, number, row
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(
            f"A file of columns must be whole, but {path} cannot be read after row {number}: "
            f"{error}. Copy it again."
        ) from error


def _lines(path: Path) -> Iterator[str]:
    """Read lines, but no empty ones at the end of the file; others keep their places."""
    num_empty = 0
    for line in read_lines(path, keeps_damaged=True):
        if line:
            yield from repeat("", num_empty)
            num_empty = 0
            yield line
        else:
            num_empty += 1


_READERS: Mapping[str, Callable[[Path], Iterator[tuple[int, int, Any]]]] = {
    ".tsv": _read_tabs,
    ".csv": _read_csv,
    ".jsonl": _read_objects,
    ".parquet": _read_columns,
    ".arrow": _read_columns,
}
