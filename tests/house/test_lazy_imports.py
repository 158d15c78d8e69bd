"""Help, and modules that few users need, load nothing heavy."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pellucid.cli.app import load_command
from pellucid.cli.overview import COMMANDS, SUBCOMMANDS

Run = Callable[..., subprocess.CompletedProcess[str]]

HEAVY = {"torch", "numpy", "sacrebleu", "sentencepiece", "safetensors", "matplotlib"}


def loaded_after(run_python: Run, statement: str) -> set[str]:
    """The top-level packages that a fresh Python has loaded after a statement."""
    code = (
        "import io, json, sys\n"
        "sys.stdout = io.StringIO()\n"
        f"{statement}\n"
        "sys.__stdout__.write(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))\n"
    )
    done = run_python("-c", code)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout))


def test_import_pellucid_leaves_heavy_libraries_unimported(run_python: Run) -> None:
    loaded = loaded_after(run_python, "import pellucid; dir(pellucid); pellucid.__version__")
    assert not loaded & {*HEAVY, "pydantic", "typer"}


HELP = f"""
import contextlib, io, json, sys
from pellucid.cli.overview import COMMANDS, SUBCOMMANDS
from pellucid.cli.main import run

found = {{}}
for command in ["", *COMMANDS]:
    with contextlib.redirect_stdout(io.StringIO()):
        assert run([command, "--help"] if command else ["--help"]) == 0
    found[command] = sorted({HEAVY} & sys.modules.keys())
    # The first is the list of commands, which is printed without the parser of options.
    assert ("typer" in sys.modules) == bool(command)
print(json.dumps(found))
"""


def test_help_of_every_command_leaves_heavy_libraries_unimported(run_python: Run) -> None:
    done = run_python("-c", HELP)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {command: [] for command in ["", *COMMANDS]}


def test_the_library_loads_what_few_users_need_on_demand(run_python: Run) -> None:
    statement = "import pellucid.translate.translator, pellucid.inside.pair, pellucid.formats"
    loaded = loaded_after(run_python, statement)
    assert "torch" in loaded
    assert not loaded & {"matplotlib", "ctranslate2"}


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("I eat the bread .", ""),
        ("My kitten did not eat the soup.", "words that the model does not know"),
        ("The boys are tired and hungry.", ""),  # Its attention is looked at, without a result.
        ("the \u2603 cat was sleeping. The dog was black. " * 2, "perhaps without some words"),
        ("No No No No No No No.", "the model is not confident"),
    ],
)
def test_translate_leaves_pytorch_unimported(run_python: Run, line: str, note: str) -> None:
    given = f"{line}\n".encode()
    statement = (
        f"sys.stdin = io.TextIOWrapper(io.BytesIO({given!r}))\n"
        "sys.stderr = said = io.StringIO()\n"
        "from pellucid.cli.main import run; assert run(['translate', 'demo']) == 0\n"
        f"assert {note!r} in said.getvalue(), said.getvalue()"
    )
    loaded = loaded_after(run_python, statement)
    assert "numpy" in loaded
    assert "torch" not in loaded


def test_guard_heavy_import_is_seen(run_python: Run) -> None:
    assert "numpy" in loaded_after(run_python, "import pellucid.machine.randomness")


def test_every_command_module_is_in_the_table_and_says_the_same(modules: dict[str, Path]) -> None:
    folder = "pellucid.cli.commands."
    names = {name.removeprefix(folder) for name in modules if name.startswith(folder)}
    assert names == set(COMMANDS)
    for name, line in COMMANDS.items():
        if name not in SUBCOMMANDS:
            summary = (load_command(name).help or "").splitlines()[0]
            assert summary.startswith(line.removesuffix(".")), name
    for group, table in SUBCOMMANDS.items():
        for word in table:
            assert load_command(f"{group} {word}").help
