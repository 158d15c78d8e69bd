"""Documents are read by a process that can be stopped: it costs only its own request."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import httpx
import pytest
from served import Live

from pellucid.serve.models import Models
from pellucid.serve.settings import Limits, Settings

LONG = "".join(f"k{number}: a cat\n" for number in range(60_000))
"""A YAML whose reading takes seconds, and hundreds of megabytes."""


@pytest.fixture(scope="module")
def hasty(models: Models) -> Iterator[Live]:
    """A server that gives a document a second."""
    limits = Limits(characters=10**7, body_bytes=2**24, document_seconds=1)
    with Live(models, Settings(limits=limits)) as server:
        yield server


def upload(live: Live, name: str, content: str) -> httpx.Response:
    fields = {"source": "en", "target": "fr"}
    return live.client.post("/translate_file", data=fields, files={"file": (name, content)})


def check_works(live: Live) -> None:
    answer = live.post(
        "/v1/translate", {"texts": ["<p>The cat sees the <b>dog</b>.</p>"], "format": "html"}
    )
    assert answer.status_code == 200, answer.text


def test_document_that_takes_long_is_refused_and_others_are_answered_meanwhile(hasty: Live) -> None:
    answers: list[httpx.Response] = []
    thread = threading.Thread(target=lambda: answers.append(upload(hasty, "a.yaml", LONG)))
    thread.start()
    while thread.is_alive():
        assert hasty.get("/livez").status_code == 200
        assert hasty.post("/v1/translate", {"texts": ["A cat."]}).status_code == 200
        time.sleep(0.05)
    assert answers[0].status_code == 413
    assert answers[0].json()["error"] == (
        "The document takes more than 1 s to read. Send it in smaller parts."
    )
    check_works(hasty)


def test_killed_process_costs_only_its_own_request(hasty: Live) -> None:
    check_works(hasty)
    process = hasty.service.documents.process_id
    assert process is not None
    answers: dict[str, httpx.Response] = {}

    def send(name: str, content: str) -> None:
        answers[name] = upload(hasty, name, content)

    threads = [threading.Thread(target=send, args=("a.yaml", LONG))]
    threads[0].start()
    time.sleep(0.3)  # It is being read; the others wait behind it.
    threads += [threading.Thread(target=send, args=(f"{k}.html", "<p>A cat.")) for k in range(3)]
    for thread in threads[1:]:
        thread.start()
    time.sleep(0.2)
    os.kill(process, signal.SIGKILL)
    for thread in threads:
        thread.join()
    assert answers.pop("a.yaml").status_code == 503
    assert [one.status_code for one in answers.values()] == [200] * 3
    assert hasty.service.documents.process_id not in (None, process)


def test_process_that_was_killed_without_work_costs_nothing(hasty: Live) -> None:
    check_works(hasty)
    process = hasty.service.documents.process_id
    assert process is not None
    os.kill(process, signal.SIGKILL)
    time.sleep(0.3)
    check_works(hasty)
    assert hasty.service.documents.process_id != process


def test_document_that_needs_much_memory_is_refused(models: Models) -> None:
    limits = Limits(characters=10**7, body_bytes=2**24, document_memory_bytes=64 * 2**20)
    with Live(models, Settings(limits=limits)) as live:
        answer = upload(live, "a.yaml", LONG)
        assert answer.status_code == 413
        assert "67,108,864 bytes of memory" in answer.json()["error"]
        check_works(live)


def test_process_ends_with_the_server(models: Models) -> None:
    with Live(models) as live:
        check_works(live)
        process = live.service.documents.process_id
    until = time.monotonic() + 10
    while process is not None and time.monotonic() < until:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("the process is still there")


def test_no_process_starts_before_it_is_needed(models: Models) -> None:
    with Live(models) as live:
        assert live.post("/v1/translate", {"texts": ["A cat."]}).status_code == 200
        assert live.service.documents.process_id is None


def test_process_loads_no_large_library() -> None:
    program = (
        "import pellucid.serve.worker.document_child, sys;"
        "print(*{'torch', 'numpy', 'pydantic', 'starlette'} & {*sys.modules})"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.stdout, found.stderr) == ("\n", "")
