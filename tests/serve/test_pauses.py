"""Short passes of the event loop, and the search for cycles that stays out of the way."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from collections.abc import Iterator
from functools import partial

import pytest

from pellucid.serve.queue import pauses
from pellucid.serve.queue.pauses import (
    A_PASS,
    NEVER,
    GarbageCollector,
    Turns,
    call_in_passes,
    freeze_objects,
)


async def passes(num: int, counts: list[int], seen: list[int]) -> None:
    """Note at each pass of the event loop how many have begun so far."""
    for _ in range(num):
        await asyncio.sleep(0)
        counts.append(len(seen))


def largest_step(counts: list[int]) -> int:
    return max(after - before for before, after in zip([0, *counts], counts, strict=False))


def test_turns_let_few_begin_in_each_pass_and_keep_the_order() -> None:
    begun: list[int] = []
    counts: list[int] = []

    async def begin(turns: Turns, number: int) -> None:
        await turns.wait()
        begun.append(number)

    async def test() -> None:
        turns = Turns()
        await asyncio.gather(
            passes(40, counts, begun), *(begin(turns, number) for number in range(10 * A_PASS))
        )
        await asyncio.wait_for(begin(turns, -1), 10)

    asyncio.run(test())
    assert begun == [*range(10 * A_PASS), -1]
    assert largest_step(counts) <= A_PASS


def test_turns_client_that_leaves_takes_no_turn() -> None:
    async def test() -> None:
        turns = Turns()
        waiting = [asyncio.ensure_future(turns.wait()) for _ in range(3 * A_PASS)]
        await asyncio.sleep(0)
        for one in waiting[A_PASS : 2 * A_PASS]:
            one.cancel()
        found = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), 10)
        assert sum(one is None for one in found) == 2 * A_PASS

    asyncio.run(test())


def test_in_turns_calls_all_in_order_with_other_work_between() -> None:
    called: list[int] = []
    counts: list[int] = []

    async def test() -> None:
        call_in_passes([partial(called.append, number) for number in range(3 * A_PASS + 1)])
        counts.append(len(called))
        await passes(6, counts, called)

    asyncio.run(test())
    assert called == list(range(3 * A_PASS + 1))
    assert largest_step(counts) <= A_PASS


@pytest.fixture
def collector() -> Iterator[None]:
    """Put Python's collector back as it was."""
    known = gc.get_threshold()
    yield
    gc.set_threshold(*known)
    gc.unfreeze()


@pytest.mark.usefixtures("collector")
def test_garbage_is_searched_for_when_it_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    found: list[str] = []
    monkeypatch.setattr(pauses.time, "monotonic", lambda: now[0])
    freeze_objects()
    assert gc.get_threshold()[2] == NEVER
    monkeypatch.setattr(pauses.gc, "collect", lambda: found.append("search"))
    monkeypatch.setattr(pauses.gc, "freeze", lambda: found.append("leave"))
    own = GarbageCollector()
    own.collect(is_idle=True)
    now[0] += pauses.IDLE_SECONDS + 1
    own.collect(is_idle=False)
    assert found == []
    own.collect(is_idle=True)
    own.collect(is_idle=True)
    assert found == ["search"]
    now[0] += pauses.BUSY_SECONDS + 1
    monkeypatch.setitem(sys.modules, "a_module_that_was_loaded_since", sys)
    own.collect(is_idle=False)
    assert found == ["search", "leave"]


def test_pytorch_is_imported_as_usual_after_its_libraries_were_loaded() -> None:
    code = (
        "import sys\n"
        "from pellucid.serve.queue.pauses import watch_for_pytorch\n"
        "watch_for_pytorch()\n"
        "assert 'torch' not in sys.modules\n"
        "before = len(sys.meta_path)\n"
        "import json\n"
        "assert len(sys.meta_path) == before\n"
        "import torch\n"
        "assert len(sys.meta_path) == before - 1\n"
        "assert float(torch.ones(3).sum()) == 3\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_pytorch_is_not_imported_by_a_computation_that_has_the_turn() -> None:
    code = (
        "import sys, threading\n"
        "from pellucid.machine.turns import taking_turns\n"
        "from pellucid.serve.queue import pauses\n"
        "pauses.watch_for_pytorch()\n"
        "def needs_it(name='torch'):\n"
        "    with taking_turns(lambda: None):\n"
        "        try:\n"
        "            __import__(name)\n"
        "        except pauses.NeedsPyTorchError:\n"
        "            return True\n"
        "assert needs_it() and 'torch' not in sys.modules\n"
        "loading = threading.Thread(target=pauses.load_pytorch)\n"
        "loading.start()\n"
        "while 'torch' not in sys.modules: pass\n"
        # A second computation does not wait for the first in the middle of its own imports.
        "assert needs_it('pellucid.inside.pair')\n"
        "pauses.load_pytorch()\n"
        "assert not needs_it() and not needs_it('pellucid.inside.pair')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
