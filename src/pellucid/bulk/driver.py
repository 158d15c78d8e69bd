"""The work of one command on a job: pieces are cut into windows, which its workers answer.

A worker that ends loses its window only. The window goes to another worker; one that ends two is
halved, down to the line, which then fails. A worker that stands still is ended. A command that ends
loses the pieces that it had begun.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pellucid.bulk.board import SECONDS_BETWEEN_BEATS, Board
from pellucid.bulk.manifest import ShardPiece
from pellucid.errors import InputError, PellucidError

# A piece is what is stored, a window what a worker gets: a worker that ends loses only that
# (docs/decisions/0025-bulk-jobs.md). As large as those of `pellucid translate`.
WINDOW_LINES = 2000
WINDOW_BYTES = 200_000

# Windows that a worker has: one to work on, and the next one.
_IN_FLIGHT = 2

_SECONDS_BETWEEN_LOOKS = 1.0
_SECONDS_TO_WORDS = 6.0
_SECONDS_BETWEEN_WORDS = 30.0
# Workers that may end in a row, for each worker, before the command gives up.
_MOST_DEATHS = 50

# Workers that may end in a row before they are ready.
MOST_BAD_STARTS = 10

# A worker stands still if its window takes so many times as long as the longest one did, and at
# least so many seconds, since large models are slow. Other commands need not wait for it.
_MOST_TIMES = 5
SECONDS_TO_ANSWER = 3600.0


@dataclass(frozen=True)
class WorkerWindow:
    """Lines that a worker answers together.

    Attributes:
        piece: their piece.
        row: the number of the first one in it, from 0.
        lines: the number of lines.
        raw: their bytes.
        deaths: the number of workers that they ended.
        is_half: True if they are part of a window that ended two workers.
        error: the reason that they fail without being translated; empty to translate them.
    """

    piece: ShardPiece
    row: int
    lines: int
    raw: bytes
    deaths: int = 0
    is_half: bool = False
    error: str = ""

    def place(self) -> list[Any]:
        """Say where the lines stand: among all, in which file, and at which line of it."""
        piece = self.piece
        return [
            piece.first + self.row,
            piece.shard.path,
            piece.row + self.row,
            list(piece.shard.columns),
            self.error,
        ]


class Worker(Protocol):
    """A process or an actor that answers windows in the order in which it got them."""

    def send_window(self, window: WorkerWindow) -> None:
        """Send a window; its answer comes later."""


class Crew(Protocol):
    """Workers of one kind.

    A worker's first reply is its identity, with warnings; each further one answers a window with
    the text to write and the lines of it that failed.
    """

    size: int

    def start(self) -> None:
        """Start one more worker."""

    def receive(self, seconds: float) -> list[tuple[Worker, Any]]:
        """Wait so long for replies; an exception is the end of a worker."""

    def drop(self, worker: Any) -> None:
        """End a worker, without waiting for it: it may stand still."""

    def close(self) -> None:
        """End all workers."""


@dataclass
class _Begun:
    """A piece that is being translated: its answers by the number of their first line."""

    piece: ShardPiece
    missing: int
    bodies: dict[int, str] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)


class Driver:
    """The command's part of a job.

    Args:
        board: the job.
        crew: the workers.
        read: reads a piece.
        check: looks at the identity of a new worker, and raises if it does not belong.
        first: a worker that has been checked already.
        say: takes a sentence about the progress now and then.
        until: the ``time.monotonic()`` before which it ends, with unfinished pieces given up;
            nothing begins that would not end in time, by what windows took so far.
    """

    def __init__(
        self,
        board: Board,
        crew: Crew,
        *,
        read: Callable[[ShardPiece], bytes],
        check: Callable[[Mapping[str, Any]], None],
        say: Callable[[str], None],
        until: float = math.inf,
        first: Worker | None = None,
    ) -> None:
        self._board = board
        self._crew = crew
        self._read = read
        self._check = check
        self._say = say
        self._until = until
        self._todo: deque[WorkerWindow] = deque()
        self._begun: dict[int, _Begun] = {}
        self._at_work: dict[Worker, deque[WorkerWindow]] = {} if first is None else {first: deque()}
        # Seconds that workers have been at their windows, the most that one took, and the time in
        # which any worker was at one.
        self._waited: dict[Worker, float] = defaultdict(float)
        self._longest = self._busy = 0.0
        self._num_starting = self._num_deaths = self._num_bad_starts = 0
        self._next_look = 0.0
        self._next_words = time.monotonic() + _SECONDS_TO_WORDS

    def run(self) -> bool:
        """Work until no piece of the job is left; return False if time ran out before.

        Raises:
            PellucidError: a worker does not start, does not belong, or the disk is full.
        """
        try:
            while not (self._board.is_finished and not self._begun):
                self._share_out()
                if self._is_late():
                    break
                self._wait()
                self._end_idle_workers()
                self._board.beat.workers = self._num_hired()
                self._board.send_beat()
                if time.monotonic() > self._next_words:
                    self._next_words = time.monotonic() + _SECONDS_BETWEEN_WORDS
                    self._say(self._board.describe())
        finally:
            self._crew.close()
            self._board.leave()
        return self._board.is_finished and not self._begun

    def _share_out(self) -> None:
        """Give windows to workers; start workers once there is something to do."""
        while True:
            worker = min(self._at_work, key=lambda one: len(self._at_work[one]), default=None)
            # While no worker is ready, windows wait, unless the first ones are yet to be started.
            is_full = self._num_hired() > 0
            if worker is not None:
                owed = len(self._at_work[worker])
                needed = (owed + 1) * self._longest - self._waited[worker]
                is_full = owed == _IN_FLIGHT or needed > self._until - time.monotonic()
            if is_full or not (self._todo or self._begin_piece()):
                return
            # Only now: a job without work left must not load models.
            while self._num_hired() < self._crew.size:
                self._crew.start()
                self._num_starting += 1
            if worker is not None:
                self._at_work[worker].append(self._todo.popleft())
                worker.send_window(self._at_work[worker][-1])

    def _is_late(self) -> bool:
        """Tell whether nothing that is left would end in time."""
        if time.monotonic() >= self._until:
            return True
        if self._num_starting or any(self._at_work.values()) or self._until == math.inf:
            return False
        # Workers without a window, which were not given those that wait.
        most = self._most_lines()
        return bool(self._todo) or all(piece.lines > most for piece in self._board.left())

    def _most_lines(self) -> float:
        """Compute how many more lines would be translated in time, at the speed so far."""
        done = self._board.beat.lines
        if not done:
            return math.inf
        owed = sum(begun.missing for begun in self._begun.values())
        seconds = self._until - time.monotonic() - self._longest
        return seconds * done / max(self._busy, 1e-9) - owed

    def _num_hired(self) -> int:
        return len(self._at_work) + self._num_starting

    def _begin_piece(self) -> bool:
        """Take a piece and cut it into windows; False if none is free."""
        if time.monotonic() < self._next_look:
            return False
        piece = self._board.take(self._most_lines())
        self._drop_done()
        if piece is None:
            self._next_look = time.monotonic() + SECONDS_BETWEEN_BEATS  # Others work on the rest.
            return False
        raw = self._read(piece)
        self._begun[piece.number] = _Begun(piece, piece.lines)
        # Behind those of the piece before, so that pieces are finished one after the other.
        self._todo.extend(cut_windows(piece, raw))
        return True

    def _wait(self) -> None:
        """Take what workers send."""
        began = time.monotonic()
        replies = self._crew.receive(_SECONDS_BETWEEN_LOOKS)
        # No more than a look, as this process may have been stopped together with its workers.
        passed = min(time.monotonic() - began, 2 * _SECONDS_BETWEEN_LOOKS)
        for worker, windows in self._at_work.items():
            if windows:
                self._waited[worker] += passed
        self._busy += passed * any(self._at_work.values())
        for worker, reply in replies:
            if isinstance(reply, Exception):
                self._lose(worker, reply)
            elif worker not in self._at_work:
                # A worker on another machine may have another processor or version.
                self._check(dict(reply[0]))
                self._at_work[worker] = deque()
                self._num_starting -= 1
                self._num_bad_starts = 0
            else:
                body, failures = reply
                window = self._at_work[worker].popleft()
                seconds = self._waited.pop(worker, 0.0)
                self._longest = max(self._longest, seconds)
                self._board.patience = _MOST_TIMES * self._longest
                self._answer(window, body, failures)

    def _answer(self, window: WorkerWindow, body: str, failures: list[tuple[int, str]]) -> None:
        # In a row: one answer shows that workers can live.
        self._num_deaths = 0
        begun = self._begun.get(window.piece.number)
        if begun is None or window.row in begun.bodies:  # Another command was faster.
            return
        begun.bodies[window.row] = body
        begun.failures += [(window.row + row, sentence) for row, sentence in failures]
        begun.missing -= window.lines
        beat = self._board.beat
        beat.lines += window.lines
        beat.partial += window.lines
        if not begun.missing:
            # Workers answer in any order.
            text = "".join(begun.bodies[row] for row in sorted(begun.bodies))
            self._board.finish(begun.piece, text, sorted(begun.failures))
            beat.partial -= begun.piece.lines
            del self._begun[window.piece.number]
            self._next_look = 0.0  # Perhaps it was the last one.

    def _drop_done(self) -> None:
        """Leave pieces that other commands have finished meanwhile."""
        for number, begun in list(self._begun.items()):
            if begun.piece.name in self._board.done:
                del self._begun[number]
                self._board.give_up(begun.piece)
                self._board.beat.partial -= begun.piece.lines - begun.missing
                rest = [window for window in self._todo if window.piece.number != number]
                self._todo = deque(rest)

    def _end_idle_workers(self) -> None:
        """End workers that take far longer than windows do."""
        limit = max(SECONDS_TO_ANSWER, _MOST_TIMES * self._longest)
        for worker, windows in list(self._at_work.items()):
            if windows and self._waited[worker] > limit:
                self._crew.drop(worker)
                self._lose(worker, PellucidError(f"A worker gave no answer for {limit:.0f} s."))

    def _lose(self, worker: Worker, error: Exception) -> None:
        """Hand the windows of a worker that ended to others."""
        self._waited.pop(worker, None)
        windows = self._at_work.pop(worker, None)
        self._num_deaths += 1
        if windows is None:
            self._num_starting -= 1
            self._num_bad_starts += 1
        # Some windows may kill workers, but not all of them: then it is the machine.
        is_hopeless = self._num_deaths > _MOST_DEATHS * self._crew.size
        if isinstance(error, InputError) or is_hopeless or self._num_bad_starts == MOST_BAD_STARTS:
            raise error
        self._board.count_retry(windows[0].piece if windows else None)
        if windows:  # It was working on the first.
            blamed = windows.popleft()
            again = [*_retry(blamed, error), *windows]
            # To the front: these hold up their piece, unless another command has finished it.
            wanted = [window for window in again if window.piece.number in self._begun]
            self._todo.extendleft(reversed(wanted))


def cut_windows(piece: ShardPiece, raw: bytes) -> list[WorkerWindow]:
    """Cut the lines of a piece into windows."""
    found = []
    row = 0
    start = 0
    while start < len(raw):
        end = start
        lines = 0
        while end < len(raw) and lines < WINDOW_LINES and end - start < WINDOW_BYTES:
            end = raw.find(b"\n", end) + 1 or len(raw)
            lines += 1
        found.append(WorkerWindow(piece, row, lines, raw[start:end]))
        row += lines
        start = end
    return found


def _retry(window: WorkerWindow, error: Exception) -> list[WorkerWindow]:
    """Decide what to do with a window that ended a worker: again, in halves, or not at all."""
    deaths = window.deaths + 1
    # A first death may be chance, for example if memory ran out. Of halves of a deadly window one
    # is known to be deadly.
    if deaths < (1 if window.is_half and window.lines > 1 else 2):
        return [replace(window, deaths=deaths)]
    if window.lines == 1:
        # It kills workers without being translated, so that the fault is not in the text.
        if window.error:
            raise error
        return [replace(window, deaths=0, error=f"It ended {deaths} workers: {error}")]
    middle = window.lines // 2
    place = 0
    for _ in range(middle):
        place = window.raw.index(b"\n", place) + 1
    first = replace(window, lines=middle, raw=window.raw[:place], deaths=0, is_half=True)
    rest = window.lines - middle
    return [
        first,
        replace(first, row=window.row + middle, lines=rest, raw=window.raw[place:]),
    ]
