"""Turning the pages of a worked example in a terminal."""

from __future__ import annotations

from pellucid.by_hand.pages import pages_of
from pellucid.by_hand.sheet import Example
from pellucid.cli.attend.ask import ask
from pellucid.cli.attend.forms import Form

_KEYS = "enter: next, a number: that page, b: back, q: end"


def turn_pages(example: Example, form: Form) -> bool:
    """Show an example page by page, and wait after each.

    Returns:
        True if the last page was reached.
    """
    pages = pages_of(example)
    number = 1
    form.heading(example)
    while True:
        form.page(pages[number - 1])
        if number == len(pages):
            return True
        chosen = _choose(number, len(pages))
        if chosen is None:
            return False
        number = chosen


def _choose(number: int, count: int) -> int | None:
    """Ask until the answer is a page; None ends."""
    prompt = f"\nPage {number} of {count} ({_KEYS}) "
    while True:
        answer = ask(prompt)
        if answer is None or answer.lower() in ("q", "quit", "exit"):
            return None
        if not answer:
            return number + 1
        if answer.lower() in ("b", "back"):
            return max(number - 1, 1)
        if answer.isdecimal() and 1 <= int(answer) <= count:
            return int(answer)
        prompt = f"There are pages 1 to {count} ({_KEYS}) "
