"""The list of commands, the help of each, and the ways to both."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from tests.cli.test_exit_codes import ROOT

from pellucid.cli.app import load_command
from pellucid.cli.main import run
from pellucid.cli.overview import COMMANDS, GROUPS, NAMES, SUBCOMMANDS, read_help


@pytest.mark.parametrize("columns", ["30", "61", "80", "211"])
@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"], ["help"], ["-q", "help"]])
def test_overview_lists_every_command_in_the_width_of_the_terminal(
    arguments: list[str],
    columns: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    for heading in GROUPS:
        assert f"\n{heading}:\n" in shown
    assert re.findall(r"^  (\w+) ", shown, flags=re.MULTILINE)[-len(COMMANDS) :] == [*COMMANDS]
    widest = max(map(len, shown.splitlines()))
    assert widest <= max(50, int(columns)) - 2
    assert widest > min(int(columns), 90) * 0.8


def test_order_of_the_reference_is_that_of_the_help() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    headings = re.findall(r"^\*\*(.+)\*\*$", page, flags=re.MULTILINE)
    assert headings == [*GROUPS]
    listed = re.findall(r"^\| `([\w ]+)` \|", page, flags=re.MULTILINE)
    assert listed == [*COMMANDS]


@pytest.mark.parametrize("option", ["-V", "--version"])
def test_version_can_be_asked_for_in_two_ways(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([option]) == 0
    assert capsys.readouterr().out.startswith("pellucid 0.")


@pytest.mark.parametrize("name", NAMES)
def test_help_has_defaults_and_two_examples_and_no_option_without_a_heading(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert run(["help", *name.split()]) == 0
    shown = capsys.readouterr().out
    assert run([*name.split(), "-h"]) == 0
    assert capsys.readouterr().out == shown
    examples = read_help()["examples"][name]
    assert len(examples) >= 2
    assert all(f"\n  {one}\n" in shown for one in examples)
    usage, *headings = re.findall(r"^(\w.*):", shown, flags=re.MULTILINE)
    assert usage == "Usage"
    assert set(headings) <= {"Examples", "Arguments", "Options", *read_help()["headings"]}
    assert "``" not in shown


def test_help_names_options_that_some_command_has() -> None:
    commands = {name: load_command(name) for name in NAMES}
    known = {"--help"}
    for command in commands.values():
        for one in command.params:
            known |= {*one.opts, *one.secondary_opts}
    for name, command in commands.items():
        named = set(
            re.findall(
                r"--[a-z][a-z0-9-]+",
                command.get_help(command.make_context(name, [], resilient_parsing=True)),
            )
        )
        assert named <= known, name


@pytest.mark.parametrize(
    ("name", "usage"),
    [
        ("translate", "MODEL"),
        ("look", "MODEL [TEXT...]"),
        ("patch", "MODEL [FROM] [INTO]"),
        ("lesson", "[LESSON]"),
        ("extract", "FILE..."),
        ("recipe", "[RECIPE|TABLE...]"),
    ],
)
def test_usage_has_one_pair_of_brackets_around_what_can_be_left_out(
    name: str, usage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["help", name]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first == f"Usage: pellucid {name} [OPTIONS] {usage}"


def test_an_option_has_one_heading() -> None:
    listed = [name for names in read_help()["headings"].values() for name in names.split()]
    assert len(listed) == len(set(listed))


def test_every_name_under_a_heading_is_that_of_an_option() -> None:
    known = {
        max(one.opts, key=len).removeprefix("--")
        for name in NAMES
        for one in load_command(name).params
        if one.param_type_name == "option"
    }
    listed = {name for names in read_help()["headings"].values() for name in names.split()}
    assert listed - known == set()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["version"], "Give: pellucid --version. See: pellucid --help"),
        (["verson"], "Give: pellucid --version."),
        (["list"], "Give: pellucid --help."),
        (["models"], "Give: pellucid inspect MODEL"),
        (["tranlsate"], "Did you mean 'translate'? See: pellucid --help"),
        (["xyzzy"], "does not exist. See: pellucid --help"),
        (["help", "tranlsate"], "Did you mean 'translate'?"),
        (["bulk", "runn"], "Did you mean 'run'? See: pellucid bulk --help"),
        (["bulk", "demo"], "Did you mean pellucid bulk run? See: pellucid bulk --help"),
        (["--nothing"], "The option --nothing does not exist. See: pellucid --help"),
        (["--help", "--nothing"], ""),
        (["bulk", "--join", "job"], "Give pellucid bulk join FOLDER instead."),
        (["train", "demo"], "The recipe 'demo' does not exist. Give 'tiny-en-fr'."),
        (["bulk", "--nothing"], "The option --nothing does not exist. See: pellucid bulk --help"),
    ],
)
def test_unknown_commands_lead_to_the_right_one(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(arguments) == (2 if said else 0)
    assert said in capsys.readouterr().err


def parse(example: str) -> None:
    """Parse a command of an example as the shell and the application do."""
    words = shlex.split(example.partition("pellucid ")[2].partition(" >")[0])
    size = 2 if words[0] in SUBCOMMANDS else 1
    if words[0] == "help":
        return
    name = " ".join(words[:size])
    load_command(name).make_context(name, words[size:], resilient_parsing=False)


@pytest.mark.parametrize("name", NAMES)
def test_examples_parse(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for example in read_help()["examples"][name]:
        assert f"pellucid {name}" in example
        parse(example)
