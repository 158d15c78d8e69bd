"""The command line as a whole: help, mistyped commands, and the ends of processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pellucid
from pellucid.cli.overview import COMMANDS
from pellucid.native.loading import VARIABLE, instruction_sets

Run = Callable[..., subprocess.CompletedProcess[str]]


def is_one_sentence(stderr: str) -> bool:
    return stderr.startswith("error: ") and stderr.count("\n") == 1 and stderr.endswith("\n")


def test_help_without_arguments_lists_every_command(run_cli: Run) -> None:
    bare, asked = run_cli(), run_cli("--help")
    assert bare.returncode == asked.returncode == 0
    assert bare.stdout == asked.stdout
    assert all(f"  {name} " in asked.stdout for name in COMMANDS)
    assert asked.stderr == ""


def test_version_option_prints_the_version_and_the_engine(run_cli: Run) -> None:
    said = f"pellucid {pellucid.__version__} (engine in C: "
    assert run_cli("--version", env={VARIABLE: "portable"}).stdout == f"{said}portable)\n"
    assert run_cli("--version", env={VARIABLE: ""}).stdout == f"{said}{instruction_sets()[-1]})\n"
    wrong = run_cli("--version", env={VARIABLE: "sse9"})
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert is_one_sentence(wrong.stderr)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_command_starts_with_its_summary(run_here: Run, command: str) -> None:
    done = run_here(command, "-h")
    assert done.returncode == 0
    assert COMMANDS[command].removesuffix(".") in " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["tranlsate", "x"], "Did you mean 'translate'?"),
        (["xyzzy"], "See: pellucid --help"),
        (["translate"], "MODEL is missing"),
        (["translate", "--beem", "5", "x"], "--beem"),
        (["--nothing"], "--nothing"),
        (["score", "model", "--source", "x"], "--target"),
        (["translate", "x", "--threads", "two"], "--threads must be a whole number"),
    ],
)
def test_usage_mistake_gives_one_sentence_and_2(
    run_here: Run, arguments: list[str], expected: str
) -> None:
    done = run_here(*arguments)
    assert done.returncode == 2
    assert is_one_sentence(done.stderr), done.stderr
    assert expected in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (["translate", "m", "-i", "a", "-i", "b"], "-i or --input"),
        (["translate", "m", "--output", "a", "-o", "a"], "-o or --output"),
        (["translate", "m", "--sample", "--no-sample"], "--sample or --no-sample"),
        (["score", "m", "--source", "a", "--target", "b", "--source=c"], "--source"),
        (["train", "r.toml", "-o", "a", "-o", "b"], "-o or --output"),
        (["inspect", "m", "--json", "--json"], "--json"),
        (["look", "m", "text", "--row", "1", "--row", "2"], "--row"),
    ],
)
def test_option_given_twice_is_refused(run_here: Run, arguments: list[str], names: str) -> None:
    done = run_here(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"error: {names} must be given once, but is given 2 times. Leave one out.\n"
    )


def test_help_and_faulty_values_come_before_an_option_given_twice(run_here: Run) -> None:
    twice = ("translate", "m", "--beam", "2", "--beam")
    assert run_here(*twice, "3", "--help").returncode == 0
    assert "--beam must be a whole number" in run_here(*twice, "x").stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["translate", "no-such-model"],
        ["inspect", "no-such-model"],
        ["translate", "no-such-model", "--forbid", "a", "--forbid", "b"],
        ["score", "no-such-model", "--source", __file__, "--target", __file__],
    ],
)
def test_missing_model_gives_one_sentence_and_2(run_here: Run, arguments: list[str]) -> None:
    done = run_here(*arguments)
    assert done.returncode == 2
    assert is_one_sentence(done.stderr), done.stderr
    assert "no-such-model" in done.stderr


def test_unexpected_exception_names_its_type_and_traceback_only_on_request(
    run_python: Run,
) -> None:
    code = (
        "import sys; from pellucid.cli import app, main\n"
        "def dispatch(arguments): raise KeyError('x')\n"
        "app.dispatch = dispatch\n"
        "sys.exit(main.run(['score']))\n"
    )
    plain = run_python("-c", code)
    assert plain.returncode == 1
    assert is_one_sentence(plain.stderr)
    assert "KeyError" in plain.stderr
    assert "report" in plain.stderr
    debug = run_python("-c", code, env={"PELLUCID_DEBUG": "1"})
    assert debug.returncode == 1
    assert "Traceback" in debug.stderr


def test_interrupt_gives_130_and_a_short_line(run_python: Run) -> None:
    code = (
        "import sys, typer; from pellucid.cli import main\n"
        "from pellucid.cli.commands import score\n"
        "def score_(): raise KeyboardInterrupt\n"
        "score.score = score_\n"
        "sys.exit(main.run(['score']))\n"
    )
    done = run_python("-c", code)
    assert done.returncode == 130
    assert done.stderr == "error: Stopped by Ctrl-C.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_sigterm_while_reading_gives_143_and_leaves_no_file(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    # A named pipe without a writer keeps the command waiting, without any model.
    pipe, output = tmp_path / "pipe", tmp_path / "out.txt"
    os.mkfifo(pipe)
    code = (
        "import sys; from pellucid.cli import main; from pellucid.cli.lines import streams\n"
        "from pellucid.cli.commands import score\n"
        "def score_():\n"
        f"    with streams.open_output({str(output)!r}, may_overwrite=False) as stream:\n"
        "        stream.write('half'); stream.flush()\n"
        f"        open({str(pipe)!r}).read()\n"
        "score.score = score_\n"
        "sys.exit(main.run(['score']))\n"
    )
    process = start([sys.executable, "-c", code])
    part = tmp_path / f"out.txt.{process.pid}.part"
    while not part.exists() or part.stat().st_size == 0:
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=30) == 143
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe"]


@pytest.fixture
def closed_pipe() -> Iterator[int]:
    """A pipe to write to, whose reader has gone away."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def test_closed_pipe_ends_quietly_with_0(run_cli: Run, closed_pipe: int) -> None:
    done = run_cli("--help", stdout=closed_pipe)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_gives_one_sentence_and_1(run_cli: Run) -> None:
    with Path("/dev/full").open("wb") as full:
        done = run_cli("--help", stdout=full)
    assert done.returncode == 1
    assert is_one_sentence(done.stderr), done.stderr
    assert "No space left" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "demo"),
        ("look", "demo", "The donkey has not seen the accordion."),
        ("score", "demo", "--source", "lines", "--target", "lines"),
        ("translate", "demo", "-i", "lines"),
        ("attend", "pizza"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_closed_standard_output_gives_one_sentence_and_1(
    run_forked: Run, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "lines").write_text("A cat.\n")
    done = run_forked(*arguments, closed=[1], cwd=tmp_path)
    assert done.returncode == 1
    assert is_one_sentence(done.stderr), done.stderr
    assert "Standard output must be open" in done.stderr


WITHOUT_STREAMS = """
import os, sys
for number in range(3):
    os.close(number)
os.execv(sys.executable, [sys.executable, "-m", "pellucid", *sys.argv[1:]])
"""


def test_what_is_made_is_made_where_all_streams_are_closed(run_python: Run, tmp_path: Path) -> None:
    done = run_python(
        *("-c", WITHOUT_STREAMS, "corpus", "-o", str(tmp_path)),
        *("--part", "test", "--part", "pronoun", "--count", "7"),
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert len(list(tmp_path.iterdir())) == 8


SIGNAL_AT_AN_IMPORT = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["AT"]:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), int(os.environ["NUMBER"]))

