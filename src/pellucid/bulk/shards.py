"""Shards as streams of lines, plain, packed, or columns of a Parquet file; and their rows."""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, BinaryIO, cast

from pellucid.bulk.manifest import Manifest, Shard, ShardPiece
from pellucid.bulk.shared_folder import is_remote, open_file, reaching
from pellucid.errors import ConfigurationError, DataError, need_library
from pellucid.text.reading.lines import (
    LONGEST_LINE,
    JoinedStream,
    not_a_line,
    split_lines,
    unpack_stream,
)
from pellucid.text.reading.row_sides import (
    SOURCE_NAMES,
    TARGET_NAMES,
    Fault,
    find_dotted_key,
    read_object,
    text_of,
)

# Bytes of a file that are hashed as a whole by one process.
PART_BYTES = 256_000_000

_CHUNK = 1 << 20
_USUAL_NAMES = (("text", *SOURCE_NAMES), TARGET_NAMES)
_BREAKS = re.compile(r"[\n\r\t]+")


def cut_shard(
    path: str, task: Mapping[str, Any], piece_bytes: int
) -> tuple[Shard, list[tuple[int, int | None]]]:
    """Look at the beginning of a shard, and cut it into parts that are read apart.

    Args:
        path: a file or an address.
        task: the job's task, with the kind of its shards and the columns that were named.
        piece_bytes: bytes of a piece, after which it ends with its line.

    Returns:
        The shard, without pieces, and where parts of its unpacked text begin and end, each of them
        whole pieces. What is packed or far away is one part, whose end is not known.

    Raises:
        ConfigurationError: it lacks a column.
        DataError: it is damaged or an archive, or the first of its objects cannot be read.
        InputFileNotFoundError: it does not exist.
    """
    kind = task["kind"]
    start = 0
    usual = ("source", "target") if task["score"] else ("text",)
    wanted = [task["column"], task["into"]][: len(usual)]
    columns: list[Any] = []
    if kind in ("jsonl", "parquet"):
        columns = [name or other for name, other in zip(wanted, usual, strict=True)]
    stream, size = _open(path, kind, columns)
    with _reading(path), stream:
        # One byte more than a line may have, to tell a line that is too long from the longest
        # one.
        first = stream.readline(LONGEST_LINE + 1)
        # Archives and UTF-16 are refused here, before a worker meets them.
        line = next(split_lines(io.BytesIO(first), path, keeps_damaged=True), "")
        if kind == "tsv" and line:
            columns, has_names = _find_columns(wanted, line.split("\t"), path)
            if has_names:
                start = len(first)
        if len(set(columns)) < len(columns):
            raise ConfigurationError(
                f"Source and target must be two columns, but are one of {path}. Name both, with "
                "--column and --into."
            )
        row = read_row(kind, line, columns, f"{path}:1") if kind == "jsonl" else ()
        if isinstance(row, Fault) and row.kind.startswith("no "):
            raise DataError(f"{row.sentence} Or name another key with --column.")
        shard = Shard(path, size, columns, start, [])
        if is_remote(path) or not stream.seekable():
            return shard, [(start, None)]
        parts: list[tuple[int, int | None]] = []
        end = start
        while end < size:
            begun = end
            while end < size and end - begun < PART_BYTES:
                # As `hash_pieces` does, which reads what is only skipped here.
                stream.seek(end + piece_bytes - 1)
                stream.readline()
                end = min(size, stream.tell())
            parts.append((begun, end))
        return shard, parts


def hash_pieces(
    path: str, kind: str, columns: Sequence[Any], start: int, end: int | None, piece_bytes: int
) -> list[tuple[int, int, str]]:
    """Read a part of a shard through, and cut it into pieces at line ends.

    Returns:
        Those of `Shard.pieces`.

    Raises:
        DataError: it is damaged.
    """
    pieces = []
    stream, _ = _open(path, kind, columns)
    with _reading(path), stream:
        if stream.seekable():
            stream.seek(start)
        else:
            stream.read(start)  # A line of names at most.
        while (end is None or start < end) and (data := stream.read(piece_bytes)):
            # Pieces end with lines, so that each can be read by itself.
            data += b"" if data.endswith(b"\n") else stream.readline()
            lines = data.count(b"\n") + (not data.endswith(b"\n"))
            # With the hash: a shard that is changed later would give lines to the wrong results.
            pieces.append((len(data), lines, hashlib.sha256(data).hexdigest()))
            start += len(data)
    return pieces


