"""Waiting threads: how long they spin, and how many an update uses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from built_kernels import kernels_of_machine
from small_runs import make_recipe, model_bytes, write_text

from pellucid.machine.hardware import some_threads
from pellucid.machine.waiting import SPINS, bound_spinning
from pellucid.training.loop import train
from pellucid.training.report import report_page
from pellucid.training.update.threads import LONGEST_PAUSE, ThreadTrials


class Machine:
    """A machine with a clock, on which an update takes as long as its number of threads says."""

    def __init__(self, seconds: Callable[[int], float], most: int) -> None:
        self.seconds, self.now, self.used = seconds, 0.0, most
        self.said: list[str] = []
        self.trials = ThreadTrials(most, use=self.use, clock=lambda: self.now)

    def use(self, threads: int) -> None:
        self.used = threads

    def run(self, updates: int) -> float:
        """Make updates of 1,000 tokens; return the seconds that they took."""
        began = self.now
        for _ in range(updates):
            took = self.seconds(self.used)
            self.now += took
            if (said := self.trials.count(1000, took)) is not None:
                self.said.append(said)
        return self.now - began


def test_threads_idle_machine_trials_cost_less_than_a_fiftieth() -> None:
    machine = Machine({1: 0.15, 2: 0.1}.__getitem__, most=2)

    seconds = machine.run(2000)

    assert machine.trials.threads == 2
    assert not machine.said
    assert seconds < 2000 * 0.1 * 1.02


def test_threads_busy_machine_uses_fewer_and_is_near_the_best() -> None:
    machine = Machine({1: 0.1, 2: 0.3}.__getitem__, most=2)

    machine.run(25)

    assert machine.trials.threads == 1
    assert machine.said == [
        "Updates are faster with 1 thread than with 2 threads now, as other programs use the "
        "processor."
    ]
    assert machine.run(2000) < 2000 * 0.1 * 1.1


def test_threads_other_programs_end_all_threads_return() -> None:
    machine = Machine({1: 0.1, 2: 0.3}.__getitem__, most=2)
    machine.run(500)
    machine.seconds = {1: 0.15, 2: 0.1}.__getitem__

    machine.run(5 * LONGEST_PAUSE)

    assert machine.used == machine.trials.threads == 2
    assert machine.said[-1] == "Updates are faster with 2 threads than with 1 thread now."


def test_threads_other_programs_that_mostly_wait_end_no_second_thread() -> None:
    machine = Machine(lambda threads: 0.1, most=2)

    def seconds(threads: int) -> float:
        is_burst = machine.now % 5 < 0.5
        return {1: 0.15, 2: 0.9 if is_burst else 0.08}[threads]

    machine.seconds = seconds
    took = machine.run(3000)

    assert not machine.said
    with_two = Machine(lambda threads: 0.1, most=1)
    with_two.seconds = lambda _: 0.9 if with_two.now % 5 < 0.5 else 0.08
    assert took < 1.05 * with_two.run(3000)


def test_threads_load_that_comes_and_goes_seldom_changes_their_number() -> None:
    changes = 0
    machine = Machine(lambda threads: 0.1, most=2)
    machine.seconds = lambda threads: {1: 0.15, 2: 0.3 if machine.now % 3 < 1 else 0.08}[threads]
    for _ in range(3000):
        before = machine.trials.threads
        machine.run(1)
        changes += machine.trials.threads != before

    assert changes <= 3


def test_threads_trials_met_heavy_load_all_threads_still_return_in_seconds() -> None:
    machine = Machine({1: 0.1, 2: 1.5}.__getitem__, most=2)
    machine.run(2000)
    assert machine.used == 1
    machine.seconds = {1: 0.1, 2: 0.06}.__getitem__
    freed = machine.now

    while machine.trials.threads == 1:
        machine.run(1)

    assert machine.now - freed < 25


def test_threads_heavy_load_trials_end_early_and_cost_little() -> None:
    machine = Machine({1: 0.1, 2: 0.6}.__getitem__, most=2)
    machine.run(100)

    assert machine.run(2000) < 2000 * 0.1 * 1.08


def test_threads_many_cores_finds_the_best_in_between() -> None:
    machine = Machine({1: 0.4, 2: 0.2, 4: 0.1, 8: 0.3, 16: 0.5}.__getitem__, most=16)

    machine.run(500)

    assert machine.trials.threads == 4


def test_threads_are_all_used_again_after_training() -> None:
    machine = Machine({1: 0.1, 2: 0.3}.__getitem__, most=2)
    machine.run(25)
    assert machine.used == 1

    machine.trials.close()

    assert machine.used == 2


def test_threads_of_three_never_exceeds_the_most() -> None:
    used: set[int] = set()
    machine = Machine(lambda threads: used.add(threads) or 0.1, most=3)  # type: ignore[func-returns-value]

    machine.run(700)

    assert used == {1, 3}


def test_threads_one_thread_tries_nothing() -> None:
    machine = Machine({1: 0.1}.__getitem__, most=1)

    assert machine.run(300) == pytest.approx(30)
    assert machine.used == 1


def test_training_on_one_thread_on_two_and_on_both_in_turn_gives_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels_of_machine("float32")
    write_text(tmp_path)
    monkeypatch.setattr(report_page, "write_report", lambda run: None)
    recipe = make_recipe(training={"max_steps": 7, "validate_every": 7, "precision": "float32"})

    def trained(name: str, threads: Sequence[int]) -> bytes:
        """Train with these threads, update after update in turn."""
        made = 0

        def count(_trials: ThreadTrials, _tokens: int, _seconds: float) -> None:
            nonlocal made
            made += 1
            torch.set_num_threads(threads[made % len(threads)])

        monkeypatch.setattr(ThreadTrials, "count", count)
        with some_threads(threads[0]):
            train(recipe, tmp_path / name, recipe_folder=tmp_path, progress=False)
        assert made == 7
        assert "own kernels" in (tmp_path / name / "plan.json").read_text()
        return model_bytes(tmp_path / name / "bundle")

    alone = trained("one", [1])
    assert trained("two", [2]) == alone
    assert trained("turns", [1, 2, 3]) == alone


@pytest.mark.parametrize("chosen", ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY"])
def test_spinning_chosen_by_user_stays(chosen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setenv(chosen, "17")
    monkeypatch.delitem(sys.modules, "torch", raising=False)

    bound_spinning()

    assert os.environ[chosen] == "17"
    assert ("GOMP_SPINCOUNT" in os.environ) is (chosen == "GOMP_SPINCOUNT")


def test_spinning_torch_is_loaded_environment_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.setitem(sys.modules, "torch", sys)

    bound_spinning()

    assert "GOMP_SPINCOUNT" not in os.environ


@pytest.mark.parametrize(
    "code",
    [
        "import pellucid; pellucid.attend",
        "from pellucid.cli.main import run; run(['attend', 'toy-four'])",
    ],
)
def test_spinning_is_bounded_before_the_library_loads(code: str) -> None:
    program = f"""
