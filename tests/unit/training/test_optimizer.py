"""Optimizers against their formulas, and resuming bit for bit."""

from __future__ import annotations

from typing import Any

import pytest
import safetensors.torch
import torch
from torch import Tensor, nn

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.errors import BundleError
from pellucid.model import Transformer, initialize
from pellucid.training.weights.optimizer import Optimizer, is_inner_matrix, orthogonalize

RATE, MUON_RATE = 0.01, 0.02
V = 37


def make_model(dtype: torch.dtype = torch.float32) -> Transformer:
    config = ModelConfig(
        d_model=22,
        d_ff=19,
        num_heads=2,
        num_encoder_layers=1,
        num_decoder_layers=1,
        norm="pre",
        positions="learned",
        max_source_length=13,
        max_target_length=17,
        source_vocabulary_size=V,
        target_vocabulary_size=V,
    )
    model = Transformer(config)
    initialize(model, seed=3)
    return model.to(dtype)


def put_gradients(model: nn.Module, step: int) -> None:
    numbers = torch.Generator().manual_seed(step)
    for parameter in model.parameters():
        if parameter.requires_grad:
            drawn = torch.randn(parameter.shape, generator=numbers, dtype=torch.float64)
            parameter.grad = drawn.to(parameter.dtype)


def run(model: nn.Module, optimizer: Optimizer, steps: range) -> None:
    for step in steps:
        put_gradients(model, step)
        optimizer.step(RATE * step, MUON_RATE * step)


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.named_parameters()}


def by_formula(model: nn.Module, training: TrainingConfig, steps: range) -> dict[str, Tensor]:
    """Adam with decoupled decay, written out in float64."""
    weights = {name: weight.double() for name, weight in weights_of(model).items()}
    m = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    v = {name: torch.zeros_like(weight) for name, weight in weights.items()}
    b1, b2 = training.beta1, training.beta2
    for step in steps:
        put_gradients(model, step)
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None
            g, rate = parameter.grad.double(), RATE * step
            m[name] = b1 * m[name] + (1 - b1) * g
            v[name] = b2 * v[name] + (1 - b2) * g**2
            decayed = training.optimizer == "adamw" and is_inner_matrix(name, parameter)
            if decayed:
                weights[name] = weights[name] * (1 - rate * training.weight_decay)
            fraction = (m[name] / (1 - b1**step)) / (
                (v[name] / (1 - b2**step)).sqrt() + training.adam_epsilon
            )
            weights[name] = weights[name] - rate * fraction
    return weights


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_adam_follows_the_papers_formula(kind: Any) -> None:
    training = TrainingConfig(optimizer=kind, weight_decay=0.3)
    expected = by_formula(make_model(), training, range(1, 8))
    model = make_model()
    run(model, Optimizer(model, training), range(1, 8))
    for name, weight in weights_of(model).items():
        difference = float((weight.double() - expected[name]).abs().max())
        assert difference < 2e-6, f"{name}: {difference}"


def test_only_matrices_between_layers_are_inner() -> None:
    inner = {
        name for name, weight in make_model().named_parameters() if is_inner_matrix(name, weight)
    }
    assert "encoder.layers.0.feed_forward.inner.weight" in inner
    assert "decoder.layers.0.cross_attention.query.weight" in inner
    assert not any("embedding" in name or "positions" in name for name in inner)
    assert not any("norm" in name or name.endswith("bias") for name in inner)


@pytest.mark.parametrize(("rows", "columns"), [(7, 31), (31, 7), (13, 13)])
def test_orthogonalized_matrices_have_singular_values_near_one(rows: int, columns: int) -> None:
    numbers = torch.Generator().manual_seed(2)
    # Two matrices of very different size: each goes by itself.
    matrices = torch.randn(2, rows, columns, generator=numbers, dtype=torch.float64)
    matrices[1] *= 1e4
    found = orthogonalize(matrices, torch.float64)
    values = torch.linalg.svdvals(found)
    significant = torch.linalg.svdvals(matrices / torch.linalg.matrix_norm(matrices)[:, None, None])
    assert float(values.max()) < 1.25
    assert float(values[significant > 0.02].min()) > 0.6
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    aligned = torch.diagonal(left.transpose(1, 2) @ found @ right.transpose(1, 2), dim1=1, dim2=2)
    # The singular vectors are the old ones.
    assert torch.allclose(aligned.sort(descending=True).values, values, atol=1e-9)


