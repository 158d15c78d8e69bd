"""Ctrl-C, SIGTERM and SIGHUP in every phase of training: what is left, and how it resumes."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forked import Forked
from killed_runs import fingerprints
from small_runs import make_recipe, write_text

from pellucid.config import to_toml
from pellucid.training.loop import train
from pellucid.training.run import checkpoint, saving, validator
from pellucid.training.run.checkpoint import load_newest_checkpoint
from pellucid.training.start import kept_pairs
from pellucid.training.update.step import Updater

RECIPE = make_recipe(training={"log_every": 1, "averaging": "running"})
PHASES = {
    "data preparation": (kept_pairs, "learn_tokenizer", 1),
    "training": (Updater, "update", 14),
    "validation": (validator, "validate_model", 2),
    "keeping the best": (saving, "save_bundle", 2),
    "saving": (checkpoint, "write_bundle", 2),
    "reading again": (checkpoint, "verify_files", 3),
}
"""A function that runs in each phase, and the number of its call at which the signal comes."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The fingerprints of a run that no signal interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    write_text(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pellucid.training.report.report_page.write_report", lambda run: None)
        train(RECIPE, folder / "run", recipe_folder=folder, progress=False)
    return fingerprints(folder / "run")


def interrupt(
    patch: pytest.MonkeyPatch, phase: str, numbers: list[signal.Signals]
) -> list[Callable[[], None]]:
    """Send signals in a phase; hands back the list of those that were sent."""
    holder, name, at_call = PHASES[phase]
    plain, calls, sent = getattr(holder, name), [0], []

    def call(*arguments: Any, **settings: Any) -> Any:
        calls[0] += 1
        if calls[0] == at_call:
            for number in numbers:
                sent.append(number)
                os.kill(os.getpid(), number)
        return plain(*arguments, **settings)

    patch.setattr(holder, name, call)
    return sent


def run_interrupted(
    folder: Path, patch: pytest.MonkeyPatch, phase: str, numbers: list[signal.Signals]
) -> int:
    """Train until the signals come, and hand back the command's exit code."""
    with patch.context() as inner:
        sent = interrupt(inner, phase, numbers)
        with pytest.raises((KeyboardInterrupt, SystemExit)) as caught:
            train(RECIPE, folder / "run", recipe_folder=folder, progress=False)
    assert sent == numbers
    if isinstance(caught.value, KeyboardInterrupt):
        return 130
    assert isinstance(caught.value.code, int)
    return caught.value.code


ENDS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("phase", "number", "code"),
    [
        # Signals take turns: all phases deal with both alike.
        *((phase, *ENDS[place % 2]) for place, phase in enumerate(PHASES)),
        ("training", *ENDS[0]),
    ],
)
def test_signal_in_a_phase_ends_with_its_code_and_loses_nothing(
    phase: str,
    number: signal.Signals,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    whole: dict[str, str],
) -> None:
    write_text(tmp_path)
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    assert run_interrupted(tmp_path, monkeypatch, phase, [number]) == code
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    newest, skipped = load_newest_checkpoint(tmp_path / "run" / "checkpoints")
    assert not skipped
    if phase == "data preparation":
        assert newest is None
        assert not (tmp_path / "run").exists()
    else:
        expected = {"training": 14, "keeping the best": 10}.get(phase, 20)
        assert newest is not None
        assert newest.state.step == expected
    train(RECIPE, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert fingerprints(tmp_path / "run") == whole


@pytest.mark.parametrize("phase", ["training", "saving", "reading again"])
def test_second_signal_leaves_at_once_with_the_last_checkpoint(
    phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: dict[str, str]
) -> None:
    write_text(tmp_path)
    numbers = [signal.SIGTERM, signal.SIGINT]
    assert run_interrupted(tmp_path, monkeypatch, phase, numbers) == 130
    newest, skipped = load_newest_checkpoint(tmp_path / "run" / "checkpoints")
    assert not skipped
    assert newest is not None
    assert newest.state.step == 10
    train(RECIPE, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    assert fingerprints(tmp_path / "run") == whole


def test_a_terminal_that_is_closed_ends_the_run_with_all_saved(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]]
) -> None:
    """The terminal accepts neither the bar nor the last message."""
    write_text(tmp_path)
    endless = {"max_steps": 10**6, "validate_every": 10**6, "log_every": 1, "max_minutes": 3.0}
    (tmp_path / "recipe.toml").write_text(
        to_toml(make_recipe(training=endless)).replace("[training]", "[training]\nlog_every = 1", 1)
    )
    command = [sys.executable, "-m", "pellucid", "train", str(tmp_path / "recipe.toml")]
    terminal, theirs = pty.openpty()
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), theirs)
    command += ["-o", str(tmp_path / "run")]
    process = start(command, kind=Forked, start_new_session=True, **streams)
    os.close(theirs)
    said = b""
    while b"step     15" not in said:
        said += os.read(terminal, 1 << 16)
    os.close(terminal)
    assert process.wait() == 129
    newest, _ = load_newest_checkpoint(tmp_path / "run" / "checkpoints")
    assert newest is not None
    assert newest.state.step >= 15
    assert f"Stopped after step {newest.state.step}" in (tmp_path / "run" / "log.txt").read_text()
