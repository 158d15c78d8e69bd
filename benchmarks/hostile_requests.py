"""The service under costly requests: what ordinary clients notice, and what is still computed.

    python benchmarks/hostile_requests.py            # some minutes
    python benchmarks/hostile_requests.py --requests 2000

Starts `pellucid serve demo` as a process by itself. Hostile clients, 32 at a time, send requests of
every kind that can be made costly: wide beams with a minimum length, samples, retries, thousands of
line breaks, long lines, scripts without spaces, HTML of many shapes, files, looks, changes and
scores at their limits, slow bodies, and clients that leave. Meanwhile eight ordinary clients ask
for one sentence after another, and compare each answer with the one that the library gives. Then
everybody leaves: the processor time that the server uses in the next seconds says whether anything
is still computed without a client. Everything runs on one machine, so the clients take their share
of it.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import datetime
import json
import os
import random
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from serve_load import (
    NUM_TEXTS,
    RESULTS,
    Counts,
    Watch,
    load,
    memory,
    processor_seconds,
    show,
    start_server,
    stop,
)

from pellucid.corpora import iterate_split
from pellucid.machine.hardware import describe_machine

ORDINARY = 8
AT_ONCE = 32
REQUEST_SECONDS = 20
MORE_ROUNDS = 4
"""Attacks after the first, which show whether memory levels off."""

SENTENCE = "The pizza came out of the oven and it tasted good."
JSON = "application/json"

Attack = tuple[str, str, bytes]
"""The path, the media type and the body of a request."""


def as_json(path: str, **body: Any) -> Attack:
    return path, JSON, json.dumps(body).encode()


def translate(text: str, count: int = 1, **options: Any) -> Attack:
    return as_json("/v1/translate", texts=[text] * count, **options)


def upload(name: str, content: str) -> Attack:
    """A file as the form of LibreTranslate's clients."""
    fields = {"source": "en", "target": "fr"}
    parts = [
        f'--X\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n'
        for key, value in fields.items()
    ]
    parts.append(
        f'--X\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        f"{content}\r\n--X--\r\n"
    )
    return "/translate_file", "multipart/form-data; boundary=X", "".join(parts).encode()


def html(shape: str, times: int) -> str:
    shapes = {
        "marks": "<b>a</b>",
        "links": '<a href="/">The cat</a> sees ',
        "cells": "<td>12:30</td><td>The dog.</td>",
        "nested": "<i>",
        "open": "<p>The cat <",
        "comments": "<!-- a -->The dog. ",
        "entities": "&amp;&lt;",
    }
    return shapes[shape] * times


ATTACKS: dict[str, Callable[[random.Random], Attack]] = {
    "minimum length": lambda rng: translate(
        "a\n" * rng.randint(1, 40), beam=16, n_best=16, min_length=250, max_length=256
    ),
    "line breaks": lambda _: translate("a\n" * 10_000),
    "line breaks, links": lambda _: translate("a cat\n" * 3_000, align=True),
    "samples": lambda rng: translate(
        SENTENCE, rng.randint(1, 256), sample=True, n_best=16, temperature=50.0, max_length=256
    ),
    "retries": lambda _: translate("dog " * 60, 20, retry=True, beam=8),
    "never stops": lambda _: translate(SENTENCE, 20, beam=16, stopping="never", max_length=256),
    "strict": lambda _: translate(SENTENCE, 20, beam=16, diverse_groups=4, strict=True),
    "phrases": lambda _: translate(
        SENTENCE, 20, beam=8, require=["pizza"], forbid=[f"le {n}" for n in range(90)]
    ),
    "long line": lambda rng: translate("cat " * rng.choice([100, 1000, 5000])),
    "Chinese": lambda _: translate("猫坐在垫子上看着狗。" * 1000),
    "Thai": lambda _: translate("แมวนั่งอยู่บนเสื่อ" * 1000),
    "emoji": lambda _: translate("🐱" * 10_000),
    "letters": lambda _: translate("a" * 20_000, unknown="source-word", align=True),
    "many texts": lambda _: translate(SENTENCE, 256, beam=4, n_best=4),
    "stream": lambda _: as_json(
        "/v1/translate", texts=SENTENCE * 50, beam=16, min_length=250, stream=True
    ),
    "look": lambda _: as_json("/v1/look", text="cat " * 200, everything=True),
    "look under changes": lambda _: as_json(
        "/v1/look", text="cat " * 200, changes=["cut decoder.0.cross.0"]
    ),
    "change": lambda _: as_json(
        "/v1/change", text="dog " * 200, changes=["cut decoder.0.cross.0"], random=64
    ),
    "score": lambda _: as_json(
        "/v1/score", pairs=[{"source": "cat " * 250, "target": "chat " * 250}] * 256
    ),
    "detect": lambda _: as_json("/detect", q="The cat sees the dog. " * 900),
    **{
        f"html, {shape}": lambda _, shape=shape: translate(  # type: ignore[misc]
            html(shape, 1000)[:20_000], 4, format="html"
        )
        for shape in ("marks", "links", "cells", "nested", "open", "comments", "entities")
    },
    "html file": lambda _: upload("a.html", html("marks", 2_000)),
    "text file": lambda _: upload("a.txt", "The cat sees the dog.\n" * 20_000),
}
"""How to make a request of each kind."""


