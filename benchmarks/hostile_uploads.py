"""The service under hostile uploads: what ordinary clients notice while documents are read.

    python benchmarks/hostile_uploads.py               # 500 uploads; some minutes
    python benchmarks/hostile_uploads.py --uploads 60 --at-once 4

Starts `pellucid serve demo` as a process by itself. Hostile clients send documents and bodies of
some twenty kinds that make parsers slow, deep or large: one sign repeated, elements inside each
other, thousands of keys, forms of nothing but escapes; some of them leave. Meanwhile eight ordinary
clients ask for one sentence after another, compare each answer with the one that the library gives,
and another process asks `/livez` ten times a second. In the middle the process that reads documents
is killed, again and again. Then the same uploads are sent once more, for memory; at the end SIGTERM
comes while uploads are on their way. Everything runs on one machine, so the clients take their
share of it.
"""

from __future__ import annotations

import argparse
import asyncio
import atexit
import datetime
import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from documents import Maker, damage
from hostile_requests import SENTENCE, Attack, _ask_until, as_json, attack, html, translate, upload
from serve_load import NUM_TEXTS, RESULTS, Watch, load, memory, show, start_server, stop

from pellucid.corpora import iterate_split
from pellucid.documents.formats import ENDINGS
from pellucid.machine.hardware import describe_machine

ORDINARY = 8
REQUEST_SECONDS = 20
SIZE = 19_000
"""Characters of a document; the service takes 20,000."""
BODY = 900_000
"""Bytes of a body; the service takes a megabyte."""

CUE = "1\n00:00:01,000 --> 00:00:02,000\n"
UNIT = '<trans-unit id="a"><source>{}</source></trans-unit>'
XLIFF = f'<xliff version="1.2"><file source-language="en"><body>{UNIT}</body></file></xliff>'
TMX = '<tmx><body><tu><tuv xml:lang="en"><seg>{}</seg></tuv></tu></body></tmx>'
ANDROID = '<resources><string name="a">{}</string></resources>'
FORM = "application/x-www-form-urlencoded"
PART = '--X\r\nContent-Disposition: form-data; name="q"\r\n\r\n'


