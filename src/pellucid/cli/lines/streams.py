"""Read and write lines in bounded memory, without ever leaving half a file."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO

from pellucid.errors import DataError, InputError, PellucidError
from pellucid.files import (
    create_file,
    endings,
    is_device,
    is_packed,
    open_to_write,
    writing,
)
from pellucid.text.reading.lines import open_binary
from pellucid.text.reading.pair_sides import lines_of

# Size of a window: large enough to group lines by length, small enough for memory.
MAX_LINES = 2000
MAX_CHARACTERS = 200_000

STANDARD = "-"

# Formats of lines; the others are those of documents.
LINES = ("lines", "jsonl")

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class LineWindow:
    """Lines that are processed together.

    Attributes:
        first: number of its first line, from 0.
        columns: its lines in each file, by the name of the file's option.
        is_whole: False if a bad line after it cut it short.
        hashes: of all lines up to its last one, as `ParallelReader.hashes` gives them.
    """

    first: int
    columns: Mapping[str, list[Any]]
    is_whole: bool
    hashes: Mapping[str, str]

    @property
    def end(self) -> int:
        """Number of lines up to its last one."""
        return self.first + len(next(iter(self.columns.values())))


class ParallelReader:
    """A reader of several files in step, line i with line i, that hashes what it reads.

    Args:
        files: path by the name of the file's option (``--source``).
        damaged_in: names of the files whose lines need not be UTF-8 and may be too long.

    Raises:
        InputError: standard input is named twice, or is closed.
    """

    def __init__(self, files: Mapping[str, str], *, damaged_in: Collection[str] = ()) -> None:
        check_standard_input(files)
        self.num_lines = 0
        self._files = files
        self._lines = {
            name: lines_of(path, keeps_damaged=name in damaged_in) for name, path in files.items()
        }
        self._digests = {name: hashlib.sha256() for name in files}

    def hashes(self) -> dict[str, str]:
        r"""SHA-256 of the lines read so far, each with one ``\n``, by option."""
        return {name: digest.hexdigest() for name, digest in self._digests.items()}

    def skip(self, num_lines: int) -> None:
        """Read so many lines, or as many as there are."""
        while self.num_lines < num_lines and self._next_row() is not None:
            pass

    def windows(self, max_lines: int = MAX_LINES) -> Iterator[LineWindow]:
        """Read windows until the end.

        A window ends after ``max_lines`` or `MAX_CHARACTERS`, whichever comes first. So its end
        depends on nothing but the files, and a resumed run has the same windows. Lines before a
        bad line are still yielded; the error follows.

        Raises:
            DataError: a line is not UTF-8, a file is damaged, or one has fewer lines.
        """
        is_whole = True
        while is_whole:
            first = self.num_lines
            size = 0
            columns: dict[str, list[str]] = {name: [] for name in self._files}
            problem = None
            while self.num_lines - first < max_lines and size < MAX_CHARACTERS:
                try:
                    row = self._next_row()
                except DataError as error:
                    problem = error
                    is_whole = False
                    break
                if row is None:
                    break
                for column, line in zip(columns.values(), row, strict=True):
                    column.append(line)
                    size += len(line)
            if self.num_lines > first:
                yield LineWindow(first, columns, is_whole, self.hashes())
            if problem is not None:
                raise problem
            if self.num_lines == first:
                break

    def _next_row(self) -> list[str] | None:
        """Read the next line of each file; None at the end of all."""
        row = {name: next(lines, None) for name, lines in self._lines.items()}
        found = [line for line in row.values() if line is not None]
        if not found:
            return None
        if len(found) < len(row):
            self._refuse({name: line is not None for name, line in row.items()})
        for digest, line in zip(self._digests.values(), found, strict=True):
            # The bytes as they were, so that damaged lines have a hash too.
            digest.update(line.encode("utf-8", "surrogateescape") + b"\n")
        self.num_lines += 1
        return found

    def _refuse(self, has_more: Mapping[str, bool]) -> NoReturn:
        """Report that one file ends before another."""
        counts: dict[str, int | str] = {}
        for name, path in self._files.items():
            if has_more[name] and is_special(path):  # do not wait for more: a person may be typing
                counts[name] = f"more than {self.num_lines}"
            else:
                counts[name] = self.num_lines + has_more[name] + sum(1 for _ in self._lines[name])
        _refuse_lengths(self._files, counts)


def check_readable(files: Mapping[str, str], *, damaged_in: Collection[str] = ()) -> dict[str, int]:
    """Read files through once, so that a damaged one is refused before any work is done.

    Standard input, pipes and devices can be read only once and are skipped.

    Args:
        files: path by the name of the file's option (``--source``).
        damaged_in: names of the files whose lines need not be UTF-8 and may be too long.

    Returns:
        The number of lines in each file that was read.

    Raises:
        DataError: a line is not UTF-8, a file is damaged, or they have different numbers of lines.
        InputError: standard input is named twice, or is closed.
        InputFileNotFoundError: a file does not exist.
    """
    check_standard_input(files)
    counts = {
        name: sum(1 for _ in lines_of(path, keeps_damaged=name in damaged_in))
        for name, path in files.items()
        if not is_special(path)
    }
    if len(set(counts.values())) > 1:
        _refuse_lengths({name: files[name] for name in counts}, counts)
    return counts


def check_standard_input(files: Mapping[str, str]) -> None:
    """Refuse to read standard input twice, or if it is closed.

    Args:
        files: path by the name of the file's option (``--source``).

    Raises:
        InputError: standard input is named twice, or is closed.
    """
    names = [name for name, path in files.items() if path == STANDARD]
    if len(names) > 1:
        raise InputError(
            f"Only one file may be standard input, but {' and '.join(names)} are both '-'."
        )
    if names and sys.stdin is None:
        raise InputError("Standard input must be open, but is closed. Name a file instead of '-'.")


def parallel_windows(
    files: Mapping[str, str], *, damaged_in: Collection[str] = ()
) -> Iterator[tuple[list[str], ...]]:
    """Check files at once, then read them in step, line i with line i.

    Args:
        files: path by the name of the file's option (``--source``).
        damaged_in: names of the files whose lines need not be UTF-8 and may be too long.

    Returns:
        An iterator over windows: equally many lines of each file.

    Raises:
        DataError: the files have different numbers of lines (naming all), or have no lines.
        InputError: standard input is named twice, or is closed.
        InputFileNotFoundError: a file does not exist.
    """
    check_readable(files, damaged_in=damaged_in)
    reader = ParallelReader(files, damaged_in=damaged_in)

    def read() -> Iterator[tuple[list[str], ...]]:
        for window in reader.windows():
            yield tuple(window.columns.values())
        if not reader.num_lines:
            first = next(iter(files.values()))
            raise DataError(f"There must be at least one line, but {first} is empty.")

    return read()


def read_parallel(
    files: Mapping[str, str], *, damaged_in: Collection[str] = ()
) -> tuple[list[str], ...]:
    """Read whole files into memory, with the checks of `parallel_windows`."""
    columns: tuple[list[str], ...] = tuple([] for _ in files)
    for window in parallel_windows(files, damaged_in=damaged_in):
        for column, lines in zip(columns, window, strict=True):
            column.extend(lines)
    return columns


def read_columns(
    named: Mapping[str, str | None], *, damaged_in: Collection[str] = ("--source", "--target")
) -> dict[str, list[str]]:
    """Read whole files, by the names of their options; None stands for one that was not given."""
    files = {name: path for name, path in named.items() if path is not None}
    return dict(zip(files, read_parallel(files, damaged_in=damaged_in), strict=True))


@contextmanager
def open_output(path: str, *, may_overwrite: bool) -> Iterator[TextIO]:
    r"""Open an output: UTF-8, ``\n``, gzip for a name that ends in ``.gz``.

    A file is first written as ``NAME.PID.part`` in the same folder and renamed at the end, so that
    a failure leaves the old file or none. Devices and named pipes are written directly.

    Args:
        path: ``-`` is standard output.
        may_overwrite: True if an existing file may be replaced.

    Raises:
        InputError: the file exists already, or is a folder.
        OutputError: the output cannot be written.
    """
    if path == STANDARD:
        sys.stdout.write("")  # fails at once if it is closed
        yield sys.stdout
        return
    check_target(path, may_overwrite=may_overwrite)
    if is_special(path):
        with writing(path), _open_text(open_to_write(Path(path)), path) as stream:
            yield stream
        return
    target = Path(os.path.realpath(path))
    # With the process's number, since NAME.part may be an interrupted translation to resume.
    part = target.with_name(f"{target.name}.{os.getpid()}.part")
    try:
        with writing(path):
            with _open_text(create_file(part), target) as stream:
                yield stream
            with part.open("rb") as written:
                os.fsync(written.fileno())
            part.replace(target)
    finally:
        with suppress(OSError):  # must not hide the error that led here
            part.unlink()


def is_special(path: str) -> bool:
    """Tell whether a path is a standard stream, a device or a pipe."""
    return path == STANDARD or is_device(Path(path))


def is_json_lines(path: str) -> bool:
    """Tell whether a file's name says that it holds JSON Lines."""
    return endings(path).kind in (".jsonl", ".ndjson")


