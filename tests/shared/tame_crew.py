"""A job of `pellucid.bulk` whose workers are no processes: they shout, and die when asked to."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from pellucid.bulk.board import Board
from pellucid.bulk.driver import Driver, WorkerWindow
from pellucid.bulk.manifest import Manifest, Shard, ShardPiece, write_manifest
from pellucid.bulk.planning import Plan
from pellucid.bulk.shards import ShardReader
from pellucid.bulk.shared_folder import Store
from pellucid.errors import PellucidError

TASK = {"kind": "lines", "score": False, "column": None, "into": None, "form": "plain"}


class Tame:
    """A worker without a process: it shouts, and dies of some windows."""

    def __init__(self, crew: TameCrew, kills: Callable[[WorkerWindow], bool]) -> None:
        self.replies: deque[Any] = deque([[[], []]])
        self._crew, self._kills = crew, kills
        self.is_still = False

    def send_window(self, window: WorkerWindow) -> None:
        if self.replies and isinstance(self.replies[-1], Exception):
            return
        self._crew.seen.append(window)
        if self.is_still or (not window.error and self._crew.stops(window)):
            self.is_still = True
            return
        if not window.error and self._kills(window):
            self.replies.append(PellucidError("A worker was killed."))
            return
        lines = window.raw.decode().removesuffix("\n").split("\n")
        assert len(lines) == window.lines
        failed = [(i, window.error) for i in range(len(lines)) if window.error]
        shouted = "".join("\n" if window.error else f"{line.upper()}\n" for line in lines)
        self.replies.append([shouted, failed])


class TameCrew:
    """Workers without processes."""

    def __init__(self, size: int, kills: Callable[[WorkerWindow], bool] = lambda _: False) -> None:
        self.size, self._kills = size, kills
        self.seen: list[WorkerWindow] = []
        self.workers: list[Tame] = []
        self.num_deaths = 0
        self.stops: Callable[[WorkerWindow], bool] = lambda _: False

    def start(self) -> None:
        self.workers.append(Tame(self, self._kills))

    def receive(self, seconds: float) -> list[tuple[Any, Any]]:
        found = [(one, one.replies.popleft()) for one in list(self.workers) if one.replies]
        for worker, reply in found:
            if isinstance(reply, Exception):
                self.num_deaths += 1
                self.workers.remove(worker)
        return found

    def drop(self, worker: Tame) -> None:
        self.num_deaths += 1
        self.workers.remove(worker)

    def close(self) -> None:
        self.workers.clear()


def plan_shard(path: str, task: dict[str, Any], piece_bytes: int) -> Shard:
    """Plan one shard in this process."""
    return Plan([path], task, piece_bytes).read(1)[0]


def make_job(folder: Path, text: str, *, place: str = "", piece_bytes: int = 40) -> Board:
    """Plan a job of one shard."""
    (folder / "in.txt").write_text(text)
    shard = plan_shard(str(folder / "in.txt"), TASK, piece_bytes)
    store = Store(place or str(folder / "job"))
    manifest = Manifest(TASK, {}, [shard])
    assert write_manifest(store, manifest)
    return Board(store, manifest)


def drive(
    board: Board,
    crew: TameCrew,
    check: Callable[[Any], None] = lambda _: None,
    until: float = math.inf,
) -> bool:
    with closing(ShardReader(board.manifest)) as reader:
        return Driver(board, crew, read=reader.read, check=check, say=print, until=until).run()


def read_pieces(manifest: Manifest, pieces: Iterable[ShardPiece]) -> list[bytes]:
    with closing(ShardReader(manifest)) as reader:
        return [reader.read(piece) for piece in pieces]


TEXT = "".join(f"line {number}\n" for number in range(60))
