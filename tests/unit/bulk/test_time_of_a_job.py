"""Commands of a job that have little time, and what a job tells of its retries."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tame_crew import TEXT, TameCrew, drive, make_job

from pellucid.bulk.board import Beat, Board
from pellucid.bulk.collect import collect_lines
from pellucid.bulk.driver import WorkerWindow


class Slow(TameCrew):
    """Workers that need a second for a window, by a clock of their own."""

    def __init__(self, size: int, clock: list[float]) -> None:
        super().__init__(size)
        self._clock = clock

    def receive(self, seconds: float) -> list[tuple[Any, Any]]:
        self._clock[0] += 1.0
        return super().receive(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr("pellucid.bulk.driver.WINDOW_LINES", 2)
    return now


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seconds", [0.5, 5.5, 8.5, 12.0, 20.5])
def test_a_command_without_time_ends_before_it_and_computes_nothing_in_vain(
    tmp_path: Path, clock: list[float], workers: int, seconds: float
) -> None:
    text = TEXT * 3
    board = make_job(tmp_path, text)  # 36 pieces of two or three windows
    until = clock[0] + seconds
    crew = Slow(workers, clock)
    assert not drive(board, crew, until=until)
    assert clock[0] < until + 1.0
    assert not board.store.names("claims")
    assert not board.store.names("workers")
    done = board.store.names("pieces")
    assert len(done) == board.num_finished < len(board.manifest.pieces)
    if seconds > 8:
        # A piece takes 3 s of a worker; one that would not end in time is left alone.
        assert done
        assert {window.piece.name for window in crew.seen} == done
        assert until - clock[0] < 7.0
    # Whoever comes next finishes the rest.
    assert drive(Board(board.store, board.manifest), TameCrew(1))
    assert "".join(collect_lines(board)) == text.upper()


def test_smaller_pieces_are_begun_if_larger_ones_would_not_end(
    tmp_path: Path, clock: list[float]
) -> None:
    board = make_job(tmp_path, TEXT + "last\n" * 2, piece_bytes=200)
    sizes = [piece.lines for piece in board.manifest.pieces]
    assert sizes[-1] < 12 < sizes[1]
    crew = Slow(1, clock)
    # The first takes 13 s; 8 s more are enough for the last one only.
    assert not drive(board, crew, until=clock[0] + (sizes[0] + 1) // 2 + 9.0)
    assert board.store.names("pieces") == {"000000", f"{len(sizes) - 1:06d}"}


def test_a_worker_that_stands_still_does_not_hold_a_command_beyond_its_time(
    tmp_path: Path, clock: list[float]
) -> None:
    board = make_job(tmp_path, TEXT)
    crew = Slow(1, clock)
    crew.stops = lambda window: window.piece.number == 2
    until = clock[0] + 30.0
    assert not drive(board, crew, until=until)
    assert until <= clock[0] < until + 2.0
    assert board.store.names("pieces") == {"000000", "000001"}
    assert not board.store.names("claims")


def test_time_that_is_enough_changes_nothing(tmp_path: Path, clock: list[float]) -> None:
    board = make_job(tmp_path, TEXT)
    assert drive(board, Slow(2, clock), until=clock[0] + 1000.0)
    assert "".join(collect_lines(board)) == TEXT.upper()


def test_retries_of_each_piece_stay_when_the_command_has_left(tmp_path: Path) -> None:
    board = make_job(tmp_path, TEXT)
    killed: list[int] = []

    def kills(window: WorkerWindow) -> bool:
        number = window.piece.number
        is_one = killed.count(number) < {2: 1, 5: 3}.get(number, 0)
        killed.extend([number] * is_one)
        return is_one

    drive(board, TameCrew(2, kills))
    assert "".join(collect_lines(board)) == TEXT.upper()
    assert board.retries() == {"000002": 1, "000005": 3}
    idle = Board(board.store, board.manifest).measure()
    assert idle["commands"] == []
    # Nobody works, so that there is no speed: not one of 0.
    assert idle["lines_per_second"] is idle["seconds_left"] is None


def test_a_piece_of_a_dead_command_is_a_retry_and_its_beats_go_with_the_job(tmp_path: Path) -> None:
    board = make_job(tmp_path, TEXT)
    for name, host, pid in (("here", board.beat.host, 2**22 + 1), ("far", "elsewhere", 1)):
        board.store.write(f"workers/{name}", json.dumps(vars(Beat(host, pid))).encode())
    board.store.create("claims/000003", b"here")
    drive(board, TameCrew(1))
    assert board.retries() == {"000003": 1}
    # The other one may have lived a moment ago, but no work is left for it.
    assert not board.store.names("workers")


def test_a_count_of_retries_without_content_is_no_fault(tmp_path: Path) -> None:
    board = make_job(tmp_path, TEXT)
    board.store.write("retries/000001", b"")
    assert board.retries() == {}
    board.count_retry(board.manifest.pieces[1])
    assert board.retries() == {"000001": 1}
