"""Trainings that are killed again and again, and must end as if nothing had happened.

A kill is a SIGKILL of the process that runs ``pellucid train``, after which the same command is
given again. It is aimed at a phase, which is seen from outside: in ``metrics.jsonl``, and in the
folders that a save makes and takes away. What was really hit is found from what the kill left.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import pkgutil
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from small_runs import make_recipe, write_text

AIMS = ("training", "validation", "saving")
MAX_STEPS = 54
VALIDATE_EVERY = 6
SECONDS_BETWEEN = 0.001
PATIENCE_SECONDS = 120.0

PRELOADED = ["pellucid.train", "pellucid.cli.commands.train", "torch._dynamo", "matplotlib.figure"]
"""What takes long to load and is always needed."""

SETTINGS: dict[str, Any] = {
    "max_steps": MAX_STEPS,
    "validate_every": VALIDATE_EVERY,
    "log_every": 1,
    "learning_rate": 0.01,
    "device": "cpu",
    "dropout": 0.1,
    "feed_forward_dropout": 0.1,
    "token_dropout": 0.1,
    "dropout_warmup_steps": 17,
    "subword_samples": 5,
    "r_drop": 2.0,
    "both_directions_steps": 31,
    "accumulate": 2,
    "optimizer": "muon",
    "max_gradient_norm": 1.0,
    "averaging": "running",
}
"""What a resumed run could get wrong, as much of it as goes together: with dropout of attention's
weights, which another test has, attention would not be in blocks."""


class Running(Protocol):
    """A command that was started."""

    def poll(self) -> int | None:
        """Its exit code, or None while it runs."""

    def kill(self) -> None:
        """Send SIGKILL."""

    def wait(self) -> int:
        """Wait for its end, and hand back its exit code."""


Start = Callable[[Sequence[str], Path], Running]
"""Takes what follows the word ``pellucid``, and the file for what the command says."""


def start_command(words: Sequence[str], said: Path) -> Running:
    """Start ``pellucid WORDS`` as anybody would."""
    with said.open("wb") as stream:
        return subprocess.Popen(
            [sys.executable, "-m", "pellucid", *words], stdout=stream, stderr=stream
        )


class Forked:
    """The same command in a process that is forked from one that has PyTorch loaded already.

    Args:
        words: what follows the word ``pellucid``.
        said: the file for what the command says.
        die_at: a holder, the name of a function there, and the number, from 1, of the call that
            begins with a SIGKILL.
    """

    def __init__(
        self, words: Sequence[str], said: Path, die_at: tuple[str, str, int] | None = None
    ) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(PRELOADED)
        self._process = context.Process(target=_run, args=(list(words), said, die_at))
        self._process.start()

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> int:
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode


def _run(words: list[str], said: Path, die_at: tuple[str, str, int] | None) -> None:
    """Run one command as a process of its own would."""
    from pellucid.cli import main

    if die_at is not None:
        _arm(*die_at)
    with said.open("wb") as stream:
        os.dup2(stream.fileno(), 1)
        os.dup2(stream.fileno(), 2)
    sys.exit(main.run(words))


def _arm(holder_name: str, name: str, at_call: int) -> None:
    holder = pkgutil.resolve_name(holder_name)
    plain, num_calls = getattr(holder, name), 0

    def call(*arguments: Any, **settings: Any) -> Any:
        nonlocal num_calls
        num_calls += 1
        if num_calls == at_call:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*arguments, **settings)

    setattr(holder, name, call)


@dataclass
class Found:
    """What the kills did.

    Attributes:
        hits: kills, by the phase that they hit.
        aims: kills, by the phase that they were aimed at.
        finished: runs that were killed and came to their end.
        differing: for each of them, which of its files differ from the uninterrupted run.
        seconds: how long each phase takes in the uninterrupted run, on average.
    """

    hits: Counter[str] = field(default_factory=Counter)
    aims: Counter[str] = field(default_factory=Counter)
    finished: int = 0
    differing: list[str] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def num_kills(self) -> int:
        return sum(self.hits.values())


def kill_and_compare(folder: Path, start: Start, *, kills: int, seed: int) -> Found:
    """Kill runs at random moments of every phase, and compare each with one that was left alone.

    Args:
        folder: an empty one.
        start: how a command is started.
        kills: how many.
        seed: for the moments.
    """
    recipe = write_recipe(folder, SETTINGS)
    found = Found()
    whole = Watched(folder / "whole", recipe, start)
    found.seconds = whole.time_phases()
    expected = fingerprints(whole.run)
    rng = random.Random(seed)
    while found.num_kills < kills:
        run = folder / f"run-{found.finished}"
        is_first = True
        while True:
            watched = Watched(run, recipe, start)
            if found.num_kills < kills:
                aim = "starting" if is_first else AIMS[found.num_kills % len(AIMS)]
                is_first = False
                is_killed = watched.wait_for(aim, rng.randrange(2)) and watched.is_alive_after(
                    rng.random() * found.seconds[aim]
                )
                if is_killed and watched.kill():
                    found.aims[aim] += 1
                    found.hits[watched.phase()] += 1
                    continue
            watched.end_well()
            break
        found.finished += 1
        ended = fingerprints(run)
        found.differing += [
            f"{run.name}/{name}"
            for name in sorted(expected.keys() | ended.keys())
            if ended.get(name) != expected.get(name)
        ]
    return found


def write_recipe(folder: Path, settings: Mapping[str, Any]) -> Path:
    """Write a small text and its recipe; hands back the recipe's file."""
    from pellucid.config import to_toml

    write_text(folder)
    # Other kinds have no subwords to sample.
    tokenizer = {"model_type": "unigram", "vocabulary_size": 300}
    path = folder / "recipe.toml"
    path.write_text(to_toml(make_recipe(training=dict(settings), tokenizer=tokenizer)))
    return path


