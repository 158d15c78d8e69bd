"""The results of a finished job, joined in the order of its lines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from pellucid.bulk.board import PIECES, Board
from pellucid.bulk.shards import ShardReader, read_row
from pellucid.errors import DataError, InputError
from pellucid.text.reading.row_sides import Fault


def collect_lines(board: Board) -> Iterator[str]:
    """Yield the results of all pieces, by their numbers.

    Raises:
        InputError: some pieces are missing.
        DataError: a piece has fewer or more results than lines.
    """
    done = board.store.names(PIECES)
    missing = [piece.name for piece in board.manifest.pieces if piece.name not in done]
    if missing:
        raise InputError(
            f"Every piece must be finished before a job is collected, but {len(missing):,} of "
            f"{len(board.manifest.pieces):,} are not ({missing[0]} and later). Finish them with "
            f"pellucid bulk join {board.store.place}."
        )
    for piece in board.manifest.pieces:
        body = board.store.read(f"{PIECES}/{piece.name}").decode()
        rows = body.split("\n")
        count = len(rows) - 1
        if board.manifest.task["form"] == "n-best":  # Each result begins with its line's number.
            count = len({row.partition(" ")[0] for row in rows if row})
        if count != piece.lines or rows[-1]:
            raise DataError(
                f"A piece must have a result for each of its lines, but piece {piece.name} of "
                f"{board.store.place} has {count:,} for {piece.lines:,}. Delete "
                f"{PIECES}/{piece.name} there, and give the command again."
            )
        yield body


def collect_pairs(board: Board, *, is_table: bool, tag: str | None) -> Iterator[str]:
    """Yield pairs of the texts and their results; lines that failed or are empty are left out.

    Args:
        board: the finished job.
        is_table: True for columns between tabs, False for objects.
        tag: swap the sides, and begin each translation with this: tagged back-translation.

    Raises:
        DataError: a shard has changed, or a piece has fewer or more results than lines.
    """
    task = board.manifest.task
    failed = {(piece.number, row) for piece, row, _ in board.failures()}
    with closing(ShardReader(board.manifest)) as reader:
        for piece, body in zip(board.manifest.pieces, collect_lines(board), strict=True):
            lines = reader.read(piece).decode("utf-8", "replace").removesuffix("\n").split("\n")
            if piece.row == 1:
                # The byte order mark of the file, which workers do not see either.
                lines[0] = lines[0].removeprefix("\ufeff")
            for row, (line, result) in enumerate(zip(lines, body.split("\n"), strict=False)):
                # As the worker read the line.
                texts = read_row(task["kind"], line.removesuffix("\r"), piece.shard.columns, "")
                if isinstance(texts, Fault) or (piece.number, row) in failed:
                    continue
                if texts[0].strip() and result.strip():
                    sides = [*texts, result] if tag is None else [f"{tag} {result}", texts[0]]
                    yield _write_pair(sides, is_table=is_table)


def _write_pair(sides: Sequence[str], *, is_table: bool) -> str:
    """Write both sides, with a score if there are three."""
    if is_table:
        return "\t".join(" ".join(text.split("\t")) for text in sides) + "\n"
    record: dict[str, Any] = dict(zip(("source", "target"), sides, strict=False))
    if len(sides) == 3:
        record["log_probability"] = float(sides[2])
    return json.dumps(record, ensure_ascii=False) + "\n"
