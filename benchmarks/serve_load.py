"""The service under load: speed by the number of clients, memory, restarts, and a peer.

    python benchmarks/serve_load.py            # some minutes
    python benchmarks/serve_load.py --full     # 200 clients for ten minutes, 100,000 requests

Starts `pellucid serve demo` as a process by itself. Clients keep their connections, send one short
request after another, and compare every answer with the one that the library gives: an answer is
right, wrong, refused (429), or lost. Then the memory of the server over many requests; restarts by
SIGTERM under load, where every request that was accepted must be answered; and an array of 64
texts, against CTranslate2 with the same model behind a route that translates an array text by text,
as LibreTranslate does. Another process asks `/livez` ten times a second. The clients run on the
same machine, and take their share of it.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pellucid.corpora import iterate_split
from pellucid.machine.hardware import describe_machine

RESULTS = Path(__file__).parent / "results"
NUM_TEXTS = 500

WATCH = """
import socket, sys, time

def ask(port):
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        head = b"GET /livez HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n"
        connection.sendall(head + b"\\r\\n")
        answer = b""
        while chunk := connection.recv(4096):
            answer += chunk
    return answer.startswith(b"HTTP/1.1 200")

print("ready", flush=True)
while True:
    began = time.perf_counter()
    try:
        is_answered = ask(int(sys.argv[1]))
    except OSError:
        is_answered = False
    print(1000 * (time.perf_counter() - began) if is_answered else "inf", flush=True)
    time.sleep(0.1)
"""
"""Asks `/livez` from a separate process: one that also sends thousands of requests would measure
itself."""

PEER = """
import json, sys
import ctranslate2
from pellucid.bundle import load_bundle, resolve_model
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.routing import Route
import uvicorn

tokenizer = load_bundle(resolve_model("demo")).tokenizer
ids = {token: id_ for id_, token in enumerate(tokenizer.vocabulary("target"))}
model = ctranslate2.Translator(sys.argv[1], device="cpu", inter_threads=1, intra_threads=2)

def one(text):
    tokens = tokenizer.source_tokens(tokenizer.encode_source(text))
    found = model.translate_batch([tokens], beam_size=1)[0].hypotheses[0]
    return tokenizer.decode_target([ids[token] for token in found])

async def translate(request):
    texts = (await request.json())["q"]
    found = await run_in_threadpool(lambda: [one(text) for text in texts])
    return JSONResponse({"translatedText": found})

