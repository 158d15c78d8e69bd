"""Processes that share batches give the gradients of one process, and end with their run."""

from __future__ import annotations

import os
import re
import signal
import socket
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
from pellucid.errors import ConfigurationError, LostRankError, PellucidError, TrainingError
from pellucid.machine.hardware import some_threads
from pellucid.model import Transformer
from pellucid.training.fast.pytorch import trained
from pellucid.training.learner import make_bundle_config
from pellucid.training.loop import train
from pellucid.training.run.checkpoint import TrainingState, load_newest_checkpoint
from pellucid.training.run.folder import RunFolder
from pellucid.training.run.interruption import Interruption
from pellucid.training.start.plan import TrainingPlan, choose_processes, make_plan
from pellucid.training.start.prepare import prepare_data
from pellucid.training.update import ranks
from pellucid.training.update.batch_parts import (
    BatchPart,
    halve,
    pieces_of_bytes,
    pieces_to_bytes,
    run_of,
    split_batch,
    tensors_of,
)
from pellucid.training.update.link import RankLink
from pellucid.training.update.memory_estimate import WORKER
from pellucid.training.update.passes import Passes
from pellucid.training.update.ranks import RankedPasses, Ranks
from pellucid.training.update.step import Updater
from pellucid.training.update.tree import MEMORY, GradientTree
from pellucid.training.weights.optimizer import Optimizer, freeze

RATES = {"rate": 0.01, "muon_rate": 0.02}

pytestmark = pytest.mark.usefixtures("no_report")
forked = pytest.mark.usefixtures("forked_children")


def make_pieces(*batches: Batch, processes: int) -> list[BatchPart]:
    num_tokens = sum(batch.num_target_tokens for batch in batches)
    parts = [part for batch in batches for part in split_batch(batch, processes)]
    return [
        BatchPart(place, part.num_target_tokens / num_tokens, part)
        for place, part in enumerate(parts)
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
    ("number", "precision", "settings"),
    [
        (2, "float32", {"attention_dropout": 0.2, "token_dropout": 0.1}),
        (4, "bfloat16", {}),
        (2, "float32", {"guided_head": "decoder.0.cross.1", "freeze": ("encoder", "embedding")}),
        (2, "float32", {"score_penalty": 2.0, "score_penalty_decoder": 3.0}),
    ],
)
def test_gradients_of_several_ranks_are_those_of_one_to_the_last_bit(
    number: int, precision: Any, settings: dict[str, Any]
) -> None:
    training = TrainingConfig(dropout=0.3, **settings)
    batches = [make_batch(rows, has_guide="guided_head" in settings) for rows in (7, 11)]
    pieces = make_pieces(*batches, processes=3)[:5]  # 5 are no power of two.
    models = [make_model(has_output_bias=True) for _ in range(3)]
    for model in models:
        freeze(model, training.freeze)
    plain = Passes(models[0], training, precision)
    alone, together = (
        RankedPasses(model, training, precision, Ranks(), count, Passes(model, training, precision))
        for model, count in ((models[1], 1), (models[2], number))
    )
    try:
        for step, count in ((1, 5), (2, 1)):  # of the second the hands get nothing
            losses = []
            for passes in (plain, alone, together):
                passes.refresh_weights()
                losses.append(float(passes.sum_gradients(step, pieces[:count])))
            about, expected, found = map(gradients_of, models)
            assert losses[1] == losses[2] == pytest.approx(losses[0], abs=1e-6)
            assert len(found) == len(trained(models[2]))
            assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
            assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(about, found, strict=True))
            assert any(gradient.abs().max() > 0.01 for gradient in found)
            for model in models:  # The hands see the weights that rank 0 moves.
                with torch.no_grad():
                    for weight in trained(model):
                        weight += 0.1 * torch.ones_like(weight)
    finally:
        together.close()