class ShardReader:
    """Reads pieces. A packed shard is unpacked once, because pieces are asked for in order.

    Args:
        manifest: names the shards and their pieces.
    """

    def __init__(self, manifest: Manifest) -> None:
        self._kind = manifest.task["kind"]
        self._shard: Shard | None = None
        self._stream: BinaryIO = io.BytesIO()
        self._place = 0

    def read(self, piece: ShardPiece) -> bytes:
        """Read a piece.

        Raises:
            DataError: the shard has changed since the manifest was written.
            InputFileNotFoundError: it does not exist.
        """
        shard = piece.shard
        data = b""
        # A packed stream only goes forward.
        if shard is not self._shard or piece.start < self._place:
            self._stream.close()
            self._stream, size = _open(shard.path, self._kind, shard.columns)
            self._shard = shard
            self._place = 0
            if size != shard.size:
                self._refuse(shard, f"had {shard.size:,} bytes then and has {size:,} now")
        with _reading(shard.path):
            if self._stream.seekable():
                self._place = self._stream.seek(piece.start)
            while self._place < piece.start + piece.num_bytes:
                most = piece.start - self._place
                # What lies before the piece is skipped in small parts, and the piece is read
                # whole.
                data = self._stream.read(min(_CHUNK, most) if most > 0 else piece.num_bytes)
                self._place += len(data)
                if not data:
                    break
        if hashlib.sha256(data).hexdigest() != piece.sha256:
            self._refuse(shard, f"differs from line {piece.row} on")
        return data

    def close(self) -> None:
        """Close the shard that was read last."""
        self._stream.close()

    def _refuse(self, shard: Shard, how: str) -> None:
        self._shard = None
        raise DataError(
            f"A shard must stay as it was when the job began, but {shard.path} {how}. Put the old "
            "file back, or begin another job in another folder."
        )


def read_row(kind: str, line: str, columns: Sequence[Any], where: str) -> Sequence[str] | Fault:
    """Take the texts that a job reads out of a line.

    Args:
        kind: what the shard holds.
        line: the line.
        columns: those of its shard.
        where: its file and number, for the message.
    """
    if sentence := not_a_line(line):
        return Fault("not a line", sentence)
    if not columns or not line.strip():
        return [line] * max(1, len(columns))
    if kind == "jsonl":
        value = read_object(line, where, '{"text": "…"}')
        if isinstance(value, Fault):
            return value
        texts = []
        for path in columns:
            key, holder = find_dotted_key(value, path)
            text = text_of(holder, key, where)
            if isinstance(text, Fault):
                return text
            texts.append(_in_one_line(text))
        return texts
    cells = line.split("\t")
    numbers = range(len(columns)) if kind == "parquet" else columns
    if len(cells) > max(numbers):
        return [cells[number] for number in numbers]
    return Fault(
        "too few columns",
        f"A line must have at least {max(numbers) + 1} columns, but has {len(cells)} ({where}). "
        "Correct it or remove it.",
    )


def _find_columns(
    wanted: Sequence[str | None], cells: Sequence[str], path: str
) -> tuple[list[int], bool]:
    """Find columns by the first line of a table; tell whether that holds names."""
    columns = []
    has_names = False
    for number, (name, usual) in enumerate(zip(wanted, _USUAL_NAMES, strict=False)):
        found = [cells.index(one) for one in ([name] if name else usual) if one in cells]
        has_names = has_names or bool(found)
        if not found and name is not None and not name.isdecimal():
            raise ConfigurationError(
                f"A table must have the column {name!r}, but the first line of {path} is "
                f"{', '.join(map(repr, cells))}. Name one of these, or give its number."
            )
        place = found[0] if found else int(name or number + 1) - 1
        if place < 0:  # Python would take the last column.
            raise ConfigurationError(
                f"The number of a column must be at least 1, but is {name} (columns are counted "
                "from 1). Change it."
            )
        columns.append(place)
    return columns, has_names


@contextmanager
def _reading(path: str) -> Iterator[None]:
    try:
        with reaching(path, is_read=True):
            yield
    except EOFError as error:
        raise DataError(
            f"A packed file must be whole, but {path} is damaged: {error}. Copy or compress it "
            "again."
        ) from error


def _open(path: str, kind: str, columns: Sequence[Any]) -> tuple[BinaryIO, int]:
    file, size = open_file(path)
    with _reading(path):
        if kind == "parquet":
            rows = _parquet_rows(_open_parquet(file, path), columns)
            return io.BufferedReader(JoinedStream(file, rows)), size
        return unpack_stream(io.BufferedReader(cast(Any, file)), path), size


def _open_parquet(file: BinaryIO, path: str) -> Any:
    try:
        return need_library("pyarrow.parquet", path).ParquetFile(file)
    except ValueError as error:  # pyarrow's errors are ValueErrors
        raise DataError(f"{path} must be a Parquet file, but cannot be read: {error}.") from error


def _parquet_rows(table: Any, columns: Sequence[str]) -> Iterator[bytes]:
    """Yield the rows of a Parquet file as lines, their columns between tabs."""
    # Flattened, columns of columns have names such as translation.en.
    from_batches = import_module("pyarrow").Table.from_batches
    for batch in table.iter_batches(columns=columns):
        texts = from_batches([batch]).flatten()
        cells = [map(_in_one_line, texts.column(name).to_pylist()) for name in columns]
        rows = ("\t".join(row) + "\n" for row in zip(*cells, strict=True))
        yield "".join(rows).encode("utf-8", "surrogatepass")


def _in_one_line(value: Any) -> str:
    """Put spaces in the place of line breaks and tabs."""
    return _BREAKS.sub(" ", "" if value is None else str(value))