async def attack(port: int, made: Attack, manner: str, rng: random.Random) -> str:
    """Send a request in some manner; return its status, or the way in which it ended."""
    path, kind, body = made
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {kind}\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode())
        if manner == "slow body":
            for place in range(0, 40):
                writer.write(body[place : place + 1])
                await writer.drain()
                await asyncio.sleep(0.5)
            return "slow body"
        writer.write(body)
        if manner == "leaves":
            await asyncio.sleep(rng.uniform(0, 1))
            return "left"
        answer = await asyncio.wait_for(reader.read(64), 3 * REQUEST_SECONDS)
        while await reader.read(65_536):
            pass
        return answer[9:12].decode("latin-1") or "closed"
    except (OSError, TimeoutError) as error:
        return type(error).__name__
    finally:
        writer.close()


async def attack_all(port: int, requests: int, seed: int) -> dict[str, Counter[str]]:
    """Send hostile requests, so many at a time; return what became of each kind."""
    rng = random.Random(seed)
    found: dict[str, Counter[str]] = {name: Counter() for name in ATTACKS}
    names = [list(ATTACKS)[number % len(ATTACKS)] for number in range(requests)]
    rng.shuffle(names)
    left = iter(names)

    async def keep_sending() -> None:
        for name in left:
            manner = rng.choice(["waits"] * 6 + ["leaves"] * 3 + ["slow body"])
            found[name][await attack(port, ATTACKS[name](rng), manner, rng)] += 1

    await asyncio.gather(*(keep_sending() for _ in range(AT_ONCE)))
    return found


def figure(port: int, name: str) -> float:
    """Read a figure of the server's metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return next((float(line.split()[-1]) for line in lines if line.startswith(f"{name} ")), 0.0)


async def ask_meanwhile(
    port: int, expected: dict[str, str], requests: int, seed: int
) -> tuple[dict[str, Any], dict[str, Counter[str]]]:
    """Let ordinary clients ask while the others attack."""
    attacking = asyncio.create_task(attack_all(port, requests, seed))
    asking = asyncio.create_task(_ask_until(attacking, port, expected))
    return await asking, await attacking


async def _ask_until(
    done: asyncio.Task[Any], port: int, expected: dict[str, str]
) -> dict[str, Any]:
    """Ask in rounds of some seconds until the attack is over; return the figures of all."""
    counts, began = Counts(), time.perf_counter()
    while not done.done():
        await load(port, expected, clients=ORDINARY, seconds=2, counts=counts)
    return counts.figures(time.perf_counter() - began)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=500, help="hostile requests")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()

    from pellucid.translate.translator import load as load_model

    texts = [one.source for one, _ in zip(iterate_split("test"), range(NUM_TEXTS), strict=False)]
    expected = {one.source: one.text for one in load_model("demo").translate(texts)}
    found: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "machine": describe_machine(),
        "load_average_before": os.getloadavg()[0],
        "request_seconds": REQUEST_SECONDS,
    }
    limits = (
        "--set",
        f"limits.request_seconds={REQUEST_SECONDS}",
        "--set",
        "limits.body_seconds=3",
    )
    process, port, _ = start_server(*limits)
    atexit.register(process.kill)  # if this ends early
    # PyTorch is loaded with the first request that needs it; that is another matter.
    asyncio.run(attack(port, as_json("/v1/look", text=SENTENCE), "waits", random.Random(1)))
    asyncio.run(attack(port, as_json("/detect", q=SENTENCE), "waits", random.Random(1)))
    quiet = asyncio.run(load(port, expected, clients=ORDINARY, seconds=5))
    found["memory_mib"] = {"before": round(memory(process.pid), 1)}
    watch, began = Watch(port), time.perf_counter()
    busy, answers = asyncio.run(ask_meanwhile(port, expected, given.requests, given.seed))
    found["clients"] = {"before": quiet, "during": {**busy, **watch.figures()}}
    found["answers"] = {name: dict(one) for name, one in answers.items()}
    found["seconds"] = round(time.perf_counter() - began, 1)
    show("ordinary clients", found["clients"])
    show("hostile requests", found["answers"])
    time.sleep(1)
    before = processor_seconds(process.pid)
    time.sleep(5)
    found["after_all_left"] = {
        "computations": figure(port, "pellucid_computations"),
        "stopped_so_far": figure(port, "pellucid_computations_stopped_total"),
        "processor_seconds_in_five": round(processor_seconds(process.pid) - before, 2),
    }
    show("once all have left", {"": found["after_all_left"]})
    for number in range(1 + MORE_ROUNDS):
        if number:
            asyncio.run(attack_all(port, given.requests // 2, given.seed + number))
        # Memory is given back to the system after a request that comes in a quiet moment.
        for _ in range(2):
            time.sleep(6)
            asyncio.run(attack(port, translate(SENTENCE), "waits", random.Random(1)))
        time.sleep(1)
        name = "after" if not number else f"half as many again, {number}"
        found["memory_mib"][name] = round(memory(process.pid), 1)
    show("memory in MiB", {"": found["memory_mib"]})
    found["exit_code"] = stop(process)
    found["load_average_after"] = os.getloadavg()[0]
    path = given.output or RESULTS / f"{found['date']}-hostile-requests.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"Written to {path}.")


if __name__ == "__main__":
    main()
