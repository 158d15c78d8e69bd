"""A reader of the page: waits, types and reads as a person would."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from browser import Browser

__all__ = ["PageReader"]

_PATIENCE_SECONDS = 30


class PageReader:
    """One open page."""

    def __init__(self, browser: Browser, path: Path, link: str = "") -> None:
        self.browser = browser
        browser.open(path, link)
        self.wait("document.querySelector('#panel') || document.querySelector('[role=alert]')")
        self.settle()

    def run(self, expression: str) -> Any:
        """Evaluate an expression, and wait for its promise."""
        answer = self.browser.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until a condition holds on the page."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < deadline, f"the page never came to {condition}"
            time.sleep(0.02)

    def settle(self) -> None:
        """Wait until nothing is computed any more."""
        self.run("new Promise((done) => setTimeout(done, 30))")
        self.wait("!document.querySelector('#panel[aria-busy=true]')")
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def texts(self, selector: str) -> list[str]:
        """Read the texts of all elements that fit, with the source's line breaks as spaces."""
        # A browser shows a line break as a space, except where white space is kept.
        get = (
            "Array.from(document.querySelectorAll({}), (one) =>"
            " getComputedStyle(one).whiteSpace.startsWith('pre')"
            " ? one.textContent : one.textContent.replace(/\\s*\\n\\s*/g, ' '))"
        )
        return list(self.run(get.format(json.dumps(selector))))

    def click(self, selector: str, number: int = 0) -> None:
        """Click an element."""
        self.run(f"document.querySelectorAll({json.dumps(selector)})[{number}].click()")
        self.settle()

    def click_text(self, text: str, selector: str = "button, summary") -> None:
        """Click the first button with a text."""
        find = f"Array.from(document.querySelectorAll({json.dumps(selector)}))"
        self.run(f"{find}.find((one) => one.textContent.includes({json.dumps(text)})).click()")
        self.settle()

    def type(self, text: str) -> None:
        """Type a sentence in place of the one that is there, and press Enter."""
        self.run(
            "(() => { const field = document.getElementById('sentence');"
            f" field.value = {json.dumps(text)};"
            " field.dispatchEvent(new Event('input', { bubbles: true }));"
            " const enter = { key: 'Enter', bubbles: true };"
            " field.dispatchEvent(new KeyboardEvent('keydown', enter)); })()"
        )
        self.settle()

    def press(self, *keys: str) -> None:
        """Press keys for the element with the focus."""
        for key in keys:
            self.browser.press(key)
            self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def recomputed(self) -> list[str]:
        """Go through the steps of the arithmetic, and read what each says of its numbers."""
        said = list[str]()
        while True:
            said += self.texts(".drawer .mark")
            if self.run("document.querySelector('[aria-label=\"Next step\"]').disabled"):
                return said
            self.click('[aria-label="Next step"]')

    @property
    def target(self) -> str:
        """The translation in view."""
        return str(self.texts(".out .big")[0])

    @property
    def link(self) -> str:
        """The link of the state in view."""
        return str(self.run("location.hash"))

    @property
    def is_quiet(self) -> bool:
        """Whether the page loaded only itself, without an error."""
        return len(self.browser.requests) == 1 and not self.browser.problems
