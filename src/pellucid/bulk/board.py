"""The state of a job in its folder: finished pieces, claims, workers, lines that failed.

A claim only spares others the same work. If two work on a piece all the same, both write the same
bytes under the same name.
"""

from __future__ import annotations

import errno
import json
import math
import os
import secrets
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any

from pellucid.bulk.manifest import Manifest, ShardPiece
from pellucid.bulk.shared_folder import Store
from pellucid.errors import InputFileNotFoundError
from pellucid.terminal.progress import describe_progress
from pellucid.terminal.text import count_of

PIECES = "pieces"
CLAIMS = "claims"
WORKERS = "workers"
FAILED = "failed"
RETRIES = "retries"
FAILED_LIST = "failed.tsv"

PLAN = "plan"
"""The name of the claim of the command that plans the job."""

SECONDS_BETWEEN_BEATS = 5.0
# Time without a beat after which a worker's pieces are free again: twelve beats, since a store may
# be slow for a while, and a piece that is taken too early is computed twice.
SECONDS_TO_DIE = 60.0

# Age at which half-written files belong to no command that lives, however slow its disk is.
_SECONDS_TO_TIDY = 600.0

# What `pellucid bulk status --json` tells of a command.
_SHOWN_OF_BEATS = ("host", "pid", "workers", "pieces", "lines", "seconds", "retries")

# Lines of a piece, from 0, with the reason.
Failures = Sequence[tuple[int, str]]


@dataclass
class Beat:
    """A command that works on a job, as it says itself every few seconds.

    Attributes:
        host: its machine.
        pid: its process.
        workers: the number of its processes, or of its actors.
        pieces: the numbers of the pieces that it works on.
        lines: the number of lines that it translated.
        partial: those of them that are in unfinished pieces.
        seconds: the time since it began.
        retries: the number of workers that ended too soon, and of pieces taken from other commands.
        time: the time of this beat.
    """

    host: str
    pid: int
    workers: int = 0
    pieces: list[int] = field(default_factory=list)
    lines: int = 0
    partial: int = 0
    seconds: float = 0.0
    retries: int = 0
    time: float = 0.0

    def is_gone(self) -> bool:
        """Tell whether this machine knows that the process has ended."""
        if self.host == socket.gethostname():
            try:
                # Signal 0 only asks whether the process exists.
                os.kill(self.pid, 0)
            except OSError as error:
                # A process of another user cannot be signalled, but exists.
                return error.errno == errno.ESRCH
        return False


@dataclass
class _Watched:
    """What this command saw of another one, by its own clock: those of others may be wrong.

    Attributes:
        data: its last beat.
        beat: the same, read.
        since: the time when that was new.
        progress: the time when it had last translated more lines.
        num_beats: the number of beats that were seen.
    """

    data: bytes
    beat: Beat
    since: float
    progress: float
    num_beats: int = 1

    def is_dead(self) -> bool:
        """Tell whether it has ended, or is silent for so long that it must have."""
        return time.monotonic() - self.since > SECONDS_TO_DIE or self.beat.is_gone()


