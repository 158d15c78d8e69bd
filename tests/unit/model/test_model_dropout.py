"""Dropout as a value: masks follow from (seed, step, place), and nothing is biased."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch
from torch import Tensor

from pellucid.config import ModelConfig
from pellucid.model import Dropout, Transformer, initialize

B, S, T, V = 2, 5, 7, 37


def make_model(**changes: Any) -> Transformer:
    sizes: dict[str, Any] = {
        "d_model": 22,
        "d_ff": 19,
        "num_heads": 2,
        "num_encoder_layers": 2,
        "num_decoder_layers": 1,
        "source_vocabulary_size": V,
        "target_vocabulary_size": V,
    }
    model = Transformer(ModelConfig(**{**sizes, **changes})).double()
    initialize(model, seed=3)
    return model


def make_batch() -> tuple[Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(5)
    source_BS = torch.randint(V, (B, S), generator=numbers)
    return source_BS, torch.randint(V, (B, T), generator=numbers)


def kept(dropout: Dropout, place: str = "here", count: int = 4096) -> Tensor:
    return dropout(torch.ones(count), place) != 0


def test_dropout_with_the_same_seed_step_and_place_gives_the_same_mask() -> None:
    torch.manual_seed(1)
    first = kept(Dropout(0.3, seed=1, step=2))
    torch.manual_seed(2)
    kept(Dropout(0.3, seed=9, step=9))
    assert torch.equal(first, kept(Dropout(0.3, seed=1, step=2)))


@pytest.mark.parametrize(
    ("seed", "step", "place"), [(2, 2, "here"), (1, 3, "here"), (1, 2, "there"), (12, 0, "here")]
)
def test_dropout_with_another_seed_step_or_place_gives_another_mask(
    seed: int, step: int, place: str
) -> None:
    first = kept(Dropout(0.5, seed=1, step=2))
    other = kept(Dropout(0.5, seed=seed, step=step), place)
    # Independent masks of rate 1/2 agree on half of the elements, here within 6 deviations.
    agreement = float((first == other).float().mean())
    assert agreement == pytest.approx(0.5, abs=6 * 0.5 / math.sqrt(4096))


@pytest.mark.parametrize("rate", [0.004, 0.05, 0.1, 0.3, 0.5, 0.9, 0.99])
def test_dropout_of_any_rate_keeps_the_mean_and_drops_that_share(rate: float) -> None:
    count = 500_000
    result = Dropout(rate, seed=1, step=2)(torch.ones(count, dtype=torch.float64), "here")
    used = round(rate * 256) / 256
    deviation = math.sqrt(used * (1 - used) / count)
    assert abs(used - rate) <= 1 / 512
    assert float((result == 0).double().mean()) == pytest.approx(used, abs=6 * deviation)
    assert float(result.mean()) == pytest.approx(1, abs=6 * deviation / (1 - used))
    # Scaled by the rate that is used, not the one asked for, so the expectation is exactly 1.
    values = result.unique()
    assert values.tolist() == pytest.approx([0, 1 / (1 - used)], abs=1e-12)


@pytest.mark.parametrize("rate", [0.998, 0.9981, 0.999, 0.99999])
def test_dropout_of_a_rate_just_below_one_gives_finite_numbers(rate: float) -> None:
    result = Dropout(rate, seed=1, step=2)(torch.ones(4096), "here")
    assert bool(result.isfinite().all())


def test_dropout_of_rate_zero_returns_its_input() -> None:
    x = torch.randn(3, 5)
    assert Dropout(0.0, seed=1, step=2)(x, "here") is x


def test_dropout_of_neighboring_places_and_steps_is_uncorrelated() -> None:
    places = [(step, f"encoder.{layer}.self") for step in range(4) for layer in range(3)]
    masks = torch.stack([kept(Dropout(0.5, 1, step), place).double() for step, place in places])
    correlations = torch.corrcoef(masks) - torch.eye(len(places))
    assert float(correlations.abs().max()) < 6 / math.sqrt(4096)


def test_dropout_gradient_uses_the_same_mask() -> None:
    x = torch.randn(7, 11, 13, dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(7, 11, 13, dtype=torch.float64)
    result = Dropout(0.3, seed=1, step=2)(x, "here")
    (gradient,) = torch.autograd.grad(result, x, upstream)
    multiplier = (result / x).detach()
    assert torch.allclose(gradient, upstream * multiplier, rtol=0, atol=1e-12)
    assert set(multiplier.round(decimals=9).unique().tolist()) == {
        0.0,
        round(256 / (256 - round(0.3 * 256)), 9),
    }


def test_dropout_passes_gradcheck() -> None:
    x = torch.randn(3, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: Dropout(0.4, 1, 2)(x, "here"), x)


def test_dropout_mask_does_not_depend_on_number_type_or_shape() -> None:
    dropout = Dropout(0.3, seed=1, step=2)
    single = dropout(torch.ones(5, 7), "here")
    double = dropout(torch.ones(35, dtype=torch.float64), "here")
    assert torch.equal(single.flatten() != 0, double != 0)


def test_dropout_gives_the_mask_it_always_gave() -> None:
    assert kept(Dropout(0.5, seed=1, step=2), "encoder.0.self", 11).tolist() == [
        byte >= 128 for byte in (201, 76, 78, 181, 217, 62, 138, 225, 15, 198, 165)
    ]


class Asked(Dropout):
    """A dropout that notes its calls and drops nothing."""

    def __init__(self, **rates: float) -> None:
        super().__init__(0.1, 1, 2, **rates)
        object.__setattr__(self, "asked", Counter())

    asked: Counter[tuple[str, tuple[int, ...]]]

    def _drop(self, tensor: Tensor, place: str, rate: float) -> Tensor:
        if rate:
            self.asked[place, tuple(tensor.shape)] += 1
        return tensor


OF_THE_PAPER = {
    ("encoder.input", (B, S, 22)): 1,
    ("encoder.0.self", (B, S, 22)): 1,
    ("encoder.0.feed_forward", (B, S, 22)): 1,
    ("encoder.1.self", (B, S, 22)): 1,
    ("encoder.1.feed_forward", (B, S, 22)): 1,
    ("decoder.input", (B, T, 22)): 1,
    ("decoder.0.self", (B, T, 22)): 1,
    ("decoder.0.cross", (B, T, 22)): 1,
    ("decoder.0.feed_forward", (B, T, 22)): 1,
}


def test_model_asks_for_dropout_where_the_paper_has_it_and_nowhere_else() -> None:
    dropout = Asked()
    make_model()(*make_batch(), dropout=dropout)
    assert dropout.asked == OF_THE_PAPER


def test_model_asks_for_other_dropout_when_it_has_a_rate() -> None:
    dropout = Asked(attention_rate=0.2, feed_forward_rate=0.3, token_rate=0.4)
    make_model()(*make_batch(), dropout=dropout)
    assert dropout.asked == OF_THE_PAPER | {
        ("encoder.0.self.weights", (B, 2, S, S)): 1,
        ("encoder.1.self.weights", (B, 2, S, S)): 1,
        ("decoder.0.self.weights", (B, 2, T, T)): 1,
        ("decoder.0.cross.weights", (B, 2, T, S)): 1,
        ("encoder.0.feed_forward.activated", (B, S, 19)): 1,
        ("encoder.1.feed_forward.activated", (B, S, 19)): 1,
        ("decoder.0.feed_forward.activated", (B, T, 19)): 1,
        ("encoder.tokens", (B, S)): 1,
        ("decoder.tokens", (B, T)): 1,
    }


def test_dropped_tokens_lose_their_whole_embedding_and_the_mean_stays() -> None:
    embedding_BLD = torch.ones(211, 101, 3, dtype=torch.float64)
    dropped_BLD = Dropout(0.0, seed=1, step=2, token_rate=0.25).on_tokens(embedding_BLD, "encoder")
    assert torch.equal(dropped_BLD[..., :1].expand_as(dropped_BLD), dropped_BLD)
    assert dropped_BLD.unique().tolist() == pytest.approx([0, 1 / 0.75])
    deviation = math.sqrt(0.25 * 0.75 / (211 * 101))
    assert float((dropped_BLD == 0).double().mean()) == pytest.approx(0.25, abs=5 * deviation)


def test_the_second_reading_of_a_pair_is_cut_and_the_first_is_not() -> None:
    embedding_BLD = torch.ones(2 * 107, 101, 3, dtype=torch.float64)
    cut_BLD = Dropout(0.0, seed=1, step=2, cut_rate=0.25).on_tokens(embedding_BLD, "encoder")
    first_BLD, second_BLD = cut_BLD.chunk(2)
    assert torch.equal(first_BLD, embedding_BLD[:107])
    assert torch.equal(second_BLD[..., :1].expand_as(second_BLD), second_BLD)
    # Not scaled: the difference of both readings is what the model is asked to bridge.
    assert second_BLD.unique().tolist() == [0, 1]
    deviation = math.sqrt(0.25 * 0.75 / (107 * 101))
    assert float((second_BLD == 0).double().mean()) == pytest.approx(0.25, abs=5 * deviation)


def test_model_with_dropout_is_a_pure_function_of_seed_and_step() -> None:
    model = make_model()
    batch = make_batch()
    with torch.no_grad():
        first = model(*batch, dropout=Dropout(0.3, 1, 2))
        torch.rand(5)
        assert torch.equal(first, model(*batch, dropout=Dropout(0.3, 1, 2)))
        assert not torch.equal(first, model(*batch, dropout=Dropout(0.3, 1, 3)))
        assert not torch.equal(first, model(*batch, dropout=Dropout(0.3, 2, 2)))
        assert not torch.equal(first, model(*batch))


def test_model_without_dropout_ignores_training_mode() -> None:
    model = make_model()
    batch = make_batch()
    with torch.no_grad():
        assert torch.equal(model.train()(*batch), model.eval()(*batch))


def test_model_with_dropout_and_probe_equals_without_probe() -> None:
    model = make_model()
    batch = make_batch()
    seen: dict[str, Tensor] = {}

    class Recorder:
        def see(self, site: str, stage: str, tensor: Tensor) -> None:
            seen[f"{site}.{stage}"] = tensor

    with torch.no_grad():
        plain = model(*batch, dropout=Dropout(0.3, 1, 2))
        probed = model(*batch, dropout=Dropout(0.3, 1, 2), probe=Recorder())
    assert float((plain - probed).abs().max()) <= 1e-10
    # Weights are shown before any dropout: their rows sum to 1.
    rows = seen["decoder.0.cross.weights"].sum(-1)
    assert float((rows - 1).abs().max()) <= 1e-12
