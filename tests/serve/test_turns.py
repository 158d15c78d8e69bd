"""Costly requests: they give way to others, stop in time, and count by their work."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from served import Live

from pellucid.config import DecodingConfig
from pellucid.machine.turns import give_way
from pellucid.serve.answers.responses import Problem
from pellucid.serve.models import Models, ServedModel
from pellucid.serve.queue import scheduler as scheduling
from pellucid.serve.queue.prometheus import Metrics
from pellucid.serve.queue.scheduler import Scheduler
from pellucid.serve.queue.tasks import (
    Text,
    Translate,
    count_units,
    estimate_search,
    estimate_tokens,
)
from pellucid.serve.settings import Limits, Settings
from pellucid.translate import judging
from pellucid.translate.results import Notes, TranslatedHypothesis, Translation

ENDLESS = 10**9
SENTENCE = "The pizza came out of the oven and it tasted good."


class Counting:
    """A task that counts up to each of its items, giving way after each step."""

    def __init__(self) -> None:
        self.steps = 0

    def cost(self, item: int) -> int:
        return item

    def run(self, items: Sequence[int]) -> list[int]:
        for item in items:
            for _ in range(item):
                give_way()
                time.sleep(0.0005)
                self.steps += 1
        return list(items)


class Limited:
    """A translator that looks at so many translations of a call and no more, as the real one."""

    def __init__(self, log_probability: float) -> None:
        self._logs = (log_probability,)
        self._most = judging.MOST_LINKED
        if log_probability < judging.DOUBTFUL:
            self._most = judging.MOST_REPLAYED

    def translate(self, texts: Sequence[str], **_: Any) -> list[Translation]:
        return [
            Translation(
                text,
                (TranslatedHypothesis(text, token_log_probabilities=self._logs),),
                notes=Notes(flags=("partial",) if number < self._most else ()),
            )
            for number, text in enumerate(texts)
        ]


@pytest.mark.parametrize("log_probability", [-0.1, -1.1])
def test_notes_on_a_text_do_not_depend_on_how_many_texts_share_its_batch(
    log_probability: float,
) -> None:
    translator: Any = Limited(log_probability)
    task = Translate(ServedModel("limited", translator), ())
    nothing: Any = None
    texts = [Text(f"Let's go {number}.", nothing) for number in range(2 * judging.MOST_LINKED + 3)]
    found = task.run(texts)
    assert [one.source for one in found] == [text.text for text in texts]
    assert {one.notes.flags for one in found} == {("partial",)}


@pytest.fixture
def make() -> Iterator[Callable[..., Scheduler]]:
    """Make schedulers that are stopped in the end."""
    made: list[Scheduler] = []

    def make_one(**limits: Any) -> Scheduler:
        made.append(Scheduler(Limits(**limits), Metrics()))
        made[-1].start()
        return made[-1]

    yield make_one
    for one in made:
        one.stop(0.1)
        deadline = time.monotonic() + 5
        while one.is_alive and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not one.is_alive


def figure(scheduler: Scheduler, name: str) -> float:
    return scheduler._metrics.registry.get_sample_value(name) or 0.0


def wait_until(is_so: Callable[[], bool], seconds: float = 5) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_turns_cheap_work_ends_while_costly_work_goes_on(make: Callable[..., Scheduler]) -> None:
    scheduler, costly = make(queue_tokens=ENDLESS), [Counting() for _ in range(5)]

    async def test() -> None:
        running = [asyncio.create_task(scheduler.compute(one, [10**6])) for one in costly]
        await asyncio.sleep(0.05)
        assert await scheduler.compute(Counting(), [3]) == [3]
        assert await scheduler.call(lambda: "called") == "called"
        assert not any(one.done() for one in running)
        # As many as may have begun of that size advance in turns; the others wait for one of them.
        await asyncio.sleep(0.4)
        assert sum(one.steps > 0 for one in costly) == scheduling.MOST_OF_A_SIZE
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    asyncio.run(test())
    wait_until(lambda: figure(scheduler, "pellucid_computations") == 0)
    assert figure(scheduler, "pellucid_computations_stopped_total") == scheduling.MOST_OF_A_SIZE


def test_turns_middling_work_does_not_wait_for_costly_work(make: Callable[..., Scheduler]) -> None:
    scheduler = make(queue_tokens=ENDLESS)

    async def test() -> None:
        running = [asyncio.create_task(scheduler.compute(Counting(), [10**6])) for _ in range(4)]
        await asyncio.sleep(0.02)
        assert await scheduler.call(lambda: "called", cost=5000) == "called"
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    asyncio.run(test())


@pytest.mark.parametrize("ending", ["leaves", "is late"])
def test_turns_computation_stops_when_its_client_leaves_or_time_is_up(
    make: Callable[..., Scheduler], ending: str
) -> None:
    scheduler, task = make(queue_tokens=ENDLESS, request_seconds=0.1), Counting()

    async def test() -> None:
        running = asyncio.create_task(scheduler.compute(task, [10**6]))
        await asyncio.sleep(0.03)
        if ending == "leaves":
            running.cancel()
        (fault,) = await asyncio.gather(running, return_exceptions=True)
        if ending == "is late":
            assert isinstance(fault, Problem)
            assert fault.status == 504

    asyncio.run(test())
    wait_until(lambda: figure(scheduler, "pellucid_computations") == 0)
    steps = task.steps
    time.sleep(0.05)
    assert task.steps == steps < 10**6


def test_turns_parts_of_one_request_share_its_time(make: Callable[..., Scheduler]) -> None:
    scheduler = make(request_seconds=0.2)

    calls: list[int] = []

    async def test() -> None:
        while len(calls) < 100:
            await scheduler.call(lambda: time.sleep(0.03))
            calls.append(1)

    with pytest.raises(Problem) as late:
        asyncio.run(test())
    assert late.value.status == 504
    assert 2 <= len(calls) < 50


def test_turns_costly_requests_leave_room_for_others(make: Callable[..., Scheduler]) -> None:
    scheduler = make(queue_tokens=5000, queue_requests=8)

    async def test() -> None:
        running = []
        for _ in range(scheduling.MOST_OF_A_SIZE + 1):
            running.append(asyncio.create_task(scheduler.compute(Counting(), [5000])))
            await asyncio.sleep(0.2)
        with pytest.raises(Problem) as refused:
            await scheduler.compute(Counting(), [5000])
        assert refused.value.status == 429
        scheduler.check_room()
        assert await scheduler.compute(Counting(), [3]) == [3]
        with pytest.raises(Problem) as refused:
            await scheduler.compute(Counting(), [5001])
        assert refused.value.status == 413
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    asyncio.run(test())


def test_readyz_queue_that_stands_still_gives_503(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduling, "STANDSTILL_SECONDS", 0.2)
    may_end, begun = threading.Event(), threading.Event()

    def stand() -> None:
        begun.set()
        may_end.wait(20)

    with Live(models) as server:
        scheduler = server.service.scheduler
        waiting = [threading.Thread(target=asyncio.run, args=(scheduler.call(stand),))]
        waiting[0].start()
        assert begun.wait(5)
        time.sleep(0.3)
        assert server.get("/readyz").status_code == 200  # nothing else waits
        waiting.append(threading.Thread(target=asyncio.run, args=(scheduler.call(int),)))
        waiting[1].start()
        time.sleep(0.3)
        answer = server.get("/readyz")
        assert answer.status_code == 503
        assert "nothing has been computed" in answer.json()["error"]
        may_end.set()
        for one in waiting:
            one.join(5)
        assert server.get("/readyz").status_code == 200


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("The dog ate it.", 4, 8),
        ("", 1, 4),
        ("a\n" * 10_000, 30_000, 40_000),
        ("猫" * 100, 100, 110),
        ("แมวนั่งอยู่บนเสื่อ" * 10, 150, 200),
        ("🐱" * 100, 100, 110),
        ("a\t" * 100, 100, 110),
        ("Собака съела это. " * 10, 30, 60),
    ],
)
def test_estimate_counts_lines_words_and_scripts_without_spaces(
    text: str, least: int, most: int
) -> None:
    assert least <= estimate_tokens(text) <= most


@pytest.mark.parametrize(
    ("options", "times"),
    [
        ({"beam": 16}, 16),
        ({"sample": True, "n_best": 16}, 16),
        ({"beam": 4, "min_length": 250, "max_length": 256}, 100),
        ({"min_length_ratio": 10.0, "max_length_ratio": 20.0}, 10),
        ({"beam": 4, "stopping": "never", "max_length": 250}, 100),
        ({"beam": 4, "n_best": 4, "alternatives": True}, 16),
    ],
)
def test_estimate_counts_what_options_multiply(options: dict[str, Any], times: int) -> None:
    text = "cat " * 8
    plain = estimate_search(text, DecodingConfig(), 256)
    assert times * plain * 0.9 <= estimate_search(text, DecodingConfig(**options), 256)
    assert estimate_search(text, DecodingConfig(), 256, retry=True) == 5 * plain
    many = estimate_search(f"{text}\n" * 40, DecodingConfig(**options), 256)
    assert many == pytest.approx(
        40 * estimate_search(text, DecodingConfig(**options), 256), rel=0.2
    )
    assert estimate_search(text, DecodingConfig(min_length=10**4), 256) <= 256


def test_lines_that_hold_text_are_counted() -> None:
    assert [count_units(text) for text in ("", "a", "a\n\n \nb\n", "\n" * 99)] == [1, 1, 2, 1]


def test_translate_ten_thousand_lines_give_way_and_come_back_whole(
    live: Live, models: Models
) -> None:
    (model,) = models
    found: list[Any] = []
    body = {"texts": ["a cat\n\n" * 2500]}
    costly = threading.Thread(target=lambda: found.append(live.post("/v1/translate", body)))
    costly.start()
    wait_until(lambda: live.figure("pellucid_computations") > 0)
    answers = 0
    while not found:
        assert live.post("/v1/translate", {"texts": [SENTENCE]}).status_code == 200
        answers += not found
    costly.join()
    assert answers > 1
    line = model.translator.translate(["a cat"])[0].text
    assert found[0].json()["translations"][0]["translation"] == f"{line}\n\n" * 2500


COSTLY = {
    "minimum length": (
        "/v1/translate",
        {"texts": ["a\n" * 40], "beam": 16, "n_best": 16, "min_length": 250, "max_length": 256},
    ),
    "line breaks": ("/v1/translate", {"texts": ["a cat sees\n" * 1800] * 2, "align": True}),
    "strict": ("/v1/translate", {"texts": [SENTENCE] * 99, "beam": 16, "diverse_groups": 2}),
    "stream": (
        "/v1/translate",
        {
            "texts": "a cat\n" * 30,
            "beam": 16,
            "min_length": 250,
            "max_length": 256,
            "stream": True,
        },
    ),
    "change": (
        "/v1/change",
        {"text": "dog " * 200, "changes": ["cut decoder.0.cross.0"], "random": 64},
    ),
    "look": (
        "/v1/look",
        {"text": "dog " * 200, "changes": ["average decoder.0.cross.0"], "beam": 16},
    ),
    "changes": (
        "/v1/translate",
        {"texts": ["dog " * 200] * 8, "changes": "average decoder.0.cross.0"},
    ),
    "align": ("/v1/align", {"pairs": [{"source": "cat " * 120, "target": "chat " * 200}] * 200}),
    "score": ("/v1/score", {"pairs": [{"source": "cat " * 120, "target": "chat " * 200}] * 200}),
    "alternatives": (
        "/translate",
        {
            "q": ["The cat sees the dog. " * 300] * 8,
            "source": "en",
            "target": "fr",
            "alternatives": 9,
        },
    ),
    "html": (
        "/v1/translate",
        {"texts": ["<p>The <b>cat</b> sees.</p>" * 600] * 4, "format": "html"},
    ),
}


@pytest.fixture(scope="module")
def hurried(models: Models) -> Iterator[Live]:
    """A server that gives every request half a second, and PyTorch loaded."""
    with Live(models, Settings(limits=Limits(request_seconds=0.4))) as server:
        server.post("/v1/look", {"text": SENTENCE})
        server.post("/v1/translate", {"texts": [SENTENCE], "align": True})
        yield server


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", COSTLY)
def test_costly_request_of_any_kind_stops_at_its_time(hurried: Live, name: str) -> None:
    path, body = COSTLY[name]
    answer = hurried.post(path, body)
    if "stream" in body:
        assert "event: error" in answer.text or answer.status_code == 504
    else:
        assert answer.status_code == 504, answer.text[:300]
    wait_until(lambda: hurried.figure("pellucid_computations") == 0, 2)
    assert hurried.post("/v1/translate", {"texts": ["A cat."]}).status_code == 200


def test_client_that_leaves_ends_its_computation(live: Live) -> None:
    path, body = COSTLY["minimum length"]
    content = json.dumps(body).encode()
    before = live.figure("pellucid_computations_stopped_total")
    with socket.create_connection((live.host, live.port), timeout=20) as client:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        client.sendall(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content)
        wait_until(lambda: live.figure("pellucid_computations") > 0)
    wait_until(lambda: live.figure("pellucid_computations") == 0)
    assert live.figure("pellucid_computations_stopped_total") == before + 1


def test_text_file_is_computed_in_parts_and_comes_back_whole(live: Live) -> None:
    lines = ["The dog ate it.", "", " A cat. ", "\r"] * 60
    answer = live.client.post(
        "/translate_file",
        data={"source": "en", "target": "fr"},
        files={"file": ("a.txt", "\n".join(lines).encode())},
    )
    found = live.client.get(answer.json()["translatedFileUrl"]).text.split("\n")
    assert [bool(one.strip()) for one in found] == [bool(one.strip()) for one in lines]
    assert set(found[0::4]) == {"Le chien l'a mangé."}
    assert {one[:1] + one[-1:] for one in found[2::4]} == {"  "}
