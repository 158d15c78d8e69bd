"""The queue: what is computed together, what is refused, and what leaves it early."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any

import pytest

from pellucid.serve.answers.responses import Problem
from pellucid.serve.queue.pauses import NeedsPyTorchError
from pellucid.serve.queue.prometheus import Metrics
from pellucid.serve.queue.scheduler import Scheduler
from pellucid.serve.settings import Limits

Run = Callable[..., Any]


class Doubling:
    """A task that doubles numbers, waits to be allowed to, and fails on negative ones."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.begun = threading.Event()
        self.batches: list[list[int]] = []

    def cost(self, item: int) -> int:
        return 100

    def run(self, items: Sequence[int]) -> list[int]:
        self.begun.set()
        assert self.gate.wait(30)
        self.batches.append(list(items))
        if any(item < 0 for item in items):
            raise ArithmeticError("negative")
        return [2 * item for item in items]


@pytest.fixture
def run() -> Iterator[Run]:
    """Run a coroutine function with a scheduler."""
    made: list[Scheduler] = []

    def run(test: Callable[[Scheduler], Coroutine[Any, Any, Any]], **limits: Any) -> Any:
        made.append(Scheduler(Limits(**limits), Metrics()))
        made[-1].start()
        return asyncio.run(test(made[-1]))

    yield run
    for scheduler in made:
        scheduler.stop(10)
        assert not scheduler.is_alive


async def occupy(scheduler: Scheduler, task: Doubling) -> asyncio.Task[list[int]]:
    """Let the thread wait inside a first batch."""
    first = asyncio.create_task(scheduler.compute(task, [0]))
    await asyncio.to_thread(task.begun.wait, 30)
    return first


def test_compute_requests_that_wait_are_computed_together_in_turns(run: Run) -> None:
    task = Doubling()

    async def test(scheduler: Scheduler) -> None:
        first = await occupy(scheduler, task)
        many = asyncio.create_task(scheduler.compute(task, list(range(1, 12))))
        await asyncio.sleep(0)
        few = asyncio.create_task(scheduler.compute(task, [100]))
        await asyncio.sleep(0)
        task.gate.set()
        assert await few == [200]
        assert await many == [2 * n for n in range(1, 12)]
        assert await first == [0]

    run(test, batch_tokens=400)
    assert task.batches[0] == [0]
    # The short request is in the first batch after it came, although the long one was first.
    assert 100 in task.batches[1]
    assert all(len(batch) <= 4 for batch in task.batches)


def test_compute_failing_text_fails_only_its_own_request(run: Run) -> None:
    task = Doubling()

    async def test(scheduler: Scheduler) -> None:
        first = await occupy(scheduler, task)
        bad = asyncio.create_task(scheduler.compute(task, [-1]))
        good = asyncio.create_task(scheduler.compute(task, [3, 5]))
        await asyncio.sleep(0)
        task.gate.set()
        assert await good == [6, 10]
        with pytest.raises(ArithmeticError):
            await bad
        await first

    run(test)


def test_compute_full_queue_refuses_with_a_time_to_wait(run: Run) -> None:
    task = Doubling()

    async def test(scheduler: Scheduler) -> None:
        first = await occupy(scheduler, task)
        waiting = asyncio.create_task(scheduler.compute(task, [1, 2]))
        await asyncio.sleep(0)
        with pytest.raises(Problem) as refused:
            await scheduler.compute(task, [3, 5])
        assert refused.value.status == 429
        assert int(refused.value.headers["Retry-After"]) >= 1
        task.gate.set()
        assert (await first, await waiting) == ([0], [2, 4])
        assert await scheduler.compute(task, [7]) == [14]

    run(test, queue_tokens=300)


def test_compute_client_that_leaves_frees_its_place(run: Run) -> None:
    task = Doubling()

    async def test(scheduler: Scheduler) -> None:
        first = await occupy(scheduler, task)
        leaving = asyncio.create_task(scheduler.compute(task, [1, 2]))
        await asyncio.sleep(0)
        with pytest.raises(Problem):
            scheduler.check_room()
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
        scheduler.check_room()
        task.gate.set()
        await first

    run(test, queue_tokens=200)
    assert task.batches == [[0]]


def test_compute_too_late_ends_with_504(run: Run) -> None:
    task = Doubling()

    async def test(scheduler: Scheduler) -> None:
        with pytest.raises(Problem) as late:
            await scheduler.compute(task, [1])
        assert late.value.status == 504
        task.gate.set()

    run(test, request_seconds=0.05)


def test_stream_pieces_come_between_batches_until_the_reader_leaves(run: Run) -> None:
    made: list[int] = []

    def count() -> Iterator[int]:
        for number in range(10**6):
            made.append(number)
            yield number

    async def test(scheduler: Scheduler) -> None:
        stream = scheduler.stream(count)
        assert [await anext(stream) for _ in range(3)] == [0, 1, 2]
        task = Doubling()
        task.gate.set()
        assert await scheduler.compute(task, [1]) == [2]
        await stream.aclose()
        assert await scheduler.call(lambda: "by itself") == "by itself"

    run(test)
    assert 3 <= len(made) < 10**6


def test_stream_failure_reaches_the_reader(run: Run) -> None:
    def fail() -> Iterator[int]:
        yield 1
        raise ArithmeticError

    async def test(scheduler: Scheduler) -> None:
        with pytest.raises(ArithmeticError):
            async for _ in scheduler.stream(fail):
                pass

    run(test)


def test_stop_finishes_what_waits_and_refuses_what_comes(run: Run) -> None:
    task = Doubling()

    async def test(scheduler: Scheduler) -> None:
        first = await occupy(scheduler, task)
        waiting = asyncio.create_task(scheduler.compute(task, [1]))
        await asyncio.sleep(0)
        stopping = asyncio.create_task(asyncio.to_thread(scheduler.stop, 30))
        await asyncio.sleep(0.05)
        task.gate.set()
        assert (await first, await waiting) == ([0], [2])
        await stopping
        with pytest.raises(Problem) as refused:
            await scheduler.compute(task, [1])
        assert refused.value.status == 503

    run(test)


def test_start_does_the_first_work_before_others_and_survives_its_failure() -> None:
    done: list[str] = []

    def fail() -> None:
        done.append("first")
        raise ArithmeticError

    async def test() -> None:
        scheduler.start(fail)
        await scheduler.call(lambda: done.append("second"))

    scheduler = Scheduler(Limits(), Metrics())
    asyncio.run(test())
    scheduler.stop(10)
    assert done == ["first", "second"]


def test_others_are_computed_while_one_loads_pytorch(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    tries: list[str] = []

    def load() -> None:
        tries.append("load")
        gate.wait(30)

    def look() -> str:
        tries.append("look")
        if not gate.is_set():
            raise NeedsPyTorchError
        return "seen"

    monkeypatch.setattr("pellucid.serve.queue.scheduler.load_pytorch", load)

    async def test(scheduler: Scheduler) -> None:
        looking = asyncio.create_task(scheduler.call(look))
        while "load" not in tries:
            await asyncio.sleep(0.01)
        others = [scheduler.call(lambda: "text") for _ in range(3)]
        assert await asyncio.wait_for(asyncio.gather(*others), 20) == ["text"] * 3
        assert not looking.done()
        # What loads is waited for, also when the server ends.
        stopping = asyncio.create_task(asyncio.to_thread(scheduler.stop, 30))
        await asyncio.sleep(0.05)
        gate.set()
        assert await looking == "seen"
        await stopping

    run(test)
    assert tries == ["look", "load", "look"]
