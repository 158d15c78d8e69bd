"""The work of one request, what it has used so far, and work that has begun."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from pellucid.machine.devices import is_out_of_memory
from pellucid.serve.answers.responses import Problem
from pellucid.serve.models import ServedModel

# A batch may be this large, however slow the model: small batches are slower still by the text.
LEAST_COST = 1024

# A request may compute several parts, one after the other. They share one account, which reaches
# them without being an argument of every function in between.
_account: ContextVar[Account | None] = ContextVar("account", default=None)


class Task(Protocol):
    """Work that several texts can share. Equal tasks are computed together."""

    def cost(self, item: Any) -> int:
        """Estimate the positions that an item needs."""

    def run(self, items: Sequence[Any]) -> Sequence[Any]:
        """Compute the results of some items, in their order."""


class Account:
    """The time that a request has, and what it has used of the computing thread.

    Attributes:
        until: time of the event loop at which it ends with 504.
        seconds: computed for it so far.
    """

    def __init__(self, until: float) -> None:
        self.until = until
        self.seconds = 0.0

    @classmethod
    def of_request(cls, loop: asyncio.AbstractEventLoop, seconds: float) -> Account:
        """Give the account of the request that this runs for; its time begins with the first."""
        account = _account.get()
        if account is None:
            account = cls(loop.time() + seconds)
            _account.set(account)
        return account

    @staticmethod
    def begin() -> None:
        """Begin another request, which may run in the context of an earlier one."""
        # Connections stay open: the next request of a client would find the account of the last.
        _account.set(None)


class Job:
    """A part of the work of one request, as it waits and until all of it is done.

    Args:
        task: what to do; None if the only item is a function to call.
        items: what to do it with.
        costs: the positions that each is likely to need.
        loop: the event loop in which its client waits.
        account: of the request.
    """

    def __init__(
        self,
        task: Task | None,
        items: Sequence[Any],
        costs: Sequence[int],
        loop: asyncio.AbstractEventLoop,
        account: Account,
    ) -> None:
        self.task = task
        self.items = items
        self.costs = costs
        self.loop = loop
        self.account = account
        self.cost = sum(costs)
        self.future: asyncio.Future[list[Any]] = loop.create_future()
        self.results: dict[int, Any] = {}
        self.num_taken = 0
        self.since = time.monotonic()
        self.is_gone = False

    @property
    def is_costly(self) -> bool:
        """True if the request is more than a batch."""
        return self.cost > LEAST_COST

    @property
    def waiting_cost(self) -> int:
        """The cost of what has not begun."""
        return sum(self.costs[self.num_taken :])

    @property
    def is_unfinished(self) -> bool:
        """True unless all results are there."""
        return len(self.results) < len(self.items)

    @property
    def size(self) -> int:
        """The size of what is next: 0 for a part of a batch, one more for four times as much."""
        # Four times as much work is another size, so that long work of one size leaves places for
        # work of the others.
        return ((max(0, self.costs[self.num_taken] - 1) // LEAST_COST).bit_length() + 1) // 2

    def effort(self, rate: float) -> float:
        """Estimate the seconds for the request so far and what is next, by positions a second."""
        return self.account.seconds + self.costs[self.num_taken] / max(rate, 1.0)

    def fail(self, problem: Problem) -> None:
        """Give up waiting, in the event loop."""
        if not self.future.done():
            self.future.set_exception(problem)

    def finish(self) -> None:
        """Hand over the results, in the event loop."""
        # The client may have left, or its time may have ended, while the last item was computed.
        if self.future.done():
            return
        found = [self.results[place] for place in range(len(self.items))]
        # One client gets one answer: the first fault stands for the whole request.
        fault = next((one for one in found if isinstance(one, BaseException)), None)
        if fault is not None:
            self.future.set_exception(fault)
        else:
            self.future.set_result(found)


class Run:
    """Work that has begun.

    Args:
        batch: jobs, and the places of their items.
        size: as for a `Job`.
    """

    def __init__(self, batch: Sequence[tuple[Job, int]], size: int) -> None:
        self.batch = batch
        self.size = size
        self.cost = sum(job.costs[place] for job, place in batch)
        self.seconds = self.began = 0.0
        self.since = time.monotonic()

    @property
    def is_gone(self) -> bool:
        """True if all clients have left or are too late."""
        return all(job.is_gone for job, _ in self.batch)

    def compute(self) -> Sequence[Any]:
        """Compute the results of its items, in their order."""
        return _compute(self.batch[0][0].task, [job.items[place] for job, place in self.batch])

    def effort(self, _rate: float) -> float:
        """Count the seconds for the requests so far."""
        # The request that has had least decides: it must not wait because it shares a batch.
        return min(job.account.seconds for job, _ in self.batch)

    def end_turn(self) -> float:
        """Count the seconds of this turn, for each request its share, and return them."""
        seconds = time.perf_counter() - self.began
        self.seconds += seconds
        self.since = time.monotonic()
        for job, place in self.batch:
            # By estimated cost, since nothing measures the parts of a batch apart.
            job.account.seconds += seconds * job.costs[place] / max(self.cost, 1)
        return seconds


def _compute(task: Task | None, items: Sequence[Any]) -> Sequence[Any]:
    """Compute items; an exception takes the place of the result that it prevented.

    If a batch fails, its items are computed one by one, so that a text fails only its own request.
    """
    try:
        return [items[0]()] if task is None else task.run(items)
    # Also a bug, as the thread must live on for the requests of others.
    except Exception as error:
        if len(items) == 1 and not (is_out_of_memory(error) and _move_to_processor(task)):
            return [error]
    return [result for item in items for result in _compute(task, [item])]


def _move_to_processor(task: Task | None) -> bool:
    """Let the model of a task compute on the processor; return False if that is no help."""
    model = getattr(task, "model", None)
    return isinstance(model, ServedModel) and model.move_to_processor()


def share_batch(jobs: Sequence[Job], budget: int) -> list[tuple[Job, int]]:
    """Take the items of the next batch from jobs that may share one, and count them as taken.

    Args:
        jobs: the first of them has an item in any case.
        budget: the most positions.

    Returns:
        Jobs, and the places of their items.
    """
    sharing = list(jobs)
    picked: list[tuple[Job, int]] = []
    # In rounds, a text of each request: a list of hundreds leaves room for single texts.
    while sharing and budget > 0:
        for job in list(sharing):
            cost = job.costs[job.num_taken]
            # The first item is taken whatever it costs, or it would never be.
            if picked and cost > budget:
                budget = 0
                break
            picked.append((job, job.num_taken))
            job.num_taken += 1
            job.since = time.monotonic()
            budget -= cost
            if job.num_taken == len(job.items):
                sharing.remove(job)
    return picked
