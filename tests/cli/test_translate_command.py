"""``pellucid translate``: options, forms, lines at a keyboard, and runs that are interrupted."""

from __future__ import annotations

import gzip
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
import typing
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import typer
from echoing import Echo, use_echo
from forked import Forked
from of_subwords import SUBWORDS

from pellucid.cli.lines import translation_job
from pellucid.cli.lines.decoding_options import DECODING, NAMED, TREATMENT, useless_options
from pellucid.cli.options import CONSTRAINTS, flag
from pellucid.config import DecodingConfig
from pellucid.corpora import iterate_split
from pellucid.decode.constraints.request import Constraints
from pellucid.native.loading import instruction_sets
from pellucid.terminal.progress import describe_progress
from pellucid.translate.results import Translation

Run = Callable[..., subprocess.CompletedProcess[str]]
WriteLines = Callable[..., str]


@pytest.fixture
def echo(monkeypatch: pytest.MonkeyPatch) -> Echo:
    return use_echo(monkeypatch)


def lines(count: int) -> list[str]:
    return [f"line {number}" for number in range(count)]


def text(*rows: str) -> str:
    return "".join(f"{row}\n" for row in rows)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# Options


def test_options_of_the_command_are_the_fields_of_the_configuration() -> None:
    fields = DecodingConfig.model_fields
    # Ids of tokens are for imported models, not for people.
    # The others are set by --set.
    assert set(DECODING) - {"set"} == set(NAMED) <= set(fields) - {"forbidden_tokens"}
    for name in NAMED:
        kind, _, help_text, *_ = DECODING[name]
        default = fields[name].default
        if typing.get_origin(kind) is typing.Literal:
            for choice in set(typing.get_args(kind)) - {"auto"}:  # It becomes another one.
                assert getattr(DecodingConfig(**{name: choice}), name) == choice
            assert default in typing.get_args(kind)
        else:
            # One that is left out has no value.
            assert default is None or type(default) is kind, name
        end = r"\.  \[default: \S+\]$" if default is not None else r"\.$"
        assert re.search(end, help_text), help_text


@pytest.mark.parametrize("name", [*TREATMENT, *DECODING, *CONSTRAINTS])
def test_help_lists_every_option(name: str, help_text: str) -> None:
    assert f"\n  {flag(name)} " in help_text


@pytest.fixture(scope="module")
def help_text() -> str:
    from pellucid.cli.app import load_command

    command = load_command("translate")
    with typer.Context(command) as context:
        return command.get_help(context)