sys.meta_path.insert(0, Finder())
"""


@pytest.mark.sample(2)
@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
@pytest.mark.parametrize(
    ("at", "number"),
    [
        ("numpy", signal.SIGINT),
        ("numpy.linalg", signal.SIGTERM),
        ("torch.nn", signal.SIGINT),
        ("torch.nn", signal.SIGTERM),
    ],
)
def test_a_signal_while_libraries_are_read_is_not_lost(
    run_python: Run, tmp_path: Path, root: Path, at: str, number: int
) -> None:
    # PyTorch's C code, which imports NumPy, drops what is raised there. A translation is made
    # without PyTorch.
    command = ("look", "demo", "A cat.") if at.startswith("torch") else ("translate", "demo")
    (tmp_path / "sitecustomize.py").write_text(SIGNAL_AT_AN_IMPORT)
    path = os.pathsep.join([str(tmp_path), str(root / "src")])
    done = run_python(
        *("-m", "pellucid", *command),
        stdin="A cat.\n",
        env={"PYTHONPATH": path, "AT": at, "NUMBER": str(int(number))},
    )
    assert (done.returncode, done.stdout) == (128 + number, "")
    assert done.stderr == ("error: Stopped by Ctrl-C.\n" if number == signal.SIGINT else "")


@pytest.mark.parametrize("form", [(), ("--json",), ("--show", "heads")])
def test_a_reader_that_goes_away_ends_a_look_quietly(
    run_forked: Run, closed_pipe: int, form: tuple[str, ...]
) -> None:
    line = "The donkey has not seen the accordion."
    done = run_forked("look", "demo", line, *form, stdout=closed_pipe)
    assert (done.returncode, done.stderr) == (0, "")


def test_package_without_the_engine_says_so_when_it_translates(
    run_here: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("The dog\n")
    monkeypatch.setattr("pellucid.native.loading._load", lambda name: "the engine was not built")
    done = run_here("translate", "demo", "-i", str(tmp_path / "a.txt"))
    assert (done.returncode, done.stdout) == (0, "Le chien\n")
    assert "The engine in C is missing, since the engine was not built, so" in done.stderr


def test_an_engine_that_cannot_be_loaded_is_named_by_the_version(
    run_here: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "portable.so").write_bytes(b"of another processor")
    monkeypatch.setattr("pellucid.native.loading.BUILT", tmp_path)
    done = run_here("--version")
    assert done.returncode == 0
    assert "(engine in C: missing, since portable.so cannot be read: " in done.stdout
    assert done.stdout.endswith(" (install the package again))\n")


@pytest.mark.parametrize(
    ("command", "option", "instead"),
    [
        ("align", "--history", "pellucid history RUN"),
        ("look", "--why", "pellucid why MODEL TEXT WORD"),
        ("look", "--html", "-o FILE.html"),
        ("look", "--temperature", "--set decoding.temperature=VALUE"),
        ("study", "--patch", "pellucid patch MODEL --source FILE"),
        ("translate", "--min-length", "--set decoding.min_length=VALUE"),
        ("evaluate", "--tokenized", "--tokenize none"),
        ("translate", "--workers", "--threads"),
    ],
)
def test_option_that_went_is_refused_with_what_to_give_instead(
    run_here: Run, command: str, option: str, instead: str
) -> None:
    done = run_here(command, "demo", option, "2")
    assert done.returncode == 2
    assert f"{option} does not exist. Give {instead}" in done.stderr
