"""White space at the edges of lines, and texts of several lines."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from of_subwords import SUBWORDS

import pellucid
from pellucid.decode.constraints.request import Constraints
from pellucid.errors import InputError
from pellucid.terminal.text import TerminalOutput, show_controls
from pellucid.text.reading.lines import CutLine
from pellucid.translate.translator import Translator

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]

CAT, DOG = "The cat is red.", "The dog ate it."


@pytest.fixture(scope="module")
def translator() -> Translator:
    return pellucid.load(SUBWORDS)


@pytest.fixture(scope="module")
def known(translator: Translator) -> dict[str, str]:
    return {one.source: one.text for one in translator.translate([CAT, DOG])}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\t", ""),
        ("  ", " "),
        ("\u00a0", "\t"),
        ("\u3000\u2003", "\u202f"),
        ("\n\n  ", "\r\n"),
        ("", "\x0b\n \n"),
    ],
)
@pytest.mark.parametrize("clean", [True, False])
def test_edges_of_a_line_are_around_its_translation(
    before: str, after: str, clean: bool, translator: Translator, known: dict[str, str]
) -> None:
    (found,) = translator.translate([f"{before}{CAT}{after}"], clean=clean)
    assert found.text == f"{before}{known[CAT]}{after}"
    assert found.source == f"{before}{CAT}{after}"
    assert not found.notes.replaced
    assert "".join(translator.stream(found.source, clean=clean)) == found.text


@pytest.mark.parametrize("blank", ["", " ", "\t \u00a0", "\n", "\r\n\n", "\u3000"])
def test_blank_text_stays_as_it_is(blank: str, translator: Translator) -> None:
    (found,) = translator.translate([blank])
    assert (found.text, found.ids, found.error) == (blank, (), None)
    assert "".join(translator.stream(blank)) == blank


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", " \n\t", "\r\n \r\n"])
def test_lines_of_a_text_are_translated_one_by_one(
    end: str, translator: Translator, known: dict[str, str]
) -> None:
    text = f"{CAT}{end}{DOG}{end}"
    (found,) = translator.translate([text])
    assert found.text == f"{known[CAT]}{end}{known[DOG]}{end}"
    assert found.notes.parts == 1
    assert "".join(translator.stream(text)) == found.text


def test_each_line_of_a_text_is_split_by_itself(
    translator: Translator, known: dict[str, str]
) -> None:
    (found,) = translator.translate([f"{CAT} {DOG}\n{CAT}"])
    first, second = found.text.split("\n")
    assert second == known[CAT]
    assert first.count(".") == 2
    assert found.notes.parts == 2


def test_hypotheses_of_a_text_combine_those_of_its_lines(translator: Translator) -> None:
    (found,) = translator.translate([f"{CAT}\n{DOG}"], beam=3, n_best=3)
    assert len({one.text for one in found.hypotheses}) == 3
    assert all(one.text.count("\n") == 1 for one in found.hypotheses)
    scores = [one.score for one in found.hypotheses]
    assert scores == sorted(scores, reverse=True)


def test_a_prefix_begins_the_first_line_and_phrases_need_one_line(translator: Translator) -> None:
    found, refused, single = translator.translate(
        [f"\n{CAT}\n{DOG}", f"{CAT}\n{DOG}", f" {CAT}"],
        constraints=[
            Constraints(prefix="Un"),
            Constraints(required=("chat",)),
            Constraints(required=("chat",)),
        ],
        beam=4,
    )
    lines = found.text.split("\n")
    assert [line.startswith("Un") for line in lines] == [False, True, False]
    assert "must be one line" in (refused.error or "")
    assert "chat" in single.text
    assert single.text.startswith(" ")


def test_constraints_of_single_lines_hold_for_them(translator: Translator) -> None:
    (found,) = translator.translate(
        [f"{CAT}\n\n{DOG}"],
        constraints=[[Constraints(), Constraints(), Constraints(prefix="Une")]],
    )
    first, blank, last = found.text.split("\n")
    assert (first.startswith("Une"), blank, last.startswith("Une")) == (False, "", True)


def test_looking_needs_one_line_and_does_not_mind_its_edges(translator: Translator) -> None:
    assert translator.look(f" {CAT}\t").source_tokens == translator.look(CAT).source_tokens
    with pytest.raises(InputError, match="must be one line"):
        translator.look(f"{CAT}\n{DOG}")


@pytest.mark.parametrize("command", ["translate", "score", "align", "evaluate"])
def test_line_that_is_too_long_costs_only_itself(
    command: str, run_here: Run, write_lines: WriteLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pellucid.text.reading.lines.LONGEST_LINE", 61)
    source = write_lines("s", CAT, "word " * 40, DOG)
    target = write_lines("t", "Le chat est rouge.", "mot", "Le chien l'a mangé.")
    files: tuple[str, ...] = ("--source", source, "--target", target)
    if command == "translate":
        files = ("-i", source)
    elif command == "evaluate":
        files = ("--source", source, "--reference", target)
    done = run_here(command, SUBWORDS, *files)
    assert done.returncode == 3
    said = [line for line in done.stderr.splitlines() if "at most 61 bytes" in line]
    assert len(said) == 1
    assert said[0].startswith("error: line 2: A line must have at most 61 bytes, but has 200.")
    if command != "evaluate":
        assert [bool(line) for line in done.stdout.splitlines()] == [True, False, True]


def test_translation_of_a_line_that_is_cut_is_an_error(translator: Translator) -> None:
    line = CutLine.of(b"a" * 200, 5000)
    first, last = translator.translate([line, CAT])
    assert "has 5,000" in (first.error or "")
    assert last.error is None


def test_pipe_gets_control_characters_which_a_terminal_shows(run_here: Run) -> None:
    stdin = f"\u202b{CAT}\u202c\n"
    piped = run_here("translate", SUBWORDS, stdin=stdin).stdout
    assert piped.startswith("\u202b")
    terminal = io.StringIO()
    TerminalOutput(terminal).write(piped)
    assert terminal.getvalue() == piped.replace("\u202b", "\\u202b").replace("\u202c", "\\u202c")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Où ?\u00a0\t«\u202fOui\u202f»\n", "Où ?\u00a0\t«\u202fOui\u202f»\n"),
        ("a\x1b[2J\x9b\r\n", "a\\x1b[2J\\x9b\\r\n"),
        ("\u202e\u2066\u2028\x07", "\\u202e\\u2066\\u2028\\x07"),
        ("می\u200cخواهم 👩\u200d🚀\n", "می\u200cخواهم 👩\u200d🚀\n"),
    ],
)
def test_show_controls_keeps_spaces_and_joiners(text: str, shown: str) -> None:
    assert show_controls(text) == shown


def test_score_of_a_damaged_line_is_its_own_error_in_json(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(b"The caf\xe9.\n" + CAT.encode() + b"\n")
    (tmp_path / "t").write_text("x\nLe chat est rouge.\n")
    files = ("--source", str(tmp_path / "s"), "--target", str(tmp_path / "t"))
    done = run_here("score", SUBWORDS, *files, "--json")
    first, second = map(json.loads, done.stdout.splitlines())
    assert done.returncode == 3
    assert (first["source"], first["log_probability"]) == ("The caf\ufffd.", None)
    assert "UTF-8" in first["error"]
    assert second["error"] is None
