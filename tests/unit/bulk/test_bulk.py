"""Jobs of many files: claims, workers that die, streams of shards, object stores."""

from __future__ import annotations

import bz2
import errno
import gzip
import json
import lzma
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tame_crew import TASK, TEXT, TameCrew, drive, make_job, plan_shard, read_pieces

from pellucid.bulk import board as board_module
from pellucid.bulk.board import Beat, Board
from pellucid.bulk.collect import collect_lines
from pellucid.bulk.driver import MOST_BAD_STARTS, Driver, WorkerWindow, cut_windows
from pellucid.bulk.manifest import Manifest, ShardPiece, read_manifest, write_manifest
from pellucid.bulk.shards import ShardReader, read_row
from pellucid.bulk.shared_folder import Store
from pellucid.errors import ConfigurationError, InputError, PellucidError
from pellucid.text.reading.row_sides import Fault


def test_manifest_is_read_as_it_was_written_and_only_once(tmp_path: Path) -> None:
    board = make_job(tmp_path, TEXT)
    assert [vars(p) for p in read_manifest(board.store).pieces] != []
    found = read_manifest(board.store)
    assert found.num_lines == 60
    assert [piece.name for piece in found.pieces] == [piece.name for piece in board.manifest.pieces]
    assert [piece.row for piece in found.pieces][:2] == [1, 1 + found.pieces[0].lines]
    assert not write_manifest(board.store, Manifest(TASK, {"other": 1}, []))
    assert read_manifest(board.store).identity == {}