def test_muon_takes_the_same_step_as_pytorchs() -> None:
    training = TrainingConfig(optimizer="muon", weight_decay=0.1)
    model, other = make_model(), make_model()
    run(model, Optimizer(model, training), range(1, 4))
    matrices = [
        weight for name, weight in other.named_parameters() if is_inner_matrix(name, weight)
    ]
    theirs = torch.optim.Muon(matrices, lr=0, weight_decay=0.1, adjust_lr_fn="original")
    for step in range(1, 4):
        put_gradients(other, step)
        for group in theirs.param_groups:
            group["lr"] = MUON_RATE * step
        theirs.step()
    expected, before = weights_of(other), weights_of(make_model())
    for name, weight in model.named_parameters():
        if is_inner_matrix(name, weight):
            ours = weight.detach() - before[name]
            reference = expected[name] - before[name]
            similarity = torch.cosine_similarity(ours.flatten(), reference.flatten(), dim=0)
            assert float(similarity) > 0.99
            assert float(ours.norm() / reference.norm()) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("kind", ["adam", "adamw", "muon"])
def test_restored_optimizer_goes_on_bit_for_bit(kind: Any) -> None:
    training = TrainingConfig(optimizer=kind, weight_decay=0.1)
    whole = make_model()
    run(whole, Optimizer(whole, training), range(1, 8))
    first = make_model()
    optimizer = Optimizer(first, training)
    run(first, optimizer, range(1, 4))
    saved = safetensors.torch.load(safetensors.torch.save(optimizer.tensors()))
    second = make_model()
    second.load_state_dict(first.state_dict())
    optimizer = Optimizer(second, training)
    optimizer.restore(saved)
    run(second, optimizer, range(4, 8))
    expected = weights_of(whole)
    assert all(torch.equal(weight, expected[name]) for name, weight in weights_of(second).items())


@pytest.mark.parametrize("kind", ["adam", "muon"])
def test_state_of_another_model_is_refused(kind: Any) -> None:
    training = TrainingConfig(optimizer=kind)
    model = make_model()
    optimizer = Optimizer(model, training)
    run(model, optimizer, range(1, 2))
    tensors = optimizer.tensors()
    name = "encoder.layers.0.feed_forward.inner.weight"
    key = f"momentum.{name}" if kind == "muon" else f"exp_avg.{name}"
    for damaged in (
        {**tensors, key: torch.zeros(3, 5)},
        {**tensors, "exp_avg.other": tensors[key]},
    ):
        with pytest.raises(BundleError, match="optimizer must fit"):
            Optimizer(make_model(), training).restore(damaged)


@pytest.mark.parametrize("kind", ["adam", "adamw", "muon"])
def test_frozen_and_unused_weights_stay(kind: Any) -> None:
    model = make_model()
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(not name.startswith("encoder."))
    optimizer = Optimizer(model, TrainingConfig(optimizer=kind, weight_decay=0.5))
    put_gradients(model, 1)
    unused = model.decoder.layers[0].feed_forward.inner.weight
    unused.grad = None
    before = weights_of(model)
    optimizer.step(RATE, MUON_RATE)
    moved = {name for name, now in weights_of(model).items() if not torch.equal(now, before[name])}
    assert "embedding.weight" in moved
    assert "decoder.layers.0.feed_forward.inner.weight" not in moved
    assert not any(name.startswith("encoder.") for name in moved)
    assert not any("encoder." in name for name in optimizer.tensors())


