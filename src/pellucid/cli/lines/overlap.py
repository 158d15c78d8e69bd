"""Windows of lines whose answers are computed while others are read, prepared and written."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from pellucid.cli.lines.streams import Window

Answer = TypeVar("Answer")


def answer_windows(
    windows: Iterator[Window], answer: Callable[[Window], Answer], *, num_at_once: int
) -> Iterator[tuple[Window, Answer]]:
    """Read windows and answer them, several at once.

    The engine in C lets Python run, so that one window's lines are prepared, or its translations
    judged, while the engine works on another. Another thread reads windows: a slow source
    of lines does not keep back the answers to those that it has given.

    Args:
        windows: the windows; an error of theirs is raised after the answers to what came before.
        answer: answers one window; with several at once it is called from several threads.
        num_at_once: the number of windows.

    Yields:
        Each window with its answer, in order.
    """
    if num_at_once == 1:
        for window in windows:
            yield window, answer(window)
        return
    reader = ThreadPoolExecutor(1, "read")
    workers = ThreadPoolExecutor(num_at_once, "answer")

    def work(reading: Future[Window | None]) -> tuple[Window, Answer] | None:
        window = reading.result()
        return None if window is None else (window, answer(window))

    try:
        begun: deque[Future[tuple[Window, Answer] | None]] = deque()
        while True:
            while len(begun) < num_at_once:
                begun.append(workers.submit(work, reader.submit(next, windows, None)))
            answered = begun.popleft().result()
            if answered is None:
                return
            yield answered
    finally:
        # Not waited for: an interruption must not wait for lines that may never come.
        for pool in (reader, workers):
            pool.shutdown(wait=False, cancel_futures=True)
