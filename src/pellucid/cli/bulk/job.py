"""The jobs of ``pellucid bulk``: begun, joined, described and collected."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pellucid.bulk.board import Board, Status
from pellucid.bulk.collect import check_finished, collect_lines, collect_pairs
from pellucid.bulk.driver import Crew, Driver, Worker
from pellucid.bulk.local import LocalCrew
from pellucid.bulk.manifest import Manifest, read_manifest, write_manifest
from pellucid.bulk.shards import ShardReader, plan_shard
from pellucid.bulk.store import Store, find_files, is_remote, open_file, reaching
from pellucid.cli.ending import warn
from pellucid.cli.lines.resumable import describe_difference
from pellucid.cli.lines.streams import is_json_lines, open_output
from pellucid.errors import InputError, InputFileNotFoundError
from pellucid.files import refuse_pipe
from pellucid.machine.hardware import share_threads, threads_in_use
from pellucid.terminal.progress import ProgressLine, describe_progress
from pellucid.terminal.text import count_of
from pellucid.text.reading.lines import name_unpacked
from pellucid.text.reading.rows import kind_of_document

MACHINE = {"the version of PyTorch", "the processor", "the engine"}
"""The parts of an identity that may differ from machine to machine."""

LINES_A_WORKER = 500
"""The fewest lines that are worth another worker."""

SECONDS_BETWEEN_LOOKS, SECONDS_BETWEEN_LOGS = 2.0, 30.0
_KINDS = {".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_MOST_SHOWN = 4


@dataclass(frozen=True)
class Means:
    """The means of a command to work on a job.

    Attributes:
        workers: the number of its workers; None for one a thread, or a processor of a Ray cluster.
        ray: the address of a Ray cluster; None for processes of this machine.
        any_machine: True to accept workers that compute with other instructions.
    """

    workers: int | None
    ray: str | None
    any_machine: bool


def begin(
    task: Mapping[str, Any], inputs: Sequence[str], place: str, means: Means, *, piece_bytes: int
) -> int:
    """Begin a job, or resume it if its folder holds it already; return the exit code.

    Args:
        task: what workers are told.
        inputs: the shards, in order.
        place: the job's folder.
        means: the workers.
        piece_bytes: bytes of a piece.

    Raises:
        InputError: the folder holds another job, or something else.
        PellucidError: a worker does not start, or the folder cannot be written.
    """
    store, crew, worker = Store(place), _make_crew(task, means), None
    try:
        try:
            manifest = read_manifest(store)
        except InputFileNotFoundError:
            if not is_remote(place) and Path(place).exists() and any(Path(place).iterdir()):
                raise
            worker, (identity, warnings, languages) = _hire(crew)
            for sentence in warnings:
                warn(sentence)
            task = {**task, "languages": languages}
            shards = [plan_shard(path, task, piece_bytes) for path in inputs]
            manifest = Manifest(task, dict(identity), shards)
            if not write_manifest(store, manifest):
                manifest = read_manifest(store)
        if [shard.path for shard in manifest.shards] != list(inputs):
            raise InputError(
                f"A folder must hold one job, but that in {place} has other inputs. Choose another "
                "folder."
            )
        return _work(store, manifest, crew, means, first=worker)
    finally:
        crew.close()


def join(place: str, means: Means, *, model: str | None) -> int:
    """Work on a job that another command began; return the exit code.

    Args:
        place: the job's folder.
        means: the workers.
        model: the place of the model on this machine, if it is another one.
    """
    store = Store(place)
    manifest = read_manifest(store)
    task = {**manifest.task, **({"model": model} if model else {})}
    crew = _make_crew(task, means)
    try:
        return _work(store, manifest, crew, means)
    finally:
        crew.close()


def _make_crew(task: Mapping[str, Any], means: Means) -> Crew:
    if means.ray is not None:
        from pellucid.cli.bulk.on_ray import RayCrew

        return RayCrew(means.ray, task, size=means.workers)
    size = means.workers or threads_in_use()
    return LocalCrew("pellucid.cli.bulk.work:serve", task, size=size, threads=share_threads(size))


def _hire(crew: Crew) -> tuple[Worker, list[Any]]:
    """Start a worker and wait until it is ready."""
    crew.start()
    while not (replies := crew.receive(1.0)):
        pass
    worker, reply = replies[0]
    if isinstance(reply, Exception):
        raise reply
    return worker, reply


def _work(
    store: Store, manifest: Manifest, crew: Crew, means: Means, first: Worker | None = None
) -> int:
    """Work on a job until it is finished; return the exit code."""
    board = Board(store, manifest)
    crew.size = min(crew.size, 1 + manifest.num_lines // LINES_A_WORKER)

    def check(identity: Mapping[str, Any]) -> None:
        known, found = dict(manifest.identity), dict(identity)
        if means.any_machine:
            known, found = (
                {name: value for name, value in one.items() if name not in MACHINE}
                for one in (known, found)
            )
        if known != found:
            differing = {name for name in {**known, **found} if known.get(name) != found.get(name)}
            advice = "Give the command that began it, or choose another folder."
            if differing <= MACHINE:
                advice = (
                    "Add --any-machine to accept that bytes may differ from those of one machine."
                )
            raise InputError(
                f"All workers of the job in {store.place} must compute alike, but "
                f"{describe_difference(known, found)}. {advice}"
            )

    try:
        with ProgressLine(total=manifest.num_lines) as line:
            read = ShardReader(manifest).read
            show = _shower(board, line)
            Driver(board, crew, read=read, check=check, show=show, first=first).run()
    except (KeyboardInterrupt, SystemExit):
        warn(f"Finished pieces are kept in {store.place}. Give the same command again to resume.")
        raise
    num_failed, shown = board.list_failures()
    for sentence in shown:
        warn(sentence)
    if num_failed:
        lines = count_of(num_failed, "line")
        warn(f"{lines} could not be used and left empty. {store.place}/failed.tsv lists them.")
    return 2 if num_failed else 0


def _shower(board: Board, line: ProgressLine) -> Callable[[], None]:
    """Show progress on a terminal every few seconds, or in a log."""
    seconds = SECONDS_BETWEEN_LOOKS if line.is_shown else SECONDS_BETWEEN_LOGS
    next_time = time.monotonic() + seconds

    def show() -> None:
        nonlocal next_time
        if time.monotonic() >= next_time:
            status = board.status()
            if line.is_shown:
                line.show(describe(status), status.lines)
            else:
                warn(describe(status))
            next_time = time.monotonic() + seconds

    return show


def show_status(place: str) -> None:
    """Write the state of a job to standard output."""
    store = Store(place)
    status = Board(store, read_manifest(store)).status()
    sys.stdout.write(f"{describe(status, most=1000)}\n")


def describe(status: Status, *, most: int = _MOST_SHOWN) -> str:
    """Describe the state of a job in words: what is done, how fast, and by which commands."""
    before = round(status.lines - 1000 * status.rate)
    lines = describe_progress(status.lines, total=status.num_lines, before=before, seconds=1000.0)
    words = f"{status.pieces:,} of {count_of(status.num_pieces, 'piece')}, {lines}"
    if status.retries:
        words += f", {count_of(status.retries, 'retry', 'retries')}"
    for number, beat in enumerate(status.at_work[:most]):
        pieces = "".join(f" {piece}" for piece in beat.pieces[:most])
        workers = count_of(beat.workers, "worker")
        words += f"{',' if number else ';'} {beat.host} ({workers}, pieces{pieces})"
    more = len(status.at_work) - most
    return f"{words} and {more:,} more" if more > 0 else words


def collect(place: str, path: str, *, tag: str | None, may_overwrite: bool) -> None:
    """Write the results of a finished job.

    Args:
        place: the job's folder.
        path: a name that ends in .tsv or .jsonl gets pairs, any other one only results.
        tag: swap the sides of pairs, and begin each translation with this.
        may_overwrite: True if an existing file may be replaced.

    Raises:
        InputError: the job is not finished, or its results are not pairs.
    """
    store = Store(place)
    board = Board(store, read_manifest(store))
    check_finished(board)
    is_table = name_unpacked(path).endswith(".tsv")
    has_pairs = board.manifest.task["form"] == "plain" and (is_table or is_json_lines(path))
    if tag is not None and (board.manifest.task["score"] or not has_pairs):
        raise InputError(
            f"--back-translation needs translations, and a file that ends in .tsv or .jsonl, but "
            f"{path} is not one or holds scores. Leave it out, or name another file."
        )
    rows = collect_lines(board)
    if has_pairs:
        rows = collect_pairs(board, is_table=is_table, tag=tag)
    with open_output(path, may_overwrite=may_overwrite) as output:
        for row in rows:
            output.write(row)


def find_inputs(names: Sequence[str]) -> tuple[list[str], str]:
    """Find the files of a job, and what all of them hold.

    Args:
        names: files, addresses, or addresses with ``*``, whose files are sorted by name.

    Raises:
        InputError: a name is that of a document, or the files are of several kinds.
        InputFileNotFoundError: a file does not exist.
    """
    found: list[str] = []
    for name in names:
        if is_remote(name) and "*" in name:
            files, pattern = find_files(name)
            with reaching(name):
                found += sorted(map(files.unstrip_protocol, files.glob(pattern)))
        elif is_remote(name):
            found.append(name)
        else:
            refuse_pipe(Path(name), "A shard")
            found.append(str(Path(name).resolve()))
    kinds = set(map(_kind_of, found))
    if len(kinds) != 1:
        raise InputError(
            f"The files of a job must be of one kind, but are {', '.join(sorted(kinds))}. Begin "
            " a job for each kind."
        )
    for path in found:
        open_file(path)[0].close()
    return found, kinds.pop()


def _kind_of(path: str) -> str:
    stem = name_unpacked(path)
    for ending, kind in _KINDS.items():
        if stem.endswith(ending):
            return kind
    if document := kind_of_document(path):
        raise InputError(
            "A shard must be lines of text, .tsv, .jsonl or .parquet, but "
            f"{path} is {document} by its name. Write its texts into such a file first."
        )
    return "lines"
