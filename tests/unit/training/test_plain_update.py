"""The plain update, and the fast ways compared with it."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from small_model import make_batch, make_model
from torch import Tensor

from pellucid.config import TrainingConfig
from pellucid.data import Batch
from pellucid.model import Transformer, initialize
from pellucid.training.plain import compute_loss, make_update, sum_gradients
from pellucid.training.update.batch_parts import BatchPart, make_pieces, tensors_of
from pellucid.training.update.passes import Passes
from pellucid.training.update.step import Updater
from pellucid.training.weights.optimizer import Optimizer

RATES = {"rate": 0.01, "muon_rate": 0.02}
SMOOTHING = 0.13


def gradients(model: Transformer) -> dict[str, Tensor]:
    return {
        name: weight.grad.clone()
        for name, weight in model.named_parameters()
        if weight.grad is not None
    }


def batches() -> list[Batch]:
    return [make_batch(7, seed=5), make_batch(3, seed=11)]


def test_compute_loss_is_pytorchs_label_smoothed_cross_entropy() -> None:
    model, batch = make_model(has_output_bias=True).double(), make_batch()
    smoothed, plain = compute_loss(model, batch, SMOOTHING, None)
    logits_BTV = model(batch.source_BS, batch.target_in_BT, batch.source_mask_BS)
    mask_BT = batch.target_mask_BT
    arguments = logits_BTV[mask_BT], batch.target_out_BT[mask_BT]
    expected = F.cross_entropy(*arguments, label_smoothing=SMOOTHING)
    assert float((smoothed - expected).detach().abs()) < 1e-12
    assert float((plain - F.cross_entropy(*arguments)).detach().abs()) < 1e-12


def test_sum_gradients_weighs_every_token_the_same() -> None:
    model, training = make_model().double(), TrainingConfig(dropout=0.0, label_smoothing=SMOOTHING)
    both = batches()
    mean_loss = sum_gradients(model, make_pieces(both), training, step=1)
    found = gradients(model)
    model.zero_grad()
    total, num_tokens = torch.zeros((), dtype=torch.float64), 0
    for batch in both:
        mask_BT = batch.target_mask_BT
        logits_BTV = model(batch.source_BS, batch.target_in_BT, batch.source_mask_BS)
        total = total + F.cross_entropy(
            logits_BTV[mask_BT],
            batch.target_out_BT[mask_BT],
            label_smoothing=SMOOTHING,
            reduction="sum",
        )
        num_tokens += batch.num_target_tokens
    (total / num_tokens).backward()  # type: ignore[no-untyped-call]
    largest = max(
        float((found[name] - grad).abs().max()) for name, grad in gradients(model).items()
    )
    assert largest < 1e-12
    unsmoothed = (
        compute_loss(model, both[0], 0.0, None)[1],
        compute_loss(model, both[1], 0.0, None)[1],
    )
    shares = [batch.num_target_tokens / num_tokens for batch in both]
    expected = sum(share * float(loss) for share, loss in zip(shares, unsmoothed, strict=True))
    assert float(mean_loss) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_updates_without_a_faster_way_are_the_plain_ones_bit_for_bit(dropout: float) -> None:
    training = TrainingConfig(dropout=dropout, kernels="pytorch", max_gradient_norm=0.5)
    plain, fast = make_model(), make_model()
    optimizer = Optimizer(plain, training)
    updater = Updater(fast, Optimizer(fast, training), training, "float32")
    for step in (1, 2, 3):
        expected = make_update(
            plain, optimizer, make_pieces(batches()), training, step=step, **RATES
        )
        assert updater.update(step, batches(), **RATES) == expected
        assert expected.was_made
    for one, other in zip(plain.parameters(), fast.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize(
    ("way", "precision", "tolerance"),
    [
        ({"kernels": "auto"}, "float32", 1e-5),
        ({"kernels": "pytorch"}, "bfloat16", 0.05),
        ({"kernels": "auto"}, "bfloat16", 0.05),
    ],
)
def test_every_fast_way_gives_the_plain_gradients(
    way: dict[str, Any], precision: Any, tolerance: float
) -> None:
    settings = {"dropout": 0.0, "label_smoothing": SMOOTHING}
    plain, fast = make_model(), make_model()
    expected_loss = sum_gradients(plain, make_pieces(batches()), TrainingConfig(**settings), step=1)
    passes = Passes(fast, TrainingConfig(**settings, **way), precision)
    passes.refresh_weights()
    found_loss = passes.sum_gradients(1, make_pieces(batches()))
    expected, found = gradients(plain), gradients(fast)
    assert expected.keys() == found.keys()
    apart = torch.cat([(found[name] - expected[name]).flatten() for name in expected])
    length = torch.cat([gradient.flatten() for gradient in expected.values()]).norm()
    assert float(apart.norm() / length) < tolerance
    assert float(found_loss) == pytest.approx(float(expected_loss), rel=tolerance)


def test_an_update_that_is_not_finite_leaves_the_weights() -> None:
    model, training = make_model(), TrainingConfig(dropout=0.0)
    optimizer = Optimizer(model, training)
    with torch.no_grad():
        next(model.parameters())[0] = math.inf
    before = [weight.clone() for weight in model.parameters()]
    updated = make_update(model, optimizer, make_pieces(batches()), training, step=1, **RATES)
    assert not updated.was_made
    for one, other in zip(before, model.parameters(), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("is_plain", [True, False])
def test_without_a_look_ahead_mask_padding_of_targets_is_not_seen(is_plain: bool) -> None:
    batch = make_batch()
    config = make_model().config.model_copy(update={"look_ahead_mask": False})
    model = Transformer(config)
    initialize(model, seed=3)
    training = TrainingConfig(dropout=0.0, kernels="pytorch")
    passes = Passes(model.double(), training, "float32")

    def sum_up(pieces: list[BatchPart]) -> float:
        if is_plain:
            return float(sum_gradients(model, pieces, training, step=1))
        return float(passes.sum_gradients(1, pieces))

    together = sum_up([BatchPart(0, 1.0, batch)])
    found = gradients(model)
    pieces = []
    for row, (source, target) in enumerate(
        zip(batch.source_mask_BS.sum(1).tolist(), batch.target_mask_BT.sum(1).tolist(), strict=True)
    ):
        one = {name: tensor[row, None] for name, tensor in tensors_of(batch).items()}
        cut = {
            name: tensor[:, : source if name.startswith("source") else target]
            for name, tensor in one.items()
        }
        alone = Batch(**cut, num_source_tokens=source, num_target_tokens=target)
        pieces.append(BatchPart(0, target / batch.num_target_tokens, alone))
    assert sum_up(pieces) == pytest.approx(together, rel=1e-6)
    for name, expected in gradients(model).items():
        assert torch.allclose(found[name], expected, atol=1e-9)
