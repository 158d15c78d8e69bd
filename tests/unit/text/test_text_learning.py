"""Learning a vocabulary in its own process, which can be ended at once and may die."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pellucid.config import TokenizerRecipe
from pellucid.errors import DataError, PellucidError
from pellucid.text.tokenizers import sentencepiece_training
from pellucid.text.tokenizers.sentencepiece_training import train_model

RECIPE = TokenizerRecipe(vocabulary_size=300)


def lines() -> Iterator[str]:
    return (f"line {number} of some text" for number in range(997))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Every process that is started."""
    found: list[subprocess.Popen[bytes]] = []
    start = subprocess.Popen

    def keep(*arguments: Any, **named: Any) -> subprocess.Popen[bytes]:
        found.append(start(*arguments, **named))
        return found[-1]

    monkeypatch.setattr(sentencepiece_training.subprocess, "Popen", keep)
    return found


def test_an_interruption_ends_the_learning_at_once(
    monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr(
        sentencepiece_training, "_PROGRAM", "import sys, time\nsys.stdin.read()\ntime.sleep(600)"
    )
    press = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt):
        train_model(RECIPE, lines)
    press.join()
    (process,) = started
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("program", "how"),
    [
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "was ended by signal 9"),
        ("raise SystemExit(7)", "ended with exit code 7"),
    ],
)
def test_a_process_that_dies_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch, program: str, how: str
) -> None:
    monkeypatch.setattr(sentencepiece_training, "_PROGRAM", program)
    ending = rf"vocabulary {how}.*max_training_lines.* 5000000\."
    with pytest.raises(PellucidError, match=ending) as caught:
        train_model(RECIPE, lines)
    assert caught.value.exit_code == 1


def test_what_the_lines_raise_is_raised_and_nothing_stays_behind(
    started: list[subprocess.Popen[bytes]],
) -> None:
    def broken() -> Iterator[str]:
        yield "one line"
        if started:
            raise DataError("Line 2 must be text.")

    with pytest.raises(DataError, match=r"^Line 2 must be text\.$"):
        train_model(RECIPE, broken)
    assert started[0].poll() is not None


def test_a_system_that_starts_no_process_is_told_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(sentencepiece_training.subprocess, "Popen", refuse)
    with pytest.raises(PellucidError, match=r"must be able to start, .* Resource temporarily"):
        train_model(RECIPE, lines)
