"""Properties of the model with any weights: padding, order, rows, heads, both paths."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pellucid.attention import attend
from pellucid.config import ModelConfig
from pellucid.model import FeedForward, MultiHeadAttention, Site, Transformer, initialize

B, S, T, H, K, E, F, V = 3, 5, 7, 2, 13, 17, 19, 37


class Recorder:
    def __init__(self) -> None:
        self.seen: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        self.seen[f"{site}.{stage}"] = tensor


def make_config(**changes: Any) -> ModelConfig:
    sizes: dict[str, Any] = {
        "d_model": 14,
        "d_ff": F,
        "num_heads": H,
        "d_key": K,
        "d_value": E,
        "num_encoder_layers": 2,
        "num_decoder_layers": 2,
        "projection_bias": True,
        "source_vocabulary_size": V,
        "target_vocabulary_size": V,
        "max_source_length": 151,
        "max_target_length": 151,
    }
    return ModelConfig(**{**sizes, **changes})


def make_model(**changes: Any) -> Transformer:
    model = Transformer(make_config(**changes)).double()
    initialize(model, seed=3)
    return model


def make_batch(
    source_length: int = S, target_length: int = T
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(13)
    source_BS = torch.randint(V, (B, source_length), generator=numbers)
    target_BT = torch.randint(V, (B, target_length), generator=numbers)
    source_mask_BS = torch.arange(source_length) < torch.tensor([[source_length], [2], [1]])
    target_mask_BT = torch.arange(target_length) < torch.tensor([[3], [target_length], [1]])
    return source_BS, target_BT, source_mask_BS, target_mask_BT


def pad(ids: Tensor, amount: int, *, seed: int = 17) -> Tensor:
    """Lengthen rows by random tokens, since the padding's content must not matter."""
    numbers = torch.Generator().manual_seed(seed)
    junk = torch.randint(V, (len(ids), amount), generator=numbers)
    return torch.cat([ids, junk], dim=1)


def pad_mask(mask: Tensor, amount: int) -> Tensor:
    return torch.cat([mask, mask.new_zeros(len(mask), amount)], dim=1)


def assert_near(actual: Tensor, expected: Tensor, tolerance: float = 1e-10) -> None:
    assert actual.shape == expected.shape
    difference = (actual - expected).detach().abs()
    largest, mean = float(difference.max()), float(difference.mean())
    assert largest <= tolerance, f"largest difference {largest:.3g}, mean {mean:.3g}"


@pytest.mark.parametrize("source_length", [S, 127, 128, 129])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_forward_with_a_probe_equals_forward_without(norm: str, source_length: int) -> None:
    """Lengths on both sides of the one at which the fast path switches."""
    model = make_model(norm=norm)
    source_BS, target_BT, source_mask_BS, target_mask_BT = make_batch(source_length)
    source_mask_BS[2] = False
    arguments: dict[str, Any] = {"target_mask_BT": target_mask_BT}
    with torch.no_grad():
        seen = model(source_BS, target_BT, source_mask_BS, probe=Recorder(), **arguments)
        unseen = model(source_BS, target_BT, source_mask_BS, **arguments)
    assert_near(unseen, seen)


@pytest.mark.parametrize("length", [S, 131])
def test_gradients_with_a_probe_equal_gradients_without(length: int) -> None:
    model = make_model()
    source_BS, target_BT, source_mask_BS, _ = make_batch(length)
    source_mask_BS[2] = False  # a row that may attend nowhere must not spoil the others
    gradients = []
    for probe in (Recorder(), None):
        loss = model(source_BS, target_BT, source_mask_BS, probe=probe).square().mean()
        gradients.append(torch.autograd.grad(loss, list(model.parameters())))
    for (name, _), with_probe, without in zip(model.named_parameters(), *gradients, strict=True):
        assert bool(without.isfinite().all()), name
        assert_near(without, with_probe)


