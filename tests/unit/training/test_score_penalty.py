"""The penalty on large scores: its loss against a loop, its gradient on rows against autograd."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from small_model import make_batch, make_model
from torch import Tensor

from pellucid.attention.probe import Probe
from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.model import Transformer
from pellucid.training.fast.attention_losses import AttentionLosses, ScorePenalty, masks_of
from pellucid.training.update.batch_parts import split_batch
from pellucid.training.update.step import Updater
from pellucid.training.weights.optimizer import Optimizer

BOTH: dict[str, Any] = {"dropout": 0.0, "score_penalty": 0.3, "score_penalty_decoder": 0.7}
ALL: dict[str, Any] = {**BOTH, "score_penalty_cross": 0.2}
NAMES = {
    "encoder.0.self": "score_penalty",
    "decoder.0.self": "score_penalty_decoder",
    "decoder.0.cross": "score_penalty_cross",
}


def margins(encoder: float) -> dict[str, float]:
    """A margin of the encoder, and half as much in the decoder."""
    return {"score_penalty_margin": encoder, "score_penalty_margin_decoder": encoder / 2}


class Listener:
    """Keeps scaled scores, and passes all on."""

    def __init__(self, probe: Probe) -> None:
        self.probe, self.scaled = probe, dict[str, Tensor]()

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        self.probe.see(site, stage, tensor)
        if stage == "scaled":
            self.scaled[site] = tensor


def run(model: Transformer, batch: Batch, probe: Probe) -> None:
    memory_BSD = model.encode(batch.source_BS, batch.source_mask_BS, probe=probe)
    mask = None if model.config.look_ahead_mask else batch.target_mask_BT
    model.decode(
        batch.target_in_BT, memory_BSD, batch.source_mask_BS, target_mask_BT=mask, probe=probe
    )


@pytest.mark.parametrize("margin", [0.0, 0.1])
@pytest.mark.parametrize("changes", [{}, {"look_ahead_mask": False, "scale_scores": False}])
def test_loss_is_what_each_row_varies_beyond_the_margin_over_the_keys_that_it_may_attend_to(
    changes: dict[str, Any], margin: float
) -> None:
    model, batch = make_model(**changes), make_batch(3, 5, 7)
    losses = AttentionLosses(model.config, TrainingConfig(**ALL, **margins(margin)))
    listener = Listener(losses)
    run(model, batch, listener)
    expected = 0.0
    num_free = 0
    for site, scores_BHLM in listener.scaled.items():
        weight = ALL[NAMES[site]]
        is_causal = site == "decoder.0.self" and model.config.look_ahead_mask
        rows_BL = batch.source_mask_BS if site == "encoder.0.self" else batch.target_mask_BT
        keys_BM = batch.target_mask_BT if site == "decoder.0.self" else batch.source_mask_BS
        for b, scores_HLM in enumerate(scores_BHLM.detach().numpy()):
            for row in range(int(rows_BL[b].sum())):
                keys = row + 1 if is_causal else int(keys_BM[b].sum())
                variances = np.var(scores_HLM[:, row, :keys], axis=-1)
                free = margin if site.startswith("encoder") else margin / 2
                num_free += int((variances < free).sum())
                excess = float(np.maximum(variances - free, 0).mean())
                expected += weight * excess / batch.num_target_tokens
    found = losses.add_to(torch.zeros(()), batch)
    assert float(found.detach()) == pytest.approx(expected, rel=1e-5)
    assert expected > 0
    assert bool(num_free) == bool(margin)


@pytest.mark.parametrize("margin", [0.0, 5.0])
@pytest.mark.parametrize("site", NAMES)
def test_gradient_on_rows_is_that_of_autograd(site: str, margin: float) -> None:
    model, batch = make_model(), make_batch(5, 11, 7)
    config = model.config
    training = TrainingConfig(**ALL, **margins(margin))
    masks = masks_of(site, batch)
    draw = torch.Generator().manual_seed(3)
    width = config.num_heads * config.d_key
    rows = [3 * torch.randn(int(mask_BL.sum()), width, generator=draw) for mask_BL in masks]

    def padded(rows_JX: Tensor, mask_BL: Tensor) -> Tensor:
        whole = torch.zeros(*mask_BL.shape, width).index_put((mask_BL,), rows_JX)
        return whole.unflatten(2, (config.num_heads, config.d_key)).transpose(1, 2)

    query, key = (one.clone().requires_grad_() for one in rows)
    queries, keys = padded(query, masks[0]), padded(key, masks[1])
    scaled = queries @ keys.transpose(2, 3) * config.d_key**-0.5
    penalty = ScorePenalty.of(config, training)
    assert penalty is not None
    (0.25 * penalty.of_scores(site, scaled, batch)).backward()  # type: ignore[no-untyped-call]

    grads = (torch.ones_like(rows[0]), torch.zeros_like(rows[1]))
    AttentionLosses(config, training).add_gradients(batch, 0.25, site, rows, grads)
    assert query.grad is not None
    assert key.grad is not None
    for found, expected in zip((grads[0] - 1, grads[1]), (query.grad, key.grad), strict=True):
        assert float((found - expected).norm()) < 1e-5 * float(expected.norm())
        assert float(expected.norm()) > 1e-3


def test_a_guided_head_and_a_penalty_at_one_place_both_count() -> None:
    model, batch = make_model(), make_batch(5, 11, 7)
    guide_BTS = torch.rand(*batch.target_mask_BT.shape, batch.source_mask_BS.shape[1])
    guide_BTS *= batch.target_mask_BT[:, :, None] & batch.source_mask_BS[:, None]
    batch = replace(batch, guide_BTS=guide_BTS)
    guided: dict[str, Any] = {"guided_head": "decoder.0.cross.1"}
    draw = torch.Generator().manual_seed(3)
    width = model.config.num_heads * model.config.d_key
    masks = masks_of("decoder.0.cross", batch)
    rows = [3 * torch.randn(int(mask_BL.sum()), width, generator=draw) for mask_BL in masks]
    found = []
    for settings in (guided, ALL, {**ALL, **guided}):
        losses = AttentionLosses(model.config, TrainingConfig(**settings))
        grads = [torch.zeros_like(one) for one in rows]
        losses.add_gradients(batch, 1.0, "decoder.0.cross", rows, grads)
        listener = Listener(losses)
        run(model, batch, listener)
        total = losses.add_to(torch.zeros(()), batch)
        found.append([*grads, total.detach()])
    for guide, penalty, both in zip(*found, strict=True):
        torch.testing.assert_close(both, guide + penalty)
        assert float(guide.norm()) > 0


def test_cut_batches_have_the_penalty_of_the_whole() -> None:
    batch = make_batch(8, 11, 7)
    gradients = []
    for pieces in ((batch,), split_batch(batch)):
        model = make_model()
        training = TrainingConfig(**{**BOTH, "score_penalty": 9.0})
        updater = Updater(model, Optimizer(model, training), training, "float32")
        updater.update(1, pieces, rate=0.0, muon_rate=0.0)
        gradients.append(model.encoder.layers[0].self_attention.query.weight.grad)
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-7)


def test_a_penalty_makes_scores_small_in_its_part_only() -> None:
    model, batch = make_model(), make_batch(5, 11, 7)
    training = TrainingConfig(dropout=0.0, score_penalty=100.0)
    losses = AttentionLosses(model.config, training)
    assert losses.sites == {"encoder.0.self"}
    optimizer = Optimizer(model, training)
    updater = Updater(model, optimizer, training, "float32")
    listener = Listener(losses)
    run(model, batch, listener)
    before = {site: float(scaled.detach().std()) for site, scaled in listener.scaled.items()}
    for step in range(1, 31):
        updater.update(step, [batch], rate=0.01, muon_rate=0.0)
    run(model, batch, listener)
    after = {site: float(scaled.detach().std()) for site, scaled in listener.scaled.items()}
    assert after["encoder.0.self"] < before["encoder.0.self"] / 2
    assert after["decoder.0.self"] > before["decoder.0.self"] / 2


def test_a_decoder_of_recurrent_units_has_a_penalty_only_where_it_attends() -> None:
    model, batch = make_model(decoder="ssru"), make_batch(3, 5, 7)
    losses = AttentionLosses(model.config, TrainingConfig(**ALL))
    assert losses.sites == {"encoder.0.self", "decoder.0.cross"}
    run(model, batch, losses)
    assert float(losses.add_to(torch.zeros(()), batch).detach()) > 0


def test_no_penalty_and_no_self_attention_leave_the_passes_as_they_are() -> None:
    model = make_model()
    assert ScorePenalty.of(model.config, TrainingConfig()) is None
    recurrent = ModelConfig(architecture="recurrent", recurrent_attention="dot")
    assert ScorePenalty.of(recurrent, TrainingConfig(**BOTH)) is None
    assert not AttentionLosses(model.config, TrainingConfig()).sites
