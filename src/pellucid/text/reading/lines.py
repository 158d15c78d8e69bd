r"""Lines of text files, plain or packed.

A line ends at ``\n`` and at nothing else; one ``\r`` before it is dropped. Python's
``splitlines`` also cuts at U+2028, form feeds and others, which shifts parallel files against
each other, so it is never used.
"""

from __future__ import annotations

import bz2
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, nullcontext, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Self, final

from pellucid.errors import DataError
from pellucid.files import reading
from pellucid.terminal.text import count_of

LONGEST_LINE = 1 << 24
"""Maximum length of a line in bytes; a line is held in memory as a whole."""

_BOM = b"\xef\xbb\xbf"
_WIDE = re.compile(
    rb"(?P<UTF_32>\xff\xfe\0\0|\0\0\xfe\xff)|(?P<UTF_16>\xff\xfe|\xfe\xff)|(?P<UTF_32LE>[^\0]\0\0\0)"
    rb"|(?P<UTF_32BE>\0\0\0[^\0])|(?P<UTF_16LE>[^\0]\0[^\0]\0)|(?P<UTF_16BE>\0[^\0]\0[^\0])",
    re.DOTALL,
)
"""The first bytes of text in UTF-16 and UTF-32, with and without a byte-order mark."""

_NUM_SHOWN = 80
_CHUNK = 1 << 20

_PACKED = re.compile(
    # The second of .xz is .lzma, the format before it; of .bz2 it is an empty file.
    rb"(?P<gz>\x1f\x8b)|(?P<xz>\xfd7zXZ\0|\x5d\0\0)|(?P<bz2>BZh[1-9](?:1AY&SY|\x17rE8P\x90))"
    rb"|(?P<zst>\x28\xb5\x2f\xfd)|(?P<zip>PK\x03\x04)|(?P<tar>.{257}ustar)|(?P<lz>LZIP\x01)"
    rb"|(?P<rar>Rar!\x1a\x07)|(?P<lz4>\x04\x22\x4d\x18)|(?P<Z>\x1f\x9d)"
    rb"|(?P<_7z>7z\xbc\xaf\x27\x1c)",
    re.DOTALL,
)
"""The first bytes of packed files and archives, by their ending."""

_PIECE = 1 << 10
"""Packed bytes to unpack at a time."""

_MOST_MEMORY = 1 << 28
"""Bytes for unpacking .xz; the highest level of ``xz`` needs a quarter."""

_DECODERS: Mapping[str, Callable[[], Any]] = {
    # 31 is 15, the largest window, and 16 for the header of gzip.
    "gz": partial(zlib.decompressobj, 31),
    "xz": partial(lzma.LZMADecompressor, memlimit=_MOST_MEMORY),
    "bz2": bz2.BZ2Decompressor,
}


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


def _packed_kind(head: bytes) -> str:
    """Name the kind of a packed file or an archive by its first bytes; empty for a plain file."""
    found = _PACKED.match(head)
    return str(found.lastgroup).strip("_") if found else ""


def open_binary(path: Path | str) -> BinaryIO:
    """Open a file for reading, unpacked if it is packed; ``-`` is standard input.

    Packed files are known by their content, whatever their names. Reading raises EOFError if they
    are damaged.

    Raises:
        InputFileNotFoundError: the file does not exist.
        DataError: it is a folder or cannot be read, or it is a .zst file that nothing can unpack.
    """
    if str(path) == "-":
        if sys.stdin is None:
            raise DataError("Standard input must be open, but is closed. Name a file instead.")
        return sys.stdin.buffer
    with reading(path):
        # Opened only once: a named pipe can be read a single time.
        return unpack_stream(Path(path).open("rb"), path)


def unpack_stream(stream: io.BufferedReader, path: Path | str) -> BinaryIO:
    """Unpack a stream if it is packed; arguments and errors are those of `open_binary`."""
    # What was peeked at stays in the stream: a pipe cannot be rewound.
    kind = _packed_kind(stream.peek(10))
    make = _zstandard(path) if kind == "zst" else _DECODERS.get(kind)
    return (
        stream if make is None else io.BufferedReader(JoinedStream(stream, _unpack(stream, make)))
    )