def test_windows_cut_a_piece_at_line_ends(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pellucid.bulk.driver.WINDOW_LINES", 3)
    monkeypatch.setattr("pellucid.bulk.driver.WINDOW_BYTES", 20)
    board = make_job(tmp_path, "a\nb\nc\nd\n" + "e" * 50 + "\nf", piece_bytes=1000)
    (piece,) = board.manifest.pieces
    windows = cut_windows(piece, *read_pieces(board.manifest, [piece]))
    assert [(w.row, w.lines, len(w.raw)) for w in windows] == [(0, 3, 6), (3, 2, 53), (5, 1, 1)]


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    board = make_job(tmp_path, TEXT)
    killed: set[int] = set()

    def kills(window: WorkerWindow) -> bool:  # every third piece, once
        number = window.piece.number
        is_new = number % 3 == 0 and number not in killed
        killed.add(number)
        return is_new

    crew = TameCrew(2, kills)
    drive(board, crew)
    assert "".join(collect_lines(board)) == TEXT.upper()
    assert crew.num_deaths > 3
    assert board.list_failures() == (0, [])


def test_half_written_files_of_dead_commands_are_deleted_and_fresh_ones_stay(
    tmp_path: Path,
) -> None:
    board = make_job(tmp_path, TEXT)
    pieces = Path(board.store.place, "pieces")
    pieces.mkdir(exist_ok=True)
    old, fresh = pieces / ".000001.dead", pieces / ".000002.alive"
    for part in (old, fresh):
        part.write_text("HALF")
    os.utime(old, (0, 0))
    drive(board, TameCrew(1))
    assert not old.exists()
    assert fresh.exists()
    assert "".join(collect_lines(board)) == TEXT.upper()


@pytest.mark.parametrize("workers", [1, 3])
def test_lines_that_kill_workers_are_found_by_halving_and_listed(
    tmp_path: Path, workers: int
) -> None:
    text = TEXT.replace("line 17\n", "poison\n").replace("line 59\n", "poison")
    board = make_job(tmp_path, text, piece_bytes=300)
    crew = TameCrew(workers, lambda window: b"poison" in window.raw)
    drive(board, crew)
    found = "".join(collect_lines(board)).split("\n")
    expected = [line.upper() for line in text.split("\n")]
    expected[17] = expected[59] = ""
    assert found == [*expected, ""]
    assert [(piece.row + row) for piece, row, _ in board.failures()] == [18, 60]
    count, shown = board.list_failures()
    assert count == 2
    assert "in.txt:18: It ended 2 workers: A worker was killed." in shown[0]
    # Two for the window, one a half, two for the line; a window has at most 32 lines here.
    assert crew.num_deaths <= 2 * (2 + 6 + 2)


def test_workers_that_never_start_end_the_command(tmp_path: Path) -> None:
    class Failing(TameCrew):
        def receive(self, seconds: float) -> list[tuple[Any, Any]]:
            worker = self.workers.pop()
            self.num_deaths += 1
            return [(worker, PellucidError("A worker process ended."))]

    crew = Failing(1)
    board = make_job(tmp_path, TEXT)
    with pytest.raises(PellucidError, match="A worker process ended"):
        drive(board, crew)
    assert crew.num_deaths == MOST_BAD_STARTS
    assert not board.store.names("claims")


def test_a_worker_of_another_kind_is_refused_and_claims_are_given_up(tmp_path: Path) -> None:
    board = make_job(tmp_path, TEXT)

    def check(_: Any) -> None:
        raise InputError("It differs.")

    with pytest.raises(InputError, match="It differs"):
        drive(board, TameCrew(1), check)
    assert not board.store.names("claims")
    assert not board.store.names("workers")


def test_pieces_of_a_dead_command_are_taken_and_those_of_a_living_one_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = make_job(tmp_path, TEXT)
    store, first, second = board.store, *board.manifest.pieces[:2]
    for piece, host, pid in ((first, "elsewhere", 1), (second, board.beat.host, 2**22 + 1)):
        store.create(f"claims/{piece.name}", f"{host}-x".encode())
        store.write(f"workers/{host}-x", json.dumps(vars(Beat(host, pid))).encode())
    taken = []
    while (piece := board.take()) is not None:
        taken.append(piece.number)
    # The process of the second is gone; the first one's machine may still send a beat.
    assert sorted(taken) == list(range(1, len(board.manifest.pieces)))
    assert taken[-1] == 1
    monkeypatch.setattr(board_module, "SECONDS_TO_DIE", -1.0)
    assert board.take() == first
    assert board.beat.retries == 2


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers and commands count as still after moments."""
    monkeypatch.setattr("pellucid.bulk.driver.SECONDS_TO_ANSWER", 0.1)
    monkeypatch.setattr("pellucid.bulk.driver.SECONDS_BETWEEN_BEATS", 0.05)
    monkeypatch.setattr(board_module, "SECONDS_BETWEEN_BEATS", 0.05)
    monkeypatch.setattr(board_module, "SECONDS_TO_DIE", 0.3)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_that_stands_still_is_ended_and_loses_nothing(
    tmp_path: Path, hurried: None, workers: int
) -> None:
    board = make_job(tmp_path, TEXT)
    crew = TameCrew(workers)
    stopped: list[int] = []

    def stops(window: WorkerWindow) -> bool:
        is_new = window.piece.number in (4, 9) and window.piece.number not in stopped
        stopped.extend([window.piece.number] * is_new)
        return is_new

    crew.stops = stops
    drive(board, crew)
    assert "".join(collect_lines(board)) == TEXT.upper()
    assert crew.num_deaths == 2
    assert board.list_failures() == (0, [])


@pytest.mark.timeout(60)
def test_a_line_that_never_ends_is_found_and_listed(tmp_path: Path, hurried: None) -> None:
    board = make_job(tmp_path, TEXT.replace("line 33\n", "loop\n"), piece_bytes=100)
    crew = TameCrew(2)
    crew.stops = lambda window: b"loop" in window.raw
    drive(board, crew)
    assert "".join(collect_lines(board)) == TEXT.upper().replace("LINE 33\n", "\n")
    count, shown = board.list_failures()
    assert count == 1
    assert "in.txt:34: It ended 2 workers: A worker gave no answer for " in shown[0]


@pytest.mark.timeout(60)
def test_pieces_of_a_command_whose_workers_stand_still_are_taken_and_it_ends(
    tmp_path: Path, hurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pellucid.bulk.driver.SECONDS_TO_ANSWER", 1000.0)
    first = make_job(tmp_path, TEXT)
    still = TameCrew(2)
    still.stops = lambda _: True
    # It lives and beats, but none of its workers has ever answered.
    thread = threading.Thread(target=drive, args=(first, still))
    thread.start()
    while len(first.store.names("claims")) < 2:
        time.sleep(0.01)
    second = Board(first.store, first.manifest)
    drive(second, TameCrew(1))
    assert "".join(collect_lines(first)) == TEXT.upper()
    assert thread.is_alive()
    still.stops = lambda _: False
    for worker in still.workers:
        worker.replies.append(PellucidError("It was ended."))
    thread.join(20)
    assert not thread.is_alive()
    assert "".join(collect_lines(first)) == TEXT.upper()
    assert not first.store.names("claims")
    assert not first.store.names("workers")


def test_pieces_of_a_command_that_makes_progress_stay_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = make_job(tmp_path, "one\n")
    clock = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    slow = Beat("elsewhere", 1)
    board.store.create("claims/000000", b"elsewhere-1")

    def beat() -> None:
        clock[0] += 10.0
        slow.seconds += 10.0
        board.store.write("workers/elsewhere-1", json.dumps(vars(slow)).encode())

    for number in range(20):
        slow.lines = number // 3
        beat()
        assert board.take() is None
    looks = 0
    while (piece := board.take()) is None:  # It still beats, and translates nothing more.
        beat()
        looks += 1
    assert piece.number == 0
    assert looks == 6


def test_a_command_is_known_by_its_beats_whatever_its_clock_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = make_job(tmp_path, TEXT)
    beats = {
        "ahead": Beat("ahead", 1, workers=3, time=time.time() + 600),
        "behind": Beat("behind", 1, workers=4, time=time.time() - 600),
        "dead": Beat("dead", 1, workers=5, time=time.time() - 600),
        "gone": Beat(board.beat.host, 2**22 + 1, workers=6, time=time.time()),
    }

    def write(*names: str) -> None:
        for name in names:
            beats[name].seconds += 1
            board.store.write(f"workers/{name}", json.dumps(vars(beats[name])).encode())

    write(*beats)
    assert "workers" not in board.describe()
    write("ahead", "behind")
    shown = board.describe()
    assert "ahead (3 workers" in shown
    assert "behind (4 workers" in shown
    assert "dead" not in shown
    assert board.beat.host not in shown
    board.leave()
    assert board.store.names("workers") == {"ahead", "behind", "dead"}


def test_half_written_files_are_dated_by_the_clock_of_the_file_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path))

    def flush(descriptor: int) -> None:
        behind = time.time() - 3000
        os.utime(descriptor, (behind, behind))

    monkeypatch.setattr(os, "fsync", flush)
    replace = os.replace

    def leave_and_replace(part: Path, path: Path) -> None:
        store.tidy("pieces", 600.0)  # Another command leaves just now.
        replace(part, path)

    monkeypatch.setattr(os, "replace", leave_and_replace)
    store.write("pieces/000001", b"whole")
    assert store.read("pieces/000001") == b"whole"
    assert [path.name for path in (tmp_path / "pieces").iterdir()] == ["000001"]


@pytest.fixture(params=["link", "link and replace"])
def without(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take hard links from folders, and renaming too, as folders of object stores do."""

    def refuse(part: Path, path: Path) -> None:
        raise OSError(errno.EPERM if "and" in request.param else errno.EOPNOTSUPP, "No")

    for name in request.param.split(" and "):
        monkeypatch.setattr(os, name, refuse)


@pytest.mark.usefixtures("without")
def test_a_folder_without_hard_links_begins_and_finishes_a_job(tmp_path: Path) -> None:
    board = make_job(tmp_path, TEXT)
    assert not write_manifest(board.store, Manifest(TASK, {"other": 1}, []))
    assert read_manifest(board.store).identity == {}
    assert board.store.create("claims/000000", b"me")
    assert not board.store.create("claims/000000", b"you")
    assert board.store.read("claims/000000") == b"me"
    drive(board, TameCrew(2))
    assert "".join(collect_lines(board)) == TEXT.upper()
    hidden = [path for path in (tmp_path / "job").rglob("*") if path.name.startswith(".")]
    assert not hidden


@pytest.mark.usefixtures("without")
def test_a_file_that_cannot_be_written_whole_leaves_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path))
    flushes = iter([None, OSError(errno.ENOSPC, "No space left on device")])

    def flush(_: int) -> None:
        if error := next(flushes):
            raise error

    monkeypatch.setattr(os, "fsync", flush)
    with pytest.raises(PellucidError, match="No space left"):
        store.create("claims/000000", b"me")
    assert store.names("claims") == set()


