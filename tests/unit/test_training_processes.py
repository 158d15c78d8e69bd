"""Processes that share batches give the gradients of one process, and end with their run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from forked import Forked
from killed_runs import SETTINGS, write_recipe
from small_model import make_batch, make_model
from small_runs import make_recipe, write_text
from torch import Tensor

from pellucid.config import TrainingConfig, validate
from pellucid.data import Batch
from pellucid.errors import ConfigurationError, PellucidError, TrainingError
from pellucid.machine.hardware import some_threads
from pellucid.machine.processes import Child
from pellucid.model import Transformer
from pellucid.train.fast.pytorch import trained
from pellucid.train.learner import make_bundle_config
from pellucid.train.loop import train
from pellucid.train.run.checkpoint import TrainingState, load_newest_checkpoint
from pellucid.train.run.folder import RunFolder
from pellucid.train.start.plan import TrainingPlan, choose_processes, make_plan
from pellucid.train.start.prepare import prepare_data
from pellucid.train.update.memory import WORKER
from pellucid.train.update.passes import Passes
from pellucid.train.update.pieces import Piece, split_batch
from pellucid.train.update.ranks import RankedPasses
from pellucid.train.update.step import Updater
from pellucid.train.weights.optimizer import Optimizer, freeze

RATES = {"rate": 0.01, "muon_rate": 0.02}

pytestmark = pytest.mark.usefixtures("no_report")
forked = pytest.mark.usefixtures("forked_children")


def make_pieces(*batches: Batch, processes: int) -> list[Piece]:
    num_tokens = sum(batch.num_target_tokens for batch in batches)
    parts = [part for batch in batches for part in split_batch(batch, processes)]
    return [
        Piece(place, part.num_target_tokens / num_tokens, part) for place, part in enumerate(parts)
    ]


def gradients_of(model: Transformer) -> list[Tensor]:
    return [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Use one thread: sums are rounded alike only with equally many threads."""
    with some_threads(1):
        yield


@forked
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    ("processes", "precision", "settings"),
    [
        (2, "float32", {"attention_dropout": 0.2, "token_dropout": 0.1}),
        (3, "bfloat16", {}),
        (2, "float32", {"guided_head": (0, 1), "freeze": ("encoder", "embedding")}),
    ],
)
def test_gradients_are_those_of_the_same_pieces_to_the_last_bit(
    processes: int, precision: Any, settings: dict[str, Any]
) -> None:
    training = TrainingConfig(dropout=0.3, **settings)
    batches = [make_batch(rows, has_guide="guided_head" in settings) for rows in (7, 11)]
    pieces = make_pieces(*batches, processes=processes)
    assert len(pieces) == 2 * processes
    alone, shared = make_model(has_output_bias=True), make_model(has_output_bias=True)
    for model in (alone, shared):
        freeze(model, training.freeze)
    apart = Passes(alone, training, precision)
    together = RankedPasses(shared, training, precision, processes)
    try:
        for step in (1, 2):
            expected: list[Tensor] = []
            losses = []
            apart.refresh_weights()
            for first in range(processes):
                losses.append(float(apart.sum_gradients(step, pieces[first::processes])))
                own = gradients_of(alone)
                expected = [a + b for a, b in zip(expected, own, strict=True)] if expected else own
            together.refresh_weights()
            loss = float(together.sum_gradients(step, pieces))
            found = gradients_of(shared)
            assert loss == pytest.approx(sum(losses), abs=1e-6)
            assert len(found) == len(trained(shared))
            assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
            assert any(gradient.abs().max() > 0.01 for gradient in found)
            for model in (alone, shared):  # The workers see the weights that they move with.
                with torch.no_grad():
                    for weight in trained(model):
                        weight += 0.1 * torch.ones_like(weight)
    finally:
        together.close()


def make_shared(processes: int = 2) -> tuple[Transformer, Updater]:
    model = make_model(has_output_bias=True)
    training = TrainingConfig(dropout=0.0)
    return model, Updater(model, Optimizer(model, training), training, "float32", processes)


def pids_of(updater: Updater) -> list[int]:
    assert isinstance(updater._passes, RankedPasses)
    return [worker.process.pid for worker in updater._passes._workers]


def test_updates_are_those_of_one_process_but_for_rounding() -> None:
    batches = [make_batch(), make_batch(1)]  # of the second no worker gets anything
    models = []
    for processes in (1, 3):
        model, updater = make_shared(processes)
        for step in (1, 2, 3):
            updated = updater.update(step, batches, **RATES)
            assert updated.was_made
        updater.close()
        models.append((model, updated.loss, updated.gradient_norm))
    assert models[0][1:] == pytest.approx(models[1][1:], abs=1e-4)
    pairs = zip(models[0][0].parameters(), models[1][0].parameters(), strict=True)
    assert all(torch.allclose(one, other, atol=1e-4) for one, other in pairs)


