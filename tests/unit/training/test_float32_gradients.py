"""Gradients of tables, which are summed in float32 from the start."""

from __future__ import annotations

import copy
from typing import Literal

import pytest
import torch
from small_model import make_batch
from torch import Tensor, nn

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.model import Transformer, initialize
from pellucid.training.fast.bfloat16 import Float32Gradient, sum_lookups_in_float32
from pellucid.training.fast.loss import smoothed_cross_entropy
from pellucid.training.update.batch_parts import BatchPart
from pellucid.training.update.passes import Passes
from pellucid.training.weights.optimizer import freeze

V, D = 37, 14

Tied = Literal["all", "decoder", "none"]


def make_model(tied: Tied = "all") -> Transformer:
    values = {"d_model": D, "d_ff": 22, "num_heads": 2, "tied_embeddings": tied}
    layers = {"num_encoder_layers": 1, "num_decoder_layers": 1}
    vocabularies = {"source_vocabulary_size": V, "target_vocabulary_size": V}
    model = Transformer(ModelConfig.model_validate(values | layers | vocabularies))
    initialize(model, seed=3)
    return model


def run_backward(working: Transformer, weight_gradient: Float32Gradient | None) -> None:
    for seed in (1, 2):
        batch = make_batch(7, 5, 3, seed=seed)
        memory_BSD = working.encode(batch.source_BS, batch.source_mask_BS)
        states_BTD = working.decode(batch.target_in_BT, memory_BSD, batch.source_mask_BS)
        loss, _ = smoothed_cross_entropy(
            states_BTD[batch.target_mask_BT],
            working.output_weight,
            working.output_bias,
            batch.target_out_BT[batch.target_mask_BT],
            smoothing=0.1,
            weight_gradient=weight_gradient,
        )
        (loss * 0.5).backward()  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("tied", ["all", "decoder", "none"])
def test_sums_are_the_gradients_that_autograd_finds(tied: Tied) -> None:
    plain = make_model(tied).double()
    model = copy.deepcopy(plain)
    working = copy.deepcopy(plain)
    run_backward(plain, None)
    sum_lookups_in_float32(working, model)
    run_backward(working, Float32Gradient(model.output_weight))
    for (name, expected), theirs, ours in zip(
        plain.named_parameters(), model.parameters(), working.parameters(), strict=True
    ):
        is_table = name.endswith("embedding.weight") or name == "output.weight"
        assert (ours.grad is None) == is_table, "nothing of a table's size stays with the copy"
        found = theirs.grad if is_table else ours.grad
        assert found is not None
        assert expected.grad is not None
        assert torch.allclose(found, expected.grad, rtol=1e-9, atol=1e-12)


def table_gradient(model: Transformer) -> Tensor | None:
    passes = Passes(model, TrainingConfig(dropout=0.0), "bfloat16")
    pieces = [BatchPart(part, 0.5, make_batch(7, 5, 3, seed=part)) for part in range(2)]
    passes.sum_gradients(1, pieces)
    return model.embedding.weight.grad


def test_in_bfloat16_no_table_is_rounded_on_the_way() -> None:
    gradient = table_gradient(make_model())
    assert gradient is not None
    assert gradient.dtype == torch.float32
    is_rounded = gradient == gradient.bfloat16().float()
    assert is_rounded.float().mean() < 0.2
    again = table_gradient(make_model())
    assert again is not None
    assert torch.equal(again, gradient), "a sum begins at nothing, and in one order"


def test_a_table_that_is_frozen_gets_none() -> None:
    model = make_model()
    freeze(model, ["embedding"])
    assert table_gradient(model) is None


def test_the_model_itself_keeps_its_tables() -> None:
    model = make_model()
    Passes(model, TrainingConfig(dropout=0.0), "bfloat16")
    assert type(model.embedding) is nn.Embedding
