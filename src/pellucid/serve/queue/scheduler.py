"""A queue of bounded length whose work, from all clients, is computed in turns.

One computation at a time has the turn, so that nothing below needs to be safe for threads. After a
slice of time it gives way to others that wait: in the middle of a search, between two layers of a
replay, wherever `give_way` is called. Each waits for its next turn in its own thread.
Half of the time goes to the work that has taken least so far, so that a cheap request never waits
for a costly one to end, and half to the work that has waited longest, so that all of it advances. A
computation whose clients have left, or whose time is over, ends at its next turn.

Texts that arrive while something is computed and that ask for the same work are computed together.
Requests share a batch text by text, so a long list does not hold up a short one.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pellucid.machine.turns import StoppedError, give_way, taking_turns
from pellucid.serve.answers.responses import Problem
from pellucid.serve.queue.jobs import LEAST_COST, Account, Job, Run, Task, share_batch
from pellucid.serve.queue.pauses import (
    GarbageCollector,
    NeedsPyTorchError,
    call_in_passes,
    load_pytorch,
)
from pellucid.serve.queue.prometheus import Metrics
from pellucid.serve.settings import Limits

# Time after which a computation gives way to others that wait.
SECONDS_A_TURN = 0.05

# Time that a batch should take.
SECONDS_A_BATCH = 0.3

# Long computations of about the same size that may have begun: they hold memory.
MOST_OF_A_SIZE = 2

# Items whose cost is estimated in one pass of the event loop: some milliseconds.
ESTIMATED_A_PASS = 500

# Computations that may have begun, of all sizes.
MOST_BEGUN = 12

# Time without a new turn, while work waits, after which the queue counts as standing still.
STANDSTILL_SECONDS = 10.0

_GONE = object()


class Scheduler:
    """Computes what requests ask for, one computation at a time.

    Args:
        limits: how much may wait, and how large batches are.
        metrics: where to count.
    """

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self._limits = limits
        self._metrics = metrics
        # Guards what both the event loop and the computing threads change.
        self._changed = threading.Condition()
        self._jobs: deque[Job] = deque()
        self._computing: Run | None = None
        self._paused: list[Run] = []
        self._num_apart = 0  # runs that load something without a turn
        self._waiting_cost: Counter[bool] = Counter()  # of costly work, and of the other
        self._rate = 0.0
        self._is_ending = self._is_over = False
        # Turns go by two rules, half of the time each; the lead says which one has had more.
        self._takes_oldest = False
        self._lead = 0.0  # seconds that the work that has taken least had more than the oldest
        self._last_turn = time.monotonic()
        self._garbage = GarbageCollector()
        self._first: Callable[[], None] | None = None
        self._threads: list[threading.Thread] = []
        self._num_idle = 0

    def start(self, first: Callable[[], None] | None = None) -> None:
        """Start to compute.

        Args:
            first: what to do before; what it fails at, requests will fail at too.
        """
        self._first = first
        self._add_thread()

    def stop(self, seconds: float) -> None:
        """Finish what waits, for at most so long; then end what computes."""
        with self._changed:
            self._is_ending = True
            self._changed.notify_all()
        # Threads may be added while this waits: a computation that gives way needs another one.
        until = time.monotonic() + seconds
        while self.is_alive and time.monotonic() < until:
            for thread in list(self._threads):
                thread.join(max(0.0, until - time.monotonic()))
        self._is_over = True

    @property
    def is_alive(self) -> bool:
        """True if a thread works."""
        return any(thread.is_alive() for thread in self._threads)

    @property
    def stands_still(self) -> bool:
        """True if work has waited for long without a turn."""
        late = time.monotonic() - self._last_turn > STANDSTILL_SECONDS
        return late and bool(self._jobs or self._paused)

    def check_room(self) -> None:
        """Refuse a request if so much waits that no other should be read.

        Raises:
            Problem: 429.
        """
        # Of costs only those of cheap work count: what a request will cost is unknown before it
        # is read, and costly ones must not close the door to the others.
        is_full = len(self._jobs) >= self._limits.queue_requests
        if is_full or self._waiting_cost[False] >= self._limits.queue_tokens:
            raise self._refuse()

    async def compute(self, task: Task, items: Sequence[Any]) -> list[Any]:
        """Compute some items, together with those of other requests.

        Raises:
            Problem: 429 if too much waits, 504 if the result is late, 503 if the server ends.
        """
        costs = []
        total = 0
        for item in items:
            costs.append(task.cost(item))
            total += costs[-1]
            self._check_size(total)  # There may be hundreds of thousands of them.
            if not len(costs) % ESTIMATED_A_PASS:
                await asyncio.sleep(0)
        return await self._add(task, items, costs)

    async def call(self, function: Callable[[], Any], *, cost: int = 1) -> Any:
        """Call a function by itself.

        Args:
            function: what to call.
            cost: positions that it is likely to compute.

        Raises:
            Problem: as for `compute`.
        """
        (result,) = await self._add(None, [function], [cost])
        return result

    async def stream(
        self, make: Callable[[], Iterator[Any]], *, cost: int = 1
    ) -> AsyncIterator[Any]:
        """Yield what an iterator yields that is made and advanced as `call` does.

        Args:
            make: makes the iterator.
            cost: as for `call`.

        Raises:
            Problem: as for `compute`.
        """
        loop = asyncio.get_running_loop()
        pieces: asyncio.Queue[Any] = asyncio.Queue()

        def work() -> None:
            for piece in make():
                _call_in(loop, partial(pieces.put_nowait, piece))
                give_way()

        def end(done: asyncio.Future[Any]) -> None:
            done.cancelled() or done.exception()  # so that it is not reported as missed
            pieces.put_nowait(_GONE)

        # The iterator is made and advanced in the computing thread; pieces come back through a
        # queue.
        running = asyncio.ensure_future(self.call(work, cost=cost))
        running.add_done_callback(end)
        try:
            while (piece := await pieces.get()) is not _GONE:
                yield piece
            await running
        finally:
            # A client that leaves in the middle ends the search at its next turn.
            running.cancel()

    async def _add(
        self, task: Task | None, items: Sequence[Any], costs: Sequence[int]
    ) -> list[Any]:
        self._check_alive()
        if not items:
            return []
        limits = self._limits
        loop = asyncio.get_running_loop()
        account = Account.of_request(loop, limits.request_seconds)
        job = Job(task, items, costs, loop, account)
        self._check_size(job.cost)
        with self._changed:
            alike = sum(one.is_costly == job.is_costly for one in self._jobs)
            # Costly requests never fill the places of the others.
            is_full = alike >= max(1, limits.queue_requests // (1 + job.is_costly))
            waiting = self._waiting_cost[job.is_costly] + job.cost
            if is_full or waiting > limits.queue_tokens:
                raise self._refuse()
            # A queue that was empty has not stood still, however long ago its last turn was.
            if not self._jobs and not self._paused:
                self._last_turn = time.monotonic()
            self._jobs.append(job)
            self._waiting_cost[job.is_costly] = waiting
            self._changed.notify_all()
        self._show_waiting()
        # Of the whole request, not of this part, so that many parts get no more time than one.
        late = loop.call_at(account.until, lambda: job.fail(self._too_late()))
        try:
            return await job.future
        finally:
            late.cancel()
            if job.is_unfinished:
                self._leave(job)

    def _check_size(self, cost: int) -> None:
        if cost > self._limits.queue_tokens:
            raise Problem(
                413, "The request asks for more than the server ever computes. Send less at once."
            )

    def _leave(self, job: Job) -> None:
        """Free the place of a request whose client no longer waits, and end its computation."""
        with self._changed:
            job.is_gone = True
            if job in self._jobs:
                self._jobs.remove(job)
                # What has begun was taken off when it began.
                self._waiting_cost[job.is_costly] -= job.waiting_cost
            self._changed.notify_all()
        self._show_waiting()

    def _refuse(self) -> Problem:
        self._metrics.shed.inc()
        seconds = self._waiting_cost.total() / self._rate if self._rate else 1.0
        # Clients should not be sent away for longer than a minute by an estimate.
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
        self._metrics.waiting_tokens.set(self._waiting_cost.total())

    # The threads

    def _add_thread(self) -> None:
        # A daemon: a computation that never gives way must not keep the process from ending.
        thread = threading.Thread(target=self._work, name="pellucid-compute", daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def _work(self) -> None:
        first = self._first
        if first is not None:
            self._first = None  # Only the first thread prepares.
            with suppress(Exception):
                first()
        while (run := self._wait_for_run()) is not None:
            self._compute(run)
            is_idle = not (self._jobs or self._paused)
            with self._changed:
                self._computing = None
            self._garbage.collect(is_idle=is_idle)

    def _wait_for_run(self) -> Run | None:
        """Give turns to those who wait for one, until there is work to begin; None at the end."""
        with self._changed:
            self._num_idle += 1
            try:
                while True:
                    chosen = self._choose() if self._computing is None else None
                    if isinstance(chosen, Job):
                        self._computing = self._take(chosen)
                        return self._computing
                    # Its own thread waits for its turn and continues; this one waits for a job.
                    if chosen is not None:
                        self._paused.remove(chosen)
                        self._computing = chosen
                        self._changed.notify_all()
                    begun = self._computing or self._paused or self._num_apart
                    if self._is_ending and not (begun or self._jobs):
                        self._changed.notify_all()
                        return None
                    self._changed.wait()
            finally:
                self._num_idle -= 1

    def _choose(self) -> Run | Job | None:
        """Choose whose turn it is."""
        ready: list[Run | Job] = list(self._paused)
        if len(self._paused) < MOST_BEGUN:
            # Work that is no larger than a batch (size 0) may always begin, so that it never
            # waits for long work to end.
            begun = Counter(run.size for run in self._paused if run.size)
            ready += [job for job in self._jobs if begun[job.size] < MOST_OF_A_SIZE]
        if not ready:
            return None
        self._last_turn = time.monotonic()
        # It only has to notice that it is over, and frees its memory by that.
        ended = next((one for one in self._paused if one.is_gone), None)
        if ended is not None:
            return ended
        # Half of the time by each rule, measured in seconds: turns may be of different length.
        self._takes_oldest = self._lead > 0
        if self._takes_oldest:
            return min(ready, key=lambda one: one.since)
        return min(ready, key=lambda one: one.effort(self._rate))

    def _take(self, first: Job) -> Run:
        """Begin the next batch: a job by itself, or texts that may share one with it."""
        size = first.size  # of what is next, which changes below
        sharing = [first]
        if first.task is not None:
            sharing += [job for job in self._jobs if job.task == first.task and job is not first]
        picked = share_batch(sharing, self._budget())
        for job, place in picked:
            self._waiting_cost[job.is_costly] -= job.costs[place]
        self._jobs = deque(job for job in self._jobs if job.num_taken < len(job.items))
        return Run(picked, size)

    def _budget(self) -> int:
        """Choose the size of a batch by the speed so far."""
        # Too small a batch wastes time by the text, too large a one delays those that come next.
        wanted = int(self._rate * SECONDS_A_BATCH)
        return max(1, min(self._limits.batch_tokens, max(LEAST_COST, wanted)))

    def _compute(self, run: Run) -> None:
        self._metrics.computing.inc()
        run.began = time.perf_counter()
        results: Sequence[Any] = ()
        try:
            try:
                results = self._run(run)
            except NeedsPyTorchError:
                self._go_apart(run, load_pytorch)
                # Again from its beginning, where modules are imported.
                results = self._run(run)
        except StoppedError:
            self._metrics.stopped.inc()
        self._end_turn(run)
        self._metrics.computing.dec()
        self._metrics.batch_seconds.observe(run.seconds)
        if not results:
            return
        # The cost of a function is a rough guess, often just 1: it says nothing about the speed.
        if run.batch[0][0].task is not None:
            rate = run.cost / max(run.seconds, 1e-6)
            # A running average, so that one odd batch does not decide the size of the next.
            self._rate = rate if not self._rate else 0.8 * self._rate + 0.2 * rate
            self._metrics.batch_texts.observe(len(run.batch))
        # Jobs of one loop are handed over in one call: each call wakes the loop up.
        done: dict[asyncio.AbstractEventLoop, list[Job]] = {}
        for (job, place), result in zip(run.batch, results, strict=True):
            job.results[place] = result
            if not job.is_unfinished:
                done.setdefault(job.loop, []).append(job)
        for loop, jobs in done.items():
            _call_in(loop, partial(call_in_passes, [job.finish for job in jobs]))
        self._show_waiting()

    def _run(self, run: Run) -> Sequence[Any]:
        with taking_turns(partial(self._give_way, run)):
            return run.compute()

    def _end_turn(self, run: Run) -> None:
        seconds = run.end_turn() * (-1 if self._takes_oldest else 1)
        # Bounded by a turn: after an hour in which only one kind of work came, the other must not
        # have an hour of lead.
        self._lead = max(-SECONDS_A_TURN, min(SECONDS_A_TURN, self._lead + seconds))

    def _give_way(self, run: Run) -> None:
        """Let others compute if the turn is over, in the thread of the computation.

        Raises:
            StoppedError: its clients have left, or its time is up.
        """
        if run.is_gone or self._is_over:
            raise StoppedError
        is_short = time.perf_counter() - run.began < SECONDS_A_TURN
        if is_short or not (self._jobs or self._paused):
            return
        with self._changed:
            # Another thread must begin what waits, while this one waits for its next turn.
            if not self._num_idle:
                self._add_thread()
            self._end_turn(run)
            self._computing = None
            self._wait_for_turn(run)
        self._give_way(run)  # It may have ended meanwhile.

    def _go_apart(self, run: Run, function: Callable[[], None]) -> None:
        """Call a function while others compute, in the thread of the computation.

        Raises:
            StoppedError: its clients have left meanwhile, or its time is up.
        """
        with self._changed:
            if not self._num_idle:
                self._add_thread()
            self._end_turn(run)
            self._computing = None
            self._num_apart += 1
            self._changed.notify_all()
        try:
            function()
        finally:
            with self._changed:
                self._num_apart -= 1
                self._wait_for_turn(run)
        self._give_way(run)

    def _wait_for_turn(self, run: Run) -> None:
        """Wait until a run may continue; `_changed` is held."""
        self._paused.append(run)
        self._changed.notify_all()
        self._changed.wait_for(lambda: self._computing is run)
        run.began = time.perf_counter()


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], Any]) -> None:
    """Call a function in an event loop, if that still runs."""
    with suppress(RuntimeError):  # the loop is closed, and with it everyone who waits
        loop.call_soon_threadsafe(function)
