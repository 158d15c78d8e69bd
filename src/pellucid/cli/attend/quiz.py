"""A worked example with a reader who types: page by page, and as a quiz that asks for numbers."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass, replace

from pellucid.by_hand.pages import Page, pages_of
from pellucid.by_hand.quiz_questions import (
    Question,
    ask_about_line,
    ask_about_step,
    is_near,
    read_answer,
)
from pellucid.by_hand.sheet import Step, WorkedExample, write_number
from pellucid.cli.attend.rendering import Renderer


def has_reader() -> bool:
    """Return True if a user reads standard output and types standard input."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout))


def read_line() -> str:
    """Read a line of standard input; empty at its end.

    Raises:
        KeyboardInterrupt: Ctrl-C was typed. It ends the reading, not the command.
    """
    before = signal.getsignal(signal.SIGINT)
    if before in (None, signal.SIG_IGN):
        return sys.stdin.readline()
    # The command's handler would remember the signal and end the command with an error.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return sys.stdin.readline()
    finally:
        signal.signal(signal.SIGINT, before)


def ask_reader(prompt: str) -> str | None:
    """Show a prompt and read a line; None if the user ends it by Ctrl-C or Ctrl-D."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    try:
        line = read_line()
    except (KeyboardInterrupt, UnicodeDecodeError):
        line = ""
    if not line:
        sys.stdout.write("\n")
        return None
    return line.strip()


_KEYS = "enter: next, a number: that page, b: back, q: end"


def turn_pages(example: WorkedExample, form: Renderer) -> bool:
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
        answer = ask_reader(prompt)
        if answer is None or answer.lower() in ("q", "quit", "exit"):
            return None
        if not answer:
            return number + 1
        if answer.lower() in ("b", "back"):
            return max(number - 1, 1)
        if answer.isdecimal() and len(answer) < 19 and 1 <= int(answer) <= count:
            return int(answer)
        prompt = f"There are pages 1 to {count} ({_KEYS}) "


_START = (
    "Type the number that comes next, such as 0.38, 38 % or 3/8; two decimals are enough. Enter "
    "shows it, q ends the quiz."
)


@dataclass
class _Score:
    """The count of answers so far."""

    right: int = 0
    wrong: int = 0
    shown: int = 0

    def __str__(self) -> str:
        asked = self.right + self.wrong + self.shown
        if not asked:
            return "No question was answered."
        end = f", {self.shown} shown without an answer" if self.shown else ""
        return f"Score: {self.right} of {asked} right{end}."


class _EndedError(Exception):
    """The user ended the quiz."""


def run_quiz(
    example: WorkedExample, pages: tuple[Page, ...], form: Renderer, *, is_row: bool
) -> None:
    """Walk through pages and ask for a number before each step.

    Args:
        example: the example.
        pages: those to ask about.
        form: tables or sentences.
        is_row: True to ask for every line of arithmetic, not one number a step.
    """
    score = _Score()
    form.heading(example)
    form.text(_START)
    try:
        for page in pages:
            form.opening(page)
            for index, step in enumerate(page.part.steps):
                if is_row:
                    _ask_lines(step, form, score)
                else:
                    if question := ask_about_step(step, index + 100 * page.number):
                        form.text(_judge(question, score))
                    form.step(step)
            form.comparison(page)
    except _EndedError:
        pass
    form.text(str(score))


def _ask_lines(step: Step, form: Renderer, score: _Score) -> None:
    """Show a step line by line, each after its question."""
    form.step(replace(step, lines=()))
    for line in step.lines:
        question = ask_about_line(line)
        form.text(line if question is None else _judge(question, score))


def _judge(question: Question, score: _Score) -> str:
    """Ask a question until there is an answer, and return the verdict."""
    prompt = f"\n{question.prompt} "
    while True:
        text = ask_reader(prompt)
        if text is None or text.lower() in ("q", "quit", "exit"):
            raise _EndedError
        if not text:
            score.shown += 1
            return f"It is {write_number(question.answer)}."
        if read_answer(text) is not None:
            break
        prompt = "Write a number such as 0.38 (enter shows it, q ends): "
    if is_near(text, question.answer):
        score.right += 1
        return f"Right: {write_number(question.answer)}."
    score.wrong += 1
    return f"Not quite: it is {write_number(question.answer)}."
