"""Passes with all positions of a batch as rows, compared with the model's own."""

from __future__ import annotations

import statistics
from typing import Any, Literal

import pytest
import torch
from small_model import make_batch
from torch import Tensor

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.model import Dropout, Transformer, initialize
from pellucid.train.fast.rows.attention import LONGEST_IN_BLOCKS, block_size
from pellucid.train.fast.rows.model import TransformerOnRows
from pellucid.train.update.passes import Passes
from pellucid.train.update.pieces import Piece, tensors_of

V = 37


def make_model(**changes: Any) -> Transformer:
    """Two layers on each side, different widths, and weights moved from their start."""
    values = {"d_model": 14, "d_ff": 22, "num_heads": 3, "d_key": 5, "d_value": 7}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
    vocabularies = {"source_vocabulary_size": V, "target_vocabulary_size": V}
    model = Transformer(ModelConfig.model_validate(values | layers | vocabularies | changes))
    initialize(model, seed=3)
    numbers = torch.Generator().manual_seed(5)
    for weight in model.parameters():
        weight.data += torch.randn(weight.shape, generator=numbers) / 11
    return model


def gradients(
    model: Transformer, batch: Batch, dropout: Dropout, *, in_rows: bool
) -> tuple[Tensor, list[Tensor]]:
    """The decoder's states, and the gradients of their sum with random factors at real tokens."""
    model.zero_grad()
    source_mask_BS, target_BT = batch.source_mask_BS, batch.target_in_BT
    if in_rows:
        on_rows = TransformerOnRows(model, source_mask_BS, target_BT.shape[1], dropout)
        states_BTD = on_rows.decode(target_BT, on_rows.encode(batch.source_BS))
    else:
        memory_BSD = model.encode(batch.source_BS, source_mask_BS, dropout=dropout)
        states_BTD = model.decode(target_BT, memory_BSD, source_mask_BS, dropout=dropout)
    states_PD = states_BTD[batch.target_mask_BT]
    factors_PD = torch.randn(states_PD.shape, generator=torch.Generator().manual_seed(7))
    (states_PD * factors_PD.to(states_PD.dtype)).sum().backward()
    reached = [weight for name, weight in model.named_parameters() if name != "output.weight"]
    found = [weight.grad.clone() for weight in reached if weight.grad is not None]
    assert len(found) == len(reached)
    return states_PD.detach(), found


def assert_same(model: Transformer, batch: Batch, dropout: Dropout) -> None:
    states_PD, found = gradients(model, batch, dropout, in_rows=True)
    expected_PD, expected = gradients(model, batch, dropout, in_rows=False)
    assert torch.allclose(states_PD, expected_PD, rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("attention_rate", [0.0, 0.25])
def test_states_and_gradients_are_those_of_the_model(
    norm: str, bias: bool, attention_rate: float
) -> None:
    model = make_model(norm=norm, projection_bias=bias).double()
    rates = {"attention_rate": attention_rate, "feed_forward_rate": 0.2, "token_rate": 0.1}
    assert_same(model, make_batch(), Dropout(0.3, seed=1, step=2, part=1, **rates))


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "none"},
        {"residual": False},
        {"activation": "gelu", "positions": "learned"},
        {"activation": "swish", "tied_embeddings": "none"},
        {"scale_scores": False, "look_ahead_mask": False},
    ],
)
def test_every_switch_of_the_model_does_what_it_does_there(changes: dict[str, Any]) -> None:
    assert_same(make_model(**changes).double(), make_batch(), Dropout(0.1, seed=1, step=2))


@pytest.mark.parametrize("num_sentences", [1, 7, 11])
@pytest.mark.parametrize(
    ("source_length", "target_length"),
    [
        (1, 1),
        (3, 2),
        (5, 11),
        (17, 3),
        (29, 37),
        (LONGEST_IN_BLOCKS, 2),
        (3, LONGEST_IN_BLOCKS + 3),
    ],
)
def test_any_number_of_sentences_of_any_length(
    num_sentences: int, source_length: int, target_length: int
) -> None:
    batch = make_batch(num_sentences, source_length, target_length)
    assert_same(make_model().double(), batch, Dropout(0.1, seed=1, step=2))