def test_gradient_norm_is_that_of_all_gradients_and_clipping_keeps_the_direction() -> None:
    model = make_model()
    optimizer = Optimizer(model, TrainingConfig())
    put_gradients(model, 1)
    flat = torch.cat(
        [weight.grad.flatten() for weight in model.parameters() if weight.grad is not None]
    )
    norm = optimizer.gradient_norm()
    assert float(norm) == pytest.approx(float(flat.norm()), rel=1e-5)
    optimizer.clip_(norm, 10 * float(norm))
    assert float(optimizer.gradient_norm()) == pytest.approx(float(norm), rel=1e-6)
    optimizer.clip_(norm, 0.5)
    clipped = torch.cat([w.grad.flatten() for w in model.parameters() if w.grad is not None])
    assert float(clipped.norm()) == pytest.approx(0.5, rel=1e-5)
    assert float(torch.cosine_similarity(clipped, flat, dim=0)) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("kind", ["adam", "adamw", "muon"])
def test_state_that_lacks_a_part_is_refused_and_nothing_is_taken(kind: Any) -> None:
    training = TrainingConfig(optimizer=kind)
    model = make_model()
    optimizer = Optimizer(model, training)
    run(model, optimizer, range(1, 3))
    saved = optimizer.tensors()
    for lacking in saved:
        fresh = Optimizer(make_model(), training)
        with pytest.raises(BundleError, match=f"{lacking} does not"):
            fresh.restore({name: tensor for name, tensor in saved.items() if name != lacking})
        assert not any(tensor.any() for tensor in fresh.tensors().values())
    halved = {name: tensor.to(torch.bfloat16) for name, tensor in saved.items()}
    with pytest.raises(BundleError, match="optimizer must fit"):
        Optimizer(make_model(), training).restore(halved)


@pytest.mark.parametrize("kind", ["adam", "adamw", "muon"])
def test_state_before_the_first_update_goes_on_like_a_new_one(kind: Any) -> None:
    training = TrainingConfig(optimizer=kind)
    model = make_model()
    optimizer = Optimizer(model, training)
    optimizer.restore(Optimizer(make_model(), training).tensors())
    run(model, optimizer, range(1, 3))
    other = make_model()
    run(other, Optimizer(other, training), range(1, 3))
    expected = weights_of(other)
    assert all(torch.equal(weight, expected[name]) for name, weight in weights_of(model).items())


@pytest.mark.parametrize("kind", ["adam", "adamw", "muon"])
def test_every_optimizer_finds_the_bottom_of_a_bowl(kind: Any) -> None:
    numbers = torch.Generator().manual_seed(7)
    target = torch.randn(5, 3, generator=numbers)
    layer = nn.Linear(3, 5)
    optimizer = Optimizer(layer, TrainingConfig(optimizer=kind))

    def loss() -> Tensor:
        return ((layer.weight - target) ** 2).sum() + (layer.bias**2).sum()

    for step in range(300):
        layer.zero_grad()
        loss().backward()  # type: ignore[no-untyped-call]
        left = 1 - step / 300
        optimizer.step(0.1 * left, 0.1 * left)
    assert loss().item() < 1e-3


def test_matrices_in_bfloat16_are_orthogonalized_nearly_alike() -> None:
    numbers = torch.Generator().manual_seed(2)
    matrices = torch.randn(3, 13, 29, generator=numbers)
    exact = orthogonalize(matrices, torch.float32)
    coarse = orthogonalize(matrices, torch.bfloat16)
    assert coarse.dtype == torch.float32
    assert not torch.equal(coarse, exact)
    similarity = torch.cosine_similarity(coarse.flatten(1), exact.flatten(1))
    assert float(similarity.min()) > 0.99


def test_matrices_move_alike_however_many_go_together(monkeypatch: pytest.MonkeyPatch) -> None:
    training = TrainingConfig(optimizer="muon")
    found = []
    for numbers_at_once in (1, 2**26):
        monkeypatch.setattr(
            "pellucid.training.weights.optimizer.STACK_SIZE_ON_CPU", numbers_at_once
        )
        model = make_model()
        run(model, Optimizer(model, training), range(1, 4))
        found.append(weights_of(model))
    for name, weight in found[0].items():
        assert float((weight - found[1][name]).abs().max()) < 1e-5, name
