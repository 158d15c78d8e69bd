"""The examples in the help of each command, run as they stand."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from pellucid.cli.overview import read_help
from pellucid.corpora import iterate_split

Run = Callable[..., subprocess.CompletedProcess[str]]

LONG = ("demo", "train", "distill", "serve", "claim", "convert", "history")
"""What trains, measures for minutes, serves for ever, or needs a run or a model of others;
``test_examples_parse`` reads these."""

BEFORE = {
    "bulk join": ["bulk run"],
    "bulk status": ["bulk run"],
    "bulk collect": ["bulk run"],
    "keys list": ["keys add"],
    "keys remove": ["keys add"],
}
"""Commands whose examples come first."""

RECIPE = """\
[data]
source_language = "en"
target_language = "fr"
train = ["lines.en", "lines.fr"]
validation = ["lines.en", "lines.fr"]
"""
PO = 'msgid ""\nmsgstr ""\n"Language: fr\\n"\n\nmsgid "The dog"\nmsgstr "Le chien"\n'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pairs = list(islice(iterate_split("train"), 20))
    Path("lines.en").write_text("".join(f"{one.source}\n" for one in pairs))
    Path("lines.fr").write_text("".join(f"{one.target}\n" for one in pairs))
    Path("pairs.tsv").write_text("".join(f"{one.source}\t{one.target}\n" for one in pairs))
    Path("recipe.toml").write_text(RECIPE)
    Path("messages.po").write_text(PO)
    return tmp_path


def run_example(run_here: Run, example: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a shell would, which may read from ``echo`` and write to a file."""
    command, _, output = example.partition(" > ")
    echo, has_input, piped = command.partition(" | ")
    stdin = shlex.split(echo)[1] + "\n" if has_input else ""
    done = run_here(*shlex.split(piped or command)[1:], stdin=stdin)
    if output:
        Path(output).write_text(done.stdout)
    return done


@pytest.mark.parametrize("name", [one for one in read_help()["examples"] if one not in LONG])
@pytest.mark.usefixtures("folder")
def test_examples_run(run_here: Run, name: str) -> None:
    examples = read_help()["examples"]
    for earlier in BEFORE.get(name, ()):
        for example in examples[earlier]:
            assert run_example(run_here, example).returncode == 0
    for example in examples[name]:
        done = run_example(run_here, example)
        # A check of so little text finds something.
        assert done.returncode in ((0, 1) if name == "check" else (0,)), (example, done.stderr)
