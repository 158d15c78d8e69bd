"""Walks through the texts: every statement's command runs and shows its number."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable

import pytest

from pellucid.cli.lesson import output_of, walk
from pellucid.lessons.walks.walk import NAMES, Statement, load_walk

Run = Callable[..., subprocess.CompletedProcess[str]]

STATEMENTS = {
    f"{name} {number}": statement
    for name in NAMES
    for number, statement in enumerate(load_walk(name).statements, start=1)
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement_is_shown_by_its_command(name: str) -> None:
    statement = STATEMENTS[name]

    shown = statement.excerpt(output_of(statement, is_toy=True))

    assert shown
    assert len(shown) <= 30, "one screen"
    assert max(map(len, shown)) <= 78


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

    done = run_here("lesson", "lecture", "--from", str(last - 1))

    assert done.returncode == 0, done.stderr
    assert f"── {last - 1} of {last}" in done.stdout
    assert f"── {last - 2} of" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_lesson_as_data_has_every_statement(run_here: Run) -> None:
    record = json.loads(run_here("lesson", "slides", "--json").stdout)

    assert record["name"] == "slides"
    assert len(record["statements"]) == len(load_walk("slides").statements)
    assert {"says", "expect", "command", "number", "errs", "vary"} <= set(record["statements"][0])


def test_walk_waits_for_the_reader_and_ends_when_told() -> None:
    asked: list[int] = []

    def wait() -> bool:
        asked.append(1)
        return len(asked) < 3

    lines = list(walk(load_walk("lecture"), 3, wait=wait))

    assert len(asked) == 3
    assert sum(line.startswith("$ ") for line in lines) == 1
    assert lines[-1].startswith("What do you expect?")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lectures",), "The lesson 'lectures' does not exist. Did you mean 'lecture'?"),
        (("lecture", "--from", "0"), "--from must be from 1 to "),
        (("lecture", "--from", "999"), "--from must be from 1 to "),
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