def test_sentences_of_a_block_do_not_see_each_other() -> None:
    batch = make_batch(5, 3, 7)
    assert block_size(7) >= 2 * 7, "several lie in one"
    model = make_model().double()
    on_rows = TransformerOnRows(model, batch.source_mask_BS, 7, Dropout(0.0, seed=1, step=1))
    before = on_rows.decode(batch.target_in_BT, on_rows.encode(batch.source_BS))
    batch.source_BS[1] = 4
    batch.target_in_BT[1] = 5
    after = on_rows.decode(batch.target_in_BT, on_rows.encode(batch.source_BS))
    is_same_B = ((before - after).abs() < 1e-12).all(dim=2).all(dim=1)
    assert is_same_B.tolist() == [True, False, True, True, True]


def test_in_bfloat16_gradients_are_as_near_to_those_of_float32_as_the_model_has_them() -> None:
    batch, ratios = make_batch(23, 13, 11), []
    for step in range(7):
        model, dropout = make_model(), Dropout(0.2, seed=1, step=step)
        expected = gradients(model, batch, dropout, in_rows=False)[1]
        model = model.bfloat16()
        ours, theirs = (
            distance(gradients(model, batch, dropout, in_rows=in_rows)[1], expected)
            for in_rows in (True, False)
        )
        ratios.append(ours / theirs)
    assert statistics.median(ratios) < 1.2


@pytest.mark.parametrize("kind", ["key", "value"])
def test_in_bfloat16_what_all_keys_or_values_have_in_common_spoils_no_gradient(kind: str) -> None:
    """A large bias shifts all of them equally, so that their differences nearly vanish."""
    batch, dropout = make_batch(23, 13, 11), Dropout(0.0, seed=1, step=1)
    model = make_model(projection_bias=True)
    layers = (*model.encoder.layers, *model.decoder.layers)
    biases = [getattr(layer.self_attention, kind).bias for layer in layers]
    names = [name for name, _ in model.named_parameters()]
    queries = [n for n, name in enumerate(names) if name.endswith("self_attention.query.weight")]
    errors = []
    for size in (0.0, 23.0):
        for bias in biases:
            signs = torch.randn(len(bias), generator=torch.Generator().manual_seed(11)).sign()
            bias.data = size * signs
        model = model.float()
        expected = gradients(model, batch, dropout, in_rows=False)[1]
        found = gradients(model.bfloat16(), batch, dropout, in_rows=True)[1]
        near, true = ([of[index].float() for index in queries] for of in (found, expected))
        errors.append(distance(near, true) / distance(true, [0 * one for one in true]))
    assert errors[1] < 2 * errors[0]


def distance(found: list[Tensor], expected: list[Tensor]) -> float:
    """The norm of the difference of two gradients."""
    pairs = zip(found, expected, strict=True)
    return sum(float((ours - theirs).square().sum()) for ours, theirs in pairs) ** 0.5


@pytest.mark.parametrize(
    ("precision", "training", "changes", "expected"),
    [
        ("bfloat16", {}, {}, True),
        ("float32", {}, {}, False),
        ("bfloat16", {"guided_head": (1, 0)}, {}, False),
        ("bfloat16", {}, {"projections": "qk", "d_value": 5}, False),
    ],
)
def test_passes_are_in_rows_where_that_is_faster_and_nothing_is_shown(
    precision: Literal["float32", "bfloat16"],
    training: dict[str, Any],
    changes: dict[str, Any],
    expected: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = TrainingConfig(dropout=0.1, **training)
    model = make_model(**changes)
    made: list[TransformerOnRows] = []

    def make(*parts: Any) -> TransformerOnRows:
        made.append(TransformerOnRows(*parts))
        return made[-1]

    monkeypatch.setattr("pellucid.train.update.passes.TransformerOnRows", make)
    passes = Passes(model, settings, precision)
    loss = float(passes.sum_gradients(1, [Piece(0, 1.0, make_batch(has_guide=True))]))
    assert bool(made) == expected
    assert loss == pytest.approx(-torch.tensor(1 / V).log().item(), abs=0.7)


@pytest.mark.parametrize("in_rows", [True, False])
def test_without_a_look_ahead_mask_padding_of_targets_is_not_seen(
    in_rows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pellucid.train.update.passes.shapes_matter", lambda _: in_rows)
    batch = make_batch()
    model = make_model(look_ahead_mask=False).double()
    passes = Passes(model, TrainingConfig(dropout=0.0), "float32")
    together = float(passes.sum_gradients(1, [Piece(0, 1.0, batch)]))
    found = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
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
        pieces.append(Piece(0, target / batch.num_target_tokens, alone))
    assert float(passes.sum_gradients(1, pieces)) == pytest.approx(together, rel=1e-6)
    expected = [weight.grad for weight in model.parameters() if weight.grad is not None]
    for ours, theirs in zip(found, expected, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-9)