def _zstandard(path: Path | str) -> Callable[[], Any]:
    """Find what makes decoders of .zst, in Python 3.14 or a package."""
    for module in ("compression.zstd", "zstandard"):
        with suppress(ImportError):
            make: Callable[[], Any] = import_module(module).ZstdDecompressor
            return make().decompressobj if module == "zstandard" else make
    raise DataError(
        f"{path} is packed with Zstandard, which needs Python 3.14 or the package zstandard. "
        "Install it with pip install zstandard, or unpack the file with zstd -d."
    )


def _unpack(packed: BinaryIO, make: Callable[[], Any]) -> Iterator[bytes]:
    """Yield the content of packed streams that follow each other, perhaps with zeros between."""
    decoder = None
    while piece := packed.read(_PIECE):
        while piece := piece if decoder else piece.lstrip(b"\0"):
            decoder = decoder or make()
            # 40 bytes of .bz2 may hold 45 million. The others unpack a piece to some millions.
            bound = (_CHUNK,) if hasattr(decoder, "needs_input") else ()
            yield decoder.decompress(piece, *bound)
            while bound and not (decoder.eof or decoder.needs_input):
                yield decoder.decompress(b"", *bound)
            piece, decoder = (decoder.unused_data, None) if decoder.eof else (b"", decoder)
    if decoder is not None:
        raise EOFError("it ends too early")


