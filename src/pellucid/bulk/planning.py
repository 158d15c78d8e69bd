"""The plan of a job: its shards are read through and cut into pieces, by several processes."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection, wait
from typing import Any, NoReturn

from pellucid.bulk.manifest import Shard
from pellucid.bulk.shards import cut_shard, hash_pieces
from pellucid.machine.processes import Child, end_all, serve_parent, to_bytes

# The fewest bytes that are worth another process, which needs a moment to start.
BYTES_A_PROCESS = 64_000_000

ADVICE = "Give the command again, with fewer --threads, each of which reads a file."

Pieces = list[tuple[int, int, str]]


class Plan:
    """How shards are cut into parts, which are then read through and cut into pieces.

    Args:
        paths: files or addresses.
        task: the job's task, with the kind of its shards and the columns that were named.
        piece_bytes: bytes of a piece, after which it ends with its line.

    Attributes:
        is_large: True if the shards are worth more than one process.

    Raises:
        ConfigurationError: a shard lacks a column.
        DataError: one is an archive, or the first of its objects cannot be read.
        InputFileNotFoundError: one does not exist.
    """

    def __init__(self, paths: Sequence[str], task: Mapping[str, Any], piece_bytes: int) -> None:
        self._cuts = [cut_shard(path, task, piece_bytes) for path in paths]
        self._parts = [
            (shard.path, task["kind"], shard.columns, *part, piece_bytes)
            for shard, parts in self._cuts
            for part in parts
        ]
        self._useful = 1 + sum(shard.size for shard, _ in self._cuts) // BYTES_A_PROCESS
        self.is_large = self._useful > 1

    def read(self, processes: int, beat: Callable[[], None] = lambda: None) -> list[Shard]:
        """Read the shards through, and cut them at line ends.

        Args:
            processes: the most that work at once; their number changes nothing.
            beat: called every second, if the shards are large.

        Raises:
            DataError: a shard is damaged.
            PellucidError: a process ended.
        """
        number = min(processes, len(self._parts), self._useful)
        hashed = iter(
            _share_out(self._parts, number, beat)
            if self.is_large
            else [hash_pieces(*part) for part in self._parts]
        )
        return [
            replace(shard, pieces=[piece for _ in parts for piece in next(hashed)])
            for shard, parts in self._cuts
        ]


def _share_out(
    parts: Sequence[Sequence[Any]], number: int, beat: Callable[[], None]
) -> list[Pieces]:
    """Let so many processes hash parts; each gets the next one when it is done with the last."""
    hashed: dict[int, Pieces] = {}
    todo = deque(enumerate(parts))
    children: list[Child] = []
    try:
        at_work: dict[Connection, tuple[Child, int]] = {}
        for _ in range(number):
            child = Child("pellucid.bulk.planning:serve_parts", {}, advice=ADVICE)
            children.append(child)
            at_work[child.connection] = (child, -1)
        while at_work:
            beat()
            for connection in wait(list(at_work), 1.0):
                child, place = at_work.pop(connection)  # type: ignore[call-overload]
                # The first reply says that it has started, and belongs to no part.
                hashed[place] = child.receive()
                if todo:
                    place, part = todo.popleft()
                    child.send(to_bytes(part))
                    at_work[child.connection] = (child, place)
    finally:
        end_all(children)
    return [hashed[place] for place in range(len(parts))]


def serve_parts(descriptor: int) -> NoReturn:
    """Be a process of `Plan.read`."""

    def answer(take: Callable[[], bytes]) -> Pieces:
        return hash_pieces(*json.loads(take()))

    serve_parent(descriptor, lambda: answer)
