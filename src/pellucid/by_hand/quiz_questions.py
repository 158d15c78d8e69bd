"""Questions about the numbers of an example, and answers typed by hand.

A question about a line of arithmetic leaves its last number out; one about a table asks for one of
its entries.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from pellucid.by_hand.sheet import NamedMatrix, Step, write_number
from pellucid.errors import InputError
from pellucid.machine.randomness import generator

_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_ANSWER = re.compile(rf"({_NUMBER})(?:/({_NUMBER}))?(%?)")
_INFINITY = re.compile(r"([+-]?)(?:inf|infinity|∞)")
_RESULT = re.compile(r"(.*=) (−?(?:[\d.]+(?:e[+−]\d+)?|∞))")

_RELATIVE = 0.01
_ABSOLUTE = 0.0005


@dataclass(frozen=True)
class Question:
    """A question whose answer is a number."""

    prompt: str
    answer: float


def ask_about_line(line: str) -> Question | None:
    """Make a question of a line such as ``4 ÷ 2 = 2``; None if it does not end in a result."""
    match = _RESULT.fullmatch(line)
    # A line of words has no result to ask for.
    if match is None:
        return None
    answer = read_answer(match[2])
    return None if answer is None else Question(f"{match[1]} ?", answer)


def ask_about_step(step: Step, index: int = 0) -> Question | None:
    """Make a question about a step: its first line of arithmetic, or an entry of its table.

    Args:
        step: the step.
        index: another number asks for another entry; the same number for the same.

    Returns:
        None if the step computes nothing.
    """
    if step.is_given:
        return None
    for line in step.lines:
        if (question := ask_about_line(line)) is not None:
            return question
    return _ask_about_table(step, step.tables[0], index) if step.tables else None


def _ask_about_table(step: Step, table: NamedMatrix, index: int) -> Question:
    entries = [
        (row, column, value)
        for row, values in zip(table.rows, table.values_LX.tolist(), strict=True)
        for column, value in zip(table.columns, values, strict=True)
    ]
    # A zero can be guessed, unless everything is zero.
    entries = [entry for entry in entries if entry[2] != 0] or entries
    # The same question for everybody who asks twice.
    choice = int(generator(1, "quiz", step.name, index).integers(len(entries)))
    row, column, value = entries[choice]
    formula = f" = {step.formula}" if step.formula else ""
    title = f" {table.title}" if table.title else ""
    return Question(f"{step.name}{title}{formula}: row {row}, column {column} = ?", value)


def read_answer(text: str) -> float | None:
    """Read a number as people type it: ``0.38``, ``0,38``, ``38 %``, ``3/8``, ``−∞``.

    Returns:
        None if it is not a number.
    """
    # All minus signs that keyboards, pages and our own output have.
    clean = re.sub(r"[\s_]", "", text).replace("−", "-").replace("–", "-").replace("÷", "/")
    # What stands before a number when an answer is copied from a line.
    clean = clean.lstrip("=≈~").lower().replace("minus", "-")
    # A decimal comma; one with a point too is not a number.
    clean = clean if "." in clean else clean.replace(",", ".")
    if infinite := _INFINITY.fullmatch(clean):
        return -math.inf if infinite[1] == "-" else math.inf
    match = _ANSWER.fullmatch(clean)
    if match is None:
        return None
    value = float(match[1])
    below = float(match[2] or 1)
    if below == 0:
        return None
    return value / below / (100 if match[3] else 1)


def is_near(text: str, value: float) -> bool:
    """Judge an answer: within 1 %, or the right number rounded to two decimals or more.

    Raises:
        InputError: the answer is not a number.
    """
    answer = read_answer(text)
    if answer is None:
        raise InputError(
            f"An answer must be a number such as {write_number(0.38)}, but is {text.strip()!r}."
        )
    # A difference of infinities is not a number.
    if math.isinf(value) or math.isinf(answer):
        return answer == value
    difference = abs(answer - value)
    # Rounding is right only to the digits that were typed.
    digits = text.replace(",", ".").rpartition(".")[2].strip() if re.search("[.,]", text) else ""
    decimals = len(digits) if digits.isdigit() else 0
    # A single decimal says too little of a share.
    if decimals >= 2 and difference <= 0.5 * 0.1**decimals + 1e-12:
        return True
    return difference <= max(_RELATIVE * abs(value), _ABSOLUTE)