def test_a_claim_without_content_is_waited_for_and_then_free(tmp_path: Path, hurried: None) -> None:
    board = make_job(tmp_path, "one\n")
    board.store.write("claims/000000", b"")
    board.store.write("workers/killed", b"")
    assert board.take() is None
    assert "killed" not in board.describe()
    time.sleep(0.35)
    piece = board.take()
    assert piece is not None


def test_a_manifest_whose_command_was_killed_amid_writing_it_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pellucid.bulk.manifest._MOST_LOOKS", 5)
    whole = make_job(tmp_path, TEXT).store.read("manifest.json")
    store = Store(str(tmp_path / "other"))
    for part in (b"", whole[:5], whole[:-3]):
        store.write("manifest.json", part)
        with pytest.raises(InputError, match=r"has no manifest\.json"):
            read_manifest(store)
        assert not list((tmp_path / "other").iterdir())
    # One that lives is waited for, and what is not a manifest stays.
    store.write("manifest.json", whole[:50])
    later = threading.Timer(0.15, store.write, ("manifest.json", whole))
    later.start()
    assert read_manifest(store).num_lines == 60
    later.join()
    store.write("manifest.json", b'{"name": "a page"')
    with pytest.raises(InputError, match="damaged"):
        read_manifest(store)
    assert store.read("manifest.json") == b'{"name": "a page"'