import builtins, os, sys
real, found = builtins.__import__, []
def watch(name, *arguments, **named):
    if name == "torch" and not found:
        found.append(os.environ.get("GOMP_SPINCOUNT"))
    return real(name, *arguments, **named)
builtins.__import__ = watch
{code}
print(found[0], file=sys.stderr)
"""
    left_out = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}

    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )

    assert done.stderr.splitlines()[-1] == str(SPINS)


@pytest.mark.parametrize(("rows", "threads"), [(1, 1), (7, 1), (8, 2), (100, 2)])
def test_decoding_takes_one_thread_for_small_steps(
    rows: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.shared.small_model import make_model

    from pellucid.decode import on_pytorch
    from pellucid.decode.constraints.request import SpecialIds
    from pellucid.decode.decoder import Decoder

    model = make_model()
    count = sum(parameter.numel() for parameter in model.parameters())
    monkeypatch.setattr(on_pytorch, "WEIGHTS_FOR_THREADS", 8 * count)
    monkeypatch.setattr("torch.get_num_threads", lambda: 2)

    decoder = Decoder([model], SpecialIds(start=2, eos=3))

    assert decoder.on_pytorch._threads_for(rows) == threads


def test_threads_are_the_planned_ones_while_another_thread_imports_torch() -> None:
    code = """
import sys, types
from pellucid.machine.hardware import threads_in_use, use_threads

use_threads(1)
assert threads_in_use() == 1
sys.modules["torch"] = types.ModuleType("torch")  # it has no functions yet
assert threads_in_use() == 1
sys.modules["torch"].get_num_threads = lambda: 7  # it was not told the plan yet
assert threads_in_use() == 1
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_search_step_by_step_uses_the_threads_of_load() -> None:
    code = """
import sys
from pellucid import load

translator = load("demo", threads=1)
assert "torch" not in sys.modules
translator.translate(["The cat was sleeping."], no_repeat_ngram=3)
assert sys.modules["torch"].get_num_threads() == 1
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
