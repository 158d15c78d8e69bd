"""Exit codes are those of the table, and standard error says what kind of sentence each line is."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pellucid.cli
from pellucid import errors
from pellucid.cli.ending import EXIT_CODES
from pellucid.cli.overview import COMMANDS

Run = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).parents[2]


def test_table_of_the_reference_is_that_of_the_code() -> None:
    page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", page, flags=re.MULTILINE)
    assert {int(code): meaning for code, meaning in rows} == EXIT_CODES


def written_codes() -> Iterator[tuple[str, int]]:
    """Yield every number that a function of the command line returns as its exit code."""
    for path in Path(pellucid.cli.__file__).parent.glob("commands/*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name == path.stem:
                for one in ast.walk(node):
                    if isinstance(one, ast.Return) and isinstance(one.value, ast.Constant):
                        yield path.name, one.value.value


def test_commands_and_errors_end_with_codes_of_the_table() -> None:
    wrong = [(name, code) for name, code in written_codes() if code not in EXIT_CODES]
    assert not wrong
    kinds = [one for one in vars(errors).values() if isinstance(one, type)]
    codes = {one.exit_code for one in kinds if issubclass(one, errors.PellucidError)}
    assert codes == {1, 2}


@pytest.mark.parametrize("command", COMMANDS)
def test_mistyped_option_gives_2_and_an_error(run_here: Run, command: str) -> None:
    done = run_here(command, "-q", "--nothing")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: The option --nothing does not exist.")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "lines.txt"
    # A word that the model does not know, and a line that is not UTF-8.
    path.write_bytes(b"The kitten ate.\n\xe9\nA cat.\n")
    return path


def test_lines_that_fail_give_3_and_quiet_leaves_errors(run_here: Run, lines: Path) -> None:
    done = run_here("translate", "demo", "-i", str(lines))
    error, warning = done.stderr.splitlines()
    assert done.returncode == 3
    assert error.startswith("error: line 2: ")
    assert warning.startswith("warning: Line 1 ")
    for arguments in (("translate", "demo", "--quiet"), ("-q", "translate", "demo")):
        quiet = run_here(*arguments, "-i", str(lines))
        assert (quiet.returncode, quiet.stdout) == (3, done.stdout)
        assert quiet.stderr == f"{error}\n"


def test_quiet_leaves_neither_notes_nor_progress(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"a {i}\tun {i}\n" for i in range(9)))
    output = ("extract", str(tmp_path / "pairs.tsv"))
    assert run_here(*output).stderr.startswith("note: 9 pairs were written.")
    assert run_here(*output, "-q").stderr == ""


def test_pairs_that_cannot_be_extracted_give_3(run_here: Run, tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("a\tun\nlost\n")
    done = run_here("extract", str(tmp_path / "pairs.tsv"))
    assert (done.returncode, done.stdout) == (3, "a\tun\n")
    assert done.stderr.splitlines()[1].startswith("error: 1 line cannot be used: ")