@forked
@pytest.mark.parametrize("where", ["own", "worker"])
def test_memory_that_runs_out_in_one_process_cuts_the_batches_of_all(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, updater = make_shared()
    updater.update(1, [make_batch()], **RATES)
    passes = updater._passes
    assert isinstance(passes, RankedPasses)
    (worker,) = passes._workers
    tries = []
    own, receive = passes._own.sum_gradients, worker.receive

    def sum_gradients(step: int, pieces: Any) -> Tensor:
        tries.append(len(pieces))
        if where == "own" and len(tries) == 1:
            raise MemoryError
        return own(step, pieces)

    def reply() -> Any:
        found = receive()
        return None if where == "worker" and len(tries) == 1 else found

    monkeypatch.setattr(passes._own, "sum_gradients", sum_gradients)
    monkeypatch.setattr(worker, "receive", reply)
    updated = updater.update(2, [make_batch()], **RATES)
    assert (updated.was_made, updated.was_split, tries) == (True, True, [1, 2])
    assert passes._workers == [worker]
    found = gradients_of(model)
    updater.close()
    other, alone = make_shared(1)
    alone.update(1, [make_batch()], **RATES)
    alone.update(2, [make_batch()], **RATES)
    pairs = zip(found, gradients_of(other), strict=True)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in pairs)


@forked
def test_a_worker_that_dies_is_one_sentence_and_all_end_on_closing() -> None:
    model, updater = make_shared(3)
    updater.update(1, [make_batch()], **RATES)
    before = [weight.detach().clone() for weight in model.parameters()]
    first, second = pids_of(updater)
    for number in (signal.SIGTERM, signal.SIGHUP):  # which are for the one that began the run
        os.kill(second, number)
    updater.update(2, [make_batch()], rate=0.0, muon_rate=0.0)
    os.kill(first, signal.SIGKILL)
    with pytest.raises(PellucidError, match=r"signal 9, as happens .* same command") as caught:
        updater.update(3, [make_batch()], **RATES)
    assert caught.value.exit_code == 1
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))
    updater.close()
    with pytest.raises(ProcessLookupError):
        os.kill(second, 0)
    assert updater.update(4, [make_batch()], **RATES).was_made  # others start
    updater.close()