def test_options_that_are_given_reach_the_translator_and_no_others(
    run_here: Run, echo: Echo
) -> None:
    words = (
        "--beam",
        "5",
        "--n-best",
        "3",
        "--set",
        "decoding.length_penalty=average",
        "--set",
        "decoding.strict=false",
    )
    done = run_here("translate", "m", *words, "--ensemble", "n", "--threads", "1", stdin="x\n")
    assert (done.returncode, done.stderr) == (0, "")
    (call,) = echo.calls
    given = {"beam": 5, "n_best": 3, "length_penalty": "average", "strict": False}
    assert {
        name: value for name, value in call.items() if name in DecodingConfig.model_fields
    } == given
    assert echo.loaded == {"model": "m", "threads": 1, "ensemble": ("n",)}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--beam", "0"], "beam must be at least 1, but is 0"),
        (["--beam", "10000"], "beam must be at most 1000, but is 10000"),
        (["--n-best", "5", "--beam", "3"], "n_best must be at most beam (3), but is 5"),
        (["--sample", "--beam", "3"], "beam must be 1 when sampling"),
        (["--set", "decoding.alpha=nan"], "alpha must be a finite number"),
        (["--set", "decoding.stopping=soon"], "stopping must be"),
        (["--set", "decoding.strct=true"], "Did you mean 'decoding.strict'?"),
        (["--set", "training.seed=1"], "--set must set an option of decoding"),
        (["--set", "strict"], "must be written SECTION.KEY=VALUE"),
        (["--beam", "5", "--set", "decoding.beam=4"], "--beam must be given once"),
        (["The soup was cold."], "-i FILE"),
        (["--prefix", "a", "--prefix", "@b"], "--prefix must be given once"),
        (["--require", "@a", "--require", "@b"], "--require @FILE must be given once"),
        (["--set", "glossary.match=forms"], "--set glossary.match needs --glossary"),
        (["--glossary", "x", "--set", "glossary.match=all"], "must be one of auto, exact, forms"),
        (["--prefix", "\udcff"], "--prefix must be UTF-8 text, but is '\\udcff'"),
        (["--forbid", " "], "--forbid must be a phrase, but is empty"),
        (["--glossary", "-"], "--input and --glossary are both '-'"),
        (["--forbid", "@-"], "--input and --forbid are both '-'"),
        (["--require", "@-"], "Only one file may be standard input"),
        (["--prefix", "@no-such-file"], "no-such-file does not"),
    ],
)
def test_impossible_options_give_one_sentence_and_2(
    words: list[str], expected: str, run_here: Run, echo: Echo
) -> None:
    done = run_here("translate", "m", *words, stdin="x\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert not echo.calls


@pytest.mark.parametrize(
    ("given", "form", "expected"),
    [
        (
            {"temperature": 0.5, "seed": 3},
            "plain",
            ["--set decoding.temperature", "--set decoding.seed"],
        ),
        ({"temperature": 0.5, "sample": True}, "plain", []),
        ({"alpha": 1.0}, "plain", ["--set decoding.alpha"]),
        ({"alpha": 1.0}, "json", []),
        ({"alpha": 1.0, "beam": 2}, "plain", []),
        (
            {"alpha": 1.0, "beam": 2, "length_penalty": "none"},
            "plain",
            ["--set decoding.alpha"],
        ),
        ({"stopping": "never"}, "plain", ["--set decoding.stopping"]),
        ({"diversity": 1.0, "beam": 2}, "plain", ["--set decoding.diversity"]),
        ({"diversity": 1.0, "beam": 2, "diverse_groups": 2}, "plain", []),
        ({"max_length": 5, "max_length_ratio": 3.0}, "plain", ["--set decoding.max_length_ratio"]),
    ],
)
def test_useless_options_are_told(given: dict[str, Any], form: str, expected: list[str]) -> None:
    decoding = DecodingConfig(**given)
    told = list(useless_options(given, decoding, is_score_shown=form != "plain"))
    assert [sentence.partition(" has no")[0] for sentence in told] == expected


def test_useless_option_is_a_warning_that_changes_nothing_else(run_here: Run, echo: Echo) -> None:
    done = run_here("translate", "m", "--set", "decoding.top_k=5", "--overwrite", stdin="x\n")
    assert (done.returncode, done.stdout) == (0, "X\n")
    assert done.stderr == (
        "warning: --set decoding.top_k has no effect without --sample.\n"
        "warning: --overwrite has no effect without -o FILE.\n"
    )


# Constraints


@pytest.mark.parametrize("option", ["--prefix", "--forbid", "--require"])
def test_at_sign_without_a_file_is_refused(run_here: Run, echo: Echo, option: str) -> None:
    done = run_here("translate", "m", option, "@", stdin="x\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: @ must be followed by the name of a file.")


def test_constraints_of_a_line_are_the_union_of_options_files_and_glossary(
    run_here: Run, echo: Echo, write_lines: WriteLines
) -> None:
    words = (
        *("--prefix", "@" + write_lines("prefixes", "La", "")),
        *("--forbid", "Le", "--forbid", "@" + write_lines("forbidden", "un", "", "une fois")),
        *("--forbid", "@@home"),
        *("--require", "oui", "--require", "@" + write_lines("required", "a\tb b", "four\toui")),
        *("--glossary", write_lines("glossary", "oven\tfour")),
        *("--glossary", write_lines("another", "the\tle")),
    )
    done = run_here("translate", "m", *words, stdin="a pizza\nthe oven\n")
    assert done.returncode == 0
    assert "note: Glossary: 2 terms were found in 1 of 2 lines." in done.stderr
    forbidden = ("Le", "@home", "un", "une fois")
    each = echo.calls[0]["constraints"]
    assert [replace(one, glossary=None) for one in each] == [
        Constraints("La", forbidden, ("oui", "a", "b b")),
        Constraints("", forbidden, ("oui", "four")),
    ]
    assert all(one.glossary.terms == {"oven": "four", "the": "le"} for one in each)
    assert "Glossary term not found in the translation: 1 line lacks one (2): " in done.stderr
    assert "the → le (not in the translation); oven → four (not in the translation)" in done.stderr


def test_constraints_not_asked_for_are_empty(run_here: Run, echo: Echo) -> None:
    assert run_here("translate", "m", stdin="x\ny\n").returncode == 0
    assert echo.calls[0]["constraints"] == [Constraints()] * 2


def test_constraints_file_with_fewer_lines_is_refused_before_anything_is_written(
    run_here: Run, echo: Echo, write_lines: WriteLines, tmp_path: Path
) -> None:
    words = ("-i", write_lines("in", *lines(3)), "--prefix", "@" + write_lines("p", *lines(2)))
    done = run_here("translate", "m", *words, "-o", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "--input" in done.stderr
    assert f"--prefix {tmp_path / 'p'} has 2" in done.stderr
    assert names(tmp_path) == ["in", "p"]


PIZZA = "The pizza came out of the oven and it tasted good"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], "La pizza est sortie du four et elle avait bon goût"),
        (["--forbid", "elle"], "La pizza est sortie du four et il avait bon goût"),
        (["--require", "il"], "La pizza est sortie du four et il avait bon goût"),
        (["--prefix", "Une pizza"], "Une pizza est sortie du four et elle avait bon goût"),
    ],
)
def test_constraints_are_met_by_a_trained_model(
    words: list[str], expected: str, run_here: Run
) -> None:
    done = run_here("translate", SUBWORDS, "--beam", "5", *words, stdin=f"{PIZZA}\n")
    assert (done.returncode, done.stdout) == (0, f"{expected}\n")


