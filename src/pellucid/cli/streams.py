"""Lines in and lines out, at bounded memory, without ever leaving half a file."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from pellucid.errors import DataError, InputError, OutputError, PellucidError
from pellucid.files import count_lines, read_lines

__all__ = [
    "check_input",
    "open_output",
    "parallel_windows",
    "read_parallel",
    "to_json_line",
    "windows",
]

WINDOW = 2000
"""How many lines are worked on at once: enough to group by length, few enough for memory."""

STANDARD = "-"


def check_input(path: str) -> None:
    """Read an input file through once, so that a damaged one is refused before anything is done.

    Standard input and pipes can be read only once and are left alone.

    Raises:
        DataError: a line is not UTF-8, or the file is damaged.
        InputFileNotFoundError: nothing is there.
    """
    if path != STANDARD and not _is_special(Path(path)):
        count_lines(path)


def windows(path: str) -> Iterator[list[str]]:
    """Read lines some thousands at a time, or one by one where a person types them.

    What was read before a bad line is still handed out; the error comes after it.
    """
    is_typed = path == STANDARD and sys.stdin is not None and sys.stdin.isatty()
    size = 1 if is_typed else WINDOW
    lines = _lines(path)
    window: list[str] = []
    try:
        for line in lines:
            window.append(line)
            if len(window) == size:
                yield window
                window = []
    except DataError:
        if window:
            yield window
        raise
    if window:
        yield window


def parallel_windows(files: Mapping[str, str]) -> Iterator[tuple[list[str], ...]]:
    """Read files side by side, line i with line i.

    Args:
        files: what each file is called (``--source``), and its path.

    Yields:
        Equally many lines of each file.

    Raises:
        DataError: the files have different numbers of lines (naming both), or none.
        InputError: more than one of them is standard input.
    """
    if list(files.values()).count(STANDARD) > 1:
        raise InputError(
            f"Only one file may be standard input, but {' and '.join(files)} are both '-'."
        )
    for path in files.values():
        check_input(path)
    readers = [_lines(path) for path in files.values()]
    counts = [0] * len(readers)
    while True:
        window = [list(islice(reader, WINDOW)) for reader in readers]
        counts = [count + len(lines) for count, lines in zip(counts, window, strict=True)]
        if len(set(counts)) > 1:
            rest = [sum(1 for _ in reader) for reader in readers]
            _refuse_lengths(files, [a + b for a, b in zip(counts, rest, strict=True)])
        if not window[0]:
            break
        yield tuple(window)
    if not counts[0]:
        raise DataError(
            f"There must be at least one line, but {next(iter(files.values()))} is empty."
        )


def read_parallel(files: Mapping[str, str]) -> tuple[list[str], ...]:
    """Read files side by side into memory, with the checks of `parallel_windows`."""
    columns: tuple[list[str], ...] = tuple([] for _ in files)
    for window in parallel_windows(files):
        for column, lines in zip(columns, window, strict=True):
            column.extend(lines)
    return columns


@contextmanager
def open_output(path: str, *, may_overwrite: bool) -> Iterator[TextIO]:
    r"""Open where results go: UTF-8, ``\n``, gzip for a name that ends in ``.gz``.

    A file is written as ``NAME.part`` beside it and renamed at the end, so that a failure leaves
    the old file or none. Devices and named pipes are written directly.

    Args:
        path: ``-`` is standard output.
        may_overwrite: whether a file that is there may be replaced.

    Raises:
        InputError: the file is there already, or is a folder.
        OutputError: the place cannot take the result.
    """
    if path == STANDARD:
        if sys.stdout is None:
            raise OutputError("Standard output must be open, but is closed. Use -o FILE.")
        yield sys.stdout
        return
    target = Path(path).resolve()
    is_special = _is_special(target)
    if not is_special:
        _check_target(target, path, may_overwrite=may_overwrite)
    part = target if is_special else target.with_name(target.name + ".part")
    try:
        with _open_text(part, is_gzip=target.suffix == ".gz") as stream:
            yield stream
        if not is_special:
            part.replace(target)
    except (PellucidError, BrokenPipeError):
        raise
    except OSError as error:
        raise OutputError(
            f"The output must be writable, but {path} is not: {error.strerror or error}. "
            "Free some space or choose another place."
        ) from error
    finally:
        if not is_special:
            with suppress(OSError):  # the error that counts is the one that led here
                part.unlink()


def to_json_line(values: Any) -> str:
    """Write one JSON object on one line; infinite numbers become strings such as ``"-inf"``."""
    return json.dumps(_finite(values), ensure_ascii=False, allow_nan=False) + "\n"


def _finite(values: Any) -> Any:
    if isinstance(values, float) and not math.isfinite(values):
        return str(values)
    if isinstance(values, Mapping):
        return {key: _finite(value) for key, value in values.items()}
    if isinstance(values, list | tuple):
        return [_finite(value) for value in values]
    return values


def _lines(path: str) -> Iterator[str]:
    if path == STANDARD and sys.stdin is None:
        raise InputError("Standard input must be open, but is closed. Name a file instead of '-'.")
    return read_lines(path)


def _is_special(path: Path) -> bool:
    """Whether it is a device or a pipe: neither file nor folder, but there."""
    return path.exists() and not path.is_file() and not path.is_dir()


def _check_target(target: Path, path: str, *, may_overwrite: bool) -> None:
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


@contextmanager
def _open_text(part: Path, *, is_gzip: bool) -> Iterator[TextIO]:
    raw = part.open("wb")
    # No name and no time inside, so that equal text gives equal bytes.
    packed = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if is_gzip else raw
    with raw, packed, io.TextIOWrapper(packed, encoding="utf-8", newline="\n") as text:
        yield text
    if part.is_file():
        with part.open("rb") as written:
            os.fsync(written.fileno())


def _refuse_lengths(files: Mapping[str, str], counts: list[int]) -> None:
    parts = [
        f"{name} {path} has {count}"
        for (name, path), count in zip(files.items(), counts, strict=True)
    ]
    raise DataError(
        f"The files must have equally many lines, but {' and '.join(parts)}. "
        "Line i of one must belong to line i of the other."
    )
