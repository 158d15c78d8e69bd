"""Large and costly requests leave time to the others."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from served import Live

from pellucid.decode.constraints.forbidden import Spelling
from pellucid.decode.constraints.glossary import Glossary
from pellucid.machine.turns import taking_turns
from pellucid.serve.compat import language_pairs
from pellucid.serve.models import Models
from pellucid.serve.queue.large_bodies import SMALL_BYTES, check_keys, in_turn
from pellucid.serve.routes import page_route
from pellucid.serve.settings import Limits

FORM = "application/x-www-form-urlencoded"


def form(live: Live, content: bytes, query: str = "") -> httpx.Response:
    return live.client.post(f"/translate{query}", content=content, headers={"Content-Type": FORM})


def test_large_bodies_are_read_one_at_a_time_with_pauses() -> None:
    reading = 0
    most = 0
    passes = 0

    async def read(size: int) -> None:
        nonlocal reading, most
        async with in_turn(size):
            reading += 1
            most = max(most, reading)
            time.sleep(0.01)
            reading -= 1

    async def look() -> None:
        nonlocal passes
        while True:
            passes += 1
            await asyncio.sleep(0.001)

    async def run() -> float:
        looking = asyncio.create_task(look())
        await asyncio.gather(*(read(SMALL_BYTES + 1) for _ in range(5)))
        looking.cancel()
        return passes

    assert asyncio.run(run()) > 5  # The others had turns in between.
    assert most == 1


def test_small_bodies_do_not_wait() -> None:
    async def run() -> bool:
        async with in_turn(SMALL_BYTES + 1), asyncio.timeout(10), in_turn(SMALL_BYTES):
            return True

    assert asyncio.run(run())


def test_body_of_many_faults_is_one_sentence_about_their_number(live: Live) -> None:
    answer = live.post("/v1/translate", {str(number): 0 for number in range(2000)})
    assert answer.status_code == 422
    assert answer.json()["error"].startswith("The body has 2,001 faults.")


@pytest.mark.parametrize(("content", "query"), [(b"&" * 5000, ""), (b"q=a", "?" + "a&" * 5000)])
def test_form_or_query_of_many_fields_is_refused(live: Live, content: bytes, query: str) -> None:
    assert form(live, content, query).status_code == 400


def test_large_form_is_read_as_a_small_one(live: Live) -> None:
    long = b"q=" + b"A+cat.%0A" * 2000 + b"&source=en&target=fr"
    assert len(long) > SMALL_BYTES
    answers = [form(live, one).json() for one in (long, b"q=A+cat.&source=en&target=fr")]
    lines = answers[0]["translatedText"].split("\n")
    assert lines == [answers[1]["translatedText"]] * 2000 + [""]


def test_page_is_made_once_however_many_ask(
    models: Models, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def make(*_: object, **__: object) -> bytes:
        time.sleep(0.3)
        made.append("")
        return b"page"

    monkeypatch.setattr(page_route, "make_service_page", make)
    with Live(models) as live, ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: live.get("/").text, range(4)))
    assert (answers, len(made)) == (["page"] * 4, 1)


def test_identifier_is_not_loaded_in_the_computing_thread(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    load = language_pairs.load_identifier

    def noted() -> Any:
        names.append(threading.current_thread().name)
        return load()

    monkeypatch.setattr(language_pairs, "load_identifier", noted)
    assert live.post("/detect", {"q": "The cat sees the dog."}).status_code == 200
    assert not names[0].startswith("pellucid-compute")


def turns_of(work: Any) -> int:
    """Count how often a computation gives way."""
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1

    with taking_turns(turn):
        work()
    return turns


def test_search_for_terms_and_phrases_gives_way(models: Models) -> None:
    glossary = Glossary({f"cat {number}": f"chat {number}" for number in range(100)})
    assert turns_of(lambda: glossary.terms_for("The cat sees. " * 100)) >= 400
    (model,) = models
    spelling = Spelling(model.translator.tokenizer)
    assert turns_of(lambda: spelling.forbid("le chat mange " * 10)) >= 100


def test_detection_gives_way_between_pages(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    monkeypatch.setattr(language_pairs, "give_way", lambda: turns.append(1))
    body = {"q": ["<p>A cat"] * 30, "source": "auto", "target": "fr", "format": "html"}
    assert live.post("/translate", body).status_code == 200
    # Once for each page, and once for all of them together.
    assert len(turns) == 31


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/look", "/translate"])
@pytest.mark.parametrize("form", ['"k%d":1', '"k%d\\\\" :1'])
def test_a_body_of_a_hundred_thousand_keys_is_refused_before_it_is_parsed(
    live: Live, path: str, form: str
) -> None:
    content = "{" + ",".join(form % number for number in range(60_000)) + "}"
    answer = live.client.post(path, content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert "must have at most 11,424 keys" in answer.json()["error"]


def test_a_text_of_colons_and_quotation_marks_is_no_body_of_keys() -> None:
    content = json.dumps({"texts": ['":' * 20_000, ":" * 20_000]}).encode()
    check_keys(content, Limits())
