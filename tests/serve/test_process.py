"""The command: it starts, refuses what is unsafe, and ends without losing a request."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from forked import Forked

Start = Callable[..., subprocess.Popen[bytes]]
Run = Callable[..., subprocess.CompletedProcess[str]]


def start_server(start: Start, *options: str) -> tuple[subprocess.Popen[bytes], str]:
    """Start the command, and wait for the address that it writes."""
    command = [sys.executable, "-m", "pellucid", "serve", "demo", "--port", "0", *options]
    process = start(command, kind=Forked, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    line = process.stdout.readline().decode()
    assert line.startswith("Serving at http://127.0.0.1:"), line
    return process, line.split()[-1]


def ask(address: str) -> int:
    """Ask for a translation; return the status, or 0 if no connection was made."""
    body = json.dumps({"texts": ["The dog ate it."]}).encode()
    request = urllib.request.Request(
        f"{address}/v1/translate", body, {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert json.load(answer)["translations"][0]["translation"] == "Le chien l'a mangé."
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            return 0
        raise


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_serve_signal_under_load_answers_all_and_exits_with_0(start: Start, number: int) -> None:
    process, address = start_server(start, "--set", "serve.log=requests")
    found: Counter[int] = Counter()
    is_over = threading.Event()

    def keep_asking() -> None:
        while not is_over.is_set():
            status = ask(address)
            found[status] += 1
            if status == 0:
                return

    threads = [threading.Thread(target=keep_asking) for _ in range(8)]
    for thread in threads:
        thread.start()
    while found[200] < 20:
        time.sleep(0.02)
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    is_over.set()
    for thread in threads:
        thread.join()
    assert process.returncode == 0
    assert set(found) == {200, 0}
    assert output == b""
    assert b"POST /v1/translate 200" in errors
    assert b"dog" not in errors
    assert b"127.0.0.1" not in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "MODEL is missing"),
        (["demo", "--host", "0.0.0.0"], "--key-file"),
        (["demo", "--host", "0.0.0.0", "--key-file", "nothing"], "does not exist"),
        (["demo", "--set", "limits.beam=0"], "limits.beam must be"),
        (["demo", "demo"], "NAME=MODEL"),
        (["nothing", "--port", "0"], "does not exist"),
        (["demo", "--host", "no such host", "--public-no-auth"], "--host"),
        (["--new-key", "web"], "Give pellucid keys add FILE NAME instead"),
        (["demo", "--max-beam", "3"], "Give --set limits.beam=N instead"),
        (
            ["demo", "--set", "limits.beem=3"],
            "'limits.beem' is unknown (--set). Did you mean 'beam'",
        ),
        (["demo", "--config", "nothing.toml"], "nothing.toml does not exist"),
    ],
)
def test_serve_wrong_options_end_with_2(run_forked: Run, arguments: list[str], words: str) -> None:
    done = run_forked("serve", *arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert words in done.stderr


def test_serve_new_key_is_written_once_and_opens_the_server(
    run_forked: Run, start: Start, tmp_path: Path
) -> None:
    path = str(tmp_path / "keys")
    done = run_forked("keys", "add", path, "weblate")
    assert done.returncode == 0
    key = done.stdout.strip()
    process, address = start_server(start, "--key-file", path)
    assert ask(address) == 401
    request = urllib.request.Request(
        f"{address}/v1/models", headers={"Authorization": f"Bearer {key}"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert json.load(answer)["models"][0]["name"] == "demo"
    taken = run_forked("serve", "demo", "--port", address.rsplit(":", 1)[1])
    assert taken.returncode == 1
    assert "--port" in taken.stderr
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