class CannotRefuse(Store):
    """An object store that takes every claim, so that pieces are translated twice."""

    def create(self, name: str, data: bytes) -> bool:
        self.write(name, data)
        return True

    def names(self, folder: str) -> set[str]:
        return set() if folder == "claims" else super().names(folder)


@pytest.mark.parametrize("kind", ["local", "memory"])
def test_double_claims_write_equal_pieces(tmp_path: Path, kind: str) -> None:
    fsspec = pytest.importorskip("fsspec")
    place = str(tmp_path / "job") if kind == "local" else f"memory://{tmp_path.name}"
    first = make_job(tmp_path, TEXT, place=place)
    boards = [Board(CannotRefuse(place), first.manifest) for _ in range(2)]
    crews = [TameCrew(1), TameCrew(2)]
    barrier = threading.Barrier(2)

    def work(number: int) -> None:
        reader, waits = ShardReader(first.manifest), [None]

        def read_together(piece: ShardPiece) -> bytes:
            while waits:  # Both have claimed the first piece.
                waits.pop()
                barrier.wait(20)
            return reader.read(piece)

        with closing(reader):
            Driver(
                boards[number], crews[number], read=read_together, check=lambda _: None, say=print
            ).run()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "".join(collect_lines(first)) == TEXT.upper()
    assert len(crews[0].seen) + len(crews[1].seen) > len(first.manifest.pieces)
    if kind == "memory":
        fsspec.filesystem("memory").rm(tmp_path.name, recursive=True)


