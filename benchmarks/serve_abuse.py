"""The service under abuse: fuzzed bytes, slow clients, and requests made from its schema.

    python benchmarks/serve_abuse.py            # some minutes
    python benchmarks/serve_abuse.py --full     # 50,000 raw requests, 1,000 examples a route

Starts `pellucid serve demo` as a process by itself. Raw requests are valid ones whose bytes are
changed, cut, doubled and mixed; slow clients send a byte now and then. Then schemathesis makes
valid and invalid requests for every operation; an answer of the kind 5xx, or one that the schema
does not describe, is a fault. Meanwhile another process asks `/livez` ten times a second.
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
from collections import Counter
from pathlib import Path
from typing import Any

from serve_load import RESULTS, Watch, memory, show, start_server, stop

from pellucid.machine.hardware import describe_machine

BODY = b'{"texts": ["The dog ate it."]}'
SEEDS = (
    b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: %d\r\n\r\n%s" % (len(BODY), BODY),
    b"POST /translate HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    b"1d\r\nq=A+cat.&source=en&target=fr&x=\r\n0\r\n\r\n",
    b"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 175\r\n"
    b"Content-Type: multipart/form-data; boundary=X\r\n\r\n--X\r\nContent-Disposition: form-data; "
    b'name="source"\r\n\r\nen\r\n--X\r\nContent-Disposition: form-data; name="file"; '
    b'filename="a.txt"\r\n\r\nA cat.\r\n--X--\r\n',
    b"OPTIONS /v1/look HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n\r\n",
)
PIECES = (
    b"\r\n",
    b"\n",
    b"\x00",
    b": ",
    b"chunked",
    b"ffffffff\r\n",
    b"%00",
    b"../",
    b"\xff",
    b"{",
)


def fuzz(rng: random.Random) -> bytes:
    """Change a valid request in a few places."""
    data = bytearray(rng.choice(SEEDS))
    for _ in range(rng.randint(0, 6)):
        place = rng.randrange(len(data) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            data[place:place] = rng.choice(PIECES)
        elif kind == 1:
            del data[place : place + rng.randint(1, 20)]
        elif kind == 2 and place < len(data):
            data[place] = rng.randrange(256)
        elif kind == 3:
            other = rng.choice(SEEDS)
            data[place:place] = other[: rng.randrange(len(other))]
        else:
            data[place:place] = bytes(data[place : place + 30]) * rng.randint(1, 40)
        if not data:
            break
    return bytes(data)


async def send(port: int, data: bytes, kinds: Counter[str]) -> None:
    """Send bytes, wait until the server closes the connection, and count the answers' statuses."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(data)
        answer = await asyncio.wait_for(reader.read(), 60)
        writer.close()
    except (OSError, asyncio.IncompleteReadError):
        kinds["reset"] += 1
        return
    except TimeoutError:
        kinds["no end"] += 1
        return
    statuses = [part[:3].decode("latin-1") for part in answer.split(b"HTTP/1.1 ")[1:]]
    kinds.update(statuses or ["nothing"])


async def be_slow(port: int, rng: random.Random, until: float) -> None:
    """Send a request byte by byte with long pauses, again when the server cuts it off."""
    while time.monotonic() < until:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            for byte in SEEDS[1]:
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(rng.uniform(0.2, 2))
                if time.monotonic() > until:
                    break
            writer.close()
        except OSError:
            await asyncio.sleep(0.1)


async def send_raw(port: int, count: int, seed: int) -> Counter[str]:
    """Send fuzzed requests, 200 at a time; return how often each status came."""
    rng = random.Random(seed)
    kinds: Counter[str] = Counter()
    left = iter(range(count))

    async def keep_sending() -> None:
        for _ in left:
            await send(port, fuzz(rng), kinds)

    await asyncio.gather(*(keep_sending() for _ in range(200)))
    return kinds


async def send_slowly(port: int, clients: int, seconds: float, seed: int) -> None:
    """Let many clients be slow for some time."""
    rng = random.Random(seed)
    until = time.monotonic() + seconds
    await asyncio.gather(*(be_slow(port, rng, until) for _ in range(clients)))


