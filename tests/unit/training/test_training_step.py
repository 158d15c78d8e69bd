"""One update: sums of batches, bfloat16 passes, memory that runs out, and losses not finite."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from small_model import V, make_batch, make_model
from torch import Tensor

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.errors import TrainingError
from pellucid.model import Transformer
from pellucid.training.update.batch_parts import BatchPart, split_batch
from pellucid.training.update.step import Updater
from pellucid.training.weights.optimizer import Optimizer

RATES = {"rate": 0.01, "muon_rate": 0.02}


def make_updater(precision: Any = "float32", **changes: Any) -> tuple[Transformer, Updater]:
    model = make_model()
    training = TrainingConfig(**{"dropout": 0.0, **changes})
    return model, Updater(model, Optimizer(model, training), training, precision)


def weights_of(model: Transformer) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def largest_difference(first: dict[str, Tensor], second: dict[str, Tensor]) -> float:
    return max(float((first[name] - second[name]).abs().max()) for name in first)


def gradients_after(batches: Sequence[Batch], precision: Any = "float32") -> dict[str, Tensor]:
    model, updater = make_updater(precision)
    updater.update(1, batches, **RATES)
    return {
        name: weight.grad for name, weight in model.named_parameters() if weight.grad is not None
    }


def test_a_batch_cut_in_parts_gives_the_gradient_of_the_whole() -> None:
    batch = make_batch()
    halves = split_batch(batch)
    assert [len(half.source_BS) for half in halves] == [4, 3]
    assert sum(half.num_target_tokens for half in halves) == batch.num_target_tokens
    difference = largest_difference(gradients_after([batch]), gradients_after(halves))
    assert difference < 1e-6


def test_update_reports_the_mean_loss_over_all_tokens() -> None:
    batch = make_batch()
    _, updater = make_updater()
    whole = updater.update(1, [batch], **RATES)
    _, updater = make_updater()
    parts = updater.update(1, split_batch(batch), **RATES)
    assert whole.was_made
    assert not whole.was_split
    assert parts.loss == pytest.approx(whole.loss, abs=1e-5)
    assert whole.loss == pytest.approx(math.log(V), rel=0.5)
    assert whole.num_target_tokens == batch.num_target_tokens


def test_parts_of_one_update_get_masks_of_their_own() -> None:
    batch = make_batch()
    seen = []
    for batches in ([batch, batch], [batch]):
        _, updater = make_updater(dropout=0.5)
        seen.append(updater.update(1, batches, **RATES).gradient_norm)
    assert seen[0] != pytest.approx(seen[1], rel=1e-4)


def test_bfloat16_passes_point_the_same_way_and_keep_float32_weights() -> None:
    batch = make_batch(61)
    exact, rounded = gradients_after([batch]), gradients_after([batch], "bfloat16")
    assert all(gradient.dtype == torch.float32 for gradient in rounded.values())
    flat = [torch.cat([g.flatten() for g in found.values()]) for found in (exact, rounded)]
    assert float(torch.cosine_similarity(*flat, dim=0)) > 0.99
    assert not torch.equal(*flat)


def test_bfloat16_passes_follow_the_weights() -> None:
    model, updater = make_updater("bfloat16")
    batch = make_batch()
    losses = [updater.update(step, [batch], **RATES).loss for step in range(1, 31)]
    assert losses[-1] < losses[0] - 1
    assert {weight.dtype for weight in model.parameters()} == {torch.float32}


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("poison", [math.nan, math.inf])
def test_a_gradient_that_is_no_number_leaves_every_byte(poison: float, precision: Any) -> None:
    model, updater = make_updater(precision)
    updater.update(1, [make_batch()], **RATES)
    before = weights_of(model)
    moments = {name: value.clone() for name, value in updater._optimizer.tensors().items()}
    handle = model.encoder.layers[0].feed_forward.inner.weight
    if precision == "float32":
        hook = handle.register_hook(lambda gradient: gradient * poison)
    else:
        working = updater._passes.way._working.encoder.layers[0].feed_forward.inner.weight
        hook = working.register_hook(lambda gradient: gradient * poison)
    updated = updater.update(2, [make_batch()], **RATES)
    hook.remove()
    assert not updated.was_made
    assert not math.isfinite(updated.gradient_norm)
    assert all(torch.equal(before[name], now) for name, now in weights_of(model).items())
    after = updater._optimizer.tensors()
    assert all(torch.equal(moments[name], after[name]) for name in moments)
    assert updater.update(3, [make_batch()], **RATES).was_made


def test_a_batch_is_cut_where_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    model, updater = make_updater()
    sum_gradients = updater._passes.sum_gradients

    def refuse(step: int, pieces: Sequence[BatchPart]) -> Tensor:
        if any(len(piece.batch.source_BS) > 2 for piece in pieces):
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …")
        return sum_gradients(step, pieces)

    monkeypatch.setattr(updater._passes, "sum_gradients", refuse)
    batch = make_batch()
    updated = updater.update(1, [batch], **RATES)
    assert updated.was_made
    assert updated.was_split
    expected = gradients_after([batch])
    found = {name: weight.grad for name, weight in model.named_parameters()}
    assert largest_difference(expected, found) < 1e-6  # type: ignore[arg-type]


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_gradients_of_an_attempt_that_ran_out_of_memory_do_not_count(precision: Any) -> None:
    """Memory may run out within the backward pass, when later layers have their gradient."""
    model, updater = make_updater(precision)
    is_first = [True]

    def refuse(_: Tensor) -> None:
        if is_first:
            is_first.clear()
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …")

    first = next(updater._passes.way._working.encoder.parameters())
    first.register_hook(refuse)
    batch = make_batch()
    updated = updater.update(1, [batch], **RATES)
    assert updated.was_split
    expected = gradients_after(split_batch(batch), precision)
    found = {name: weight.grad for name, weight in model.named_parameters()}
    assert not is_first
    assert largest_difference(expected, found) < 1e-6  # type: ignore[arg-type]


def test_a_single_pair_that_does_not_fit_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    _, updater = make_updater()

    def refuse(step: int, pieces: Sequence[BatchPart]) -> Tensor:
        raise MemoryError

    monkeypatch.setattr(updater._passes, "sum_gradients", refuse)
    with pytest.raises(TrainingError, match=r"a single pair of 11 tokens does not"):
        updater.update(1, [make_batch()], **RATES)


def test_another_error_is_not_taken_for_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    _, updater = make_updater()

    def fail(step: int, pieces: Sequence[BatchPart]) -> Tensor:
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr(updater._passes, "sum_gradients", fail)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        updater.update(1, [make_batch()], **RATES)


def test_gradients_are_clipped_to_the_limit() -> None:
    model, updater = make_updater(max_gradient_norm=0.01)
    updated = updater.update(1, [make_batch()], **RATES)
    assert updated.gradient_norm > 0.1
    gradients = [weight.grad for weight in model.parameters() if weight.grad is not None]
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    assert float(norm) == pytest.approx(0.01, rel=1e-4)