class Watched:
    """One start of the command, seen from outside through its run folder."""

    def __init__(self, run: Path, recipe: Path, start: Start) -> None:
        self.run = run
        self._checkpoints = run / "checkpoints"
        self._metrics = run / "metrics.jsonl"
        steps = [int(path.name[5:]) for path in self._checkpoints.glob("step-*")]
        self._resumed_at = max(steps, default=0)
        self._metrics_before = self._metrics_stamp()
        self._said = run.with_suffix(".said")
        self._began = time.monotonic()
        self._running = start(["train", str(recipe), "--out", str(run)], self._said)

    def phase(self) -> str:
        """What it is doing, or was doing when it was killed."""
        last = self._last_record()
        if last is None:
            return "starting"
        if any(self._checkpoints.glob(".step-*")) or any(self.run.glob(".bundle.*")):
            return "saving"
        if last["kind"] == "train":
            return "training" if last["step"] % VALIDATE_EVERY else "validation"
        return "ending" if last["step"] == MAX_STEPS else "training"

    def phases(self) -> Iterator[tuple[str, float]]:
        """Each phase that begins while it runs, with the time."""
        known = ""
        while self._running.poll() is None:
            if (phase := self.phase()) != known:
                known = phase
                yield phase, time.monotonic() - self._began
            if time.monotonic() - self._began > PATIENCE_SECONDS:
                self._running.kill()
                raise TimeoutError(f"the command still runs after {PATIENCE_SECONDS} seconds")
            time.sleep(SECONDS_BETWEEN)

    def wait_for(self, aim: str, times: int) -> bool:
        """Wait until a phase has begun so many times more than once; False where it ends before."""
        times *= aim != "starting"
        return any(phase == aim and (times := times - 1) < 0 for phase, _ in self.phases())

    def is_alive_after(self, seconds: float) -> bool:
        """Let it go on for so long."""
        time.sleep(seconds)
        return self._running.poll() is None

    def kill(self) -> bool:
        """Kill it; False where it has come to its end before."""
        self._running.kill()
        return self._running.wait() == -signal.SIGKILL

    def end_well(self) -> None:
        """Wait for its end.

        Raises:
            ChildProcessError: it has failed.
        """
        if (code := self._running.wait()) != 0:
            said = self._said.read_text()[-2000:]
            raise ChildProcessError(f"pellucid train ended with {code}:\n{said}")

    def time_phases(self) -> dict[str, float]:
        """Let it run to its end, and measure how long its phases take, on average."""
        begun = list(self.phases())
        self.end_well()
        begun.append(("", time.monotonic() - self._began))
        lengths: dict[str, list[float]] = {"starting": [], **{aim: [] for aim in AIMS}}
        for (phase, begin), (_, end) in pairwise(begun):
            lengths.setdefault(phase, []).append(end - begin)
        return {phase: sum(found) / max(1, len(found)) for phase, found in lengths.items()}

    def _last_record(self) -> dict[str, Any] | None:
        """The last line of the metrics, if this process wrote it."""
        if self._metrics_stamp() == self._metrics_before:
            return None
        try:
            lines = self._metrics.read_bytes().split(b"\n")
            last: dict[str, Any] = json.loads(lines[-2])
        except (OSError, IndexError, ValueError):
            return None
        return last if last["step"] > self._resumed_at else None

    def _metrics_stamp(self) -> tuple[int, int] | None:
        try:
            status = self._metrics.stat()
        except FileNotFoundError:
            return None
        return status.st_ino, status.st_size


def fingerprints(run: Path) -> dict[str, str]:
    """What must be the same however often a run was interrupted, as hashes."""
    last = max((run / "checkpoints").glob("step-*"))
    names = ("model.safetensors", "optimizer.safetensors", "averaging.safetensors")
    contents = {f"{last.name}/{name}": (last / name).read_bytes() for name in names}
    contents["bundle/model.safetensors"] = (run / "bundle" / "model.safetensors").read_bytes()
    contents["samples.jsonl"] = (run / "samples.jsonl").read_bytes()
    metrics = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    untimed = [{k: v for k, v in record.items() if k != "seconds"} for record in metrics]
    contents["metrics.jsonl without seconds"] = json.dumps(untimed).encode()
    contents["leftovers"] = " ".join(sorted(path.name for path in run.rglob(".*"))).encode()
    return {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