def test_constraint_that_cannot_be_met_fails_its_line_alone(
    run_here: Run, write_lines: WriteLines
) -> None:
    words = ("--require", "@" + write_lines("required", "", "sortie du four et elle", ""))
    done = run_here(
        "translate", "demo", "--set", "decoding.max_length=5", *words, stdin=f"{PIZZA}\n" * 3
    )
    assert done.returncode == 3
    assert [bool(line) for line in done.stdout.split("\n")] == [True, False, True, False]
    first, *notes = done.stderr.splitlines()  # A note tells that the others were cut short.
    assert first.startswith("error: line 2: ")
    assert not any("line 2" in note for note in notes)


def test_line_that_is_too_long_is_split_unless_refused(run_here: Run) -> None:
    stdin = text("The pizza came out of the oven. " * 60, PIZZA)
    refused = run_here("translate", "demo", "--split", "none", stdin=stdin)
    assert refused.returncode == 3
    assert refused.stdout.startswith("\nLa pizza")
    assert "Split it into sentences." in refused.stderr
    for options in ((), ("--split", "long")):
        done = run_here("translate", "demo", *options, stdin=stdin)
        assert done.returncode == 0
        assert done.stderr.startswith("warning: Line 1 was split into sentences")
        assert done.stdout.split("\n")[0].count("La pizza") == 60


# Forms


def test_n_best_lines_carry_number_text_log_probability_and_score(
    run_here: Run, echo: Echo
) -> None:
    done = run_here("translate", "m", "--beam", "2", "--n-best", "2", stdin="a\n!b\nc\n")
    assert done.returncode == 3
    assert done.stdout == text(
        "0 ||| A ||| -1.500000 ||| -0.500000",
        "0 ||| A? ||| -1.500000 ||| -1.500000",
        "1 |||  |||  ||| ",
        "2 ||| C ||| -1.500000 ||| -0.500000",
        "2 ||| C? ||| -1.500000 ||| -1.500000",
    )
    assert done.stderr == "error: line 2: It must not shout.\n"


def test_n_best_of_one_keeps_the_form(run_here: Run, echo: Echo) -> None:
    done = run_here("translate", "m", "--n-best", "1", stdin="a\n")
    assert done.stdout == "0 ||| A ||| -1.500000 ||| -0.500000\n"


def test_json_has_every_hypothesis_and_the_error(run_here: Run, echo: Echo) -> None:
    done = run_here("translate", "m", "--beam", "3", "--n-best", "3", "--json", stdin="a\n!b\n")
    good, bad = (json.loads(line) for line in done.stdout.splitlines())
    assert [h["text"] for h in good["hypotheses"]] == ["A", "A?", "A??"]
    assert good["translation"] == "A"
    assert bad == {
        "line": 1,
        "source": "!b",
        "translation": None,
        "error": "It must not shout.",
        "hypotheses": [],
        "notes": {},
    }


