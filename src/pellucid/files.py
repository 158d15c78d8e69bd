r"""Files: what ends a line, gzip, hashes, and writes that survive a crash.

A line ends at ``\n`` and at nothing else; one ``\r`` before it is dropped. Python's
``splitlines`` also cuts at U+2028, form feeds and others, which shifts parallel files against
each other, so it is never used.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import shutil
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from pellucid.errors import DataError, InputFileNotFoundError, OutputError, PellucidError

__all__ = [
    "count_lines",
    "decode_line",
    "delete_folder",
    "flush_folder",
    "hash_bytes",
    "hash_file",
    "is_device",
    "is_packed",
    "new_folder",
    "not_utf8",
    "open_binary",
    "open_to_write",
    "read_bytes",
    "read_lines",
    "tidy_folder",
    "write_bytes",
    "write_text",
]

_GZIP_MAGIC = b"\x1f\x8b"
LONGEST_LINE = 1 << 24
"""In bytes. A line is held in memory as a whole."""

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_DESCRIPTOR = re.compile(r"/dev/(stdin|stdout|stderr)|/(?:dev|proc/self)/fd/(\d+)")
_MOST_LINKS = 40
"""As many as Linux follows."""


def open_binary(path: Path | str) -> BinaryIO:
    """Open a file for reading, unpacking gzip where the content says so; ``-`` is standard input.

    Raises:
        InputFileNotFoundError: nothing is there.
        DataError: it is a folder or cannot be read.
    """
    if str(path) == "-":
        if sys.stdin is None:
            raise DataError("Standard input must be open, but is closed. Name a file instead.")
        return sys.stdin.buffer
    try:
        # Opened once only: a named pipe can be read a single time.
        stream = Path(path).open("rb")  # noqa: SIM115
        if stream.peek(2)[:2] != _GZIP_MAGIC:
            return stream
        unpacked = gzip.GzipFile(fileobj=stream)
        # So that closing one closes both.
        unpacked.myfileobj = stream  # type: ignore[assignment]
        return unpacked  # type: ignore[return-value]
    except FileNotFoundError as error:
        raise InputFileNotFoundError(
            f"The file must exist, but {path} does not. Check the name and the folder."
        ) from error
    except OSError as error:
        raise DataError(
            f"The file must be readable, but {path} is not: {error.strerror or error}."
        ) from error


def read_lines(path: Path | str, *, keeps_damaged: bool = False) -> Iterator[str]:
    r"""Read a text file line by line.

    A line ends at ``\n``; one ``\r`` before it is dropped, and so is a byte-order mark at the
    start of the file. Nothing else is changed. A last line without ``\n`` counts.

    Args:
        path: a plain or gzip file; ``-`` is standard input.
        keeps_damaged: hand out a line that is not UTF-8, each byte that is none as a lone
            surrogate, which `not_utf8` finds again.

    Yields:
        Each line without its end.

    Raises:
        DataError: a line is not UTF-8 (with file and line) or longer than `LONGEST_LINE`, or the
            gzip data is damaged.
        InputFileNotFoundError: nothing is there.
    """
    stream = open_binary(path)
    number = 0
    try:
        for number, raw in enumerate(iter(lambda: stream.readline(LONGEST_LINE + 1), b""), start=1):
            if len(raw) > LONGEST_LINE:
                raise DataError(
                    f"A line must have at most {LONGEST_LINE} bytes, but has more "
                    f"({path}:{number}). Check that the file is text, and break its lines."
                )
            yield decode_line(raw, path, number, keeps_damaged=keeps_damaged)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(
            f"A .gz file must be whole, but {path} is damaged after line {number}: {error}. "
            "Copy or compress it again."
        ) from error
    except OSError as error:
        raise DataError(
            f"The file must be readable, but {path} is not: {error.strerror or error}."
        ) from error
    finally:
        if str(path) != "-":
            stream.close()


def decode_line(raw: bytes, path: Path | str, number: int, *, keeps_damaged: bool = False) -> str:
    """Turn one raw line into text, dropping its end.

    Args:
        raw: the bytes, with or without the line end.
        path: for the message.
        number: the line's number, from 1.
        keeps_damaged: as for `read_lines`; a file of two bytes a character is refused all the same.

    Raises:
        DataError: the bytes are not UTF-8.
    """
    if number == 1:
        raw = raw.removeprefix(_BOM)
    if raw.endswith(b"\n"):
        raw = raw[:-1].removesuffix(b"\r")
    is_utf16 = number == 1 and raw.startswith(_UTF16)
    try:
        return raw.decode(
            "utf-8", "surrogateescape" if keeps_damaged and not is_utf16 else "strict"
        )
    except UnicodeDecodeError as error:
        raise DataError(
            f"Text must be UTF-8, but byte {error.start + 1} of the line is "
            f"0x{raw[error.start]:02x} ({path}:{number}). Convert the file, for instance with "
            f"iconv -f {'UTF-16' if is_utf16 else 'WINDOWS-1252'} -t UTF-8."
        ) from error


def not_utf8(line: str) -> str | None:
    """Say what of a line is no text, in a sentence; None where all of it is."""
    try:
        line.encode()
    except UnicodeEncodeError as error:
        code = ord(line[error.start])
        what = f"byte 0x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"U+{code:04X}"
        return (
            f"A line must be UTF-8 text, but after {error.start} characters comes {what}. Convert "
            "it, for instance with iconv -f WINDOWS-1252 -t UTF-8."
        )
    return None


def count_lines(path: Path | str, *, keeps_damaged: bool = False) -> int:
    """Count the lines of a plain or gzip file, read as `read_lines` does."""
    return sum(1 for _ in read_lines(path, keeps_damaged=keeps_damaged))


def read_bytes(path: Path) -> bytes:
    """Read a whole file.

    Raises:
        InputFileNotFoundError: nothing is there.
        DataError: it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise InputFileNotFoundError(f"The file must exist, but {path} does not.") from error
    except OSError as error:
        raise DataError(
            f"The file must be readable, but {path} is not: {error.strerror or error}."
        ) from error