class Board:
    """A command's view of a job.

    Args:
        store: the job's folder.
        manifest: the job.

    Attributes:
        patience: seconds after which another command that translates no line is not waited for,
            besides `SECONDS_TO_DIE`.
        num_finished: the number of pieces that this command finished.
        done: the names of finished pieces, when this command looked last.
        is_finished: whether those were all.
    """

    def __init__(self, store: Store, manifest: Manifest) -> None:
        self.store = store
        self.manifest = manifest
        self.beat = Beat(socket.gethostname(), os.getpid())
        # Containers on many machines may share both host name and process number.
        self._name = f"{self.beat.host}-{self.beat.pid}-{secrets.token_hex(4)}"
        self._begun = self._last_beat = time.monotonic()
        self._mine: set[str] = set()
        self._seen: dict[str, _Watched] = {}
        self.patience = 0.0
        self.num_finished = 0
        self.done: set[str] = set()
        self.is_finished = False

    def look(self) -> None:
        """Look which pieces are finished."""
        self.done = self.store.names(PIECES)
        self.is_finished = all(piece.name in self.done for piece in self.manifest.pieces)

    def left(self) -> list[ShardPiece]:
        """List the pieces that were not finished when this command looked last."""
        return [piece for piece in self.manifest.pieces if piece.name not in self.done]

    def take(self, most_lines: float = math.inf) -> ShardPiece | None:
        """Claim a piece of at most so many lines; None if none is free now.

        Pieces of commands that have died or stand still come last, so that each has time to show
        that it lives.
        """
        self.send_beat(at_once=not self._mine)  # A claim without a beat would be free.
        self.look()
        claims = self.store.names(CLAIMS)
        fitting = [piece for piece in self.left() if piece.lines <= most_lines]
        others = [piece for piece in fitting if piece.name not in self._mine]
        # Free ones first. `sorted` keeps the order of the others, so that shards are read
        # forward.
        for piece in sorted(others, key=lambda piece: piece.name in claims):
            name = f"{CLAIMS}/{piece.name}"
            if piece.name in claims:
                if not self._is_free(piece.name):
                    continue
                # Two commands may do this at once; then both compute the same bytes.
                self.store.delete(name)
                self.count_retry(piece)
            if self.store.create(name, self._name.encode()):
                self._mine.add(piece.name)
                return piece
        return None

    def take_plan(self) -> bool:
        """Claim the planning of the job; False while another command is at it."""
        if PLAN in self.store.names(CLAIMS):
            if not self._is_free(PLAN):
                return False
            self.store.delete(f"{CLAIMS}/{PLAN}")
        self.send_beat(at_once=True)
        is_mine = self.store.create(f"{CLAIMS}/{PLAN}", self._name.encode())
        self._mine |= {PLAN} if is_mine else set()
        return is_mine

    def _is_free(self, name: str) -> bool:
        """Tell whether the command that claimed something has died, or makes no progress."""
        try:
            owner = self.store.read(f"{CLAIMS}/{name}").decode()
            # Without hard links, the content of a claim comes after its name.
            seen = self._watch(owner) if owner else self._watch_beat(name, b"")
        except InputFileNotFoundError:
            return True
        # Not among those of this command, although it wrote it: an answer of the disk was lost.
        if owner == self._name:
            return True
        # A command may live whose workers stand still. If it finishes the piece all the same, both
        # write the same bytes.
        patience = max(SECONDS_TO_DIE, self.patience)
        return seen.is_dead() or time.monotonic() - seen.progress > patience

    def _watch(self, name: str) -> _Watched:
        """Look at the last beat of a command.

        Raises:
            InputFileNotFoundError: it has left.
        """
        return self._watch_beat(name, self.store.read(f"{WORKERS}/{name}"))

    def _watch_beat(self, name: str, data: bytes) -> _Watched:
        now = time.monotonic()
        beat = _read_beat(data)
        seen = self._seen.setdefault(name, _Watched(data, beat, now, now))
        if seen.data != data:
            if seen.beat.lines != beat.lines:
                seen.progress = now
            seen.data = data
            seen.beat = beat
            seen.since = now
            seen.num_beats += 1
        return seen

    def _living(self) -> list[Beat]:
        """Return the beats of commands that work.

        If its clock is not this one's, a command is seen by its second beat.
        """
        found = []
        for name in sorted(self.store.names(WORKERS)):
            with suppress(InputFileNotFoundError):  # It may leave between the list and this.
                seen = self._watch(name)
                is_fresh = abs(time.time() - seen.beat.time) < SECONDS_TO_DIE
                if not seen.is_dead() and (is_fresh or seen.num_beats > 1):
                    found.append(seen.beat)
        return found

    def finish(self, piece: ShardPiece, body: str, failures: Failures) -> None:
        """Write a piece's results, and give up its claim."""
        if failures:
            # Before the piece: once that is there, its failures are not written again.
            self.store.write(f"{FAILED}/{piece.name}", json.dumps(failures).encode())
        self.store.write(f"{PIECES}/{piece.name}", body.encode())
        self.num_finished += 1
        self.give_up(piece)

    def count_retry(self, piece: ShardPiece | None) -> None:
        """Count a worker that ended too soon, or a piece that is taken from another command.

        Args:
            piece: what is computed again; its count stays in the job. None if the worker had none.
        """
        self.beat.retries += 1
        if piece is not None:
            # Two commands that count at once lose one: this is only for people to read.
            count = self.retries([piece.name]).get(piece.name, 0) + 1
            self.store.write(f"{RETRIES}/{piece.name}", f"{count}".encode())

    def retries(self, names: Iterable[str] | None = None) -> dict[str, int]:
        """Read how often pieces were begun again, all of them if none is named."""
        found = {}
        for name in sorted(self.store.names(RETRIES) if names is None else names):
            # Without hard links the content of a file comes after its name.
            with suppress(InputFileNotFoundError, ValueError):
                found[name] = int(self.store.read(f"{RETRIES}/{name}"))
        return found

    def give_up(self, piece: ShardPiece) -> None:
        """Give up the claim of a piece."""
        self._mine.discard(piece.name)
        self.store.delete(f"{CLAIMS}/{piece.name}")

    def send_beat(self, *, at_once: bool = False) -> None:
        """Show that this command lives, if it is time."""
        now = time.monotonic()
        if at_once or now - self._last_beat >= SECONDS_BETWEEN_BEATS:
            self._last_beat = now
            self.beat.pieces = sorted(map(int, self._mine - {PLAN}))
            self.beat.seconds = now - self._begun
            self.beat.time = time.time()
            self.store.write(f"{WORKERS}/{self._name}", json.dumps(asdict(self.beat)).encode())

    def leave(self) -> None:
        """Give up all claims, and leave the job."""
        for name in self._mine:
            self.store.delete(f"{CLAIMS}/{name}")
        self._mine.clear()
        self.store.delete(f"{WORKERS}/{self._name}")
        for name in self.store.names(WORKERS):
            with suppress(InputFileNotFoundError):
                # One that was taken for dead beats again, and those that live leave now as well.
                if self.is_finished or self._watch(name).is_dead():
                    self.store.delete(f"{WORKERS}/{name}")
        for folder in (PIECES, CLAIMS, FAILED, WORKERS, RETRIES):
            self.store.tidy(folder, _SECONDS_TO_TIDY)

    def measure(self) -> dict[str, Any]:
        """Measure the job: what is done, how fast, and by which commands; see `pellucid bulk`."""
        self.look()
        beats = self._living()
        finished = [piece.lines for piece in self.manifest.pieces if piece.name in self.done]
        lines = sum(finished) + sum(beat.partial for beat in beats)
        speeds = [beat.lines / max(1.0, beat.seconds) for beat in beats]
        # No speed is not a speed of 0, which commands have that stand still.
        rate = math.fsum(speeds) if speeds else None
        return {
            "pieces": len(self.manifest.pieces),
            "finished_pieces": len(finished),
            "lines": self.manifest.num_lines,
            "finished_lines": lines,
            "lines_per_second": rate,
            "seconds_left": (self.manifest.num_lines - lines) / rate if rate else None,
            "commands": [{name: getattr(beat, name) for name in _SHOWN_OF_BEATS} for beat in beats],
        }

    def describe(self, found: Mapping[str, Any] | None = None, *, most: int = 4) -> str:
        """Describe the state of the job, as it was measured or is measured now."""
        found = found or self.measure()
        progress = describe_progress(
            # The sum of the speeds of all commands, put as if they had worked for a thousand
            # seconds.
            found["finished_lines"],
            total=found["lines"],
            before=round(found["finished_lines"] - 1000 * (found["lines_per_second"] or 0)),
            seconds=1000,
        )
        commands = found["commands"]
        words = f"{found['finished_pieces']:,} of {count_of(found['pieces'], 'piece')}, {progress}"
        if retries := sum(one["retries"] for one in commands):
            words += f", {count_of(retries, 'retry', 'retries')}"
        for number, one in enumerate(commands[:most]):
            pieces = "".join(f" {piece}" for piece in one["pieces"][:most])
            workers = count_of(one["workers"], "worker")
            words += f"{',' if number else ';'} {one['host']} ({workers}, pieces{pieces})"
        if len(commands) > most:
            words += f" and {len(commands) - most:,} more"
        return words

    def failures(self) -> Iterator[tuple[ShardPiece, int, str]]:
        """Yield the lines that failed, in order, from 0 in their piece, with the reason."""
        found = self.store.names(FAILED)
        for piece in self.manifest.pieces:
            if piece.name in found:
                for row, sentence in json.loads(self.store.read(f"{FAILED}/{piece.name}")):
                    yield piece, row, sentence

    def list_failures(self) -> tuple[int, list[str]]:
        """Write the list of lines that failed; return their number, and the first three."""
        listed = [
            (f"{piece.shard.path}:{piece.row + row}", sentence)
            for piece, row, sentence in self.failures()
        ]
        text = "".join("\t".join(place) + "\n" for place in listed)
        if text:
            self.store.write(FAILED_LIST, text.encode("utf-8", "replace"))
        return len(listed), [f"{place}: {sentence}" for place, sentence in listed[:3]]


def _read_beat(data: bytes) -> Beat:
    """Read a beat; an empty one belongs to no command yet."""
    try:
        return Beat(**json.loads(data))
    except (ValueError, TypeError):
        return Beat("", 0)
