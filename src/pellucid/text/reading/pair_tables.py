"""Rows of files that hold both sides: tables, JSON Lines, and the columns of data sets."""

from __future__ import annotations

import csv
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import count, repeat
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

LONGEST_ROW = 200
"""Lines of one row of a ``.csv`` that are looked at again if its quotes are wrong."""

FEWEST_SWALLOWED = 3
SHARE_SWALLOWED = 0.8
"""Lines within a quoted cell that must look like rows for its quote to be a stray one: so many, and
this share. Poems and letters in cells have few lines with one comma and no space after it."""


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

    A quotation mark that has no partner makes one cell of all rows up to the next mark. Its line
    is a fault, and the lines after it are read again, as rows.

    Source:
        RFC 4180, "Common Format and MIME Type for Comma-Separated Values (CSV) Files".
    """
    rows = _QuotedRows(path)
    line = 1
    for number in count(1):
        cells = rows.read()
        if cells is None:
            return
        # More than one line if its cells cannot be read, or have line breaks.
        num_lines = len(rows.lines)
        if isinstance(cells, str):
            what = "A .csv must quote its cells in pairs"
            fault = Fault("quotes", f"{what}, but {cells} ({path}:{line}). Correct this line.")
            if cells.startswith("field larger"):
                most = f"{csv.field_size_limit():,} characters"
                what = f"A cell of a .csv must have at most {most}, but one has more"
                fault = Fault("too long", f"{what} ({path}:{line}). Break it into shorter ones.")
            for place in range(line, line + num_lines):
                yield number, place, fault
        else:
            damage = next(filter(None, map(not_a_line, cells)), None)
            long = next((one for one in rows.lines if isinstance(one, CutLine)), None)
            if long is not None:
                yield number, line, find_damage(long, path, line) or cells
            else:
                fault_of_cells = damage and Fault("not UTF-8", f"{damage} ({path}:{line})")
                yield number, line, fault_of_cells or cells
        line += num_lines


class _QuotedRows:
    """Rows of a ``.csv``, and the lines of the last one."""

    def __init__(self, path: Path) -> None:
        self.lines: list[str] = []
        self._separator = find_separator(path)
        self._rest = _lines(path)
        self._again = deque[str]()
        self._rows = self._open()

    def read(self) -> list[str] | str | None:
        """Read the next row: its cells, a description of what is wrong, or None at the end."""
        self.lines = []
        fault = ""
        cells: list[str] | None = None
        try:
            cells = next(self._rows, None)
        except csv.Error as error:
            fault = str(error)
        width = len(cells or ())
        if cells and self._looks_like_rows(width) and _ends_like_rows(cells, self._separator):
            fault = f"a quoted cell spans {len(self.lines)} lines that look like rows"
        if not fault:
            return cells
        # A row that is longer than this is lost as a whole: others may not cost its time again.
        if len(self.lines) <= LONGEST_ROW:
            self._again.extendleft(reversed(self.lines[1:]))
            del self.lines[1:]
        self._rows = self._open()
        return fault

    def _open(self) -> Iterator[list[str]]:
        return csv.reader(self._feed(), delimiter=self._separator, strict=True)

    def _feed(self) -> Iterator[str]:
        while True:
            line = self._again.popleft() if self._again else next(self._rest, None)
            if line is None:
                return
            self.lines.append(line)
            if len(self.lines) == LONGEST_ROW and self._looks_like_rows():
                raise csv.Error(f"a quoted cell spans {LONGEST_ROW} lines that look like rows")
            # Cells in quotes may go over several lines, whose breaks belong to the cell.
            yield f"{line}\n"

    def _looks_like_rows(self, width: int = 2) -> bool:
        """Tell whether most lines within the last row are rows themselves."""
        inner = self.lines[1:-1]
        if len(inner) < FEWEST_SWALLOWED:
            return False
        num_rows = sum(_is_row(line, self._separator, width) for line in inner)
        return num_rows >= SHARE_SWALLOWED * len(inner)


def _ends_like_rows(cells: Sequence[str], separator: str) -> bool:
    """Tell whether the first and the last line of a quoted cell are whole rows but for its marks.

    Lines of a cell that was meant to have several stand next to the other cells of their row, so
    that the first or the last one has too many.
    """
    between = re.compile(rf"{re.escape(separator)}(?! )")
    place, cell = next((place, cell) for place, cell in enumerate(cells) if "\n" in cell)
    first, *_, last = (len(between.split(line)) for line in cell.split("\n"))
    return first + place == last + len(cells) - place - 1 == len(cells)


def _is_row(line: str, separator: str, width: int) -> bool:
    """Tell whether a line is a row; a comma of a sentence has a space after it."""
    with suppress(csv.Error):
        cells = next(csv.reader([line], delimiter=separator, strict=True), [])
        return len(cells) >= width and not any(cell.startswith(" ") for cell in cells)
    return False


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
