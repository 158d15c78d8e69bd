"""A whole model on the package's own kernels, compared with the same in PyTorch."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any, Literal

import pytest
import torch
from built_kernels import kernels_of_machine
from small_model import make_batch
from torch import Tensor

from pellucid.config import ModelConfig, TrainingConfig
from pellucid.data import Batch
from pellucid.errors import ConfigurationError, InputError
from pellucid.model import Transformer, initialize
from pellucid.native.kernels.kernels import Kernels
from pellucid.training.fast.kernels import kernel_model as kernel_model
from pellucid.training.fast.kernels.kernel_model import choose_kernels
from pellucid.training.update.batch_parts import BatchPart
from pellucid.training.update.passes import Passes
from pellucid.training.weights.optimizer import freeze

V = 37
CPU = torch.device("cpu")


def make_model(**changes: Any) -> Transformer:
    """Two layers on each side, widths that suit the kernels, and weights moved from their start."""
    values = {"d_model": 48, "d_ff": 80, "num_heads": 2, "d_key": 24, "d_value": 40}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2}
    vocabularies = {"source_vocabulary_size": V, "target_vocabulary_size": V}
    model = Transformer(ModelConfig.model_validate(values | layers | vocabularies | changes))
    initialize(model, seed=3)
    draw = torch.Generator().manual_seed(5)
    for weight in model.parameters():
        weight.data += torch.randn(weight.shape, generator=draw) / 11
    return model


def make_full_batch() -> Batch:
    """Sentences of one length: rows with padding and without are the same, and what is dropped."""
    batch = make_batch(7, 5, 11)
    sizes = {"num_source_tokens": 35, "num_target_tokens": 77}
    masks = {
        "source_mask_BS": torch.ones_like(batch.source_mask_BS),
        "target_mask_BT": torch.ones_like(batch.target_mask_BT),
    }
    return Batch(
        batch.source_BS,
        masks["source_mask_BS"],
        batch.target_in_BT,
        batch.target_out_BT,
        masks["target_mask_BT"],
        **sizes,
    )


def gradients(
    model: Transformer,
    batch: Batch,
    kernels: Literal["own", "pytorch"],
    precision: Literal["float32", "bfloat16"] = "float32",
    **settings: Any,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss and the gradients of all weights that have one."""
    training = TrainingConfig(kernels=kernels, **{"dropout": 0.0, **settings})
    passes = Passes(model, training, precision)
    passes.refresh_weights()
    loss = passes.sum_gradients(3, [BatchPart(0, 0.75, batch), BatchPart(1, 0.25, batch)])
    found = {name: one.grad for name, one in model.named_parameters() if one.grad is not None}
    return loss, {name: grad.clone() for name, grad in found.items()}


def assert_same(
    batch: Batch, changes: dict[str, Any], *, rounding: float = 1e-5, **settings: Any
) -> None:
    """Losses agree to 1e-6, gradients to what rounding in float32 makes of them."""
    kernels_of_machine("float32")
    loss, found = gradients(make_model(**changes), batch, "own", **settings)
    expected_loss, expected = gradients(make_model(**changes), batch, "pytorch", **settings)
    assert torch.allclose(loss, expected_loss, rtol=1e-6)
    assert found.keys() == expected.keys()
    longest = max(float(grad.norm()) for grad in expected.values())
    for name, grad in expected.items():
        bound = rounding * float(grad.norm()) + 1e-6 * longest
        assert float((found[name] - grad).norm()) < bound, name


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm": "pre"},
        {"norm": "pre", "residual": False},
        {"projection_bias": False},
        {"positions": "learned", "tied_embeddings": "none"},
        {"positions": "none", "embedding_scale": "none", "tied_embeddings": "decoder"},
        {"scale_scores": False, "look_ahead_mask": False},
    ],
)
def test_every_switch_of_the_model_does_what_it_does_there(changes: dict[str, Any]) -> None:
    assert_same(make_batch(), changes)


def test_without_norm_it_does_too() -> None:
    assert_same(make_batch(), {"norm": "none"}, rounding=3e-4)  # Numbers grow from layer to layer.


@pytest.mark.parametrize("sizes", [(1, 1, 1), (13, 3, 2), (5, 29, 71), (2, 3, 211)])
def test_any_number_of_sentences_of_any_length(sizes: tuple[int, int, int]) -> None:
    assert_same(make_batch(*sizes), {})


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_drops_what_it_drops_there(norm: str) -> None:
    rates = {"dropout": 0.3, "feed_forward_dropout": 0.2, "token_dropout": 0.1}
    assert_same(make_full_batch(), {"norm": norm}, **rates)


