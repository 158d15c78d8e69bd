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

ADVICE = "Begin the job with --threads 1, which reads all files in one process."

Pieces = list[tuple[int, int, str]]


def plan_shards(
    paths: Sequence[str], task: Mapping[str, Any], piece_bytes: int, processes: int
) -> list[Shard]:
    """Read shards through, and cut them at line ends; the number of processes changes nothing.

    Args:
        paths: files or addresses.
        task: the job's task, with the kind of its shards and the columns that were named.
        piece_bytes: bytes of a piece, after which it ends with its line.
        processes: the most that work at once.

    Raises:
        ConfigurationError: a shard lacks a column.
        DataError: one is damaged or an archive, or the first of its objects cannot be read.
        InputFileNotFoundError: one does not exist.
        PellucidError: a process ended.
    """
    cuts = [cut_shard(path, task, piece_bytes) for path in paths]
    parts = [
        (shard.path, task["kind"], shard.columns, *part, piece_bytes)
        for shard, found in cuts
        for part in found
    ]
    useful = 1 + sum(shard.size for shard, _ in cuts) // BYTES_A_PROCESS
    number = min(processes, len(parts), useful)
    hashed = iter(_share_out(parts, number) if number > 1 else [hash_pieces(*one) for one in parts])
    return [
        replace(shard, pieces=[piece for _ in found for piece in next(hashed)])
        for shard, found in cuts
    ]


def _share_out(parts: Sequence[Sequence[Any]], number: int) -> list[Pieces]:
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
            for connection in wait(list(at_work)):
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
    """Be a process of `plan_shards`."""

    def answer(take: Callable[[], bytes]) -> Pieces:
        return hash_pieces(*json.loads(take()))

    serve_parent(descriptor, lambda: answer)
