"""Updates that a device repeats by itself, with a tape in the place of a CUDA graph."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from small_model import make_batch, make_model
from taped_graphs import TapedGraphs

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.machine.graphs import WARM_UPS, GraphSchedule
from pellucid.model import Transformer
from pellucid.model.dropout import DropoutOnDevice
from pellucid.training.fast.attention_losses import AttentionLosses
from pellucid.training.fast.pytorch import ModelOnPyTorch
from pellucid.training.plain import UpdateResult, make_update, move_weights
from pellucid.training.update.batch_parts import make_pieces, repeat_batch
from pellucid.training.update.recorded import LATE, RecordedPasses, RecordedUpdates
from pellucid.training.update.step import Updater
from pellucid.training.weights.averaging import Averaging
from pellucid.training.weights.optimizer import Optimizer
from pellucid.training.weights.schedule import dropout_share

STEPS = 2 * WARM_UPS + 4


class Recording:
    """A model, and its updates by tapes."""

    def __init__(self, training: TrainingConfig, graphs: TapedGraphs | None = None) -> None:
        self.graphs = graphs or TapedGraphs()
        self.model = make_model(has_output_bias=True)
        self.averaging = Averaging(self.model, training)
        self.optimizer = Optimizer(self.model, training)
        passes = RecordedPasses(self.model, training, "float32", self.graphs, torch.Generator())
        self.updates = RecordedUpdates(self.model, self.optimizer, training, self.averaging, passes)


def batches_of(step: int, count: int) -> list[Batch]:
    """Batches of two shapes, in turn, with new tokens each time."""
    sizes = ((7, 5, 11), (3, 13, 2))
    return [
        make_batch(*sizes[(step + part) % 2], seed=100 * step + part, has_guide=True)
        for part in range(count)
    ]


def rates_of(step: int) -> dict[str, Any]:
    return {"rate": 0.01 / step, "muon_rate": 0.02 / step}


def assert_equal_weights(one: Transformer, other: Transformer) -> None:
    for (name, ours), theirs in zip(one.named_parameters(), other.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=2e-6), (name, (ours - theirs).abs().max())


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": "adamw", "max_gradient_norm": 0.5},
        {"optimizer": "muon", "weight_decay": 0.1, "averaging": "running"},
        {"optimizer": "adam", "accumulate": 3},
    ],
    ids=["adamw", "muon", "accumulate"],
)
def test_recorded_updates_are_the_plain_ones(settings: dict[str, Any]) -> None:
    training = TrainingConfig.model_validate(settings | {"dropout": 0.0})
    plain = make_model(has_output_bias=True)
    optimizer = Optimizer(plain, training)
    average = Averaging(plain, training)
    recording = Recording(training)
    expected, found = [], []
    for step in range(1, STEPS + 1):
        pieces = make_pieces(batches_of(step, training.accumulate))
        expected.append(
            make_update(plain, optimizer, pieces, training, step=step, **rates_of(step))
        )
        average.update()
        recording.updates.begin(step, pieces, **rates_of(step))
        found += recording.updates.read()
        # Results come later, and in order.
        assert len(found) == max(0, step - LATE)
    found += recording.updates.read(most_unread=0)
    assert [one.step for one in found] == list(range(1, STEPS + 1))
    for one, other in zip(found, expected, strict=True):
        assert one.was_made
        assert one.loss == pytest.approx(other.loss, rel=1e-5)
        assert one.gradient_norm == pytest.approx(other.gradient_norm, rel=1e-4)
        assert one.num_target_tokens == other.num_target_tokens
    assert_equal_weights(recording.model, plain)
    for name, weight in recording.averaging.weights().items():
        assert torch.allclose(weight, average.weights()[name], atol=2e-6), name
    graphs = recording.graphs
    # Two shapes, each also for a piece that is not the first, and the optimizer's step.
    assert graphs.num_recorded == 3 + 2 * (training.accumulate > 1)
    assert graphs.num_repeated > graphs.num_recorded
    assert not recording.updates.fault


EVERYTHING = {
    "dropout": 0.3,
    "attention_dropout": 0.1,
    "feed_forward_dropout": 0.2,
    "token_dropout": 0.1,
    # It rises in every update: rates must be data.
    "dropout_warmup_steps": STEPS,
    "guided_head": "decoder.0.cross.1",
    "score_penalty": 0.1,
    "r_drop": 2.0,
    "token_cut": 0.2,
    "label_smoothing": 0.13,
    "accumulate": 2,
    "seed": 7,
}


def test_dropout_r_drop_and_losses_of_attention_are_recorded_as_data() -> None:
    training = TrainingConfig.model_validate(EVERYTHING)
    recording = Recording(training)
    model = make_model(has_output_bias=True)
    optimizer = Optimizer(model, training)
    generator = torch.Generator()
    losses = AttentionLosses(model.config, training)
    way = ModelOnPyTorch(model, training, "float32", losses)
    for step in range(1, STEPS + 1):
        pieces = make_pieces(batches_of(step, 2))
        model.zero_grad()
        total = torch.zeros(())
        for piece in pieces:
            dropout = DropoutOnDevice(
                training.dropout,
                training.seed,
                step,
                piece.part,
                attention_rate=training.attention_dropout,
                feed_forward_rate=training.feed_forward_dropout,
                token_rate=training.token_dropout,
                cut_rate=training.token_cut,
                generator=generator,
                warmup=torch.tensor(dropout_share(step, training)),
            )
            generator.manual_seed(dropout.key)
            loss = way.add_gradient(
                repeat_batch(piece.batch),
                dropout,
                smoothing=training.label_smoothing,
                share=piece.share,
                r_drop=training.r_drop,
            )
            total += piece.share * loss
        expected = move_weights(optimizer, training, total, num_tokens=0, **rates_of(step))
        recording.updates.begin(step, pieces, **rates_of(step))
        (found,) = recording.updates.read(most_unread=0)
        assert found.loss == pytest.approx(expected.loss, rel=1e-4), step
    assert_equal_weights(recording.model, model)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_an_update_that_is_not_finite_changes_nothing_and_nobody_asks(optimizer: str) -> None:
    training = TrainingConfig.model_validate(
        {"optimizer": optimizer, "dropout": 0.0, "averaging": "running"}
    )
    with_it, without = Recording(training), Recording(training)
    bad = 2 * WARM_UPS + 2
    steps = [*range(1, bad + 4)]
    for step in steps:
        pieces = make_pieces(batches_of(step, 1))
        if step == bad:
            broken = [replace(pieces[0], share=math.nan)]
            before = [weight.clone() for weight in with_it.model.parameters()]
            with_it.updates.begin(step, broken, **rates_of(step))
            for one, other in zip(before, with_it.model.parameters(), strict=True):
                assert torch.equal(one, other)
            continue
        for recording in (with_it, without):
            recording.updates.begin(step, pieces, **rates_of(step))
    results = with_it.updates.read(most_unread=0)
    assert [one.step for one in results if not one.was_made] == [bad]
    for one, other in zip(with_it.model.parameters(), without.model.parameters(), strict=True):
        assert torch.equal(one, other)
    expected = without.optimizer.tensors() | without.averaging.tensors()
    for name, tensor in (with_it.optimizer.tensors() | with_it.averaging.tensors()).items():
        assert torch.equal(tensor, expected[name]), name


def test_a_seed_of_another_step_drops_other_elements() -> None:
    training = TrainingConfig(dropout=0.5)
    recording = Recording(training)
    losses = []
    batch = batches_of(1, 1)
    for step in range(1, STEPS):
        recording.updates.begin(step, make_pieces(batch), rate=0.0, muon_rate=0.0)
        losses += [one.loss for one in recording.updates.read(most_unread=0)]
    assert len(set(losses)) == len(losses)
    recording.updates.begin(1, make_pieces(batch), rate=0.0, muon_rate=0.0)
    assert recording.updates.read(most_unread=0)[0].loss == losses[0]


def test_work_that_cannot_be_recorded_runs_as_it_is() -> None:
    class Refusing(TapedGraphs):
        def record(self, work: Any) -> Any:
            raise RuntimeError("operation not permitted when stream is capturing\nmore")

    training = TrainingConfig(dropout=0.0)
    refused, recorded = Recording(training, Refusing()), Recording(training)
    for step in range(1, STEPS):
        for one in (refused, recorded):
            one.updates.begin(step, make_pieces(batches_of(step, 1)), **rates_of(step))
    assert refused.updates.fault == "operation not permitted when stream is capturing"
    assert_equal_weights(refused.model, recorded.model)


def test_a_tape_repeats_what_was_a_number_of_python() -> None:
    """Otherwise the tests above could not see a rate or a seed that is frozen."""
    schedule = GraphSchedule(TapedGraphs())
    total = torch.zeros(())
    for number in range(1, WARM_UPS + 3):
        schedule.run("add", {}, lambda _, number=number: total.add_(number))  # type: ignore[misc]
    recorded = WARM_UPS + 1
    assert float(total) == sum(range(1, recorded)) + 2 * recorded


def test_memory_that_runs_out_halves_the_batch_once_and_loses_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    training = TrainingConfig(dropout=0.0)
    expected, found = (_updater(training, monkeypatch) for _ in range(2))
    batch = make_batch(8, 5, 11)
    way = ModelOnPyTorch.add_gradient
    rows: list[int] = []

    def run_out(self: ModelOnPyTorch, batch: Batch, *args: Any, **how: Any) -> Any:
        rows.append(len(batch.source_BS))
        if len(batch.source_BS) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return way(self, batch, *args, **how)

    (whole,) = _advance(expected[1], batch)
    monkeypatch.setattr(ModelOnPyTorch, "add_gradient", run_out)
    (halved,) = _advance(found[1], batch)
    assert halved.was_split
    assert not whole.was_split
    assert rows == [8, 4, 4]
    assert halved.loss == pytest.approx(whole.loss, rel=1e-5)
    assert halved.num_target_tokens == whole.num_target_tokens
    assert_equal_weights(found[0], expected[0])


def _updater(
    training: TrainingConfig, monkeypatch: pytest.MonkeyPatch
) -> tuple[Transformer, Updater]:
    monkeypatch.setattr(
        "pellucid.training.update.recorded.make_graphs", lambda device, generator: TapedGraphs()
    )
    model = make_model()
    optimizer = Optimizer(model, training)
    averaging = Averaging(model, training)
    return model, Updater(model, optimizer, training, "float32", averaging=averaging)


def _advance(updater: Updater, batch: Batch) -> list[UpdateResult]:
    assert updater.recorded is not None
    known = updater.advance(1, [batch], rate=0.01, muon_rate=0.01)
    assert not known
    return updater.read()
