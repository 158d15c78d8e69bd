"""Decoding with a cache computes what teacher forcing does, however rows are fed."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from pellucid.config import ModelConfig
from pellucid.errors import InputError
from pellucid.model import DecoderCache, GrowingKeysValues, Transformer, initialize

B, S, T, V = 3, 5, 11, 37


def make_model(**changes: Any) -> Transformer:
    sizes: dict[str, Any] = {
        "d_model": 14,
        "d_ff": 19,
        "num_heads": 2,
        "d_key": 13,
        "d_value": 17,
        "num_encoder_layers": 1,
        "num_decoder_layers": 2,
        "source_vocabulary_size": V,
        "target_vocabulary_size": V,
        "max_source_length": 151,
        "max_target_length": 151,
    }
    model = Transformer(ModelConfig(**{**sizes, **changes})).double()
    initialize(model, seed=3)
    return model


def make_batch(target_length: int = T) -> tuple[Tensor, Tensor, Tensor]:
    numbers = torch.Generator().manual_seed(5)
    source_BS = torch.randint(V, (B, S), generator=numbers)
    target_BT = torch.randint(V, (B, target_length), generator=numbers)
    return source_BS, torch.arange(S) < torch.tensor([[S], [S - 2], [1]]), target_BT


def assert_near(actual: Tensor, expected: Tensor, tolerance: float = 1e-10) -> None:
    assert actual.shape == expected.shape
    difference = (actual - expected).abs()
    largest, mean = float(difference.max()), float(difference.mean())
    assert largest <= tolerance, f"largest difference {largest:.3g}, mean {mean:.3g}"


@torch.no_grad()
def feed(model: Transformer, memory_BSD: Tensor, mask_BS: Tensor, pieces: list[Tensor]) -> Tensor:
    """Feed a target piece by piece through one cache: the states of all its rows."""
    cache = model.new_cache()
    return torch.cat([model.decode(p, memory_BSD, mask_BS, cache=cache) for p in pieces], dim=1)


@pytest.mark.parametrize("norm", ["post", "pre", "none"])
@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_halves", "learned", "none"])
def test_cached_decoding_at_every_step_equals_teacher_forcing(positions: str, norm: str) -> None:
    model = make_model(positions=positions, norm=norm)
    source_BS, mask_BS, target_BT = make_batch()
    with torch.no_grad():
        memory_BSD = model.encode(source_BS, mask_BS)
        forced_BTD = model.decode(target_BT, memory_BSD, mask_BS)
        cache = model.new_cache()
        for step in range(T):
            assert cache.length == step
            cached_B1D = model.decode(
                target_BT[:, step : step + 1], memory_BSD, mask_BS, cache=cache
            )
            assert_near(cached_B1D[:, 0], forced_BTD[:, step])
            assert_near(model.logits(cached_B1D), model.logits(forced_BTD)[:, step : step + 1])


def test_decoding_t_rows_gives_t_rows_and_the_last_is_the_cached_one() -> None:
    model = make_model()
    source_BS, mask_BS, target_BT = make_batch()
    with torch.no_grad():
        memory_BSD = model.encode(source_BS, mask_BS)
        cache = model.new_cache()
        for length in range(1, T + 1):
            rows_BTD = model.decode(target_BT[:, :length], memory_BSD, mask_BS)
            newest = target_BT[:, length - 1 : length]
            cached_B1D = model.decode(newest, memory_BSD, mask_BS, cache=cache)
            assert rows_BTD.shape == (B, length, 14)
            assert cached_B1D.shape == (B, 1, 14)
            assert_near(cached_B1D[:, 0], rows_BTD[:, -1])


@pytest.mark.parametrize("sizes", [(3, 1), (1, 3, 1, 6), (11,), (2, 2, 2, 2, 2, 1), (10, 1)])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_cache_fed_several_rows_at_once_equals_teacher_forcing(
    positions: str, sizes: tuple[int, ...]
) -> None:
    model = make_model(positions=positions)
    source_BS, mask_BS, target_BT = make_batch(sum(sizes))
    with torch.no_grad():
        memory_BSD = model.encode(source_BS, mask_BS)
        forced_BTD = model.decode(target_BT, memory_BSD, mask_BS)
    cached_BTD = feed(model, memory_BSD, mask_BS, list(target_BT.split(sizes, dim=1)))
    assert_near(cached_BTD, forced_BTD)


@pytest.mark.parametrize("sizes", [[1] * 37, [15, 1, 1, 16, 1, 1, 3], [17, 33, 1, 89]])
def test_cache_growing_past_its_buffers_keeps_every_row(sizes: list[int]) -> None:
    model = make_model(num_decoder_layers=1)
    source_BS, mask_BS, target_BT = make_batch(sum(sizes))
    with torch.no_grad():
        memory_BSD = model.encode(source_BS, mask_BS)
        forced_BTD = model.decode(target_BT, memory_BSD, mask_BS)
    assert_near(feed(model, memory_BSD, mask_BS, list(target_BT.split(sizes, 1))), forced_BTD)


@pytest.mark.parametrize("rows", [[2, 0, 1], [1], [0, 0, 2, 2, 1], [2, 2]])
def test_reordered_cache_equals_decoding_the_reordered_batch(rows: list[int]) -> None:
    model = make_model()
    source_BS, mask_BS, target_BT = make_batch()
    kept = torch.tensor(rows)
    with torch.no_grad():
        memory_BSD = model.encode(source_BS, mask_BS)
        cache = model.new_cache()
        model.decode(target_BT[:, :4], memory_BSD, mask_BS, cache=cache)
        cache.reorder(kept)
        # After the choice, copies of one row may continue differently.
        numbers = torch.Generator().manual_seed(7)
        rest = torch.randint(V, (len(rows), 3), generator=numbers)
        last = [
            model.decode(rest[:, i : i + 1], memory_BSD[kept], mask_BS[kept], cache=cache)
            for i in range(3)
        ]
        whole = torch.cat([target_BT[kept, :4], rest], dim=1)
        forced_BTD = model.decode(whole, memory_BSD[kept], mask_BS[kept])
    assert cache.length == 7
    assert_near(torch.cat(last, dim=1), forced_BTD[:, 4:])


def test_cache_reordered_to_no_rows_has_no_rows() -> None:
    model = make_model()
    source_BS, mask_BS, target_BT = make_batch()
    with torch.no_grad():
        cache = model.new_cache()
        model.decode(target_BT, model.encode(source_BS, mask_BS), mask_BS, cache=cache)
    cache.reorder(torch.tensor([], dtype=torch.long))
    assert cache.layers[0].cross_attention is not None
    assert cache.layers[0].cross_attention[0].shape[0] == 0


def test_empty_cache_reordered_stays_empty() -> None:
    cache = DecoderCache(2)
    cache.reorder(torch.tensor([1, 0]))
    assert cache.length == 0


def test_cache_computes_the_sources_keys_and_values_once() -> None:
    model = make_model()
    source_BS, mask_BS, target_BT = make_batch()
    with torch.no_grad():
        memory_BSD = model.encode(source_BS, mask_BS)
        cache = model.new_cache()
        model.decode(target_BT[:, :1], memory_BSD, mask_BS, cache=cache)
        before = [layer.cross_attention for layer in cache.layers]
        # From here on only the shape of the memory is needed.
        second = model.decode(target_BT[:, 1:2], memory_BSD * 0, mask_BS, cache=cache)
        expected = model.decode(target_BT[:, :2], memory_BSD, mask_BS)[:, 1:]
    assert all(a is b.cross_attention for a, b in zip(before, cache.layers, strict=True))
    assert_near(second, expected)


def test_growing_keys_values_appended_to_return_all_rows_so_far() -> None:
    numbers = torch.Generator().manual_seed(11)
    key_BHMK = torch.randn(2, 3, 71, 5, generator=numbers)
    value_BHME = torch.randn(2, 3, 71, 7, generator=numbers)
    grown = GrowingKeysValues()
    for row in range(71):
        here = slice(row, row + 1)
        keys, values = grown.append(key_BHMK[:, :, here], value_BHME[:, :, here])
        assert torch.equal(keys, key_BHMK[:, :, : row + 1])
        assert torch.equal(values, value_BHME[:, :, : row + 1])


def test_cached_decoding_past_the_models_length_raises_input_error() -> None:
    model = make_model(max_target_length=2)
    source_BS, mask_BS, target_BT = make_batch()
    with torch.no_grad():
        memory_BSD = model.encode(source_BS, mask_BS)
        cache = model.new_cache()
        model.decode(target_BT[:, :2], memory_BSD, mask_BS, cache=cache)
        with pytest.raises(InputError, match="at most 2 tokens for this decoder, but has 3"):
            model.decode(target_BT[:, 2:3], memory_BSD, mask_BS, cache=cache)