def choose_format(path: str, file_format: str | None) -> str:
    """Choose the format of the input.

    A file whose tags or layout would be translated as if they were text is refused.

    Args:
        path: the input; streams, pipes and devices may have any name.
        file_format: the format that the user named; None if the name decides.

    Raises:
        InputError: the format is unknown, or the name is that of a document without a reader.
    """
    from pellucid.documents.formats import ADVICE, FORMATS, format_of
    from pellucid.text.reading.row_sides import kind_of_document

    if file_format is not None and file_format not in (*LINES, *FORMATS):
        names = ", ".join((*LINES, *FORMATS))
        raise InputError(f"--format must be one of {names}, but is {file_format!r}. Choose one.")
    if file_format is not None:
        return file_format
    if is_json_lines(path):
        return "jsonl"
    found = format_of(path)
    # Corpora are named by languages, and ts is Tsonga: Qt's files are XML.
    is_corpus = found is not None and found.name == "qt" and not _kind_by_content(path)
    if found is not None and not is_special(path) and not is_corpus:
        return found.name
    by_name = kind_of_document(path)
    kind = f"{by_name} by its name" if by_name else _kind_by_content(path)
    if kind is not None and not is_special(path):
        if advice := ADVICE.get(endings(path).kind):
            raise InputError(f"{path} is {advice}.")
        raise InputError(
            f"The input must be lines of text, JSON Lines or a document that can be read (see "
            f"--format), but {path} is {kind}. Convert it first, or add --format lines "
            "to translate every line as it is."
        )
    return "lines"