def test_runs_of_ranks_are_branches_of_one_tree() -> None:
    for count, number in ((1, 4), (3, 2), (5, 4), (6, 4), (8, 8), (13, 4)):
        runs = [run_of(range(count), rank, number) for rank in range(number)]
        assert [piece for run in runs for piece in run] == list(range(count))
        pairs = [run_of(range(count), rank, number // 2) for rank in range(number // 2)]
        halves = [half for run in pairs for half in halve(run)]
        assert [list(half) for half in halves] == [list(run) for run in runs]


def test_pieces_are_the_same_after_a_message() -> None:
    pieces = make_pieces(make_batch(1, has_guide=True), make_batch(4), processes=2)
    for piece, found in zip(pieces, pieces_of_bytes(pieces_to_bytes(pieces)), strict=True):
        assert (found.part, found.share) == (piece.part, piece.share)
        assert found.batch.num_target_tokens == piece.batch.num_target_tokens
        tensors, read = tensors_of(piece.batch), tensors_of(found.batch)
        assert tensors.keys() == read.keys()
        assert all(torch.equal(read[name], tensor) for name, tensor in tensors.items())


def make_shared(processes: int = 2) -> tuple[Transformer, Updater]:
    model = make_model(has_output_bias=True)
    training = TrainingConfig(dropout=0.0)
    return model, Updater(model, Optimizer(model, training), training, "float32", processes)


def pids_of(updater: Updater) -> list[int]:
    assert isinstance(updater._passes, RankedPasses)
    return [child.process.pid for child in updater._passes._ranks._children]


def test_updates_are_those_of_one_process_but_for_rounding() -> None:
    batches = [make_batch(), make_batch(1)]  # of the second no worker gets anything
    models = []
    for processes in (1, 4):
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
    pids, tree = pids_of(updater), passes._tree
    tries = []
    own, add_ranks = tree.passes.sum_gradients, tree.add_ranks

    def sum_gradients(step: int, pieces: Any, into: Any = ()) -> Tensor:
        tries.append(len(pieces))
        if where == "own" and len(tries) == 1:
            raise MemoryError
        return own(step, pieces, into)

    def add(link: Any, num_pieces: int) -> None:
        add_ranks(link, num_pieces)
        if where == "worker" and len(tries) == 1:
            tree._sums[0].numbers[MEMORY] += 1

    monkeypatch.setattr(tree.passes, "sum_gradients", sum_gradients)
    monkeypatch.setattr(tree, "add_ranks", add)
    updated = updater.update(2, [make_batch()], **RATES)
    assert (updated.was_made, updated.was_split, tries) == (True, True, [1, 1, 1])
    assert pids_of(updater) == pids
    found = gradients_of(model)
    updater.close()
    other, alone = make_shared(1)
    alone.update(1, [make_batch()], **RATES)
    alone.update(2, [make_batch()], **RATES)
    pairs = zip(found, gradients_of(other), strict=True)
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in pairs)


def test_numbers_of_another_rank_do_not_count_in_the_next_sum() -> None:
    model = make_model()
    tree = GradientTree(Passes(model, TrainingConfig(dropout=0.0), "float32"), model)
    tree._sums[1].numbers[MEMORY] = 1  # as received for the update before
    tree.passes.refresh_weights()
    with tree.noting_memory():
        tree.add_up(1, make_pieces(make_batch(), processes=2))
    _, memory, signals = tree.finish()
    assert (memory, signals) == (0, 0)


@forked
def test_a_worker_that_dies_is_one_sentence_and_all_end_on_closing() -> None:
    model, updater = make_shared(4)
    updater.update(1, [make_batch()], **RATES)
    before = [weight.detach().clone() for weight in model.parameters()]
    first, second, _ = pids_of(updater)
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


@forked
def test_a_hand_that_falls_silent_is_named_with_its_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "SILENT_SECONDS", 0.5)
    _, updater = make_shared(4)
    updater.update(1, [make_batch()], **RATES)
    os.kill(pids_of(updater)[2], signal.SIGSTOP)
    assert isinstance(updater._passes, RankedPasses)
    updater._passes._ranks.longest = 0.0
    host = re.escape(socket.gethostname())
    with pytest.raises(LostRankError, match=rf"^Rank 3 \({host}\) ended or fell silent\."):
        updater.update(2, [make_batch()], **RATES)
    assert pids_of(updater) == []


@forked
def test_a_signal_to_a_hand_is_passed_on() -> None:
    _, updater = make_shared()
    assert isinstance(updater._passes, RankedPasses)
    passes = updater._passes

    def train_on() -> None:
        with Interruption() as interruption:
            passes._ranks.interruption = interruption
            updater.update(1, [make_batch()], **RATES)
            os.kill(pids_of(updater)[0], signal.SIGTERM)
            step = 1
            while interruption.signal is None:
                step += 1
                assert updater.update(step, [make_batch()], **RATES).was_made

    with pytest.raises(SystemExit) as caught:
        train_on()
    assert caught.value.code == 143
    updater.close()