def hash_bytes(data: bytes) -> str:
    """SHA-256 of some bytes, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal, at bounded memory."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def is_packed(path: Path) -> bool:
    """Whether the name ends in ``.gz``."""
    return path.suffix.lower() == ".gz"


def is_device(path: Path) -> bool:
    """Whether it is a device or a pipe, which must never be replaced by a file.

    So is a name for one of this process's descriptors, as ``/dev/stdout``, whatever is behind it.
    """
    if _descriptor(path) is not None:
        return True
    return path.exists() and not path.is_file() and not path.is_dir()


def _descriptor(path: Path) -> int | None:
    """Which of this process's descriptors a name stands for, itself or through links."""
    for _ in range(_MOST_LINKS):
        path = Path(os.path.normpath(path.absolute()))
        if found := _DESCRIPTOR.fullmatch(str(path)):
            standard, number = found.groups()
            return int(number) if number else ("stdin", "stdout", "stderr").index(standard)
        try:
            path = path.parent / path.readlink()
        except OSError:
            return None
    return None


def open_to_write(path: Path) -> BinaryIO:
    """Open a file for writing, from its start.

    What is a name for one of this process's descriptors, as ``/dev/stdout``, is gone on with
    where it stands instead: a file behind it keeps what it holds.

    Raises:
        OSError: it cannot be opened.
    """
    descriptor = _descriptor(path)
    return path.open("wb") if descriptor is None else os.fdopen(os.dup(descriptor), "wb")


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file so that a crash leaves either the old or the new content, never a part.

    The bytes go to ``NAME.part`` beside it, are flushed to disk, and renamed. A device or a pipe
    takes them as they come; a link stays one, and what it points to is written. For a name that
    ends in ``.gz`` they are packed, equal bytes to equal bytes.

    Raises:
        OutputError: the folder cannot take the file (full, read-only, missing), or there is no
            name, as in ``.``.
        BrokenPipeError: whoever read the pipe went away.
    """
    if not path.name:
        raise OutputError(f"The output must be a file, but {path} is a folder. Name a file in it.")
    if is_packed(path):
        data = gzip.compress(data, compresslevel=6, mtime=0)
    target = Path(os.path.realpath(path))
    part = target.with_name(target.name + ".part")
    try:
        if is_device(path):
            with open_to_write(path) as stream:
                stream.write(data)
            return
        with part.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(target)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"The output must be writable, but {path} is not: {error.strerror or error}. "
            "Free some space or choose another folder."
        ) from error
    finally:
        with suppress(OSError):
            part.unlink()


def write_text(path: Path, text: str) -> None:
    r"""Write UTF-8 text as `write_bytes` does; ``\n`` stays ``\n`` on every platform."""
    write_bytes(path, text.encode("utf-8"))


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Fill a folder so that it appears whole under its name, or not at all.

    Yields a fresh folder beside it; at the end that one is flushed and renamed, and an older
    folder of the name is deleted after the new one stands. A failure leaves the older one; what a
    crash leaves, `tidy_folder` puts in order.

    Raises:
        OutputError: the disk cannot take it.
    """
    if path.exists() and not path.is_dir():
        raise OutputError(f"The output must be a folder, but {path} is a file. Name another.")
    part, older = _beside(path, "part"), _beside(path, "older")
    try:
        tidy_folder(path)
        _make_folder(path.parent)
        part.mkdir()
        yield part
        flush_folder(part)
        if path.exists():
            path.rename(older)
        part.rename(path)
        flush_folder(path.parent)
    except PellucidError:
        raise
    except OSError as error:
        raise OutputError(
            f"The output must be writable, but {path} is not: {error.strerror or error}. "
            "Free some space or choose another folder."
        ) from error
    finally:
        with suppress(OSError):
            tidy_folder(path)


def tidy_folder(path: Path) -> None:
    """Clean up beside a folder's name what a crash left of `new_folder` or `delete_folder`.

    A folder that had to make room, and whose successor did not come, is put back; what is half
    made or half deleted goes.

    Raises:
        OSError: the folder cannot be put back.
    """
    older = _beside(path, "older")
    if older.exists() and not path.exists():
        older.rename(path)
    for kind in ("part", "older", "gone"):
        shutil.rmtree(_beside(path, kind), ignore_errors=True)


def delete_folder(path: Path) -> None:
    """Delete a folder so that a crash leaves either all of it under its name, or nothing.

    Raises:
        OSError: it cannot be taken away; it is whole.
    """
    gone = _beside(path, "gone")
    shutil.rmtree(gone, ignore_errors=True)
    path.rename(gone)
    flush_folder(path.parent)
    shutil.rmtree(gone, ignore_errors=True)


def _beside(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{kind}")


def _make_folder(path: Path) -> None:
    """Make a folder and those above it, each flushed into the one that holds it."""
    if path.is_dir():
        return
    _make_folder(path.parent)
    path.mkdir(exist_ok=True)
    flush_folder(path.parent)


def flush_folder(path: Path) -> None:
    """Flush a folder's list of names to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