def test_memory_in_common_that_is_refused_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    _, updater = make_shared()

    def refuse(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    num_files = len(list(Path("/proc/self/fd").iterdir()))
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(TrainingError, match=r"need memory, .*: No space left on device\."):
        updater.update(1, [make_batch()], **RATES)
    assert pids_of(updater) == []
    assert len(list(Path("/proc/self/fd").iterdir())) == num_files


@forked
@pytest.mark.parametrize("when", ["start", "send", "own"])
def test_what_breaks_off_leaves_nothing_for_the_next_update(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, updater = make_shared(3)
    _, other = make_shared(3)
    sends = []
    send = Child.send

    def refuse(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    def second_fails(child: Child, *messages: bytes) -> None:
        sends.append(child)
        if len(sends) == 2:
            raise KeyboardInterrupt
        send(child, *messages)

    with monkeypatch.context() as patch:
        if when == "start":
            patch.setattr(Child, "receive", refuse)
        elif when == "send":
            patch.setattr(Child, "send", second_fails)
        else:
            patch.setattr(Passes, "sum_gradients", refuse)
        with pytest.raises(KeyboardInterrupt):
            updater.update(1, [make_batch()], **RATES)
    assert pids_of(updater) == []
    found = updater.update(2, [make_batch(5)], **RATES)
    assert found == other.update(2, [make_batch(5)], **RATES)
    updater.close()
    other.close()


def test_memory_that_runs_out_while_workers_start_is_not_taken_for_a_large_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, updater = make_shared()

    def refuse(*_: Any) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …")

    monkeypatch.setattr(Child, "receive", refuse)
    with pytest.raises(TrainingError, match=r"need memory, .* training\.processes = 1\."):
        updater.update(1, [make_batch()], **RATES)


@pytest.mark.parametrize(
    ("threads", "tokens", "precision", "expected"),
    [
        (1, 8192, "float32", 1),
        (7, 8192, "float32", 7),
        (7, 4096, "float32", 3),
        (5, 4096, "float32", 4),
        (7, 2999, "float32", 2),
        (3, 999, "float32", 1),
        (1, 8192, "bfloat16", 1),
        (3, 8192, "bfloat16", 1),
        (7, 8192, "bfloat16", 3),
    ],
)
def test_as_many_processes_as_threads_where_the_batch_is_worth_it(
    threads: int,
    tokens: int,
    precision: Literal["float32", "bfloat16"],
    expected: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    training = TrainingConfig(max_tokens_per_batch=tokens)
    assert choose_processes(training, torch.device("cpu"), precision) == expected
    assert choose_processes(training, torch.device("cuda"), precision) == 1


def test_processes_on_a_gpu_are_refused() -> None:
    training = TrainingConfig(processes=3)
    assert choose_processes(training, torch.device("cpu"), "float32") == 3
    with pytest.raises(ConfigurationError, match=r"training\.processes is 3 on cuda\. Use"):
        choose_processes(training, torch.device("cuda"), "float32")


@pytest.mark.parametrize("value", [0, 257, True, 2.0, "many"])
def test_processes_that_are_no_number_are_refused_in_one_sentence(value: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"^training\.processes must be 'auto' or between"):
        validate(TrainingConfig, {"processes": value}, "recipe.toml")


def test_processes_are_fewer_where_memory_is_short_unless_they_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 5)

    def plan(processes: Any) -> TrainingPlan:
        training = {"max_tokens_per_batch": 8192, "processes": processes, "precision": "float32"}
        recipe = make_recipe(training=training | {"kernels": "pytorch"})
        run = RunFolder(tmp_path / f"run-{processes}", recipe)
        with run.locked(), run.created():
            prepared = prepare_data(recipe, tmp_path, run)
        model = make_bundle_config(recipe, prepared.tokenizer).model
        return make_plan(model, recipe.training, TrainingState(), longest=prepared.longest(0))

    def lay_out(available: int) -> None:
        monkeypatch.setattr("pellucid.train.start.plan.reachable_memory", lambda _: available)

    needed = plan("auto").memory_bytes
    lay_out(needed)
    assert (plan("auto").max_tokens_per_batch, plan("auto").processes) == (8192, 5)
    lay_out(needed - 2 * WORKER)
    assert (plan("auto").max_tokens_per_batch, plan("auto").processes) == (8192, 3)
    assert plan(5).max_tokens_per_batch < 8192
    assert plan(5).processes == 5
    lay_out(10_000)
    with pytest.raises(ConfigurationError, match=r"longest sentence, of \d+ tokens, takes .* free"):
        plan(5)


def test_on_own_kernels_one_process_has_all_threads() -> None:
    training, cpu = TrainingConfig(max_tokens_per_batch=8192), torch.device("cpu")
    assert choose_processes(training, cpu, "float32", has_kernels=True) == 1
    asked = training.model_copy(update={"processes": 3})
    assert choose_processes(asked, cpu, "float32", has_kernels=True) == 3


@forked
def test_a_run_goes_on_with_one_process_where_they_cannot_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    two_processes = {"validate_every": 2, "max_tokens_per_batch": 2048, "precision": "float32"}
    two_processes |= {"kernels": "pytorch"}
    for max_steps in (2, 4, 6):
        if max_steps == 4:  # as on a GPU
            monkeypatch.setattr("pellucid.train.start.plan.can_share", lambda _: False)
        recipe = make_recipe(training=two_processes | {"max_steps": max_steps})
        train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
    checkpoint, _ = load_newest_checkpoint(tmp_path / "run" / "checkpoints")
    assert checkpoint is not None
    assert (checkpoint.state.step, checkpoint.state.processes) == (6, 2)
    assert (tmp_path / "run" / "log.txt").read_text().count("in 2 processes") == 1


@forked
def test_a_run_keeps_its_processes_and_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_text(tmp_path)
    training = {"validate_every": 2, "max_tokens_per_batch": 2048, "precision": "float32"}
    training |= {"kernels": "pytorch"}
    started = []
    popen = subprocess.Popen

    def note(*args: Any, **options: Any) -> Any:
        started.append(popen(*args, **options))
        return started[-1]

    monkeypatch.setattr("pellucid.machine.processes.subprocess.Popen", note)
    for max_steps, threads in ((4, 2), (6, 1)):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        recipe = make_recipe(training={**training, "max_steps": max_steps})
        train(recipe, tmp_path / "run", recipe_folder=tmp_path, progress=False)
        checkpoint, _ = load_newest_checkpoint(tmp_path / "run" / "checkpoints")
        assert checkpoint is not None
        assert (checkpoint.state.step, checkpoint.state.processes) == (max_steps, 2)
        assert "in 2 processes, float32" in (tmp_path / "run" / "log.txt").read_text()
    workers = [process for process in started if "processes" in process.args[-1]]
    assert [process.poll() for process in workers] == [-signal.SIGKILL] * 2


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_workers_end_with_their_run(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]], sent: int, code: int
) -> None:
    endless = {"max_steps": 100_000, "validate_every": 100_000, "max_minutes": 3.0}
    recipe = write_recipe(tmp_path, SETTINGS | endless | {"processes": 2, "log_every": 1})
    command = [sys.executable, "-m", "pellucid", "train", str(recipe), "--out", "run"]
    process = start(command, kind=Forked, cwd=tmp_path, stderr=subprocess.PIPE)
    log = tmp_path / "run" / "log.txt"
    while not (log.exists() and "step      3" in log.read_text()):
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.05)
    process.send_signal(sent)
    # The other processes have standard error too, so that it ends when they have.
    process.communicate(timeout=60)
    assert process.returncode == code