@pytest.mark.parametrize("head", [(0, 1), (1, 0)])
def test_a_guided_head_learns_its_links_as_it_does_there(head: tuple[int, int]) -> None:
    address = f"decoder.{head[0]}.cross.{head[1]}"
    batch = make_batch()
    links = torch.rand(batch.target_in_BT.shape[1], batch.source_BS.shape[1])
    guide_BTS = links * batch.target_mask_BT[:, :, None] * batch.source_mask_BS[:, None, :]
    guide_BTS /= guide_BTS.sum(dim=2, keepdim=True).clamp(min=1e-9)
    guide_BTS[:, 1] = 0  # A token without links.
    guided = replace(batch, guide_BTS=guide_BTS)
    assert_same(guided, {}, guided_head=address, guided_weight=2.0)
    kernels_of_machine("float32")
    _, without = gradients(make_model(), batch, "own", guided_head=address, guided_weight=2.0)
    _, found = gradients(make_model(), guided, "own", guided_head=address, guided_weight=2.0)
    name = f"decoder.layers.{head[0]}.cross_attention.query.weight"
    assert not torch.allclose(found[name], without[name], rtol=0.1)


@pytest.mark.parametrize(
    ("changes", "penalties"),
    [
        ({}, {"score_penalty": 3.0}),
        ({}, {"score_penalty_decoder": 2.0}),
        ({}, {"score_penalty_cross": 2.0, "guided_head": "decoder.1.cross.0"}),
        ({}, {"score_penalty": 3.0, "score_penalty_margin": 0.05}),
        (
            {"scale_scores": False, "look_ahead_mask": False},
            {"score_penalty": 0.3, "score_penalty_decoder": 0.2},
        ),
        ({"norm": "pre"}, {"score_penalty": 3.0, "score_penalty_decoder": 2.0, "r_drop": 3.0}),
    ],
)
def test_a_score_penalty_moves_scores_as_it_does_there(
    changes: dict[str, Any], penalties: dict[str, Any]
) -> None:
    batch = make_batch()
    dropout = {"dropout": 0.3} if "r_drop" in penalties else {}
    batch = make_full_batch() if dropout else batch
    assert_same(batch, changes, rounding=3e-5 if dropout else 1e-5, **penalties, **dropout)
    _, without = gradients(make_model(), batch, "own")
    _, found = gradients(make_model(), batch, "own", **penalties)
    for name in penalties.keys() & {"score_penalty", "score_penalty_decoder"}:
        part = "decoder" if "decoder" in name else "encoder"
        for layer in range(2):
            weight = f"{part}.layers.{layer}.self_attention.key.weight"
            assert not torch.allclose(found[weight], without[weight], rtol=0.1)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_r_drop_pulls_together_what_it_does_there(norm: str) -> None:
    assert_same(make_full_batch(), {"norm": norm}, rounding=3e-5, dropout=0.3, r_drop=3.0)


def test_the_second_reading_loses_the_same_tokens_there() -> None:
    assert_same(make_full_batch(), {}, rounding=3e-5, r_drop=3.0, token_cut=0.4)
    assert_same(make_full_batch(), {}, rounding=3e-5, r_drop=3.0, token_cut=0.4, token_dropout=0.3)


@pytest.mark.parametrize("kernels", ["own", "pytorch"])
def test_r_drop_changes_nothing_where_both_readings_are_the_same(
    kernels: Literal["own", "pytorch"],
) -> None:
    if kernels == "own":
        kernels_of_machine("float32")
    loss, found = gradients(make_model(), make_batch(), kernels, r_drop=5.0)
    expected_loss, expected = gradients(make_model(), make_batch(), kernels)
    assert torch.allclose(loss, expected_loss, rtol=1e-6)
    for name, grad in expected.items():
        assert torch.allclose(found[name], grad, rtol=1e-4, atol=1e-6), name


def test_frozen_weights_get_no_gradient_and_the_others_the_same() -> None:
    kernels_of_machine("float32")
    batch, found = make_batch(), []
    for kernels in ("own", "pytorch"):
        model = make_model(tied_embeddings="none")
        freeze(model, ("encoder", "target_embedding", "output", "decoder.layers.1.self_attention"))
        found.append(gradients(model, batch, kernels)[1])
    assert found[0].keys() == found[1].keys()
    assert not any(name.startswith(("encoder", "output")) for name in found[0])
    for name, grad in found[1].items():
        assert torch.allclose(found[0][name], grad, rtol=1e-4, atol=1e-6), name


def test_a_bias_beside_a_frozen_weight_learns() -> None:
    kernels_of_machine("float32")
    model = make_model(projection_bias=True)
    freeze(model, ("encoder.layers.0.feed_forward.inner.weight",))
    found = gradients(model, make_batch(), "own")[1]
    assert found["encoder.layers.0.feed_forward.inner.bias"].norm() > 0.01