def test_many_hypotheses_make_smaller_windows(
    run_here: Run, echo: Echo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(translation_job, "MAX_HYPOTHESES", 23)
    run_here("translate", "m", "--beam", "5", "--n-best", "5", stdin=text(*lines(9)))
    assert [len(call["texts"]) for call in echo.calls] == [4, 4, 1]


# Runs that are interrupted


def interrupted(
    run_here: Run,
    echo: Echo,
    output: Path,
    *words: str,
    calls: int = 2,
    stdin: str = "",
    by: BaseException | None = None,
) -> str:
    """Run a command that is stopped after some windows, and hand back its messages."""
    echo.calls.clear()
    echo.interrupt[calls] = by or KeyboardInterrupt()
    done = run_here("translate", "m", "-o", str(output), *words, stdin=stdin)
    assert done.returncode == (143 if by else 130)
    assert not output.exists()
    echo.calls.clear()
    return done.stderr


def test_resume_goes_on_after_the_last_whole_window(
    run_here: Run, echo: Echo, write_lines: WriteLines, tmp_path: Path
) -> None:
    source, output = write_lines("in", *lines(31)), tmp_path / "out"
    said = interrupted(run_here, echo, output, "-i", source, calls=3, by=SystemExit(143))
    assert "holds the output of 21 lines. Give the same command again to resume" in said
    state = json.loads((tmp_path / "out.state").read_text())
    assert (state["num_lines"], state["num_bytes"]) == (21, (tmp_path / "out.part").stat().st_size)
    done = run_here("translate", "m", "-i", source, "-o", str(output))
    assert (done.returncode, done.stderr) == (0, "")
    assert [call["texts"][0] for call in echo.calls] == ["line 21", "line 28"]
    assert output.read_text() == text(*(line.upper() for line in lines(31)))
    assert names(tmp_path) == ["in", "out"]


def test_resume_of_standard_input_compares_the_same_lines_piped_again(
    run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    output, stdin = tmp_path / "out", text(*lines(31))
    interrupted(run_here, echo, output, stdin=stdin)
    assert run_here("translate", "m", "-o", str(output), stdin=stdin).returncode == 0
    assert echo.calls[0]["texts"][0] == "line 14"
    assert output.read_text() == stdin.upper()


@pytest.mark.parametrize("form", [[], ["--json"], ["--n-best", "1"]])
def test_resume_keeps_line_numbers_and_the_exit_code_of_failed_lines(
    form: list[str], run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    stdin = text("!0", *lines(20), "!21", "last")
    whole = run_here("translate", "m", *form, stdin=stdin)
    assert whole.stderr.count("It must not shout.") == 2
    output = tmp_path / "out"
    assert "line 1: It" in interrupted(run_here, echo, output, *form, stdin=stdin)
    done = run_here("translate", "m", "-o", str(output), *form, stdin=stdin)
    assert (done.returncode, output.read_text()) == (3, whole.stdout)
    assert "1 of 14 lines that an earlier run finished" in done.stderr
    assert "line 22: It must not shout." in done.stderr


def test_resume_cuts_off_what_the_state_does_not_promise(
    run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    output, stdin = tmp_path / "out", text(*lines(31))
    interrupted(run_here, echo, output, stdin=stdin)
    with (tmp_path / "out.part").open("ab") as part:
        part.write(b"half a li")
    assert run_here("translate", "m", "-o", str(output), stdin=stdin).returncode == 0
    assert output.read_text() == stdin.upper()


def test_resume_of_packed_output_is_byte_equal_and_one_stream(
    run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    stdin = text(*lines(31))
    assert run_here("translate", "m", "-o", str(tmp_path / "whole.gz"), stdin=stdin).stderr == ""
    output = tmp_path / "out.gz"
    interrupted(run_here, echo, output, stdin=stdin)
    assert run_here("translate", "m", "-o", str(output), stdin=stdin).returncode == 0
    assert output.read_bytes() == (tmp_path / "whole.gz").read_bytes()
    with gzip.open(output, "rt", encoding="utf-8") as stream:
        assert stream.read() == stdin.upper()


@pytest.mark.parametrize(
    ("name", "expected"), [("out", b""), ("out.gz", gzip.compress(b"", mtime=0))]
)
def test_output_of_no_lines_is_an_empty_file(
    name: str, expected: bytes, run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    assert run_here("translate", "m", "-o", str(tmp_path / name), stdin="").returncode == 0
    assert (tmp_path / name).read_bytes() == expected
    assert names(tmp_path) == [name]


def test_interruption_before_the_first_window_leaves_nothing(
    run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    said = interrupted(run_here, echo, tmp_path / "out", calls=0, stdin="x\n")
    assert said == "error: Stopped by Ctrl-C.\n"
    assert names(tmp_path) == []


def test_bad_line_of_another_file_ends_after_the_whole_windows(
    run_here: Run, echo: Echo, write_lines: WriteLines, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    fifo = tmp_path / "prefixes"
    os.mkfifo(fifo)  # A file would be checked before anything is translated.
    command = ("translate", "m", "-o", str(output), "--prefix", f"@{fifo}")
    stdin = text(*lines(31)).encode()
    for good, (code, said) in ((10, (2, "prefixes:11")), (31, (0, ""))):
        prefixes = text(*[""] * good).encode() + (b"" if good == 31 else b"\xff\n")
        writer = threading.Thread(target=fifo.write_bytes, args=[prefixes])
        writer.start()
        done = run_here(*command, stdin=stdin)
        writer.join()
        assert done.returncode == code
        assert said in done.stderr
        if code:
            assert json.loads((tmp_path / "out.state").read_text())["num_lines"] == 7
    assert output.read_bytes() == stdin.upper()


@dataclass
class Change:
    """A difference from the interrupted run, and the words that must report it."""

    expected: str
    words: tuple[str, ...] = ()
    line: str | None = None
    model_hash: str = "a" * 64
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)


CHANGES = {
    "model": Change("MODEL", model_hash="b" * 64),
    "option": Change("--beam (1 then, 2 now)", words=("--beam", "2")),
    "form": Change('the form ("plain" then, "json" now)', words=("--json",)),
    "prefix": Change('--prefix ("" then, "La" now)', words=("--prefix", "La")),
    "threads": Change("--threads (2 then, 1 now)", words=("--threads", "1")),
    "input": Change("the first 14 lines of --input have changed", line="another"),
    "forbidden": Change("--forbid @FILE", files={"forbidden": ("other",)}),
    "glossary": Change("--glossary", files={"glossary": ("oven\tfours",)}),
    "required": Change("lines of --require have changed", files={"required": ("z",) * 31}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_resume_with_something_else_names_it_and_only_overwriting_starts_anew(
    change: Change, run_here: Run, echo: Echo, write_lines: WriteLines, tmp_path: Path
) -> None:
    rows, output = lines(31), tmp_path / "out"
    words = [
        *("--forbid", "@" + write_lines("forbidden", "word")),
        *("--require", "@" + write_lines("required", *rows)),
        *("--glossary", write_lines("glossary", "oven\tfour")),
        *("-i", write_lines("in", *rows)),
    ]
    interrupted(run_here, echo, output, *words)
    kept = (tmp_path / "out.part").read_bytes()
    echo.model_hash = change.model_hash
    for name, content in change.files.items():
        write_lines(name, *content)
    if change.line is not None:
        write_lines("in", change.line, *rows[1:])
    command = ("translate", "m", "-o", str(output), *words, *change.words)
    refused = run_here(*command)
    assert refused.returncode == 2
    assert change.expected in refused.stderr
    assert "--overwrite" in refused.stderr
    assert "delete out.part and out.state" in refused.stderr
    assert refused.stderr.count("\n") == 1
    assert not echo.calls
    assert (tmp_path / "out.part").read_bytes() == kept
    done = run_here(*command, "--overwrite")
    assert done.returncode == 0, done.stderr
    assert echo.calls[0]["texts"][0] == (change.line or rows[0])
    assert output.read_text().count("\n") == len(rows)
    assert not {"out.part", "out.state"} & set(names(tmp_path))


def test_resume_of_other_standard_input_cannot_be_overwritten_in_silence(
    run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    interrupted(run_here, echo, output, stdin=text(*lines(31)))
    for rows in (["another", *lines(31)[1:]], lines(5)):
        done = run_here("translate", "m", "-o", str(output), "--overwrite", stdin=text(*rows))
        assert done.returncode == 2
        assert "start over: delete out.part and out.state" in done.stderr
    assert not echo.calls


def damage_state(folder: Path) -> None:
    (folder / "out.state").write_text("{")


def falsify_state(folder: Path) -> None:
    path = folder / "out.state"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"num_lines": "14"}))


def delete_state(folder: Path) -> None:
    (folder / "out.state").unlink()


def delete_part(folder: Path) -> None:
    (folder / "out.part").unlink()


def edit_part(folder: Path) -> None:
    path = folder / "out.part"
    path.write_bytes(path.read_bytes().replace(b"LINE 3", b"line 3"))


@pytest.mark.parametrize(
    ("harm", "expected"),
    [
        (damage_state, "out.state is damaged"),
        (falsify_state, "out.state is damaged"),
        (delete_state, "out.state does not exist"),
        (delete_part, "it was changed or deleted since"),
        (edit_part, "it was changed or deleted since"),
    ],
)
def test_resume_of_a_harmed_part_is_refused_and_overwriting_starts_anew(
    harm: Callable[[Path], None], expected: str, run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    output, stdin = tmp_path / "out", text(*lines(31))
    interrupted(run_here, echo, output, stdin=stdin)
    harm(tmp_path)
    before = names(tmp_path)
    done = run_here("translate", "m", "-o", str(output), stdin=stdin)
    assert done.returncode == 2
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
    assert names(tmp_path) == before
    done = run_here("translate", "m", "-o", str(output), "--overwrite", stdin=stdin)
    assert (done.returncode, done.stderr) == (0, "")
    assert output.read_text() == stdin.upper()


def test_overwriting_is_resumed_as_well_and_the_old_file_stays_until_the_end(
    run_here: Run, echo: Echo, tmp_path: Path
) -> None:
    output, stdin = tmp_path / "out", text(*lines(31))
    output.write_text("old\n")
    echo.interrupt[2] = KeyboardInterrupt()
    command = ("translate", "m", "-o", str(output), "--overwrite")
    assert run_here(*command, stdin=stdin).returncode == 130
    assert output.read_text() == "old\n"
    echo.calls.clear()
    assert run_here(*command, stdin=stdin).returncode == 0
    assert echo.calls[0]["texts"][0] == "line 14"
    assert output.read_text() == stdin.upper()


def test_two_commands_at_one_output_the_second_is_refused(
    run_here: Run, echo: Echo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, stdin = tmp_path / "out", text(*lines(31))
    refused = []
    original = echo.translate

    def translate(texts: Sequence[str], **options: Any) -> list[Translation]:
        if len(echo.calls) == 2:
            monkeypatch.setattr(echo, "translate", original)
            refused.append(run_here("translate", "m", "-o", str(output), stdin=stdin))
        return original(texts, **options)

    monkeypatch.setattr(echo, "translate", translate)
    assert run_here("translate", "m", "-o", str(output), stdin=stdin).returncode == 0
    assert refused[0].returncode == 2
    assert "one command at a time" in refused[0].stderr
    assert output.read_text() == stdin.upper()
    assert names(tmp_path) == ["out"]


# Real processes


@pytest.fixture(scope="module")
def corpus() -> list[str]:
    examples = iterate_split("validation")
    return [next(examples).source for _ in range(750)]


WITH_SMALL_WINDOWS = (
    "from pellucid.cli import main; from pellucid.cli.lines import translation_job as job\n"
    "job.MAX_LINES = 150\n"
    "main.main()\n"
)


Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(start: Start) -> Start:
    """Start ``pellucid ARGUMENTS`` with small windows."""

    def start_command(
        *arguments: str, max_file_size: int | None = None, **options: Any
    ) -> subprocess.Popen[bytes]:
        code = WITH_SMALL_WINDOWS
        if max_file_size is not None:
            code = (
                f"import resource as r; r.setrlimit(r.RLIMIT_FSIZE, 2 * ({max_file_size},))\n{code}"
            )
        return start([sys.executable, "-c", code, *arguments], kind=Forked, **options)

    return start_command


def wait_until(condition: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    while not condition():
        assert process.poll() is None, "the process ended too early"
        time.sleep(0.002)


def lines_done(state: Path) -> int:
    try:
        return int(json.loads(state.read_text())["num_lines"])
    except FileNotFoundError:
        return 0


@pytest.mark.sample(threads="2")
@pytest.mark.parametrize("threads", ["1", "2"])  # with two, Python works while the engine does
def test_killed_three_times_is_byte_equal_to_an_uninterrupted_run(
    threads: str, start: Start, corpus: list[str], write_lines: WriteLines, tmp_path: Path
) -> None:
    source = write_lines("in", *corpus)
    whole, output = tmp_path / "whole", tmp_path / "out"
    # JSON has every digit of every log-probability.
    command = ("translate", "demo", "--json", "--threads", threads, "-i", source, "-o")
    assert start(*command, str(whole)).wait() == 0
    assert whole.read_text(encoding="utf-8").count("\n") == len(corpus)
    state = tmp_path / "out.state"
    seen = 0
    for _ in range(3):
        process = start(*command, str(output))
        wait_until(lambda seen=seen: lines_done(state) > seen, process)  # type: ignore[misc]
        process.kill()
        assert process.wait() == -signal.SIGKILL
        seen = lines_done(state)
        assert not output.exists()
    assert start(*command, str(output)).wait() == 0
    assert output.read_bytes() == whole.read_bytes()
    assert names(tmp_path) == ["in", "out", "whole"]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_closed_pipe_ends_quietly_with_0(
    threads: str, start: Start, corpus: list[str], write_lines: WriteLines
) -> None:
    source = write_lines("in", *corpus)
    command, pipe = ("translate", "demo", "--threads", threads), subprocess.PIPE
    process = start(*command, "-i", source, stdout=pipe, stderr=pipe)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().endswith(b"\n")
    process.stdout.close()
    assert process.wait() == 0
    assert process.stderr.read() == b""


def test_interruption_while_more_lines_are_awaited_keeps_what_was_answered(
    start: Start, corpus: list[str], tmp_path: Path
) -> None:
    output, pipe = tmp_path / "out", subprocess.PIPE
    command = ("translate", "demo", "--threads", "2", "-o", str(output))
    process = start(*command, stdin=pipe, stderr=pipe)
    assert process.stdin is not None
    # Two windows and a line of the third, whose other lines never come.
    process.stdin.write("".join(f"{line}\n" for line in corpus[:301]).encode())
    process.stdin.flush()
    wait_until(lambda: lines_done(tmp_path / "out.state") == 300, process)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert (b"Traceback" in process.stderr.read(), process.wait()) == (False, 130)
    assert (tmp_path / "out.part").read_bytes().count(b"\n") == 300


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_device_gives_one_sentence_and_1(start: Start, run_here: Run, echo: Echo) -> None:
    named = run_here("translate", "m", "-o", "/dev/full", stdin="x\n")
    with Path("/dev/full").open("wb") as full:
        streams = {"stdin": subprocess.PIPE, "stdout": full, "stderr": subprocess.PIPE}
        process = start("translate", "demo", **streams)
        _, stderr = process.communicate(b"The pizza\n")
    for code, said in ((named.returncode, named.stderr), (process.returncode, stderr.decode())):
        assert code == 1
        assert "No space left" in said
        assert said.count("\n") == 1


def test_full_disk_keeps_whole_windows_and_the_same_command_goes_on(
    start: Start,
    corpus: list[str],
    write_lines: WriteLines,
    tmp_path: Path,
    run_here: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, output = write_lines("in", *corpus[:600]), tmp_path / "out"
    command = ("translate", "demo", "-i", source, "-o", str(output))
    limit = 10_000
    process = start(*command, stderr=subprocess.PIPE, max_file_size=limit)
    _, stderr = process.communicate()
    assert process.returncode == 1
    assert stderr.count(b"\n") == 1
    assert b"File too large" in stderr
    assert b"give the same command again: it resumes after line 150" in stderr
    assert lines_done(tmp_path / "out.state") == 150
    assert (tmp_path / "out.part").stat().st_size <= limit
    monkeypatch.setattr(translation_job, "MAX_LINES", 150)
    assert run_here(*command).returncode == 0
    assert output.read_text(encoding="utf-8").count("\n") == 600
    assert names(tmp_path) == ["in", "out"]


# At a keyboard


class Terminal:
    """A terminal with a command at it."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self.master = master
        self.seen = b""

    def read_until(self, expected: bytes) -> bytes:
        """Read until something appears, and hand back the text up to there."""
        while expected not in self.seen:
            self._read()
        before, _, self.seen = self.seen.partition(expected)
        return before + expected

    def wait(self) -> int:
        """Read until the command ends, which waits until its output is read."""
        while self.process.poll() is None:
            self._read()
        return self.process.returncode

    def _read(self) -> None:
        if select.select([self.master], [], [], 0.05)[0]:
            with suppress(OSError):  # The other end is closed.
                self.seen += os.read(self.master, 1 << 16)

    def type(self, data: bytes) -> None:
        os.write(self.master, data)


@pytest.fixture
def at_terminal(
    start: Start,
) -> Iterator[Callable[..., Terminal]]:
    """Start ``pellucid ARGUMENTS`` with some of its standard streams at a terminal."""
    masters = []

    def begin(*arguments: str, streams: Sequence[str] = ("stdin", "stdout", "stderr")) -> Terminal:
        master, slave = pty.openpty()
        masters.append(master)
        options: dict[str, int] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        process = start(*arguments, **options | dict.fromkeys(streams, slave))
        os.close(slave)
        return Terminal(process, master)

    yield begin
    for master in masters:
        os.close(master)


def test_typed_lines_are_prompted_for_and_answered_one_by_one(
    at_terminal: Callable[..., Terminal],
) -> None:
    terminal = at_terminal("translate", "demo")
    terminal.read_until(b"> ")
    terminal.type(b"The pizza came out of the oven and it tasted good\n")
    answer = terminal.read_until(b"> ").replace(b"\r\n", b"\n").decode()
    assert answer.endswith("\nLa pizza est sortie du four et elle avait bon goût\n> ")
    terminal.type(b"\x04")
    assert terminal.wait() == 0


def test_typed_lines_with_output_elsewhere_are_answered_without_a_prompt(
    at_terminal: Callable[..., Terminal],
) -> None:
    terminal = at_terminal("translate", "demo", streams=["stdin", "stderr"])
    assert terminal.process.stdout is not None
    for _ in range(2):
        terminal.type(b"The pizza came out of the oven\n")
        assert terminal.process.stdout.readline() == b"La pizza est sortie du four\n"
    terminal.type(b"\x04")
    assert terminal.wait() == 0
    assert terminal.process.stdout.read() == b""
    assert b"> " not in terminal.seen


def test_stream_answers_each_line_before_the_next_is_written(
    start: Start,
) -> None:
    process = start("translate", "demo", "--stream", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    for line in (b"The pizza came out of the oven\n", b"\n"):
        process.stdin.write(line)
        process.stdin.flush()
        assert process.stdout.readline().endswith(b"\n")
    process.stdin.close()
    assert process.wait() == 0


def test_stream_equals_the_same_lines_together(run_here: Run, corpus: list[str]) -> None:
    stdin = text(*corpus[:20])
    together = run_here("translate", "demo", stdin=stdin)
    assert run_here("translate", "demo", "--stream", stdin=stdin).stdout == together.stdout


def test_typed_lines_do_not_go_on_with_an_interrupted_run(
    run_here: Run, echo: Echo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pellucid.cli.lines import translate_lines

    output = tmp_path / "out"
    monkeypatch.setattr(translate_lines, "is_terminal", lambda name: name == "stdin")
    interrupted(run_here, echo, output, calls=1, stdin="a\nb\n")
    assert (tmp_path / "out.part").read_text() == "A\n"
    done = run_here("translate", "m", "-o", str(output), stdin="a\nb\n")
    assert done.returncode == 2
    assert "typed lines cannot be compared" in done.stderr


# Progress


def test_progress_is_a_bar_on_a_terminal_that_leaves_the_results_alone(
    at_terminal: Callable[..., Terminal],
    corpus: list[str],
    write_lines: WriteLines,
    tmp_path: Path,
) -> None:
    source, output = write_lines("in", *corpus[:300]), tmp_path / "out"
    terminal = at_terminal("translate", "demo", "-i", source, "-o", str(output), streams=["stderr"])
    shown = terminal.read_until(b" of 300 lines, ")
    assert shown.endswith((b"150 of 300 lines, ", b"300 of 300 lines, "))
    assert terminal.wait() == 0
    assert b" lines/s, " in terminal.seen
    assert output.read_text(encoding="utf-8").count("\n") == 300


def test_progress_is_not_shown_without_a_terminal(
    run_here: Run, echo: Echo, write_lines: WriteLines, tmp_path: Path
) -> None:
    source = write_lines("in", *lines(31))
    assert run_here("translate", "m", "-i", source).stderr == ""


@pytest.mark.parametrize(
    ("options", "described"),
    [
        ((), "the engine in C ({}), with 1 thread."),
        (("--require", "elles"), "the engine in C ({}), step by step, since phrases are required,"),
        (("--forbid", "ils"), "the engine in C ({}), step by step, since phrases are forbidden,"),
        (
            ("--set", "decoding.no_repeat_ngram=3"),
            "the engine in C ({}), step by step, since decoding.no_repeat",
        ),
    ],
)
def test_progress_says_what_computes(
    options: tuple[str, ...],
    described: str,
    at_terminal: Callable[..., Terminal],
    write_lines: WriteLines,
    tmp_path: Path,
) -> None:
    sets = instruction_sets()
    if not sets:
        pytest.skip("the engine in C was not built")
    source = write_lines("in", "They did not eat the bread because they were tired.")
    asked = ("--beam", "5", "--threads", "1", "--precision", "float32", *options)
    files = ("-i", source, "-o", str(tmp_path / "out"))
    terminal = at_terminal("translate", "demo", *files, *asked, streams=["stderr"])
    terminal.read_until(f"Translating in float32 by {described.format(sets[-1])}".encode())
    assert terminal.wait() == 0


@pytest.mark.parametrize(
    ("done", "total", "before", "seconds", "expected"),
    [
        (4000, 20_000, 0, 8.0, "4,000 of 20,000 lines, 500 lines/s, 0:32 left"),
        (4000, 20_000, 3000, 2.0, "4,000 of 20,000 lines, 500 lines/s, 0:32 left"),
        (30, None, 0, 20.0, "30 lines, 1.5 lines/s"),
        (1000, 1_000_000, 0, 10.0, "1,000 of 1,000,000 lines, 100 lines/s, 2:46:30 left"),
        (7, 9, 7, 1.0, "7 of 9 lines"),
    ],
)
def test_progress_in_words(
    done: int, total: int | None, before: int, seconds: float, expected: str
) -> None:
    assert describe_progress(done, total=total, before=before, seconds=seconds) == expected
