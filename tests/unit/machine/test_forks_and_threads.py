"""Processes that are forked after a model was loaded, and numbers of threads."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from pellucid.errors import ConfigurationError, PellucidError
from pellucid.machine import hardware

Run = Callable[..., subprocess.CompletedProcess[str]]

FORKING = """
import os, sys, torch
from pellucid.machine import hardware
hardware.num_processors = lambda: 2
import pellucid
from pellucid.errors import ConfigurationError
translator = pellucid.load(sys.argv[1], threads=2)
lines = ["The pizza came out of the oven .", "The oven"]
numbers = torch.ones(300, 300)
(numbers @ numbers).sum()  # starts the threads
expected = [one.text for one in translator.translate(lines)]
if os.fork() == 0:
    print([one.text for one in translator.translate(lines)] == expected)
    print(len(translator.score(lines, lines)), torch.get_num_threads())
    print(translator.look(lines[1]).source_tokens[0])
    print(*(len(pellucid.load(sys.argv[1], threads=n).translate(lines)) for n in (None, 1)))
    try:
        pellucid.load(sys.argv[1], threads=2)
    except ConfigurationError as error:
        print(error)
    sys.stdout.flush()
    os._exit(0)
os.wait()
print("parent", torch.get_num_threads())
"""


def test_model_loaded_with_threads_translates_in_a_forked_child(
    run_python: Run, bundle_folder: Path
) -> None:
    done = run_python("-c", FORKING, str(bundle_folder), env={"OMP_NUM_THREADS": "2"})
    assert done.returncode == 0, done.stderr
    same, counts, token, loaded, sentence, parent = done.stdout.splitlines()
    assert (same, counts, loaded, parent) == ("True", "2 1", "2 2", "parent 2")
    assert token
    assert "must use one thread, but is to use 2" in sentence
    assert "spawn" in sentence


def test_threads_are_at_most_the_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    monkeypatch.setattr(hardware, "num_processors", lambda: 3)
    try:
        assert hardware.set_threads(1000) == 3
        assert hardware.set_threads(2) == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [0, -1, 1001])
def test_threads_that_cannot_be_meant_are_refused(threads: int) -> None:
    with pytest.raises(ConfigurationError, match="between 1 and 1000"):
        hardware.set_threads(threads)


def test_threads_that_the_system_does_not_start_are_its_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    with pytest.raises(PellucidError, match="No more threads can be started") as caught:
        hardware.set_threads(None)
    assert caught.value.exit_code == 1


def test_threads_option_says_that_it_was_lowered(run_here: Run, bundle_folder: Path) -> None:
    before, processors = torch.get_num_threads(), os.cpu_count()
    try:
        done = run_here("translate", str(bundle_folder), "--threads", "1000", stdin="The oven\n")
    finally:
        torch.set_num_threads(before)
    assert done.returncode == 0
    assert f"more threads than processors, so {processors} are used." in done.stderr
    assert done.stdout.count("\n") == 1


def test_threads_of_a_command_follow_the_variable_of_openmp(run_cli: Run) -> None:
    for variable in ("1", "1,7"):
        done = run_cli("info", env={"OMP_NUM_THREADS": variable})
        assert "used 1," in done.stdout


PLANNED = """
import sys
from pellucid.machine import hardware
hardware.num_processors = lambda: 7
hardware.find_quota = lambda root: 3
hardware.limit_threads()
print(hardware.threads_in_use())
import torch
print(hardware.set_threads(None), hardware.set_threads(5), hardware.set_threads(None))
"""


def test_threads_of_a_quota_reach_pytorch_and_one_that_was_asked_for_stays(run_python: Run) -> None:
    done = run_python("-c", PLANNED, env={"OMP_NUM_THREADS": ""})
    assert done.stdout.split() == ["3", "3", "5", "5"], done.stderr


LOADED = """
import torch
from pellucid.machine import hardware
hardware.num_processors = lambda: 7
hardware.find_quota = lambda root: 3
for threads in (2, 6):
    torch.set_num_threads(threads)
    hardware._process_with_threads.cache_clear()
    print(hardware.set_threads(None))
"""


def test_threads_of_a_program_with_pytorch_stay_if_they_are_fewer(run_python: Run) -> None:
    assert run_python("-c", LOADED, env={"OMP_NUM_THREADS": ""}).stdout.split() == ["2", "3"]


@pytest.mark.parametrize("command", ["train", "distill", "evaluate", "demo", "translate", "score",
                                     "look", "align", "serve", "claim"])  # fmt: skip
def test_command_that_computes_takes_a_number_of_threads(run_here: Run, command: str) -> None:
    assert "--threads" in run_here(command, "--help").stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "nothing.toml"),
        ("distill", "demo", "nothing.toml"),
        ("demo", "-o", "s"),
        ("evaluate", "nothing", "--source", "s", "--reference", "s"),
    ],
)
def test_command_hands_its_number_of_threads_on(
    run_here: Run, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[int | None] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hardware, "use_threads", asked.append)
    (tmp_path / "s").write_text("a line\n")
    assert run_here(*arguments, "--threads", "1").returncode == 2
    assert asked == [1]