@final
class JoinedStream(io.RawIOBase):
    """The pieces that are made of a file, such as its unpacked content, as one stream.

    Args:
        file: is closed with the stream.
        pieces: its content.
    """

    def __init__(self, file: BinaryIO, pieces: Iterator[bytes]) -> None:
        self._file = file
        self._pieces = pieces
        self._waiting = memoryview(b"")

    def readable(self) -> bool:
        """Return True."""
        return True

    def close(self) -> None:
        """Close the file too."""
        self._file.close()
        super().close()

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; return the number of bytes, 0 at the end."""
        try:
            while not self._waiting:
                self._waiting = memoryview(next(self._pieces))
        except StopIteration:
            return 0
        except Exception as error:  # each library raises its own
            raise EOFError(str(error)) from error
        found = self._waiting[: len(buffer)]
        self._waiting = self._waiting[len(buffer) :]
        buffer[: len(found)] = found
        return len(found)


def read_lines(path: Path | str, *, keeps_damaged: bool = False) -> Iterator[str]:
    r"""Read a text file line by line.

    A line ends at ``\n``; one ``\r`` before it is dropped, and so is a byte-order mark at the
    start of the file. Nothing else is changed. A last line without ``\n`` counts.

    Args:
        path: a plain or packed file; ``-`` is standard input.
        keeps_damaged: accept a line that is not UTF-8, with each wrong byte as a lone surrogate,
            and the beginning of one that is too long, as a `CutLine`. `not_a_line` finds both.

    Yields:
        Each line without its end.

    Raises:
        DataError: a line is not UTF-8 (with file and line) or longer than `LONGEST_LINE`, the
            packed data is damaged, or the file is an archive.
        InputFileNotFoundError: the file does not exist.
    """
    stream = open_binary(path)
    try:
        yield from split_lines(stream, path, keeps_damaged=keeps_damaged)
    finally:
        # Standard input is not ours to close.
        if str(path) != "-":
            stream.close()


def split_lines(
    stream: BinaryIO, path: Path | str, *, keeps_damaged: bool = False, first: int = 1
) -> Iterator[str]:
    """Read the lines of an unpacked stream as `read_lines` does.

    Args:
        stream: the text.
        path: its file, for messages.
        keeps_damaged: as for `read_lines`.
        first: the number of the stream's first line in its file.
    """
    number = first - 1
    # A file that is not text may be one endless line, so reading stops at the limit.
    lines = iter(lambda: stream.readline(LONGEST_LINE + 1), b"")
    with reading(path):
        try:
            for number, raw in enumerate(lines, start=first):
                # What can be unpacked was: this is another kind, or an archive.
                if number == 1 and (kind := _packed_kind(raw)):
                    raise DataError(
                        "Text must be plain, or packed as .gz, .xz, .bz2 or .zst, but "
                        f"{path} holds a .{kind} file. Unpack it first."
                    )
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
        except EOFError as error:
            raise DataError(
                f"A packed file must be whole, but {path} is damaged after line {number}: {error}. "
                "Copy or compress it again."
            ) from error


def _skip_rest(stream: BinaryIO, raw: bytes) -> int:
    """Read on to the end of a line, and count its bytes without the line end."""
    num_bytes = -1 if raw.endswith(b"\n") else 0
    while not raw.endswith(b"\n") and (raw := stream.readline(_CHUNK)):
        num_bytes += len(raw) - raw.endswith(b"\n")
    return num_bytes


def read_chunks(path: Path | str) -> Iterator[str]:
    """Read a document, plain or packed, in pieces of whole lines; ``-`` is standard input.

    Raises:
        DataError: it is not UTF-8, or damaged.
    """
    stream = open_binary(path)
    number = 1
    with reading(path), nullcontext() if str(path) == "-" else closing(stream):
        try:
            while data := b"".join(stream.readlines(_CHUNK)):
                yield data.decode()
                number += data.count(b"\n")
        except EOFError as error:
            raise DataError(
                f"A packed file must be whole, but {path} is damaged: {error}."
            ) from error
        except UnicodeDecodeError as error:
            start = data.rfind(b"\n", 0, error.start) + 1
            line = number + data.count(b"\n", 0, error.start)
            # This raises, with the number of the line.
            yield decode_line(data[start : error.end + 3], path, line)


def read_content(path: Path | str) -> bytes:
    """Read a whole file that is no text, plain or packed; ``-`` is standard input.

    Raises:
        DataError: it is damaged, or cannot be read.
    """
    stream = open_binary(path)
    with reading(path), nullcontext() if str(path) == "-" else closing(stream):
        try:
            return stream.read()
        except EOFError as error:
            raise DataError(
                f"A packed file must be whole, but {path} is damaged: {error}."
            ) from error


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
        keeps_damaged: as for `read_lines`; UTF-16 and UTF-32 are refused in any case.

    Raises:
        DataError: the bytes are not UTF-8.
    """
    if number == 1:
        raw = raw.removeprefix(_BOM)
    if raw.endswith(b"\n"):
        raw = raw[:-1].removesuffix(b"\r")
    if number == 1 and (wide := _WIDE.match(raw)):
        encoding = str(wide.lastgroup).replace("_", "-")
        raise DataError(
            f"Text must be UTF-8, but {path} begins as {encoding} does. Convert it, for instance "
            f"with iconv -f {encoding} -t UTF-8."
        )
    try:
        return raw.decode("utf-8", "surrogateescape" if keeps_damaged else "strict")
    except UnicodeDecodeError as error:
        raise DataError(
            f"Text must be UTF-8, but byte {error.start + 1} of the line is "
            f"0x{raw[error.start]:02x} ({path}:{number}). Convert the file, for instance with "
            "iconv -f WINDOWS-1252 -t UTF-8."
        ) from error


def not_utf8(line: str) -> str | None:
    """Describe the first character of a line that is not text in a sentence, or return None."""
    try:
        line.encode()
    except UnicodeEncodeError as error:
        code = ord(line[error.start])
        before = count_of(error.start, "character")
        # Python's surrogateescape maps a wrong byte b to U+DC00 + b.
        what = f"byte 0x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"U+{code:04X}"
        return (
            f"A line must be UTF-8 text, but after {before} comes {what}. Convert "
            "it, for instance with iconv -f WINDOWS-1252 -t UTF-8."
        )
    return None
