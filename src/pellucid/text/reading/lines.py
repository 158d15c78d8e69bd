r"""Lines of text files.

A line ends at ``\n`` and at nothing else; one ``\r`` before it is dropped. Python's
``splitlines`` also cuts at U+2028, form feeds and others, which shifts parallel files against
each other, so it is never used.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Self, final

from pellucid.errors import DataError
from pellucid.files import open_binary, reading

LONGEST_LINE = 1 << 24
"""Maximum length of a line in bytes; a line is held in memory as a whole."""

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_NUM_SHOWN = 80
_CHUNK = 1 << 20


@final
class CutLine(str):
    """The beginning of a line that is too long to be read.

    Attributes:
        num_bytes: the length of the line.
    """

    __slots__ = ("num_bytes",)
    num_bytes: int

    @classmethod
    def of(cls, raw: bytes, num_bytes: int) -> Self:
        """Keep the first characters of a line.

        Args:
            raw: its first bytes.
            num_bytes: the number of all.
        """
        line = cls(f"{raw[:_NUM_SHOWN].decode('utf-8', 'ignore')}…")
        line.num_bytes = num_bytes
        return line

    def fault(self) -> str:
        """Say that the line is too long, without an end."""
        return f"A line must have at most {LONGEST_LINE:,} bytes, but has {self.num_bytes:,}"


def read_lines(path: Path | str, *, keeps_damaged: bool = False) -> Iterator[str]:
    r"""Read a text file line by line.

    A line ends at ``\n``; one ``\r`` before it is dropped, and so is a byte-order mark at the
    start of the file. Nothing else is changed. A last line without ``\n`` counts.

    Args:
        path: a plain or gzip file; ``-`` is standard input.
        keeps_damaged: accept a line that is not UTF-8, with each wrong byte as a lone surrogate,
            and the beginning of one that is too long, as a `CutLine`. `not_a_line` finds both.

    Yields:
        Each line without its end.

    Raises:
        DataError: a line is not UTF-8 (with file and line) or longer than `LONGEST_LINE`, or the
            gzip data is damaged.
        InputFileNotFoundError: the file does not exist.
    """
    stream = open_binary(path)
    number = 0
    # A file that is not text may be one endless line, so reading stops at the limit.
    lines = iter(lambda: stream.readline(LONGEST_LINE + 1), b"")
    with reading(path):
        try:
            for number, raw in enumerate(lines, start=1):
                if len(raw) > LONGEST_LINE:
                    line = CutLine.of(raw, len(raw) + _skip_rest(stream, raw))
                    if not keeps_damaged:
                        raise DataError(
                            f"{line.fault()} ({path}:{number}). Check that the file is text, and "
                            "break its lines."
                        )
                    yield line
                    continue
                yield decode_line(raw, path, number, keeps_damaged=keeps_damaged)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise DataError(
                f"A .gz file must be whole, but {path} is damaged after line {number}: {error}. "
                "Copy or compress it again."
            ) from error
        finally:
            if str(path) != "-":
                stream.close()


def _skip_rest(stream: BinaryIO, raw: bytes) -> int:
    """Read on to the end of a line, and count its bytes without the line end."""
    num_bytes = -1 if raw.endswith(b"\n") else 0
    while not raw.endswith(b"\n") and (raw := stream.readline(_CHUNK)):
        num_bytes += len(raw) - raw.endswith(b"\n")
    return num_bytes


def not_a_line(line: str) -> str | None:
    """Say in a sentence why a line cannot be used: it is too long or not text; None if it can."""
    if isinstance(line, CutLine):
        return f"{line.fault()}. Break it into shorter ones."
    return not_utf8(line)


def decode_line(raw: bytes, path: Path | str, number: int, *, keeps_damaged: bool = False) -> str:
    """Turn one raw line into text, dropping its end.

    Args:
        raw: the bytes, with or without the line end.
        path: the file, for the message.
        number: the line's number, from 1.
        keeps_damaged: as for `read_lines`; UTF-16 is refused in any case.

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
    """Describe the first character of a line that is not text in a sentence, or return None."""
    try:
        line.encode()
    except UnicodeEncodeError as error:
        code = ord(line[error.start])
        # Python's surrogateescape maps a wrong byte b to U+DC00 + b.
        what = f"byte 0x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"U+{code:04X}"
        return (
            f"A line must be UTF-8 text, but after {error.start} characters comes {what}. Convert "
            "it, for instance with iconv -f WINDOWS-1252 -t UTF-8."
        )
    return None


def count_lines(path: Path | str, *, keeps_damaged: bool = False) -> int:
    """Count the lines of a plain or gzip file, read as `read_lines` does."""
    return sum(1 for _ in read_lines(path, keeps_damaged=keeps_damaged))