def abuse(port: int, *, raw: int, slow: int, seed: int) -> dict[str, Any]:
    """Send slow requests, then fuzzed ones."""
    found: dict[str, Any] = {}
    watch = Watch(port)
    asyncio.run(send_slowly(port, slow, 30, seed))
    found["slow"] = {"clients": slow, **watch.figures()}
    watch = Watch(port)
    began = time.perf_counter()
    kinds = asyncio.run(send_raw(port, raw, seed))
    seconds = time.perf_counter() - began
    found["raw"] = {"requests": raw, "seconds": round(seconds, 1), **watch.figures()}
    found["answers"] = dict(sorted(kinds.items()))
    return found


def make_requests(port: int, examples: int) -> dict[str, Any]:
    """Make requests from the schema for every operation; count those with 5xx or a wrong form."""
    import httpx
    import schemathesis

    url = f"http://127.0.0.1:{port}"
    document = httpx.get(f"{url}/openapi.json", timeout=60).json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.base_url = url
    found: dict[str, Any] = {}
    for path, methods in document["paths"].items():
        for method in methods:
            operation = schema[path][method.upper()]
            found[f"{method.upper()} {path}"] = try_operation(
                operation, examples, has_wrong_ones=method == "post"
            )
            print(".", end="", flush=True)
    print(flush=True)
    return found


def try_operation(operation: Any, examples: int, *, has_wrong_ones: bool) -> dict[str, Any]:
    """Make requests for one operation; return the statuses and the first faults."""
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as st
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    checks = [
        not_a_server_error,
        status_code_conformance,
        content_type_conformance,
        response_schema_conformance,
    ]
    modes = list(GenerationMode) if has_wrong_ones else [GenerationMode.POSITIVE]
    made = [operation.as_strategy(generation_mode=mode) for mode in modes]
    statuses: Counter[str] = Counter()
    faults: list[str] = []

    @settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
    )
    @given(case=st.one_of(made))
    def ask(case: Any) -> None:
        answer = case.call()
        statuses[str(answer.status_code)] += 1
        try:
            case.validate_response(answer, checks=checks)
        except Exception as error:
            faults.append(" ".join(str(error).split())[:500])

    ask()
    return {"statuses": dict(sorted(statuses.items())), "faults": faults[:3]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the full counts; an hour")
    parser.add_argument("--raw", type=int, help="fuzzed requests; 5,000 or 50,000")
    parser.add_argument("--slow", type=int, default=500, help="slow clients")
    parser.add_argument("--examples", type=int, help="for each operation; 100 or 1,000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    raw = given.raw if given.raw is not None else (50_000 if given.full else 5_000)
    examples = given.examples if given.examples is not None else (1000 if given.full else 100)
    found: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "machine": describe_machine(),
        "load_average_before": os.getloadavg()[0],
    }
    # Short times, because each fuzzed request waits until the server cuts it off.
    limits = {"header_seconds": 2, "body_seconds": 1, "idle_seconds": 1}
    options = [word for key, one in limits.items() for word in ("--set", f"limits.{key}={one}")]
    process, port, _ = start_server(*options)
    atexit.register(process.kill)  # if this ends early
    sizes = {"before": round(memory(process.pid), 1)}
    found |= abuse(port, raw=raw, slow=given.slow, seed=given.seed)
    show("slow clients", {"": found["slow"]})
    show("raw requests", {"": found["raw"]})
    show("their answers", {"": found["answers"]})
    sizes["after raw requests"] = round(memory(process.pid), 1)
    if examples:
        watch = Watch(port)
        found["schema"] = make_requests(port, examples)
        found["schema_livez"] = watch.figures()
        show("operation", {name: one["statuses"] for name, one in found["schema"].items()})
        show("meanwhile", {"": found["schema_livez"]})
        for name, one in found["schema"].items():
            for fault in one["faults"]:
                print(f"{name}: {fault}", flush=True)
    sizes["after all"] = round(memory(process.pid), 1)
    found["memory_mib"] = sizes
    show("memory in MiB", {"": sizes})
    found["exit_code"] = stop(process)
    found["load_average_after"] = os.getloadavg()[0]
    path = given.output or RESULTS / f"{found['date']}-serve-abuse.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"Written to {path}.")


if __name__ == "__main__":
    main()
