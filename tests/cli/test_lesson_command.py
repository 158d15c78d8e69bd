"""Walks through the texts: every statement's command runs and shows its number."""

from __future__ import annotations

import ast
import functools
import itertools
import json
import math
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence

import pytest

from pellucid.cli.commands.lesson import output_of, walk
from pellucid.lessons.walks.walk import NAMES, Statement, load_walk, read_outputs

Run = Callable[..., subprocess.CompletedProcess[str]]

STATEMENTS = {
    f"{name} {number}": statement
    for name in NAMES
    for number, statement in enumerate(load_walk(name).statements, start=1)
}


@pytest.mark.sample(40)
@pytest.mark.parametrize("name", STATEMENTS)
def test_statement_is_shown_by_its_command(name: str) -> None:
    statement = STATEMENTS[name]

    output = output_of(statement, is_toy=True)
    shown = statement.excerpt(output)

    assert shown
    assert len(shown) <= 40, "one screen"
    assert max(map(len, shown)) <= 78
    assert statement.answer(output), "the short form of a measurement has the numbers too"
    if not statement.is_measured:
        assert_printed(statement, output)


@pytest.mark.parametrize("name", [name for name, one in STATEMENTS.items() if one.is_measured])
def test_measured_answer_is_that_of_the_recorded_measurement(name: str) -> None:
    assert_printed(STATEMENTS[name], read_outputs()["measured"][STATEMENTS[name].command])


@pytest.mark.parametrize("name", STATEMENTS)
def test_recorded_answer_is_filled_in(name: str) -> None:
    text, number = name.split()
    recorded = read_outputs()["walks"][text][int(number) - 1]["answer"]
    pattern = re.split(r"\{\w+\}", STATEMENTS[name].number)
    assert re.fullmatch("(.+?)".join(map(re.escape, pattern)), recorded)


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


def numbers_of(text: str) -> list[str]:
    return [found.replace(",", "") for found in NUMBER.findall(text)]


def is_among(number: str, others: Sequence[str]) -> bool:
    """Look for a number, which may be rounded in the answer."""
    half = 0.5 * 10.0 ** -len(number.partition(".")[2])
    return any(abs(float(number) - float(other)) <= half + 1e-12 for other in others)


ROW = re.compile(r"^ *([^\s\d−.-]\S*(?: \d+(?=  ))?) +((?:[−-]?(?:[\d.,]+|∞) *)+)$")


def rows_of(output: str, heading: str) -> dict[str, list[float]]:
    """Read the first table after a heading: the numbers of each row, by its label."""
    rows: dict[str, list[float]] = {}
    for line in output[output.index(heading) :].splitlines()[1:]:
        if found := ROW.match(line):
            rows[found[1]] = [to_number(one) for one in found[2].split()]
        elif rows:
            break
    return rows


