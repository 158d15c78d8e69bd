"""The state of a job in its folder: finished pieces, claims, workers, lines that failed.

A claim only spares others the same work. If two work on a piece all the same, both write the same
bytes under the same name.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field

from pellucid.bulk.manifest import Manifest, ShardPiece
from pellucid.bulk.shared_folder import Store
from pellucid.errors import InputFileNotFoundError
from pellucid.terminal.progress import describe_progress
from pellucid.terminal.text import count_of

PIECES = "pieces"
CLAIMS = "claims"
WORKERS = "workers"
FAILED = "failed"
FAILED_LIST = "failed.tsv"

SECONDS_BETWEEN_BEATS = 5.0
# Time without a beat after which a worker's pieces are free again: twelve beats, since a store may
# be slow for a while, and a piece that is taken too early is computed twice.
SECONDS_TO_DIE = 60.0

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


class Board:
    """A command's view of a job.

    Args:
        store: the job's folder.
        manifest: the job.
    """

    def __init__(self, store: Store, manifest: Manifest) -> None:
        self.store = store
        self.manifest = manifest
        self.beat = Beat(socket.gethostname(), os.getpid())
        # Containers on many machines may share both host name and process number.
        self._name = f"{self.beat.host}-{self.beat.pid}-{secrets.token_hex(4)}"
        self._begun = self._last_beat = time.monotonic()
        self._mine: set[str] = set()
        self._seen: dict[str, tuple[bytes, float]] = {}
        self.is_finished = False
        """True if no piece was left when this command looked last."""

    def take(self) -> ShardPiece | None:
        """Claim a piece; None if none is free now.

        Pieces of commands that have died come last, so that each has time to show that it lives.
        """
        self.send_beat(at_once=not self._mine)  # A claim without a beat would be free.
        done = self.store.names(PIECES)
        claims = self.store.names(CLAIMS)
        left = [piece for piece in self.manifest.pieces if piece.name not in done]
        self.is_finished = not left
        others = [piece for piece in left if piece.name not in self._mine]
        # Free ones first. `sorted` keeps the order of the others, so that shards are read
        # forward.
        for piece in sorted(others, key=lambda piece: piece.name in claims):
            name = f"{CLAIMS}/{piece.name}"
            if piece.name in claims:
                if not self._is_free(piece):
                    continue
                # Two commands may do this at once; then both compute the same bytes.
                self.store.delete(name)
                self.beat.retries += 1
            if self.store.create(name, self._name.encode()):
                self._mine.add(piece.name)
                return piece
        return None

    def _is_free(self, piece: ShardPiece) -> bool:
        """Tell whether the command that claimed a piece has died."""
        try:
            owner = self.store.read(f"{CLAIMS}/{piece.name}").decode()
            found = self.store.read(f"{WORKERS}/{owner}")
        except InputFileNotFoundError:
            return True
        before, since = self._seen.get(owner, (b"", 0.0))
        if before != found:
            # By this machine's clock only: those of others may be wrong.
            since = time.monotonic()
            self._seen[owner] = found, since
        return time.monotonic() - since > SECONDS_TO_DIE or _read_beat(found).is_gone()

    def finish(self, piece: ShardPiece, body: str, failures: Failures) -> None:
        """Write a piece's results, and give up its claim."""
        if failures:
            # Before the piece: once that is there, its failures are not written again.
            self.store.write(f"{FAILED}/{piece.name}", json.dumps(failures).encode())
        self.store.write(f"{PIECES}/{piece.name}", body.encode())
        self._mine.discard(piece.name)
        self.store.delete(f"{CLAIMS}/{piece.name}")

    def send_beat(self, *, at_once: bool = False) -> None:
        """Show that this command lives, if it is time."""
        now = time.monotonic()
        if at_once or now - self._last_beat >= SECONDS_BETWEEN_BEATS:
            self._last_beat = now
            self.beat.pieces = sorted(map(int, self._mine))
            self.beat.seconds = now - self._begun
            self.beat.time = time.time()
            self.store.write(f"{WORKERS}/{self._name}", json.dumps(asdict(self.beat)).encode())

    def leave(self) -> None:
        """Give up all claims, and leave the job."""
        for name in self._mine:
            self.store.delete(f"{CLAIMS}/{name}")
        self._mine.clear()
        self.store.delete(f"{WORKERS}/{self._name}")
        for folder in (PIECES, CLAIMS, FAILED, WORKERS):
            self.store.tidy(folder, SECONDS_TO_DIE)

    def describe(self, most: int = 4) -> str:
        """Describe the state of the job: what is done, how fast, and by which commands."""
        done = self.store.names(PIECES)
        beats = []
        for name in sorted(self.store.names(WORKERS)):
            with suppress(InputFileNotFoundError):  # It may leave between the list and this.
                beat = _read_beat(self.store.read(f"{WORKERS}/{name}"))
                if not beat.is_gone() and time.time() - beat.time < SECONDS_TO_DIE:
                    beats.append(beat)
        finished = [piece.lines for piece in self.manifest.pieces if piece.name in done]
        lines = sum(finished) + sum(beat.partial for beat in beats)
        rate = sum(beat.lines / max(1.0, beat.seconds) for beat in beats)
        progress = describe_progress(
            # The sum of the speeds of all commands, put as if they had worked for a thousand
            # seconds.
            lines,
            total=self.manifest.num_lines,
            before=round(lines - 1000 * rate),
            seconds=1000,
        )
        words = f"{len(finished):,} of {count_of(len(self.manifest.pieces), 'piece')}, {progress}"
        if retries := sum(beat.retries for beat in beats):
            words += f", {count_of(retries, 'retry', 'retries')}"
        for number, beat in enumerate(beats[:most]):
            pieces = "".join(f" {piece}" for piece in beat.pieces[:most])
            workers = count_of(beat.workers, "worker")
            words += f"{',' if number else ';'} {beat.host} ({workers}, pieces{pieces})"
        if len(beats) > most:
            words += f" and {len(beats) - most:,} more"
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
    return Beat(**json.loads(data))
