"""A queue of bounded length whose texts, from all clients, are computed together in one thread.

A model is used by this thread only, so that nothing below needs to be safe for threads. Texts that
arrive while a batch is computed make up the next one: nothing waits for a batch to fill. Requests
take turns, text by text, so a long list does not hold up a short one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from pellucid.serve.answers.responses import Problem
from pellucid.serve.queue.metrics import Metrics
from pellucid.serve.queue.pauses import GarbageCollector, in_turns
from pellucid.serve.settings import Limits

SECONDS_A_BATCH = 0.3
"""Time that a batch should take, so that a new request waits no longer than that for its turn."""

LEAST_COST = 1024
"""A batch may be this large, however slow the model: small batches are slower still by the text."""

_GONE = object()


class Task(Protocol):
    """Work that several texts can share. Equal tasks are computed together."""

    def cost(self, item: Any) -> int:
        """Estimate the positions that an item needs."""

    def run(self, items: Sequence[Any]) -> Sequence[Any]:
        """Compute the results of some items, in their order."""


@dataclass(eq=False)
class _Job:
    """The texts of one request."""

    task: Task | None
    items: Sequence[Any]
    costs: Sequence[int]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[list[Any]]
    results: dict[int, Any] = field(default_factory=dict)
    num_taken: int = 0
    is_gone: bool = False

    @property
    def waiting_cost(self) -> int:
        return sum(self.costs[self.num_taken :])

    @property
    def is_unfinished(self) -> bool:
        return len(self.results) < len(self.items)

    def fail(self, problem: Problem) -> None:
        """Give up waiting, in the event loop."""
        if not self.future.done():
            self.future.set_exception(problem)

    def finish(self) -> None:
        """Hand over the results, in the event loop."""
        if self.future.done():
            return
        found = [self.results[place] for place in range(len(self.items))]
        fault = next((one for one in found if isinstance(one, BaseException)), None)
        if fault is not None:
            self.future.set_exception(fault)
        else:
            self.future.set_result(found)


@dataclass(eq=False)
class _Stream:
    """An answer that is handed over piece by piece."""

    pieces: Iterator[Any]
    queue: asyncio.Queue[Any]
    loop: asyncio.AbstractEventLoop
    is_gone: bool = False


class Scheduler:
    """Computes what requests ask for, in one thread.

    Args:
        limits: how much may wait, and how large batches are.
        metrics: where to count.
    """

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        self._changed = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._streams: list[_Stream] = []
        self._waiting_cost = 0
        self._rate = 0.0
        self._is_ending = False
        self._first: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._work, name="pellucid-compute", daemon=True)

    def start(self, first: Callable[[], None] | None = None) -> None:
        """Start the thread.

        Args:
            first: what it does before it computes; what it fails at, requests will fail at too.
        """
        self._first = first
        self._thread.start()

    def stop(self, seconds: float) -> None:
        """Let the thread finish what waits, for at most so long."""
        with self._changed:
            self._is_ending = True
            self._changed.notify()
        self._thread.join(seconds)

    @property
    def is_alive(self) -> bool:
        """True if the thread works."""
        return self._thread.is_alive()

    def check_room(self) -> None:
        """Refuse a request if so much waits that no other should be read.

        Raises:
            Problem: 429.
        """
        is_full = (
            len(self._jobs) + len(self._streams) >= self._limits.queue_requests
            or self._waiting_cost >= self._limits.queue_tokens
        )
        if is_full:
            raise self._refuse()

    async def compute(self, task: Task, items: Sequence[Any]) -> list[Any]:
        """Compute some items, together with those of other requests.

        Raises:
            Problem: 429 if too much waits, 504 if the result is late, 503 if the thread has ended.
        """
        return await self._add(task, items, [task.cost(item) for item in items])

    async def call(self, function: Callable[[], Any], *, cost: int = 1) -> Any:
        """Call a function in the thread, by itself.

        Args:
            function: what to call.
            cost: positions that it is likely to compute.

        Raises:
            Problem: as for `compute`.
        """
        (result,) = await self._add(None, [function], [cost])
        return result

    async def stream(self, make: Callable[[], Iterator[Any]]) -> AsyncIterator[Any]:
        """Yield what an iterator yields that is made and advanced in the thread.

        Args:
            make: makes the iterator. Its steps alternate with batches.

        Raises:
            Problem: as for `compute`.
        """
        self._check_alive()
        self.check_room()
        loop = asyncio.get_running_loop()
        stream = _Stream(_start(make), asyncio.Queue(), loop)
        with self._changed:
            self._streams.append(stream)
            self._changed.notify()
        until = loop.time() + self._limits.request_seconds
        try:
            # One limit for each piece: pieces may be taken by different asyncio tasks.
            while (
                piece := await asyncio.wait_for(stream.queue.get(), until - loop.time())
            ) is not _GONE:
                if isinstance(piece, BaseException):
                    raise piece
                yield piece
        except TimeoutError:
            raise self._too_late() from None
        finally:
            stream.is_gone = True

    async def _add(
        self, task: Task | None, items: Sequence[Any], costs: Sequence[int]
    ) -> list[Any]:
        self._check_alive()
        if not items:
            return []
        loop = asyncio.get_running_loop()
        job = _Job(task, items, costs, loop, loop.create_future())
        cost = sum(costs)
        if cost > self._limits.queue_tokens:
            raise Problem(
                413, "The request asks for more than the server ever computes. Send less at once."
            )
        with self._changed:
            is_full = self._waiting_cost + cost > self._limits.queue_tokens
            if is_full or len(self._jobs) >= self._limits.queue_requests:
                raise self._refuse()
            self._jobs.append(job)
            self._waiting_cost += cost
            self._changed.notify()
        self._show_waiting()
        late = loop.call_later(self._limits.request_seconds, lambda: job.fail(self._too_late()))
        try:
            return await job.future
        finally:
            late.cancel()
            if job.is_unfinished:
                self._leave(job)

    def _leave(self, job: _Job) -> None:
        """Free the place of a request whose client no longer waits."""
        with self._changed:
            job.is_gone = True
            if job in self._jobs:
                self._jobs.remove(job)
                self._waiting_cost -= job.waiting_cost
        self._show_waiting()

    def _refuse(self) -> Problem:
        self._metrics.shed.inc()
        seconds = self._waiting_cost / self._rate if self._rate else 1.0
        wait = max(1, min(60, round(seconds)))
        return Problem(
            429,
            f"The server has as many requests as it can hold. Try again in {wait} s.",
            {"Retry-After": str(wait)},
        )

    def _too_late(self) -> Problem:
        return Problem(
            504,
            f"There was no answer within {self._limits.request_seconds:g} s. Send fewer or shorter "
            "texts, or try again later.",
        )

    def _check_alive(self) -> None:
        if self._is_ending or not self.is_alive:
            raise Problem(
                503, "The server is ending. Try again in a few seconds.", {"Retry-After": "5"}
            )

    def _show_waiting(self) -> None:
        self._metrics.waiting.set(len(self._jobs))
        self._metrics.waiting_tokens.set(self._waiting_cost)

    # The thread

    def _work(self) -> None:
        if self._first is not None:
            with suppress(Exception):
                self._first()
        garbage = GarbageCollector()
        while True:
            garbage.collect(is_idle=not (self._jobs or self._streams))
            with self._changed:
                while not (self._jobs or self._streams or self._is_ending):
                    self._changed.wait()
                if not (self._jobs or self._streams):
                    return
                batch = self._take()
            if batch:
                self._compute(batch)
            for stream in list(self._streams):
                self._advance(stream)

    def _take(self) -> list[tuple[_Job, int]]:
        """Choose the texts of the next batch: those that may share one with the oldest request."""
        if not self._jobs:
            return []
        first = self._jobs.popleft()
        if first.task is None:
            picked = [(first, 0)]
            first.num_taken = 1
            self._waiting_cost -= first.costs[0]
            return picked
        budget = self._budget()
        sharing = [first, *(job for job in self._jobs if job.task == first.task)]
        picked = []
        while sharing and budget > 0:
            for job in list(sharing):
                cost = job.costs[job.num_taken]
                if picked and cost > budget:
                    budget = 0
                    break
                picked.append((job, job.num_taken))
                job.num_taken += 1
                budget -= cost
                self._waiting_cost -= cost
                if job.num_taken == len(job.items):
                    sharing.remove(job)
        self._jobs = deque(job for job in self._jobs if job.num_taken < len(job.items))
        if first.num_taken < len(first.items):
            self._jobs.append(first)
        return picked

    def _budget(self) -> int:
        """Choose the size of a batch by the speed so far."""
        wanted = int(self._rate * SECONDS_A_BATCH)
        return max(1, min(self._limits.batch_tokens, max(LEAST_COST, wanted)))

    def _compute(self, batch: Sequence[tuple[_Job, int]]) -> None:
        batch = [(job, place) for job, place in batch if not job.is_gone]
        if not batch:
            return
        task = batch[0][0].task
        began = time.perf_counter()
        results = _run(task, [job.items[place] for job, place in batch])
        seconds = time.perf_counter() - began
        if task is not None:
            rate = sum(job.costs[place] for job, place in batch) / max(seconds, 1e-6)
            self._rate = rate if not self._rate else 0.8 * self._rate + 0.2 * rate
            self._metrics.batch_texts.observe(len(batch))
        self._metrics.batch_seconds.observe(seconds)
        done: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
        for (job, place), result in zip(batch, results, strict=True):
            job.results[place] = result
            if len(job.results) == len(job.items):
                done.setdefault(job.loop, []).append(job)
        for loop, jobs in done.items():
            _call_in(loop, partial(in_turns, [job.finish for job in jobs]))
        self._show_waiting()

    def _advance(self, stream: _Stream) -> None:
        """Hand over the next piece of a stream, or end it."""
        piece: Any = _GONE
        if not stream.is_gone:
            try:
                piece = next(stream.pieces, _GONE)
            except Exception as error:
                piece = error
            is_heard = _call_in(stream.loop, lambda: stream.queue.put_nowait(piece))
            stream.is_gone |= not is_heard
        if stream.is_gone or piece is _GONE or isinstance(piece, BaseException):
            with self._changed:
                self._streams.remove(stream)


def _start(make: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    """Make an iterator only once it is asked for its first value."""
    yield from make()


def _run(task: Task | None, items: Sequence[Any]) -> Sequence[Any]:
    """Compute items; an exception takes the place of the result that it prevented.

    If a batch fails, its items are computed one by one, so that a text fails only its own request.
    """
    if task is None:
        try:
            return [items[0]()]
        except Exception as error:
            return [error]
    try:
        return task.run(items)
    except Exception as error:
        if len(items) == 1:
            return [error]
    return [result for item in items for result in _run(task, [item])]


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], Any]) -> bool:
    """Call a function in an event loop; tell whether it still runs."""
    try:
        loop.call_soon_threadsafe(function)
    except RuntimeError:  # the loop is closed, and with it everyone who waits
        return False
    return True
