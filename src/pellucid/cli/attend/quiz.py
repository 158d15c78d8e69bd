"""A worked example as a quiz: each number is asked for before it is shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pellucid.by_hand.pages import Page
from pellucid.by_hand.questions import (
    Question,
    ask_about_line,
    ask_about_step,
    is_near,
    read_answer,
)
from pellucid.by_hand.sheet import Example, Step, write_number
from pellucid.cli.attend.ask import ask
from pellucid.cli.attend.forms import Form

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


def run_quiz(example: Example, pages: tuple[Page, ...], form: Form, *, is_row: bool) -> None:
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


def _ask_lines(step: Step, form: Form, score: _Score) -> None:
    """Show a step line by line, each after its question."""
    form.step(replace(step, lines=()))
    for line in step.lines:
        question = ask_about_line(line)
        form.text(line if question is None else _judge(question, score))


def _judge(question: Question, score: _Score) -> str:
    """Ask a question until there is an answer, and return the verdict."""
    prompt = f"\n{question.prompt} "
    while True:
        text = ask(prompt)
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
