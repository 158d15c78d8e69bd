"""Pages and questions of worked examples."""

from __future__ import annotations

import math
from functools import cache

import pytest

from pellucid.by_hand.examples.by_name import EXAMPLES
from pellucid.by_hand.pages import choose_page, correction_groups, pages_of
from pellucid.by_hand.quiz_questions import ask_about_line, ask_about_step, is_near, read_answer
from pellucid.by_hand.sheet import NamedMatrix, WorkedExample, make_step, matrix
from pellucid.errors import InputError


@cache
def worked(name: str) -> WorkedExample:
    """Work an example once: one of them trains a model."""
    return EXAMPLES[name]()


@pytest.mark.parametrize("name", EXAMPLES)
def test_pages_hold_every_step_once_and_in_order(name: str) -> None:
    pages = pages_of(worked(name))
    shown = [step.name for page in pages for step in page.part.steps if step.name != "compared"]
    assert shown == [step.name for part in worked(name).parts for step in part.steps]
    assert [page.number for page in pages] == list(range(1, len(pages) + 1))
    printed = [number.place for page in pages for number in page.printed]
    known = [n.place for part in worked(name).parts for step in part.steps for n in step.printed]
    assert printed == known


@pytest.mark.parametrize("name", EXAMPLES)
def test_pages_begin_with_an_explanation_and_corrections_are_fewer(name: str) -> None:
    pages = pages_of(worked(name))
    assert all(page.part.note.endswith((".", ".)", "?")) for page in pages)
    explanations = len(pages) + sum(bool(step.note) for page in pages for step in page.part.steps)
    corrections = sum(len(correction_groups(page)) + len(page.part.corrections) for page in pages)
    assert corrections < explanations


def test_page_that_is_not_there_is_refused_with_the_range() -> None:
    count = len(pages_of(worked("help-me")))
    for number in (0, -1, count + 1):
        with pytest.raises(InputError, match=rf"from 1 to {count}, but is {number} "):
            choose_page(worked("help-me"), number)


def test_correction_groups_share_a_cause() -> None:
    groups = [group for page in pages_of(worked("pizza")) for group in correction_groups(page)]
    assert max(len(numbers) for _, numbers in groups) == 3
    for cause, numbers in groups:
        assert {number.cause for number in numbers} == {cause}


@pytest.mark.parametrize(
    ("line", "prompt", "answer"),
    [
        ("not: 4.3 ÷ 8 = 0.5375", "not: 4.3 ÷ 8 = ?", 0.5375),
        ("q0 = 1·(−2) = −2", "q0 = 1·(−2) = ?", -2),
        ("a: exp(−20) = 2.06115e−09", "a: exp(−20) = ?", 2.06115e-9),
    ],
)
def test_ask_about_line_leaves_the_result_out(line: str, prompt: str, answer: float) -> None:
    question = ask_about_line(line)
    assert question is not None
    assert (question.prompt, question.answer) == (prompt, pytest.approx(answer))


@pytest.mark.parametrize("line", ["The other rows: --row N.", "turn 1: <start> → not", ""])
def test_ask_about_line_without_a_result_asks_nothing(line: str) -> None:
    assert ask_about_line(line) is None


def test_ask_about_step_asks_for_an_entry_that_is_not_zero() -> None:
    table = NamedMatrix(("a", "b"), ("c", "d"), matrix([[0, 0], [7, 0]]))
    question = ask_about_step(make_step("weights", "w", table))
    assert question is not None
    assert (question.prompt, question.answer) == ("weights = w: row b, column c = ?", 7)
    assert ask_about_step(make_step("weights", "w", table, is_given=True)) is None
    assert ask_about_step(make_step("note", note="nothing")) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *(("0.38", 0.38), ("0,38", 0.38), (" .38 ", 0.38), ("38 %", 0.38), ("3/8", 0.375)),
        *(("−0.5", -0.5), ("-0.5", -0.5), ("minus 2", -2), ("3 ÷ 8", 0.375), ("1e-3", 0.001)),
        *(("-inf", -math.inf), ("−∞", -math.inf), ("= 4", 4), ("≈4", 4), ("+4", 4)),
        *(("minus infinity", -math.inf), ("1 000", 1000)),
    ],
)
def test_read_answer_takes_numbers_as_people_type_them(text: str, value: float) -> None:
    assert read_answer(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "four", "1/0", "1.2.3", "nan", "--2", "0x10", "1" + "e9" * 3])
def test_read_answer_that_is_not_a_number_is_none(text: str) -> None:
    assert read_answer(text) is None


@pytest.mark.parametrize(
    ("text", "value", "is_right"),
    [
        *(("0.38", 0.377541, True), ("0.3775", 0.377541, True), ("37.75%", 0.377541, True)),
        *(("0.37", 0.377541, False), ("0.4", 0.377541, False), ("0", 0.377541, False)),
        *(("40", 40, True), ("41", 40, False), ("-2", 2, False), ("0", 2e-9, True)),
        *(("-inf", -math.inf, True), ("0", -math.inf, False), ("5.74", 5.735527, True)),
    ],
)
def test_is_near_takes_rounded_numbers_only(text: str, value: float, is_right: bool) -> None:
    assert is_near(text, value) is is_right


def test_is_near_of_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="must be a number"):
        is_near("four", 4)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_has_questions_that_its_own_numbers_answer(name: str) -> None:
    questions = [
        question
        for page in pages_of(worked(name))
        for index, step in enumerate(page.part.steps)
        if (question := ask_about_step(step, index)) is not None
    ]
    assert len(questions) >= 5
    for question in questions:
        assert is_near(str(question.answer), question.answer), question