app = Starlette(routes=[Route("/translate", translate, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[2]), log_level="critical", access_log=False)
"""


@dataclass
class Counts:
    """What became of the requests of some clients."""

    seconds: list[float] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def figures(self, wall: float) -> dict[str, Any]:
        ordered = sorted(self.seconds) or [0.0]
        return {
            "requests_per_second": round(len(self.seconds) / wall, 1),
            "p50_ms": round(1000 * ordered[len(ordered) // 2], 1),
            "p99_ms": round(1000 * ordered[int(len(ordered) * 0.99)], 1),
            **dict(self.kinds),
        }


class Client:
    """One connection that is kept, and opened again when the server has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, content: Any) -> tuple[int, Any]:
        """Send JSON; return the status and the answer. Status 0: no connection was made."""
        body = json.dumps(content).encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        if self._writer is None:
            try:
                opened = await asyncio.open_connection("127.0.0.1", self._port)
            except OSError:
                return 0, None
            self._reader, self._writer = opened
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        fields = answer.decode("latin-1").lower().split("\r\n")
        status = int(fields[0].split()[1])
        length = next(int(one[15:]) for one in fields if one.startswith("content-length:"))
        read = await self._reader.readexactly(length)
        if "connection: close" in fields:
            self.close()
        return status, json.loads(read)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def start_server(*options: str, port: int = 0) -> tuple[subprocess.Popen[str], int, float]:
    """Start the service; return it, its port and the seconds until it accepts."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "pellucid", "serve", "demo", "--port", str(port), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, int(line.rsplit(":", 1)[1]), time.perf_counter() - began


class Watch:
    """Asks `/livez` ten times a second, each time on a new connection, until it is asked for more.

    Args:
        port: the server's.
    """

    def __init__(self, port: int) -> None:
        command = [sys.executable, "-c", WATCH, str(port)]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def figures(self) -> dict[str, float]:
        """Stop asking, and return the milliseconds of the answers."""
        self._process.terminate()
        output, _ = self._process.communicate()
        # The last line may be half of one.
        ordered = sorted(float(line) for line in output.split("\n")[:-1])
        unanswered = sum(one == float("inf") for one in ordered)
        if not ordered:
            return {"livez_asked": 0}
        return {
            "livez_asked": len(ordered),
            "livez_unanswered": unanswered,
            "livez_p50_ms": round(ordered[len(ordered) // 2], 1),
            "livez_p99_ms": round(ordered[int(len(ordered) * 0.99)], 1),
            "livez_largest_ms": round(ordered[-1], 1),
        }


def memory(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(one.split()[1]) for one in text.splitlines() if one.startswith("VmRSS")) / 1024


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stop(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(120)


async def load(
    port: int,
    expected: dict[str, str],
    *,
    clients: int,
    seconds: float = 1e9,
    requests: int = 10**9,
    counts: Counts | None = None,
) -> dict[str, Any]:
    """Let clients ask one short request after another, for some time or a number of requests.

    ``counts`` adds up what becomes of them over several calls.
    """
    counts = counts or Counts()
    texts = list(expected)
    began = time.perf_counter()

    async def ask(number: int) -> None:
        client = Client(port)
        turn = number
        while time.perf_counter() - began < seconds and counts.kinds.total() < requests:
            text = texts[turn % len(texts)]
            turn += clients
            started = time.perf_counter()
            try:
                status, answer = await client.post("/v1/translate", {"texts": [text]})
            except (OSError, asyncio.IncompleteReadError):
                counts.kinds["lost"] += 1
                client.close()
                continue
            if status == 200:
                counts.seconds.append(time.perf_counter() - started)
                is_right = answer["translations"][0]["translation"] == expected[text]
                counts.kinds["right" if is_right else "wrong"] += 1
            else:
                counts.kinds[f"status {status}"] += 1
                await asyncio.sleep(0.05)
        client.close()

    await asyncio.gather(*(ask(number) for number in range(clients)))
    return counts.figures(time.perf_counter() - began)


async def restart(expected: dict[str, str], *, times: int, clients: int) -> dict[str, Any]:
    """End the server by SIGTERM under load, again and again, on the same port."""
    process, port, _ = await asyncio.to_thread(start_server)
    kinds: Counter[str] = Counter()
    is_over = False
    texts = list(expected)

    async def ask(number: int) -> None:
        turn = number
        client = Client(port)
        while not is_over:
            text = texts[turn % len(texts)]
            turn += 1
            try:
                status, answer = await client.post("/v1/translate", {"texts": [text]})
            except (OSError, asyncio.IncompleteReadError):
                # A connection that was kept may be closed while a request is on its way.
                kinds["closed"] += 1
                client.close()
                continue
            if status == 0:
                kinds["refused"] += 1
                await asyncio.sleep(0.02)
            elif status == 200:
                is_right = answer["translations"][0]["translation"] == expected[text]
                kinds["right" if is_right else "wrong"] += 1
            else:
                kinds[f"status {status}"] += 1

    async def end_again() -> list[int]:
        nonlocal process, is_over
        codes = []
        for _ in range(times):
            await asyncio.sleep(0.5)
            codes.append(await asyncio.to_thread(stop, process))
            process, _, _ = await asyncio.to_thread(start_server, port=port)
        is_over = True
        return codes

    codes, *_ = await asyncio.gather(end_again(), *(ask(number) for number in range(clients)))
    await asyncio.to_thread(stop, process)
    return {"exit_codes": dict(Counter(map(str, codes))), **dict(kinds)}


async def time_array(port: int, path: str, content: Any, repetitions: int) -> float:
    """Return the shortest time of a request in milliseconds."""
    client = Client(port)
    best = 1e9
    for _ in range(repetitions):
        began = time.perf_counter()
        status, _ = await client.post(path, content)
        assert status == 200, status
        best = min(best, time.perf_counter() - began)
    client.close()
    return round(1000 * best, 1)


def compare_with_peer(texts: list[str]) -> dict[str, float]:
    """Time an array of 64 texts here and behind the peer."""
    body = {"q": texts[:64], "source": "en", "target": "fr"}
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "model"
        export = [
            sys.executable,
            "-m",
            "pellucid",
            "export",
            "demo",
            "--to",
            "ctranslate2",
            "--out",
            str(target),
        ]
        subprocess.run(export, check=True, capture_output=True)
        peer = subprocess.Popen([sys.executable, "-c", PEER, str(target), "5073"])
        process, port, _ = start_server()
        try:
            for _ in range(200):
                try:
                    theirs = asyncio.run(time_array(5073, "/translate", body, 5))
                    break
                except (OSError, AssertionError):
                    time.sleep(0.2)
            ours = asyncio.run(time_array(port, "/translate", body, 5))
        finally:
            stop(process)
            peer.kill()
            peer.wait()
    return {"ours_ms": ours, "peer_ms": theirs, "times_faster": round(theirs / ours, 2)}


def show(title: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Print figures as a table with one line for each row."""
    names = list(dict.fromkeys(name for row in rows.values() for name in row))
    lines = [[title, *names]]
    lines += [[key, *(str(row.get(name, "")) for name in names)] for key, row in rows.items()]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = zip(line, widths, strict=True)
        print("  ".join(cell.rjust(width) for cell, width in cells), flush=True)
    print(flush=True)


