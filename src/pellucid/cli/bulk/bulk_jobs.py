"""The jobs of ``pellucid bulk``: begun, joined, described and collected."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pellucid.bulk.board import CLAIMS, FAILED_LIST, WORKERS, Board
from pellucid.bulk.collect import collect_lines, collect_pairs
from pellucid.bulk.driver import MOST_BAD_STARTS, SECONDS_TO_ANSWER, Crew, Driver, Worker
from pellucid.bulk.manifest import Manifest, read_manifest, write_manifest
from pellucid.bulk.planning import Plan
from pellucid.bulk.shards import ShardReader
from pellucid.bulk.shared_folder import Store, find_files, is_remote, open_file, reaching
from pellucid.cli.ending import LINES_FAILED, NOT_FINISHED, note, warn
from pellucid.cli.lines.resumable import describe_difference
from pellucid.cli.lines.streams import is_json_lines, open_output, to_json_line
from pellucid.errors import InputError, InputFileNotFoundError
from pellucid.files import endings, refuse_pipe
from pellucid.machine.hardware import threads_in_use
from pellucid.terminal.text import count_of
from pellucid.text.reading.row_sides import kind_of_document

# The parts of an identity that may differ from machine to machine.
MACHINE = {"the version of PyTorch", "the processor", "the engine"}

# The fewest lines that are worth another worker.
LINES_A_WORKER = 500

_SECONDS_BETWEEN_LOOKS = 1.0

_KINDS = {".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}

MakeCrew = Callable[[Mapping[str, Any]], Crew]


def begin(
    task: Mapping[str, Any],
    inputs: Sequence[str],
    place: str,
    make_crew: MakeCrew,
    *,
    piece_bytes: int,
    any_machine: bool,
    until: float,
) -> int:
    """Begin a job, or resume it if its folder holds it already; return the exit code.

    Args:
        task: the instructions for workers.
        inputs: the shards, in order.
        place: the job's folder.
        make_crew: makes the workers.
        piece_bytes: bytes of a piece.
        any_machine: True to accept workers that compute with other instructions.
        until: when the command ends, see `Driver`.

    Raises:
        InputError: the folder holds another job, or something else.
        PellucidError: a worker does not start, or the folder cannot be written.
    """
    store = Store(place)
    with closing(make_crew(task)) as crew:
        # Before the manifest is written, since it says what workers compute with.
        worker, (identity, warnings) = _hire(crew)
        try:
            manifest = read_manifest(store)
        except InputFileNotFoundError:
            # A hidden file is the manifest that another command is about to place.
            others = set() if is_remote(place) else {*Path(place).glob("[!.]*")}
            if Path(place).is_file() or {path.name for path in others} - {CLAIMS, WORKERS}:
                raise
            for sentence in warnings:
                warn(sentence)
            board = Board(store, Manifest(task, dict(identity), []))
            planned = _plan(board, Plan(inputs, task, piece_bytes), until)
            if planned is None:
                note("Not finished in time: another command still reads the files.")
                return NOT_FINISHED
            manifest = planned
        _check(manifest, dict(identity), place=place, any_machine=any_machine)
        if [shard.path for shard in manifest.shards] != list(inputs):
            raise InputError(
                f"A folder must hold one job, but that in {place} has other inputs. Choose another "
                "folder."
            )
        return _work(store, manifest, crew, any_machine, until, first=worker)


def _plan(board: Board, plan: Plan, until: float) -> Manifest | None:
    """Plan a job, or wait for another command that does; None if that takes too long."""
    store = board.store
    # Much longer than a file takes: until then, whoever reads does not count as still.
    board.patience = SECONDS_TO_ANSWER
    try:
        while plan.is_large:
            is_mine = board.take_plan()
            with suppress(InputFileNotFoundError):
                return read_manifest(store)
            if is_mine:
                break
            if time.monotonic() > until:
                return None
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        manifest = replace(board.manifest, shards=plan.read(threads_in_use(), board.send_beat))
        # False if another command was faster.
        return manifest if write_manifest(store, manifest) else read_manifest(store)
    finally:
        board.leave()


def _hire(crew: Crew) -> tuple[Worker, Any]:
    """Start a worker, and wait for its introduction."""
    for _ in range(MOST_BAD_STARTS):
        crew.start()
        while not (replies := crew.receive(1.0)):
            pass
        worker, reply = replies[0]
        if not isinstance(reply, Exception):
            return worker, reply
        # The user must change something: another start would fail in the same way.
        if isinstance(reply, InputError):
            break
    raise reply


def join_job(
    place: str, make_crew: MakeCrew, *, model: str | None, any_machine: bool, until: float
) -> int:
    """Work on a job that another command began; return the exit code.

    Args:
        place: the job's folder.
        make_crew: makes the workers.
        model: the place of the model on this machine, if it is another one.
        any_machine: True to accept workers that compute with other instructions.
        until: when the command ends, see `Driver`.
    """
    store = Store(place)
    manifest = read_manifest(store)
    files = dict(manifest.task["files"])
    if model is not None:
        files["model"] = [model, *files["model"][1:]]
    with closing(make_crew({**manifest.task, "files": files})) as crew:
        return _work(store, manifest, crew, any_machine, until)


def _work(
    store: Store,
    manifest: Manifest,
    crew: Crew,
    any_machine: bool,
    until: float,
    first: Worker | None = None,
) -> int:
    """Work on a job until it is finished or time runs out; return the exit code.

    That is 0 also if lines failed: a scheduler would run a finished job again.
    """
    board = Board(store, manifest)
    reader = ShardReader(manifest)
    check = partial(_check, manifest, place=store.place, any_machine=any_machine)
    # Each worker loads the model, which takes longer than a few lines do.
    crew.size = min(crew.size, 1 + manifest.num_lines // LINES_A_WORKER)
    try:
        with closing(reader):
            driver = Driver(
                board, crew, read=reader.read, check=check, say=note, until=until, first=first
            )
            is_finished = driver.run()
    except (KeyboardInterrupt, SystemExit):
        note(f"Finished pieces are kept in {store.place}. Give the same command again to resume.")
        raise
    if not is_finished:
        further = "Give the same command again to continue."
        if not board.num_finished:
            warn(
                "The time was too short for any piece. Give more minutes (--minutes), or begin the "
                "job in another folder with smaller pieces (--piece-bytes)."
            )
            further = "Give the command with more minutes to continue."
        note(f"Not finished in time: {board.describe()}. {further}")
        return NOT_FINISHED
    num_failed, shown = board.list_failures()
    if num_failed:
        lines = count_of(num_failed, "line")
        listed = "; ".join(shown).rstrip(".")
        where = f"{store.place}/{FAILED_LIST}"
        warn(f"{lines} could not be used and left empty: {listed}. {where} lists all.")
    return 0


def _check(
    manifest: Manifest, identity: Mapping[str, Any], *, place: str, any_machine: bool
) -> None:
    """Compare the identity of a worker with that of the job."""
    then = manifest.identity
    differing = {name for name in {**then, **identity} if then.get(name) != identity.get(name)}
    if differing and not (any_machine and differing <= MACHINE):
        advice = "Give the command that began it, or choose another folder."
        if differing <= MACHINE:
            advice = "Add --any-machine to accept that some bytes may then differ."
        raise InputError(
            f"All workers of the job in {place} must compute alike, but "
            f"{describe_difference(then, identity)}. {advice}"
        )


def show_status(place: str, *, is_json: bool) -> int:
    """Write the state of a job to standard output; return the exit code.

    Args:
        place: the job's folder.
        is_json: True for an object, with the retries of each piece and the lines that failed.
    """
    store = Store(place)
    board = Board(store, read_manifest(store))
    found = board.measure()
    if not is_json:
        sys.stdout.write(f"{board.describe(found, most=1000)}\n")
        return _judge(board)
    failed = [
        {
            "line": piece.first + row,
            "file": piece.shard.path,
            "line_of_file": piece.row + row,
            "error": sentence,
        }
        for piece, row, sentence in board.failures()
    ]
    sys.stdout.write(to_json_line({**found, "retries": board.retries(), "failed": failed}))
    return LINES_FAILED if failed else 0


def _judge(board: Board) -> int:
    """Return the exit code for a job of which lines may have failed."""
    return LINES_FAILED if any(board.failures()) else 0


def collect(place: str, path: str, *, tag: str | None, may_overwrite: bool) -> int:
    """Write the results of a finished job; return the exit code.

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
    is_table = endings(path).kind == ".tsv"
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
    return _judge(board)


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
        if name == "-":
            raise InputError(
                "A shard must be a file, which workers read in pieces, but is standard input. "
                "Write it into a file first."
            )
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
            "a job for each kind."
        )
    for path in found:
        open_file(path)[0].close()
    return found, kinds.pop()


def _kind_of(path: str) -> str:
    if kind := _KINDS.get(endings(path).kind):
        return kind
    if document := kind_of_document(path):
        raise InputError(
            "A shard must be lines of text, .tsv, .jsonl or .parquet, but "
            f"{path} is {document} by its name. Write its texts into such a file first."
        )
    return "lines"