def _kind_by_content(path: str) -> str | None:
    """Say that a file is XML if it begins so; None for others, and for what cannot be read."""
    with suppress(OSError, EOFError, PellucidError):
        if not is_special(path) and Path(path).is_file():
            with closing(open_binary(path)) as stream:
                begins = stream.read(64).removeprefix(b"\xef\xbb\xbf").lstrip()
                if begins.startswith((b"<?xml", b"<!DOCTYPE")):
                    return "XML by its first line"
    return None


def check_target(path: str, *, may_overwrite: bool) -> None:
    """Refuse an output file that cannot be written; streams, devices and pipes always can.

    Raises:
        InputError: the file exists already, is a folder, or its folder does not exist.
    """
    if is_special(path):
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError(f"The output must be a file, but {path} is a folder. Name a file in it.")
    if target.exists() and not may_overwrite:
        raise InputError(
            f"The output must be a new file, but {path} exists. "
            "Choose another name, or add --overwrite."
        )
    if not target.parent.is_dir():
        raise InputError(
            f"The output's folder must exist, but {target.parent} does not. Make it first."
        )


def to_json_line(values: Any) -> str:
    """Write one JSON object on one line. Infinite numbers become strings such as ``"-inf"``."""
    values = _finite(values)
    line = json.dumps(values, ensure_ascii=False, allow_nan=False)
    # Half of a surrogate pair has no UTF-8, but an escape.
    if not line.isascii() and _SURROGATE.search(line):
        line = json.dumps(values, allow_nan=False)
    return f"{line}\n"


def shown(line: str) -> str:
    """Put U+FFFD in the place of bytes that are not UTF-8, which lines may have as surrogates."""
    return line.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _finite(values: Any) -> Any:
    if isinstance(values, float) and not math.isfinite(values):
        return str(values)
    if isinstance(values, Mapping):
        return {key: _finite(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [_finite(value) for value in values]
    return values


@contextmanager
def _open_text(raw: BinaryIO, name: Path | str) -> Iterator[TextIO]:
    # Without name and time, so that equal text gives equal bytes.
    packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if is_packed(Path(name)) else raw
    with raw, packed, io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text:
        yield text


def _refuse_lengths(files: Mapping[str, str], counts: Mapping[str, int | str]) -> NoReturn:
    parts = [f"{name} {path} has {counts[name]}" for name, path in files.items()]
    raise DataError(
        f"The files must have equally many lines, but {' and '.join(parts)}. "
        "Line i of one must belong to line i of the other."
    )
