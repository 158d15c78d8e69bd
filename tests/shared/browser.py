"""A real browser for tests: Chromium without a window, driven through a pipe.

Only the standard library is used. The messages are those of the DevTools protocol, JSON with a
zero byte at the end, on the file descriptors 3 and 4 of the browser.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE_SECONDS = 90

_LAUNCHER = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    """Find the browser's program, or return None."""
    named = os.environ.get("PELLUCID_BROWSER")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


class Browser:
    """One page of a running browser.

    Attributes:
        requests: every address that the page asked for.
        problems: errors of scripts and on the console, and blocked requests.
    """

    def __init__(self, read_end: int, write_end: int) -> None:
        self._read_end, self._write_end = read_end, write_end
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self._loaded = False
        self.requests: list[str] = []
        self.problems: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for the answer."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def open(self, path: Path, fragment: str = "") -> None:
        """Show a file and wait until it is loaded."""
        self._go("about:blank")
        self.requests.clear()
        self.problems.clear()
        self._go(f"{path.as_uri()}{fragment}")

    def _go(self, address: str) -> None:
        self._loaded = False
        self.call("Page.navigate", url=address)
        while not self._loaded:
            self._receive()

    def run(self, expression: str) -> Any:
        """Evaluate an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key for the element with the focus."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            event = {"type": kind, "key": key, "modifiers": 8 if shift else 0}
            self.call("Input.dispatchKeyEvent", **event, **(text if kind == "keyDown" else {}))

    def _receive(self) -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            assert left > 0, "the browser does not answer"
            if select.select([self._read_end], [], [], left)[0]:
                piece = os.read(self._read_end, 1 << 20)
                assert piece, "the browser has ended"
                self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        method, values = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired":
            self._loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(values["exceptionDetails"]))
        elif method == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.problems.append(values["entry"]["text"])


@contextmanager
def start_browser(program: str, folder: Path) -> Iterator[Browser]:
    """Run a browser with a new profile, and end it."""
    to_browser, from_browser = os.pipe(), os.pipe()
    options = ["--headless=new", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe"]
    options += ["--no-sandbox", "--disable-dev-shm-usage", f"--user-data-dir={folder}"]
    ends = (to_browser[0], from_browser[1])
    process = subprocess.Popen(
        [sys.executable, "-c", _LAUNCHER, *map(str, ends), program, *options],
        pass_fds=ends,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for end in ends:
        os.close(end)
    try:
        yield Browser(from_browser[0], to_browser[1])
    finally:
        process.terminate()
        try:
            process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        os.close(from_browser[0])
        os.close(to_browser[1])