def test_a_store_in_memory_refuses_a_second_claim_and_lists_what_is_there() -> None:
    store = Store("memory://claims-of-a-test")
    assert store.names("claims") == set()
    assert store.create("claims/1", b"a")
    assert not store.create("claims/1", b"b")
    assert store.read("claims/1") == b"a"
    store.delete("claims/1")
    store.delete("claims/1")
    assert store.names("claims") == set()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "plain": bytes,
}


@pytest.mark.parametrize("packer", PACKERS)
def test_pieces_of_a_packed_shard_are_read_in_any_order(tmp_path: Path, packer: str) -> None:
    text = TEXT.encode() * 40
    path = tmp_path / "shard"
    pack = PACKERS[packer]
    path.write_bytes(pack(text) if packer == "plain" else pack(text[:777]) + pack(text[777:]))
    shard = plan_shard(str(path), TASK, 1000)
    manifest = Manifest(TASK, {}, [shard, shard])
    assert sum(piece.lines for piece in manifest.pieces) == 2 * 60 * 40
    assert b"".join(read_pieces(manifest, manifest.pieces)) == text * 2
    backward = read_pieces(manifest, reversed(manifest.pieces))
    assert b"".join(reversed(backward)) == text * 2


def test_a_table_may_begin_with_names_and_columns_may_be_numbers(tmp_path: Path) -> None:
    path = tmp_path / "table.tsv"
    path.write_text("id\ten\tfr\n1\tone\tun\n2\ttwo\tdeux\n")
    for column, columns, lines in (("en", [1], 2), ("3", [2], 3), (None, [0], 3)):
        task = TASK | {"kind": "tsv", "column": column}
        shard = plan_shard(str(path), task, 1000)
        (piece,) = Manifest(task, {}, [shard]).pieces
        assert (list(shard.columns), piece.lines, piece.row) == (columns, lines, 4 - lines)
        (raw,) = read_pieces(Manifest(task, {}, [shard]), [piece])
        last = raw.decode().split("\n")[-2]
        assert read_row("tsv", last, columns, "") == [last.split("\t")[columns[0]]]


@pytest.mark.parametrize("column", ["0", "00"])
def test_columns_are_counted_from_1(tmp_path: Path, column: str) -> None:
    path = tmp_path / "table.tsv"
    path.write_text("a\tb\tBonjour\n")
    task = TASK | {"kind": "tsv", "column": column}
    with pytest.raises(ConfigurationError, match=f"at least 1, but is {column} .*counted from 1"):
        plan_shard(str(path), task, 1000)


def test_rows_that_cannot_be_used_are_faults() -> None:
    assert read_row("tsv", "a\tb", [1], "f:1") == ["b"]
    assert read_row("jsonl", '{"a": {"b": "x\\ny"}}', ["a.b"], "f:1") == ["x y"]
    assert read_row("jsonl", " ", ["a", "b"], "f:1") == [" ", " "]
    assert read_row("parquet", "a\tb", ["en", "fr"], "f:1") == ["a", "b"]
    for kind, line, columns in (
        ("tsv", "a", [1]),
        ("jsonl", "{", ["a"]),
        ("jsonl", '{"a": 1}', ["a"]),
        ("lines", "\udcff", []),
    ):
        assert isinstance(read_row(kind, line, columns, "f:1"), Fault)


def test_parquet_shards_are_read_by_column(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    texts = [f"line\n{number}" for number in range(30)]
    table = pyarrow.table(
        {"id": list(range(30)), "translation": [{"en": t, "fr": None} for t in texts]}
    )
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path, row_group_size=7)
    task = TASK | {
        "kind": "parquet",
        "score": True,
        "column": "translation.en",
        "into": "translation.fr",
    }
    manifest = Manifest(task, {}, [plan_shard(str(path), task, 50)])
    assert len(manifest.pieces) == 5
    raw = b"".join(read_pieces(manifest, manifest.pieces)).decode()
    assert raw == "".join(f"line {number}\t\n" for number in range(30))
