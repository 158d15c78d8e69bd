"""The examples in the help of each command, run as they stand."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from pellucid.cli.app import load_command
from pellucid.cli.overview import NAMES, read_help
from pellucid.corpora import iterate_split

Run = Callable[..., subprocess.CompletedProcess[str]]

LONG = ("demo", "train", "distill", "serve", "claim", "convert", "history")
"""What trains, measures for minutes, serves for ever, or needs a run or a model of others;
``test_examples_parse`` reads these."""

DRAW = ("look", "study", "attend", "inspect")
"""What draws, whose outputs have tests of their own."""

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


OF_FILES = [
    (name, max(one.opts, key=len))
    for name in NAMES
    if name not in (*LONG, *DRAW)
    for one in load_command(name).params
    if one.metavar == "FILE" and one.param_type_name == "option"
]


@pytest.mark.parametrize(("name", "option"), OF_FILES)
@pytest.mark.usefixtures("folder")
def test_dash_is_a_standard_stream_in_every_option_with_a_file(
    run_here: Run, name: str, option: str
) -> None:
    examples = read_help()["examples"]
    for earlier in BEFORE.get(name, ()):
        assert run_example(run_here, examples[earlier][0]).returncode == 0
    words = shlex.split(examples[name][0].partition(" | ")[2] or examples[name][0])[1:]
    if option in words:
        words[words.index(option) + 1] = "-"
    else:
        words += [option, "-"]
    done = run_here(*words, stdin=Path("lines.fr").read_text())
    assert not Path("-").exists()
    for wrong in ("The file - ", "but - does not exist", "but - is", "stdin", "bug in pellucid"):
        assert wrong not in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["train", "-"], "The text must be a file, because it is read more than once"),
        (["check", "-"], "The text must be a file, because it is read more than once"),
        (["recipe", "-"], "The text must be a file, because it is read more than once"),
        (["extract", "-"], "must end in .tsv"),
        (["bulk", "run", "demo", "-", "-o", "job"], "A shard must be a file"),
        (["keys", "add", "-", "x"], "FILE must be a file, which is changed"),
        (["distill", "demo", "tiny-en-fr", "--extra", "-"], "--extra must be a file"),
        (["serve", "demo", "--config", "-"], "'nothing' is unknown (-). Known are: limits, serve."),
        (["serve", "demo", "--key-file", "-"], "a key file must begin with the SHA-256"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_dash_where_a_file_is_read_again_or_changed_is_refused_in_a_sentence(
    run_cli: Run, arguments: list[str], said: str
) -> None:
    done = run_cli(*arguments, stdin="nothing = 1\n")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not Path("-").exists()