@pytest.mark.parametrize("amount", [1, 4, 127])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_logits_of_real_positions_do_not_depend_on_padding(norm: str, amount: int) -> None:
    model = make_model(norm=norm)
    source_BS, target_BT, source_mask_BS, target_mask_BT = make_batch()
    with torch.no_grad():
        expected_BTV = model(source_BS, target_BT, source_mask_BS, target_mask_BT=target_mask_BT)
        longer = pad(source_BS, amount), pad(target_BT, amount)
        mask_BS, mask_BT = pad_mask(source_mask_BS, amount), pad_mask(target_mask_BT, amount)
        masked_BTV = model(*longer, mask_BS, target_mask_BT=mask_BT)[:, :T]
        causal_BTV = model(*longer, mask_BS)[:, :T]
    real_BT = target_mask_BT
    assert_near(masked_BTV[real_BT], expected_BTV[real_BT])
    assert_near(causal_BTV[real_BT], expected_BTV[real_BT])


def test_logits_of_a_sentence_alone_equal_its_logits_in_a_batch() -> None:
    model = make_model()
    source_BS, target_BT, source_mask_BS, target_mask_BT = make_batch()
    with torch.no_grad():
        batch_BTV = model(source_BS, target_BT, source_mask_BS)
        for row in range(B):
            source_1S = source_BS[row : row + 1, : int(source_mask_BS[row].sum())]
            target_1T = target_BT[row : row + 1, : int(target_mask_BT[row].sum())]
            alone_1TV = model(source_1S, target_1T)
            assert_near(batch_BTV[row, : target_1T.shape[1]], alone_1TV[0])


def test_padded_positions_get_weight_exactly_zero() -> None:
    model = make_model()
    source_BS, target_BT, source_mask_BS, target_mask_BT = make_batch()
    recorder = Recorder()
    model(source_BS, target_BT, source_mask_BS, target_mask_BT=target_mask_BT, probe=recorder)
    for layer in range(2):
        for place, mask in (
            (f"encoder.{layer}.self", source_mask_BS),
            (f"decoder.{layer}.self", target_mask_BT),
            (f"decoder.{layer}.cross", source_mask_BS),
        ):
            weights_BHLM = recorder.seen[f"{place}.weights"]
            on_padding = weights_BHLM.masked_select(~mask[:, None, None, :])
            assert on_padding.numel() > 0
            assert float(on_padding.detach().abs().max()) == 0.0
            assert_near(weights_BHLM.sum(-1), torch.ones_like(weights_BHLM[..., 0]))


def test_decoder_rows_give_later_rows_weight_exactly_zero() -> None:
    model = make_model()
    source_BS, target_BT, source_mask_BS, _ = make_batch()
    recorder = Recorder()
    model(source_BS, target_BT, source_mask_BS, probe=recorder)
    for layer in range(2):
        weights_BHTT = recorder.seen[f"decoder.{layer}.self.weights"].detach()
        assert torch.equal(weights_BHTT, weights_BHTT.tril())
        assert bool((weights_BHTT.diagonal(dim1=-2, dim2=-1) > 0).all())


def test_logits_of_a_row_do_not_depend_on_later_targets() -> None:
    model = make_model()
    source_BS, target_BT, source_mask_BS, _ = make_batch()
    changed_BT = target_BT.clone()
    changed_BT[:, 4:] = (changed_BT[:, 4:] + 1) % V
    with torch.no_grad():
        before = model(source_BS, target_BT, source_mask_BS)
        after = model(source_BS, changed_BT, source_mask_BS)
    assert_near(after[:, :4], before[:, :4])
    assert float((after[:, 4:] - before[:, 4:]).abs().min(dim=-1).values.max()) > 0


def test_logits_without_look_ahead_mask_depend_on_later_targets() -> None:
    model = make_model(look_ahead_mask=False)
    source_BS, target_BT, source_mask_BS, _ = make_batch()
    changed_BT = target_BT.clone()
    changed_BT[:, -1] = (changed_BT[:, -1] + 1) % V
    with torch.no_grad():
        before = model(source_BS, target_BT, source_mask_BS)
        after = model(source_BS, changed_BT, source_mask_BS)
    assert float((after[:, 0] - before[:, 0]).abs().max()) > 1e-6