def measure_clients(
    process: subprocess.Popen[str],
    port: int,
    expected: dict[str, str],
    clients: int,
    seconds: float,
) -> dict[str, Any]:
    """Let so many clients ask for some time, while another process asks for `/livez`."""
    before = processor_seconds(process.pid)
    watch = Watch(port)
    figures = asyncio.run(load(port, expected, clients=clients, seconds=seconds))
    figures |= watch.figures()
    used = processor_seconds(process.pid) - before
    figures["processor_ms_per_request"] = round(1000 * used / max(1, figures.get("right", 0)), 2)
    return figures


def measure_memory(
    process: subprocess.Popen[str], port: int, expected: dict[str, str], requests: int
) -> dict[str, Any]:
    """Send many requests; note the memory after each tenth of them."""
    points = []
    for _ in range(10):
        asyncio.run(load(port, expected, clients=64, requests=requests // 10))
        points.append(round(memory(process.pid), 1))
    return {"requests": requests, "mib_after_each_tenth": points}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="the full counts; half an hour")
    parser.add_argument("--clients", type=int, nargs="*", default=[1, 8, 64, 200])
    parser.add_argument("--seconds", type=float, help="for each number of clients; 10")
    parser.add_argument("--last-seconds", type=float, help="for the last number; 20, or 600")
    parser.add_argument("--requests", type=int, help="to watch the memory; 10,000 or 100,000")
    parser.add_argument("--restarts", type=int, help="under load; 5 or 50")
    parser.add_argument("--skip-peer", action="store_true")
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    seconds = given.seconds or (30 if given.full else 10)
    last_seconds = given.last_seconds or given.seconds or (600 if given.full else 20)
    requests = given.requests if given.requests is not None else (100_000 if given.full else 10_000)
    restarts = given.restarts if given.restarts is not None else (50 if given.full else 5)

    from pellucid.translate.translator import load as load_model

    texts = [one.source for one, _ in zip(iterate_split("test"), range(NUM_TEXTS), strict=False)]
    expected = {one.source: one.text for one in load_model("demo").translate(texts)}
    found: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "machine": describe_machine(),
        "load_average_before": os.getloadavg()[0],
    }
    process, port, start_seconds = start_server()
    first = asyncio.run(time_array(port, "/v1/translate", {"texts": texts[:1]}, 1))
    found["start"] = {
        "seconds_until_ready": round(start_seconds, 2),
        "first_answer_ms": first,
        "idle_memory_mib": round(memory(process.pid), 1),
    }
    show("start", {"": found["start"]})
    found["clients"] = {}
    for clients in given.clients:
        how_long = last_seconds if clients == given.clients[-1] else seconds
        found["clients"][str(clients)] = measure_clients(process, port, expected, clients, how_long)
    show("clients", found["clients"])
    if requests:
        found["memory"] = measure_memory(process, port, expected, requests)
        print("memory:", found["memory"], "\n", flush=True)
    found["exit_code"] = stop(process)
    if restarts:
        found["restarts"] = asyncio.run(restart(expected, times=restarts, clients=16))
        show("restarts", {str(restarts): found["restarts"]})
    if not given.skip_peer:
        found["array_of_64"] = compare_with_peer(texts)
        show("array of 64 texts", {"": found["array_of_64"]})
    found["load_average_after"] = os.getloadavg()[0]
    path = given.output or RESULTS / f"{found['date']}-serve-load.json"
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(f"Written to {path}.")


if __name__ == "__main__":
    main()
