"""The manifest of a job: its inputs and their cuts, the model, and how it translates.

It is written once, before the work, and says everything that the results depend on. Whoever joins
compares the model, options, version and processor with it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from pellucid.bulk.shared_folder import Store
from pellucid.config.parsing import read_json_text
from pellucid.errors import DataError, InputFileNotFoundError

MANIFEST = "manifest.json"
FORMAT = 1

# How a manifest begins and ends, and how often one that has no end yet is looked at.
_BEGINNING = f'{{\n "format": {FORMAT},'.encode()
_END = b"\n}\n"
_MOST_LOOKS = 100


@dataclass(frozen=True)
class Shard:
    """An input.

    Attributes:
        path: a file or an address.
        size: of the file, in bytes.
        columns: the numbers, from 0, or the names of the columns that are read; none for lines.
        start: bytes of the unpacked text before the first piece: those of a line with names.
        pieces: the bytes, the number of lines, and the SHA-256 of each piece, in order.
    """

    path: str
    size: int
    columns: Sequence[Any]
    start: int
    pieces: Sequence[tuple[int, int, str]]


@dataclass(frozen=True)
class ShardPiece:
    """A piece in its place.

    Attributes:
        number: of all pieces, from 0.
        shard: its shard.
        start: bytes of the shard's unpacked text before it.
        row: the number of its first line in the shard's file, from 1.
        first: the number of its first line among all lines, from 0.
        num_bytes: its size.
        lines: its number of lines.
        sha256: the hash of its bytes.
    """

    number: int
    shard: Shard
    start: int
    row: int
    first: int
    num_bytes: int
    lines: int
    sha256: str

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.number:06d}"


@dataclass(frozen=True)
class Manifest:
    """A job.

    Attributes:
        task: the instructions for workers: the model, the options, the kind of shards.
        identity: everything except the input that the output depends on, by its name for users.
        shards: the inputs, in order.
    """

    task: Mapping[str, Any]
    identity: Mapping[str, Any]
    shards: Sequence[Shard]

    @cached_property
    def pieces(self) -> list[ShardPiece]:
        """All pieces, in order."""
        found: list[ShardPiece] = []
        first = 0
        for shard in self.shards:
            start = shard.start
            row = 2 if shard.start else 1  # The first line has the names of the columns.
            for num_bytes, lines, sha256 in shard.pieces:
                number = len(found)
                piece = ShardPiece(number, shard, start, row, first, num_bytes, lines, sha256)
                found.append(piece)
                start += num_bytes
                row += lines
                first += lines
        return found

    @cached_property
    def num_lines(self) -> int:
        """The number of all lines."""
        return sum(piece.lines for piece in self.pieces)


def write_manifest(store: Store, manifest: Manifest) -> bool:
    """Write the manifest of a new job; return False if another command was faster."""
    values = {"format": FORMAT, **asdict(manifest)}
    data = (json.dumps(values, indent=1) + "\n").encode()
    # Never replaced: whoever joins compares itself with it. Read again, since folders of object
    # stores may let two commands create the same name.
    return store.create(MANIFEST, data) and store.read(MANIFEST) == data


def read_manifest(store: Store) -> Manifest:
    """Read the manifest of a job.

    Raises:
        DataError: it is damaged, or of another format.
        InputFileNotFoundError: the folder holds no job.
    """
    try:
        values = read_json_text(_read_whole(store))
        # A later version may cut pieces in another way, and must not be mixed with this one.
        if values.pop("format") != FORMAT:
            raise ValueError("it is of another version")
        return Manifest(shards=[Shard(**shard) for shard in values.pop("shards")], **values)
    except InputFileNotFoundError:
        raise InputFileNotFoundError(
            f"{store.place} must be the folder of a job, but has no {MANIFEST}. Check the name, or "
            "begin the job: pellucid bulk run MODEL SHARD -o FOLDER."
        ) from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise DataError(
            f"{MANIFEST} of {store.place} is damaged: {error}. Begin the job in another folder."
        ) from error


def _read_whole(store: Store) -> bytes:
    """Read the manifest once it is whole; delete one whose command was killed while it wrote it.

    No command works on a job before its manifest is whole, so nothing is lost.
    """
    for _ in range(_MOST_LOOKS):
        data = store.read(MANIFEST)
        # Also empty: in a folder without hard links the name appears first.
        if not _is_begun(data):
            return data
        time.sleep(0.1)
    store.delete(MANIFEST)
    return store.read(MANIFEST)


def _is_begun(data: bytes) -> bool:
    """Tell whether this is the first part of a manifest, not all of it or another file."""
    is_ours = data.startswith(_BEGINNING) or _BEGINNING.startswith(data)
    return is_ours and not data.endswith(_END)