def test_encoder_without_positions_permutes_with_its_input() -> None:
    model = make_model(positions="none")
    source_BS, _, source_mask_BS, _ = make_batch()
    order = torch.tensor([3, 0, 4, 2, 1])
    with torch.no_grad():
        expected_BSD = model.encode(source_BS, source_mask_BS)[:, order]
        actual_BSD = model.encode(source_BS[:, order], source_mask_BS[:, order])
    assert_near(actual_BSD, expected_BSD)


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_halves", "learned"])
def test_encoder_with_positions_does_not_permute_with_its_input(positions: str) -> None:
    model = make_model(positions=positions)
    source_BS, _, _, _ = make_batch()
    order = torch.tensor([3, 0, 4, 2, 1])
    with torch.no_grad():
        difference = model.encode(source_BS)[:, order] - model.encode(source_BS[:, order])
    assert float(difference.abs().max()) > 1e-3


def test_one_rows_feed_forward_and_projections_equal_that_row_of_the_whole() -> None:
    config = make_config()
    feed_forward = FeedForward(config).double()
    attention = MultiHeadAttention(config).double()
    x_BLD = torch.randn(B, S, 14, dtype=torch.float64)
    with torch.no_grad():
        whole = feed_forward(x_BLD, site=Site("here"))
        query_BHLK = attention.project_query(x_BLD)
        key_BHMK, value_BHME = attention.project_key_value(x_BLD)
        for row in range(B):
            for position in range(S):
                one = x_BLD[row : row + 1, position : position + 1]
                key, value = attention.project_key_value(one)
                assert_near(feed_forward(one, site=Site("here"))[0, 0], whole[row, position])
                query = attention.project_query(one)
                assert_near(query[0, :, 0], query_BHLK[row, :, position])
                assert_near(key[0, :, 0], key_BHMK[row, :, position])
                assert_near(value[0, :, 0], value_BHME[row, :, position])


def test_batched_heads_equal_heads_in_a_loop() -> None:
    attention = MultiHeadAttention(make_config(num_heads=3)).double()
    query_BLD = torch.randn(B, T, 14, dtype=torch.float64)
    memory_BMD = torch.randn(B, S, 14, dtype=torch.float64)
    _, _, source_mask_BS, _ = make_batch()
    with torch.no_grad():
        batched_BLD = attention(
            attention.project_query(query_BLD),
            *attention.project_key_value(memory_BMD),
            mask=source_mask_BS[:, None, None, :],
            site=Site("here"),
        )
        summed_BLD = attention.output.bias.expand(B, T, 14)
        for head in range(3):
            keys = slice(head * K, (head + 1) * K)
            values = slice(head * E, (head + 1) * E)
            steps = attend(
                query_BLD @ attention.query.weight[keys].T + attention.query.bias[keys],
                memory_BMD @ attention.key.weight[keys].T + attention.key.bias[keys],
                memory_BMD @ attention.value.weight[values].T + attention.value.bias[values],
                source_mask_BS[:, None, :],
            )
            summed_BLD = summed_BLD + steps.context @ attention.output.weight[:, values].T
    assert_near(batched_BLD, summed_BLD)


def test_weights_without_scale_equal_weights_of_keys_made_larger_by_it() -> None:
    """Not dividing by the root is the same as multiplying the keys by it."""
    scaled, unscaled = make_model(), make_model(scale_scores=False)
    unscaled.load_state_dict(scaled.state_dict())
    source_BS, target_BT, source_mask_BS, _ = make_batch()
    with torch.no_grad():
        different = unscaled(source_BS, target_BT, source_mask_BS)
        for name, parameter in scaled.named_parameters():
            if ".key." in name:
                parameter.mul_(K**0.5)
        assert_near(scaled(source_BS, target_BT, source_mask_BS), different)


def test_training_after_inference_mode_can_use_the_same_positions() -> None:
    """A position table first made while translating must serve training as well."""
    model = make_model(max_source_length=61, max_target_length=61)
    source_BS, target_BT, source_mask_BS, _ = make_batch()

    with torch.inference_mode():
        model(source_BS, target_BT, source_mask_BS)
    model(source_BS, target_BT, source_mask_BS).sum().backward()
    gain = torch.ones((), dtype=torch.float64, requires_grad=True)

    class Gain:
        def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
            return tensor * gain if stage == "positions" else None

    model(source_BS, target_BT, source_mask_BS, probe=Gain()).sum().backward()
    assert gain.grad is not None