def to_number(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-").replace("∞", "inf"))


def is_true(check: str, found: dict[str, str], output: str) -> bool:
    """Compute a check, or a part of one, of what was read and of the output."""
    found = {name: re.sub(r" million\Z", "e6", text) for name, text in found.items()}
    values = {
        name: to_number(text) if re.fullmatch(r"[+−-]?\d[\d,]*(\.\d+)?(e[−-]?\d+)?", text) else text
        for name, text in found.items()
    }  # fmt: skip
    rows = functools.partial(rows_of, output)
    known = {"exp": math.exp, "sin": math.sin, "inf": math.inf, "output": output, "rows": rows}
    return bool(eval(check, known | values))


def assert_printed(statement: Statement, output: str) -> None:
    """Compare an answer with what its command printed: its numbers, and what it says of them."""
    answer, found = statement.answer(output), statement.find_numbers(output)
    known = numbers_of(" ".join((output, statement.says, statement.expect, statement.check)))
    assert [one for one in numbers_of(answer) if not is_among(one, known)] == [], answer
    assert numbers_of(answer) or statement.check, "nothing to compare"
    if statement.check:
        assert is_true(statement.check, found, output), (answer, found)


def parts_of(check: str) -> list[str]:
    """Take a check apart: each condition, and each comparison of a chain."""
    parts = []
    tree = ast.parse(check, mode="eval").body
    for one in tree.values if isinstance(tree, ast.BoolOp) else [tree]:
        if isinstance(one, ast.Compare):
            sides = [one.left, *one.comparators]
            for left, how, right in zip(sides, one.ops, sides[1:], strict=False):
                parts.append(ast.unparse(ast.Compare(left, [how], [right])))
        else:
            parts.append(ast.unparse(one))
    return parts


def readings_that_differ(
    found: dict[str, str], output: str
) -> Iterator[tuple[dict[str, str], str]]:
    """Yield what another command would have printed: other numbers, one missing line, no line."""
    for name in found:
        for other in ("0", "-1", "0.5", "1000000", "nothing", *found.values()):
            yield {**found, name: other}, output
    # Another first digit, since the last ones may be lost in rounding.
    yield found, re.sub(r"\d", lambda digit: str((int(digit[0]) + 3) % 10), output)
    for other in ("1", "−∞"):
        yield found, re.sub(r"[−-]?(\d[\d.]*|∞)", other, output)
    lines = output.splitlines()
    for number in range(len(lines)):
        yield found, "\n".join(lines[:number] + lines[number + 1 :])


def can_fail(part: str, found: dict[str, str], output: str) -> bool:
    for others, text in readings_that_differ(found, output):
        try:
            if not is_true(part, others, text):
                return True
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            return True
    return False


@pytest.mark.sample(40)
@pytest.mark.parametrize("name", [name for name, one in STATEMENTS.items() if one.check])
def test_each_part_of_a_check_fails_on_another_output(name: str) -> None:
    one = STATEMENTS[name]
    measured = read_outputs()["measured"]
    output = measured[one.command] if one.is_measured else output_of(one, is_toy=True)
    found = one.find_numbers(output)

    assert [part for part in parts_of(one.check) if not can_fail(part, found, output)] == []


@pytest.mark.parametrize(
    "check",
    ["4 == 4", "5 == 4 + 1", "size > 3 or True", "exp(0) == 1", "size > 3 and 2 ** 2 == 4"],
)
def test_a_check_that_cannot_fail_is_found(check: str) -> None:
    parts = parts_of(check)

    assert not all(can_fail(part, {"size": "7"}, "size: 7") for part in parts)
    assert can_fail("size > 3", {"size": "7"}, "size: 7")


def test_comparison_finds_wrong_numbers_and_wrong_words() -> None:
    one = Statement(
        "1", "", "", "pellucid attend toy-four", (), "It is {size}, more than 3.",
        {"size": r"size: (\d+)"}, "size > 3",
    )  # fmt: skip
    assert_printed(one, "size:\n  7")
    with pytest.raises(AssertionError):
        assert_printed(one, "size: 2")
    wrong = Statement("1", "", "", "pellucid attend toy-four", (), "It is 0.26.")
    assert_printed(wrong, "weight 0.263727")
    with pytest.raises(AssertionError):
        assert_printed(wrong, "weight 0.273727")
    with pytest.raises(AssertionError, match="nothing to compare"):
        assert_printed(Statement("1", "", "", "pellucid attend pizza", (), "Often not."), "0.5")


def test_all_statements_of_the_texts_are_there() -> None:
    counts = {name: len(load_walk(name).statements) for name in NAMES}

    assert sum(counts.values()) >= 92, counts


def test_an_excerpt_without_its_number_is_refused() -> None:
    one = Statement("1", "", "", "pellucid attend toy-four", ("no such number",), "")

    with pytest.raises(ValueError, match="must show 'no such number'"):
        one.excerpt("another\nnumber")


def test_lesson_without_a_name_lists_the_texts(run_here: Run) -> None:
    done = run_here("lesson")

    assert done.returncode == 0
    assert [line.split()[0] for line in done.stdout.splitlines()[:5]] == list(NAMES)


def test_lesson_from_walks_the_rest_in_80_columns(run_here: Run) -> None:
    last = len(load_walk("lecture").statements)

    done = run_here("lesson", "lecture", "--statement", str(last - 1))

    assert done.returncode == 0, done.stderr
    assert f"── {last - 1} of {last}" in done.stdout
    assert f"── {last - 2} of" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_page_that_two_statements_share_is_shown_once() -> None:
    lines = list(walk(load_walk("lecture"), 10, wait=None))

    assert lines.count("$ pellucid attend toy-four --page 6") == 1
    assert lines.count("Further down in the same output:") == 1


def test_lesson_says_before_it_begins_what_is_measured(run_here: Run) -> None:
    listed = run_here("lesson", "lecture", "--list").stdout

    assert "  2* parallelization" in listed
    assert "  3  first form: score" in listed
    told = " ".join(run_here("lesson", "--help").stdout.split())
    assert "take up to a minute each" in told


@pytest.mark.parametrize("name", ["lecture", "slides"])
def test_walk_counts_what_is_measured_in_good_grammar(name: str) -> None:
    lesson = load_walk(name)
    numbers = [str(number) for number, one in enumerate(lesson.statements, 1) if one.is_measured]
    text = " ".join(list(itertools.islice(walk(lesson, 1, wait=lambda: False), 40)))

    noun = "statement" if len(numbers) == 1 else "statements"
    assert f"{len(numbers)} {noun} ({', '.join(numbers)})." in text


def test_lesson_as_data_has_every_statement(run_here: Run) -> None:
    record = json.loads(run_here("lesson", "slides", "--json").stdout)

    assert record["name"] == "slides"
    assert len(record["statements"]) == len(load_walk("slides").statements)
    assert {"says", "expect", "command", "number", "errs", "to_try", "vary"} <= set(
        record["statements"][0]
    )


def test_walk_waits_for_the_reader_and_ends_when_told() -> None:
    asked: list[int] = []

    def wait() -> bool:
        asked.append(1)
        return len(asked) < 3

    lines = list(walk(load_walk("lecture"), 3, wait=wait))

    assert len(asked) == 3
    assert any("2 statements (2, 7)." in line for line in lines), "what takes long is said at first"
    assert sum(line.startswith("$ ") for line in lines) == 1
    assert lines[-1].startswith("What do you expect?")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lectures",), "The lesson 'lectures' does not exist. Did you mean 'lecture'?"),
        (("lecture", "--statement", "0"), "--statement must be from 1 to "),
        (("lecture", "--statement", "999"), "--statement must be from 1 to "),
    ],
)
def test_lesson_bad_input_is_one_sentence(
    run_here: Run, arguments: tuple[str, ...], message: str
) -> None:
    done = run_here("lesson", *arguments)

    assert done.returncode == 2
    assert message in done.stderr


def test_lessons_in_json_are_one_line_an_object(run_here: Run) -> None:
    for arguments in (("slides",), ("slides", "--list"), ()):
        done = run_here("lesson", *arguments, "--json")
        records = [json.loads(line) for line in done.stdout.splitlines()]
        assert len(records) == (1 if arguments else 5)
        assert all("title" in record for record in records)