def repeat(frame: str, motif: str, size: int = SIZE) -> str:
    return frame.replace("{}", motif * ((size - len(frame)) // len(motif)))


def nest(frame: str, opening: str, closing: str) -> str:
    times = (SIZE - len(frame)) // len(opening + closing)
    return frame.replace("{}", f"{opening * times}dog{closing * times}")


def damaged(rng: random.Random) -> Attack:
    """A generated document of any format with some of its signs changed."""
    ending, form = rng.choice([*ENDINGS.items()])
    return upload(f"a{ending}", damage(Maker(rng.randrange(10**6)).make(form.name)[0], rng))


UPLOADS: dict[str, Callable[[random.Random], Attack]] = {
    "properties, one key": lambda _: upload("a.properties", repeat("{}\\", "a")),
    "properties, escapes": lambda _: upload("a.properties", repeat("a = b {} c", "\\u00e9%")),
    "srt, spaces": lambda _: upload("a.srt", repeat(f"{CUE}a{{}}b\n", " ")),
    "vtt, tags": lambda _: upload("a.vtt", repeat(f"WEBVTT\n\n{CUE[2:]}{{}}b\n", "<v a>")),
    "android, line breaks": lambda _: upload("a.xml", repeat(ANDROID, "\\n")),
    "po, spaces": lambda _: upload("a.po", repeat("{}x", " ")),
    "po, messages": lambda _: upload("a.po", repeat("{}", 'msgid "a cat"\nmsgstr ""\n\n')),
    "xliff, prefix": lambda _: upload("a.xlf", XLIFF.replace("trans-unit", "a" * 9_000 + ":u")),
    "xliff, nested": lambda _: upload("a.xlf", nest(XLIFF, "<g id='1'>", "</g>")),
    "tmx, nested": lambda _: upload("a.tmx", nest(TMX, "<hi>", "</hi>")),
    "yaml, keys": lambda _: upload("a.yaml", "".join(f"k{k}: a cat\n" for k in range(1_300))),
    "yaml, nested": lambda _: upload("a.yaml", nest("a: {}", "[", "]")),
    "json, nested": lambda _: upload("a.json", nest("{}", '{"a":', "}").replace("dog", '"a"')),
    "markdown, brackets": lambda _: upload("a.md", repeat("a {} b", "<![CDATA[")),
    "csv, quotes": lambda _: upload("a.csv", repeat('id,text\n1,"a {} b"\n', '"" <b>')),
    "html, cells": lambda _: upload("a.html", repeat("{}", "<td>a cat</td>")),
    "html, 45 texts": lambda _: translate(repeat("{}", "<i>a</i> <p>"), 45, format="html"),
    "html, marks": lambda _: translate(html("marks", 2_000), 4, format="html"),
    "damaged document": damaged,
    "text file": lambda _: upload("a.txt", repeat("{}", "The cat sees the dog.\n", BODY)),
    "form of ampersands": lambda _: ("/translate", FORM, b"&" * BODY),
    "form of percent signs": lambda _: ("/translate", FORM, b"q=" + b"%" * BODY),
    "form of boundaries": lambda _: (
        "/translate_file",
        "multipart/form-data; boundary=X",
        repeat(PART + "{}", "\r\n--XY", BODY).encode(),
    ),
    "unknown fields": lambda _: as_json("/v1/translate", **{str(k): 0 for k in range(80_000)}),
    "links": lambda _: translate("the cat " * 100, 40, align=True),
    "look": lambda _: as_json("/v1/look", text="cat " * 200, everything=True),
}
"""How to make an upload of each kind."""


def worker_of(server: int) -> int | None:
    """Find the process that reads documents, a child of the server."""
    children = Path(f"/proc/{server}/task").glob("*/children")
    numbers = [int(one) for path in children for one in path.read_text().split()]
    return next(iter(numbers), None)


async def attack_all(port: int, count: int, at_once: int, seed: int) -> dict[str, Counter[str]]:
    """Send uploads of all kinds, so many at a time; return what became of each kind."""
    rng = random.Random(seed)
    found: dict[str, Counter[str]] = {name: Counter() for name in UPLOADS}
    names = [[*UPLOADS][number % len(UPLOADS)] for number in range(count)]
    rng.shuffle(names)
    left = iter(names)

    async def keep_sending() -> None:
        for name in left:
            manner = "leaves" if rng.random() < 0.2 else "waits"
            found[name][await attack(port, UPLOADS[name](rng), manner, rng)] += 1

    await asyncio.gather(*(keep_sending() for _ in range(at_once)))
    return found


async def kill_workers(server: int, times: int) -> int:
    """Kill the process that reads documents every two seconds; return how often there was one."""
    killed = 0
    for _ in range(times):
        await asyncio.sleep(2)
        worker = worker_of(server)
        if worker is not None:
            os.kill(worker, signal.SIGKILL)
            killed += 1
    return killed


async def ask_meanwhile(
    port: int, server: int, expected: dict[str, str], given: argparse.Namespace
) -> dict[str, Any]:
    """Let ordinary clients ask while the others upload, and kill the worker meanwhile."""
    uploads = attack_all(port, given.uploads, given.at_once, given.seed)
    attacking = asyncio.create_task(uploads)
    killing = asyncio.create_task(kill_workers(server, given.kills))
    clients = await _ask_until(attacking, port, expected)
    killing.cancel()
    killed = killing.result() if killing.done() and not killing.cancelled() else "not all"
    return {"clients": clients, "answers": await attacking, "workers_killed": killed}


async def end_amid_uploads(port: int, process: Any, seed: int) -> float:
    """Send SIGTERM while uploads are read; return the seconds until the server has ended."""
    uploads = asyncio.create_task(attack_all(port, len(UPLOADS), 8, seed))
    await asyncio.sleep(1)
    began = time.perf_counter()
    code = await asyncio.to_thread(stop, process)
    uploads.cancel()
    assert code == 0, code
    return time.perf_counter() - began


def sizes(server: int) -> dict[str, float]:
    """Measure the memory of the server and of its worker in MiB."""
    worker = worker_of(server)
    found = {"server": round(memory(server), 1)}
    return found if worker is None else {**found, "worker": round(memory(worker), 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--uploads", type=int, default=500)
    parser.add_argument("--at-once", type=int, default=16)
    parser.add_argument("--kills", type=int, default=5)
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
        "kinds": len(UPLOADS),
        "uploads": given.uploads,
    }
    process, port, _ = start_server("--set", f"limits.request_seconds={REQUEST_SECONDS}")
    server = process.pid
    atexit.register(process.kill)  # if this ends early
    # PyTorch is loaded with the first request that needs it; that is another matter.
    asyncio.run(attack(port, as_json("/v1/look", text=SENTENCE), "waits", random.Random(1)))
    asyncio.run(attack(port, upload("a.html", "<p>A cat."), "waits", random.Random(1)))
    before = asyncio.run(load(port, expected, clients=ORDINARY, seconds=5))
    found["memory_mib"] = {"before": sizes(server)}
    watch = Watch(port)
    began = time.perf_counter()
    during = asyncio.run(ask_meanwhile(port, server, expected, given))
    found["seconds"] = round(time.perf_counter() - began, 1)
    found["clients"] = {"before": before, "during": {**during["clients"], **watch.figures()}}
    found["answers"] = {name: dict(one) for name, one in during["answers"].items()}
    found["workers_killed"] = during["workers_killed"]
    show("ordinary clients", found["clients"])
    show("uploads", found["answers"])
    found["memory_mib"]["after"] = sizes(server)
    asyncio.run(attack_all(port, given.uploads, given.at_once, given.seed))
    # Memory is given back to the system after a request that comes in a quiet moment.
    time.sleep(6)
    asyncio.run(attack(port, translate(SENTENCE), "waits", random.Random(1)))
    time.sleep(1)
    found["memory_mib"]["after the same again"] = sizes(server)
    show("memory in MiB", found["memory_mib"])
    found["seconds_to_end"] = round(asyncio.run(end_amid_uploads(port, process, given.seed)), 1)
    found["load_average_after"] = os.getloadavg()[0]
    rest = ("workers_killed", "seconds", "seconds_to_end", "load_average_before")
    show("and", {"": {name: found[name] for name in (*rest, "load_average_after")}})
    path = given.output or RESULTS / f"{found['date']}-hostile-uploads.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"Written to {path}.")


if __name__ == "__main__":
    main()
