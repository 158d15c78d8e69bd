"""``pellucid translate`` on JSON Lines, line breaks inside texts, and lines that are too long."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from echoing import Echo, use_echo

import pellucid.text.reading.lines

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]


@pytest.fixture(autouse=True)
def echo(monkeypatch: pytest.MonkeyPatch) -> Echo:
    return use_echo(monkeypatch)


def rows(*values: Any) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def read(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def translated(run_here: Run, *values: Any, options: tuple[str, ...] = ()) -> list[Any]:
    done = run_here("translate", "m", "--format", "jsonl", *options, stdin=rows(*values))
    assert (done.returncode, done.stderr) == (0, "")
    return read(done.stdout)


@pytest.mark.parametrize(
    ("value", "options", "expected"),
    [
        ({"id": 7, "text": "a"}, (), {"id": 7, "text": "a", "translation": "A"}),
        ({"source": "a", "target": "b"}, (), {"source": "a", "target": "b", "translation": "A"}),
        ({"text": "a", "source": "web"}, (), {"text": "a", "source": "web", "translation": "A"}),
        ({"en": "a", "fr": "b"}, (), {"en": "a", "fr": "b", "translation": "A"}),
        ({"translation": {"en": "a"}, "n": 1}, (), {"translation": {"en": "a", "fr": "A"}, "n": 1}),
        ({"q": "a"}, ("--column", "q"), {"q": "a", "translation": "A"}),
        ({"m": {"q": "a"}}, ("--column", "m.q"), {"m": {"q": "a", "fr": "A"}}),
        ({"m": {"q": "a"}}, ("--column", "m.q", "--into", "t"), {"m": {"q": "a"}, "t": "A"}),
        ({"text": "a", "translation": None}, (), {"text": "a", "translation": "A"}),
        ({"text": ""}, (), {"text": "", "translation": ""}),
    ],
)
def test_translation_is_added_to_an_object_that_stays_as_it_is(
    value: Any, options: tuple[str, ...], expected: Any, run_here: Run
) -> None:
    (found,) = translated(run_here, value, options=options)
    assert found == expected
    assert list(found) == list(expected)


@pytest.mark.parametrize(
    ("line", "expected", "said"),
    [
        ("{", {}, "cannot be read"),
        ("[3]", {}, "but is a list"),
        ('{"a": 5}', {"a": 5}, "but has 'a'. Name its key with --column"),
        ('{"text": 5, "a": 1}', {"text": 5, "a": 1}, '"text" must be text, but is a number'),
        ('{"text": "\\ud83d"}', {"text": "\ud83d"}, "half of a surrogate pair"),
        (
            '{"text": "a", "translation": "b"}',
            {"text": "a", "translation": "b"},
            "has 'translation' already",
        ),
    ],
)
def test_bad_object_costs_itself_and_keeps_its_place(
    line: str, expected: Any, said: str, run_here: Run
) -> None:
    stdin = f'{{"text": "a"}}\n{line}\n{{"text": "b"}}\n'
    done = run_here("translate", "m", "--format", "jsonl", stdin=stdin)
    assert done.returncode == 3
    first, bad, last = read(done.stdout)
    assert (first["translation"], last["translation"]) == ("A", "B")
    assert said in bad.pop("error")
    assert bad == expected
    assert done.stderr.startswith("error: line 2: ")
    assert done.stderr.count("\n") == 1


def test_lines_that_cannot_be_translated_become_errors_of_their_objects(run_here: Run) -> None:
    done = run_here(
        "translate", "m", "--format", "jsonl", stdin=rows({"text": "!a", "k": 1}, {"text": "b"})
    )
    assert done.returncode == 3
    assert read(done.stdout) == [
        {"text": "!a", "k": 1, "error": "It must not shout."},
        {"text": "b", "translation": "B"},
    ]


def test_blank_lines_of_json_lines_stay(run_here: Run) -> None:
    done = run_here(
        "translate", "m", "--format", "jsonl", stdin='{"text": "a"}\n\n{"text": "b"}\n\n'
    )
    assert done.returncode == 0
    assert [line and json.loads(line)["translation"] for line in done.stdout.split("\n")] == [
        *("A", "", "B", "", "")
    ]


def test_other_values_of_an_object_come_back_equal(run_here: Run) -> None:
    value = {"text": "a", "n": [1, 2.5, None, {"d": True}], "big": 10**30, "half": "\ud800 é"}
    (found,) = translated(run_here, value)
    assert found == {**value, "translation": "A"}


def test_names_choose_the_format_and_gzip(run_here: Run, tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl.gz", tmp_path / "out.txt"
    source.write_bytes(gzip.compress(rows({"text": "a"}).encode()))
    assert run_here("translate", "m", "-i", str(source), "-o", str(output)).returncode == 0
    assert read(output.read_text()) == [{"text": "a", "translation": "A"}]
    as_lines = run_here("translate", "m", "-i", str(source), "--format", "lines")
    assert as_lines.stdout == rows({"text": "a"}).upper()


def test_lines_become_objects_in_a_file_of_json_lines(run_here: Run, tmp_path: Path) -> None:
    output = tmp_path / "out.jsonl"
    assert run_here("translate", "m", "-o", str(output), stdin="a\n\nb").returncode == 0
    assert read(output.read_text()) == [
        {"source": "a", "translation": "A"},
        {"source": "", "translation": ""},
        {"source": "b", "translation": "B"},
    ]
    records = tmp_path / "records.jsonl"
    assert run_here("translate", "m", "--json", "-o", str(records), stdin="a\n").returncode == 0
    assert read(records.read_text())[0]["hypotheses"][0]["text"] == "A"


def test_further_hypotheses_stand_in_the_object(run_here: Run) -> None:
    (found,) = translated(run_here, {"text": "a"}, options=("--beam", "2", "--n-best", "2"))
    assert found["translation"] == "A"
    assert found["hypotheses"] == [
        {"text": "A", "log_probability": -1.5, "score": -0.5},
        {"text": "A?", "log_probability": -1.5, "score": -1.5},
    ]
    (found,) = translated(run_here, {"text": "a"}, options=("--json",))
    assert found["hypotheses"][0]["token_log_probabilities"] == [-1.5]


def test_interrupted_json_lines_resume(run_here: Run, echo: Echo, tmp_path: Path) -> None:
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    values = [{"id": number, "text": f"t{number}"} for number in range(23)]
    source.write_text(rows(*values))
    echo.interrupt[2] = KeyboardInterrupt()
    command = ("translate", "m", "-i", str(source), "-o", str(output))
    assert run_here(*command).returncode == 130
    other = run_here(*command, "--into", "t")
    assert other.returncode == 2
    assert "the objects" in other.stderr
    echo.calls.clear()
    assert run_here(*command).returncode == 0
    assert echo.calls[0]["texts"][0] == "t14"
    assert read(output.read_text()) == [
        {**value, "translation": f"T{value['id']}"} for value in values
    ]


TEXT = ("A cat.", "", "A dog.")


def test_glossary_terms_belong_to_the_lines_of_a_text(
    run_here: Run, echo: Echo, write_lines: WriteLines
) -> None:
    glossary = write_lines("g.tsv", "dog\tchien")
    stdin = rows({"text": "\n".join(TEXT)})
    done = run_here("translate", "m", "--format", "jsonl", "--glossary", glossary, stdin=stdin)
    assert done.returncode == 0
    (each,) = echo.calls[0]["constraints"]
    assert [len(one.glossary.terms_for(line)) for one, line in zip(each, TEXT, strict=True)] == [
        *(0, 0, 1)
    ]


def test_options_without_effect_are_said_to_have_none(run_here: Run) -> None:
    done = run_here("translate", "m", "--column", "a", "--into", "b", stdin="a\n")
    assert (done.returncode, done.stdout) == (0, "A\n")
    assert "--column has no effect" in done.stderr
    assert "--into has no effect" in done.stderr


@pytest.mark.parametrize("kind", ["lines", "jsonl"])
def test_line_that_is_too_long_costs_itself(
    kind: str, run_here: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pellucid.text.reading.lines, "LONGEST_LINE", 101)
    long = "x" * 5003
    stdin = f"a\n{long}\nb\n" if kind == "lines" else rows(*({"text": t} for t in ("a", long, "b")))
    done = run_here("translate", "m", "--format", kind, stdin=stdin)
    assert done.returncode == 3
    size = len(stdin.split("\n")[1])
    assert done.stderr.startswith(
        f"error: line 2: A line must have at most 101 bytes, but has {size:,}. Break it"
    )
    found = done.stdout.split("\n")[:-1]
    if kind == "jsonl":
        found = [json.loads(line).get("translation", "") for line in found]
    assert len(found) == 3
    assert (found[0], found[2]) == ("A", "B")