def test_where_memory_runs_out_nothing_is_kept_for_the_way_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernels_of_machine("float32")
    model, batch = make_model(norm="pre"), make_batch()
    training = TrainingConfig(kernels="own", dropout=0.1)
    passes = Passes(model, training, "float32")
    passes.refresh_weights()
    made = []
    rows = Kernels.empty

    def make(self: Kernels, count: int, width: int) -> Tensor:
        tensor = rows(self, count, width)
        made.append(weakref.ref(tensor))
        return tensor

    def refuse(*_arguments: Any, **_settings: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(Kernels, "empty", make)
    with monkeypatch.context() as patch:
        patch.setattr(Kernels, "cross_entropy", refuse)
        with pytest.raises(MemoryError):
            passes.sum_gradients(1, [BatchPart(0, 1.0, batch)])
    gc.collect()
    assert made
    assert [one() for one in made if one() is not None] == []
    made.clear()
    assert passes.sum_gradients(1, [BatchPart(0, 1.0, batch)]).isfinite()
    gc.collect()
    assert [one() for one in made if one() is not None] == [], "nor after the way back"


def test_in_bfloat16_gradients_point_the_same_way() -> None:
    kernels_of_machine("bfloat16")
    loss, found = gradients(make_model(), make_batch(), "own", "bfloat16")
    expected_loss, expected = gradients(make_model(), make_batch(), "pytorch")
    assert torch.allclose(loss, expected_loss, rtol=1e-3)
    ours, theirs = (torch.cat([g.flatten() for g in one.values()]) for one in (found, expected))
    assert torch.cosine_similarity(ours, theirs, dim=0) > 0.998


def test_the_same_batch_gives_the_same_bytes_with_any_number_of_threads() -> None:
    kernels_of_machine("float32")
    before, found = torch.get_num_threads(), []
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found.append(gradients(make_model(), make_batch(), "own", dropout=0.3)[1])
    torch.set_num_threads(before)
    for others in found[1:]:
        assert all(torch.equal(found[0][name], other) for name, other in others.items())


def test_a_sentence_longer_than_the_model_takes_is_refused() -> None:
    kernels_of_machine("float32")
    model = make_model(max_target_length=10)
    with pytest.raises(InputError, match=r"at most 10 tokens for this decoder, but has 11"):
        gradients(model, make_full_batch(), "own")


@pytest.mark.parametrize("side", ["source_BS", "target_in_BT", "target_out_BT"])
@pytest.mark.parametrize("token", [-1, V])
def test_a_token_that_the_vocabulary_lacks_is_refused(side: str, token: int) -> None:
    kernels_of_machine("float32")
    batch = make_full_batch()
    getattr(batch, side)[3, 2] = token
    with pytest.raises(IndexError, match=f"in a vocabulary of {V}"):
        gradients(make_model(), batch, "own")


@pytest.mark.parametrize(
    ("changes", "settings", "why"),
    [
        ({"activation": "gelu"}, {}, "model.activation is gelu"),
        ({"d_model": 22}, {}, "model.d_model is not a multiple of 16"),
        ({"d_key": 7}, {}, "model.num_heads times d_key is not a multiple of 16"),
        ({"projections": "qk", "d_value": 24}, {}, "model.projections is qk"),
        ({}, {"attention_dropout": 0.1}, "training.attention_dropout is above 0"),
    ],
)
def test_what_kernels_cannot_is_left_to_pytorch_and_said(
    changes: dict[str, Any], settings: dict[str, Any], why: str
) -> None:
    kernels_of_machine("float32")
    config = make_model(**changes).config
    chosen = choose_kernels(config, TrainingConfig(**settings), "float32", CPU)
    assert chosen == (None, f"PyTorch's kernels, not own: {why}")
    asked = TrainingConfig(kernels="own", **settings)
    with pytest.raises(ConfigurationError, match=f"{why}. Use training.kernels = 'auto'"):
        choose_kernels(config, asked, "float32", CPU)


def test_a_bias_of_the_output_and_another_device_are_left_to_pytorch() -> None:
    kernels_of_machine("float32")
    config, training = make_model().config, TrainingConfig()
    chosen = choose_kernels(config, training, "float32", CPU, has_output_bias=True)
    assert chosen.description == "PyTorch's kernels, not own: the output has a bias"
    chosen = choose_kernels(config, training, "float32", torch.device("cuda"))
    assert chosen.description == "PyTorch's kernels, not own: the device is cuda"


def test_where_there_are_none_pytorch_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_model, "find_kernels", lambda _precision: "they are elsewhere")
    config = make_model().config
    chosen = choose_kernels(config, TrainingConfig(), "float32", CPU)
    assert chosen == (None, "PyTorch's kernels, not own: they are elsewhere")
    with pytest.raises(ConfigurationError, match="they are elsewhere"):
        choose_kernels(config, TrainingConfig(kernels="own"), "float32", CPU)


def test_wide_models_are_left_to_pytorch_where_there_is_amx(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kernels_of_machine("bfloat16")
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    training = TrainingConfig()
    wide = make_model(d_model=512).config
    assert choose_kernels(wide, training, "bfloat16", CPU).kernels is None
    assert choose_kernels(wide, training, "float32", CPU).kernels is not None
    assert choose_kernels(make_model().config, training, "bfloat16", CPU).kernels is not None
