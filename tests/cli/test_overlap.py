"""Windows that are answered several at once: order, errors, and slow sources of lines."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

import pytest

from pellucid.cli.lines.streams import LineWindow
from pellucid.cli.lines.translate_lines import answer_windows
from pellucid.errors import DataError


def make_window(number: int) -> LineWindow:
    return LineWindow(number, {"--input": [f"line {number}"]}, is_whole=True, hashes={})


@pytest.mark.parametrize("num_at_once", [1, 2, 5])
def test_answers_come_in_the_order_of_the_windows(num_at_once: int) -> None:
    windows = map(make_window, range(23))
    found = list(answer_windows(windows, lambda one: 7 * one.first, num_at_once=num_at_once))
    assert [(window.first, answer) for window, answer in found] == [(n, 7 * n) for n in range(23)]


def test_no_window_has_no_answer() -> None:
    assert list(answer_windows(iter(()), lambda window: window.first, num_at_once=2)) == []


def test_two_windows_are_answered_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=60)

    def answer(window: LineWindow) -> int:
        both.wait()  # passed only if the other window is being answered as well
        return window.first

    found = answer_windows(map(make_window, range(4)), answer, num_at_once=2)
    assert [answered for _, answered in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("num_at_once", [1, 2])
def test_answer_does_not_wait_for_windows_that_have_not_come(num_at_once: int) -> None:
    lines: queue.Queue[int | None] = queue.Queue()

    def read() -> Iterator[LineWindow]:
        while (number := lines.get()) is not None:
            yield make_window(number)

    found = answer_windows(read(), lambda window: window.first, num_at_once=num_at_once)
    for number in range(5):
        lines.put(number)
        assert next(found)[1] == number  # the next one is put only after this answer
    lines.put(None)
    assert next(found, None) is None


@pytest.mark.parametrize("num_at_once", [1, 2, 5])
@pytest.mark.parametrize("is_read_badly", [False, True])
def test_errors_come_after_the_answers_to_the_windows_before(
    num_at_once: int, is_read_badly: bool
) -> None:
    def read() -> Iterator[LineWindow]:
        yield from map(make_window, range(3))
        if is_read_badly:
            raise DataError("The line is bad.")
        yield from map(make_window, range(3, 9))

    def answer(window: LineWindow) -> int:
        if window.first == 3:
            raise DataError("The line is bad.")
        return window.first

    found = answer_windows(read(), answer, num_at_once=num_at_once)
    assert [next(found)[1] for _ in range(3)] == [0, 1, 2]
    with pytest.raises(DataError, match="The line is bad"):
        next(found)


def test_reader_that_stops_early_does_not_wait_for_lines() -> None:
    is_awaited, has_come, was_awaited = threading.Event(), threading.Event(), threading.Event()

    def read() -> Iterator[LineWindow]:
        yield make_window(0)
        is_awaited.set()
        has_come.wait(10)
        was_awaited.set()
        yield make_window(1)

    found = answer_windows(read(), lambda window: window.first, num_at_once=2)
    assert next(found)[1] == 0
    assert is_awaited.wait(60)
    found.close()  # type: ignore[attr-defined]
    assert not was_awaited.is_set()
    has_come.set()
