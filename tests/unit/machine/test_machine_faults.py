"""Faults of the machine, told apart from those of the input."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest
import torch

from pellucid.cli.ending import report
from pellucid.config.training_recipe import load_recipe
from pellucid.errors import (
    DataError,
    InputError,
    InputFileNotFoundError,
    OutputError,
    OutputPlaceError,
    PellucidError,
    fault_of_machine,
    not_readable,
    not_writable,
)
from pellucid.files import write_bytes
from pellucid.inside import load_trace
from pellucid.machine import processes
from pellucid.text.reading.lines import read_lines

Run = Callable[..., subprocess.CompletedProcess[str]]


def system(number: int, name: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), name)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), "Out of memory"),
        (system(errno.ENOMEM), "Out of memory"),
        (
            RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
            "Out of memory",
        ),
        (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), "Out of memory"),
        (ImportError("libtorch_cpu.so: failed to map segment from shared object"), "Out of memory"),
        (
            ImportError("x.so: cannot open shared object file: Too many open files"),
            "Too many files",
        ),
        (RuntimeError("can't start new thread"), "No more threads"),
        (system(errno.EMFILE, "a"), "Too many files are open"),
        (system(errno.ENFILE), "Too many files are open"),
        (system(errno.ENOSPC), "No space left on the disk"),
        (system(errno.EDQUOT), "No space left on the disk"),
        (system(errno.EIO, "a"), "The disk or the network"),
    ],
)
def test_fault_of_the_machine_gives_1_and_what_to_do(
    error: Exception, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(error) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {expected}")
    assert said.count("\n") == 1
    assert "bug" not in said


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
        ImportError("No module named 'x'"),
        ValueError("out of memory"),
        system(errno.EACCES, "a"),
        system(errno.ENOENT, "a"),
    ],
)
def test_other_errors_are_no_fault_of_the_machine(error: Exception) -> None:
    assert fault_of_machine(error) is None


def test_pytorch_s_own_refusal_of_memory_is_known() -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60, dtype=torch.uint8)
    assert str(fault_of_machine(caught.value)).startswith("Out of memory")


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (errno.EMFILE, PellucidError, 1),
        (errno.ENOMEM, PellucidError, 1),
        (errno.EACCES, DataError, 2),
        (errno.EISDIR, DataError, 2),
        (errno.ENAMETOOLONG, DataError, 2),
        (errno.ENOENT, InputFileNotFoundError, 2),
    ],
)
def test_file_that_cannot_be_read_is_the_input_s_fault_unless_the_machine_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type, code: int
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise system(number, "a")

    refusal = not_readable(system(number), "a")
    assert type(refusal) is kind
    # What is wrong, and what to do about it.
    assert str(refusal).count(". ") >= 1
    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(kind, match="a") as caught:
        list(read_lines(tmp_path / "a"))
    assert caught.value.exit_code == code


@pytest.mark.parametrize(
    ("number", "kind", "code"),
    [
        (errno.ENOSPC, OutputError, 1),
        (errno.EROFS, OutputError, 1),
        (errno.EMFILE, OutputError, 1),
        (errno.ENOENT, OutputPlaceError, 2),
        (errno.ENOTDIR, OutputPlaceError, 2),
        (errno.ENAMETOOLONG, OutputPlaceError, 2),
    ],
)
def test_output_that_cannot_be_written_tells_the_place_from_the_disk(
    number: int, kind: type, code: int
) -> None:
    error = not_writable(system(number), "a")
    assert type(error) is kind
    assert error.exit_code == code
    assert ("Free some space" in str(error)) == (number == errno.ENOSPC)
    assert ("Make it writable" in str(error)) == (number == errno.EROFS)


def test_output_place_error_is_an_input_error_and_an_output_error(tmp_path: Path) -> None:
    for place in (tmp_path / "no" / "folder", tmp_path / ("n" * 300)):
        with pytest.raises(OutputPlaceError) as caught:
            write_bytes(place, b"x")
        assert isinstance(caught.value, InputError)
        assert isinstance(caught.value, OutputError)


def test_trace_is_not_called_damaged_when_handles_run_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise system(errno.EMFILE, "a")

    monkeypatch.setattr("numpy.load", fail)
    path = tmp_path / "t.npz"
    path.touch()
    with pytest.raises(OSError, match="Too many open files"):
        load_trace(path)


@pytest.mark.parametrize("kind", ["html", "npz", "json", "svg", "png", "pdf"])
def test_look_refuses_a_missing_folder_before_the_model_is_loaded(
    run_here: Run, tmp_path: Path, kind: str
) -> None:
    path = str(tmp_path / "no" / f"x.{kind}")
    done = run_here("look", "no-such-model", "A cat.", "-o", path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "The output's folder must exist" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "no-such-model", "--draw", "whole", "-o"),
        ("translate", "no-such-model", "-o"),
        ("look", "no-such-model", "x", "-o"),
    ],
)
@pytest.mark.parametrize("name", ["no/x.svg", "x" * 5000])
def test_impossible_output_is_refused_before_the_model_is_loaded(
    run_here: Run, tmp_path: Path, arguments: tuple[str, ...], name: str
) -> None:
    done = run_here(*arguments, str(tmp_path / name))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "no-such-model" not in done.stderr
    assert len(done.stderr) < 500


def test_name_at_home_is_expanded_in_options_and_recipes(
    run_here: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "lines").write_text("The dog\n")
    recipe = (
        'train = "~/t.tsv"\nvalidation = [["~/v.en", "~/v.fr"], ["v.en", "v.fr"]]\n'
        'folder = "~/text"\n'
    )
    (tmp_path / "r.toml").write_text(f"[data]\n{recipe}")
    data = load_recipe(tmp_path / "r.toml").data
    assert data.train == (f"{tmp_path}/t.tsv",)
    assert data.validation == ((f"{tmp_path}/v.en", f"{tmp_path}/v.fr"), ("v.en", "v.fr"))
    assert data.folder == f"{tmp_path}/text"
    done = run_here("translate", "demo", "-i", "~/lines", "--output=~/out")
    assert (done.returncode, (tmp_path / "out").read_text()) == (0, "Le chien\n")
    assert f"{tmp_path}/nothing.toml" in run_here("train", "~/nothing.toml").stderr
    assert f"{tmp_path}/model" in run_here("inspect", "~/model").stderr
    done = run_here("convert", "~/model", "-o", "~/lines")
    assert f"{tmp_path}/lines exists" in done.stderr


NO_HOME = """
import os, sys
real = os.access
os.access = lambda path, mode, **how: str(path) != "/" and real(path, mode, **how)
from pellucid.cli.main import run
code = run(["inspect", "demo", "--draw", "positions", "-o", sys.argv[1]])
print(code, "MPLCONFIGDIR" in os.environ, os.listdir(os.environ["TMPDIR"]))
"""


def test_pictures_without_a_home_say_nothing_and_leave_nothing(
    run_python: Run, tmp_path: Path
) -> None:
    env = {"HOME": "/nowhere", "TMPDIR": str(tmp_path), "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": ""}
    done = run_python("-c", NO_HOME, str(tmp_path / "p.png"), env=env)
    assert (done.stdout, done.stderr) == ("0 False ['p.png']\n", "")


def test_a_child_whose_connection_breaks_is_ended_not_waited_for(
    start: Callable[..., subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_SECONDS_TO_END", 0.1)
    child = processes.Child.__new__(processes.Child)
    child._advice = "Use fewer."
    child.process = start([sys.executable, "-c", "import time; time.sleep(1000)"])
    child.connection, theirs = Pipe()
    theirs.close()
    with pytest.raises(PellucidError, match=r"was ended by signal 9, .* Use fewer"):
        child.send(b"work")
    assert child.process.poll() == -signal.SIGKILL