@forked
@pytest.mark.parametrize("when", ["start", "send", "own"])
def test_what_breaks_off_leaves_nothing_for_the_next_update(
    when: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, updater = make_shared(4)
    _, other = make_shared(4)
    sends = []
    send = RankLink.send_order

    def refuse(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    def second_fails(link: RankLink, *order: Any, **more: Any) -> None:
        sends.append(link)
        if len(sends) == 5:  # the first three set up
            raise KeyboardInterrupt
        send(link, *order, **more)

    with monkeypatch.context() as patch:
        if when == "start":
            patch.setattr(RankLink, "receive", refuse)
        elif when == "send":
            patch.setattr(RankLink, "send_order", second_fails)
        else:
            patch.setattr(Passes, "sum_gradients", refuse)
        with pytest.raises(KeyboardInterrupt):
            updater.update(1, [make_batch()], **RATES)
    assert pids_of(updater) == []
    found = updater.update(2, [make_batch(5)], **RATES)
    assert found == other.update(2, [make_batch(5)], **RATES)
    updater.close()
    other.close()


@forked
def test_memory_that_runs_out_while_workers_start_is_not_taken_for_a_large_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, updater = make_shared()

    def refuse(*_: Any) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …")

    monkeypatch.setattr(ranks, "flatten_weights", refuse)
    with pytest.raises(TrainingError, match=r"need memory, .* training\.processes = 1\."):
        updater.update(1, [make_batch()], **RATES)


@pytest.mark.parametrize(
    ("threads", "tokens", "precision", "expected"),
    [
        (1, 8192, "float32", 1),
        (7, 8192, "float32", 4),
        (8, 8192, "float32", 8),
        (7, 4096, "float32", 4),
        (5, 4096, "float32", 4),
        (7, 2999, "float32", 2),
        (3, 999, "float32", 1),
        (1, 8192, "bfloat16", 1),
        (3, 8192, "bfloat16", 1),
        (7, 8192, "bfloat16", 2),
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


def test_processes_that_no_tree_of_ranks_has_are_refused() -> None:
    assert choose_processes(TrainingConfig(processes=4), torch.device("cuda"), "float32") == 4
    with pytest.raises(ConfigurationError, match=r"must be a power of two .*, but is 3\. Change"):
        choose_processes(TrainingConfig(processes=3), torch.device("cpu"), "float32")


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
        return make_plan(model, recipe.training, TrainingState(), longest=prepared.longest)

    def lay_out(available: int) -> None:
        monkeypatch.setattr("pellucid.training.start.plan.reachable_memory", lambda _: available)

    needed = plan("auto").memory_bytes
    lay_out(needed)
    assert (plan("auto").max_tokens_per_batch, plan("auto").processes) == (8192, 4)
    lay_out(needed - 2 * WORKER)
    assert (plan("auto").max_tokens_per_batch, plan("auto").processes) == (8192, 2)
    assert plan(4).max_tokens_per_batch < 8192
    assert plan(4).processes == 4
    lay_out(10_000)
    with pytest.raises(ConfigurationError, match=r"longest sentence, of \d+ tokens, takes .* free"):
        plan(4)


def test_on_own_kernels_one_process_has_all_threads() -> None:
    training, cpu = TrainingConfig(max_tokens_per_batch=8192), torch.device("cpu")
    assert choose_processes(training, cpu, "float32", has_kernels=True) == 1
    asked = training.model_copy(update={"processes": 4})
    assert choose_processes(asked, cpu, "float32", has_kernels=True) == 4


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
            monkeypatch.setattr(Ranks, "count", lambda *_: 1)
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
    workers = [process for process in started if "be_local_hand" in process.args[-1]]
    assert [process.poll() for process in workers] == [-signal.SIGKILL] * 2


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_workers_end_with_their_run(
    tmp_path: Path, start: Callable[..., subprocess.Popen[bytes]], sent: int, code: int
) -> None:
    endless = {"max_steps": 100_000, "validate_every": 100_000, "max_minutes": 3.0}
    recipe = write_recipe(tmp_path, SETTINGS | endless | {"processes": 2, "log_every": 1})
    command = [sys.executable, "-m", "pellucid", "train", str(recipe), "-o", "run"]
    process = start(command, kind=Forked, cwd=tmp_path, stderr=subprocess.PIPE)
    log = tmp_path / "run" / "log.txt"
    while not (log.exists() and "step      3" in log.read_text()):
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.05)
    process.send_signal(sent)
    # The other processes have standard error too, so that it ends when they have.
    process.communicate(timeout=60)
    assert process.returncode == code
