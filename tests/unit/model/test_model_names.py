"""Names, shapes and counts of a model's weights, for each kind of model."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from pellucid.attention import sinusoidal_positions
from pellucid.config import NAMED_SIZES, ModelConfig
from pellucid.errors import ConfigurationError, InputError
from pellucid.model import Transformer, initialize

LAYERS = {
    "encoder.layers.0.self_attention.query.weight": (39, 22),
    "encoder.layers.0.self_attention.key.weight": (39, 22),
    "encoder.layers.0.self_attention.value.weight": (51, 22),
    "encoder.layers.0.self_attention.output.weight": (22, 51),
    "encoder.layers.0.feed_forward.inner.weight": (19, 22),
    "encoder.layers.0.feed_forward.inner.bias": (19,),
    "encoder.layers.0.feed_forward.outer.weight": (22, 19),
    "encoder.layers.0.feed_forward.outer.bias": (22,),
    "decoder.layers.0.self_attention.query.weight": (39, 22),
    "decoder.layers.0.self_attention.key.weight": (39, 22),
    "decoder.layers.0.self_attention.value.weight": (51, 22),
    "decoder.layers.0.self_attention.output.weight": (22, 51),
    "decoder.layers.0.cross_attention.query.weight": (39, 22),
    "decoder.layers.0.cross_attention.key.weight": (39, 22),
    "decoder.layers.0.cross_attention.value.weight": (51, 22),
    "decoder.layers.0.cross_attention.output.weight": (22, 51),
    "decoder.layers.0.feed_forward.inner.weight": (19, 22),
    "decoder.layers.0.feed_forward.inner.bias": (19,),
    "decoder.layers.0.feed_forward.outer.weight": (22, 19),
    "decoder.layers.0.feed_forward.outer.bias": (22,),
}
PROJECTION_BIASES = {
    "encoder.layers.0.self_attention.query.bias": (39,),
    "encoder.layers.0.self_attention.key.bias": (39,),
    "encoder.layers.0.self_attention.value.bias": (51,),
    "encoder.layers.0.self_attention.output.bias": (22,),
    "decoder.layers.0.self_attention.query.bias": (39,),
    "decoder.layers.0.self_attention.key.bias": (39,),
    "decoder.layers.0.self_attention.value.bias": (51,),
    "decoder.layers.0.self_attention.output.bias": (22,),
    "decoder.layers.0.cross_attention.query.bias": (39,),
    "decoder.layers.0.cross_attention.key.bias": (39,),
    "decoder.layers.0.cross_attention.value.bias": (51,),
    "decoder.layers.0.cross_attention.output.bias": (22,),
}
NORMS = {
    "encoder.layers.0.self_attention_norm.weight": (22,),
    "encoder.layers.0.self_attention_norm.bias": (22,),
    "encoder.layers.0.feed_forward_norm.weight": (22,),
    "encoder.layers.0.feed_forward_norm.bias": (22,),
    "decoder.layers.0.self_attention_norm.weight": (22,),
    "decoder.layers.0.self_attention_norm.bias": (22,),
    "decoder.layers.0.cross_attention_norm.weight": (22,),
    "decoder.layers.0.cross_attention_norm.bias": (22,),
    "decoder.layers.0.feed_forward_norm.weight": (22,),
    "decoder.layers.0.feed_forward_norm.bias": (22,),
}
LAST_NORMS = {
    "encoder.norm.weight": (22,),
    "encoder.norm.bias": (22,),
    "decoder.norm.weight": (22,),
    "decoder.norm.bias": (22,),
}
POSITIONS = {"encoder.positions.weight": (29, 22), "decoder.positions.weight": (31, 22)}
ONE_TABLE = {"embedding.weight": (37, 22)}
TWO_TABLES = {"source_embedding.weight": (37, 22), "target_embedding.weight": (41, 22)}
OUTPUT = {"output.weight": (41, 22)}


def make_config(**changes: Any) -> ModelConfig:
    sizes: dict[str, Any] = {
        "d_model": 22,
        "d_ff": 19,
        "num_heads": 3,
        "d_key": 13,
        "d_value": 17,
        "num_encoder_layers": 1,
        "num_decoder_layers": 1,
        "source_vocabulary_size": 37,
        "target_vocabulary_size": 37,
        "max_source_length": 29,
        "max_target_length": 31,
    }
    return ModelConfig(**{**sizes, **changes})


def shapes(model: Transformer) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}


TWO = {"target_vocabulary_size": 41}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ONE_TABLE | LAYERS | NORMS),
        ({"projection_bias": True}, ONE_TABLE | LAYERS | NORMS | PROJECTION_BIASES),
        ({"tied_embeddings": "decoder", **TWO}, TWO_TABLES | LAYERS | NORMS),
        ({"tied_embeddings": "none", **TWO}, TWO_TABLES | OUTPUT | LAYERS | NORMS),
        ({"norm": "pre"}, ONE_TABLE | LAYERS | NORMS | LAST_NORMS),
        ({"norm": "none"}, ONE_TABLE | LAYERS),
        ({"positions": "learned"}, ONE_TABLE | LAYERS | NORMS | POSITIONS),
        ({"positions": "none"}, ONE_TABLE | LAYERS | NORMS),
        ({"positions": "sinusoidal_halves"}, ONE_TABLE | LAYERS | NORMS),
        ({"residual": False, "scale_scores": False}, ONE_TABLE | LAYERS | NORMS),
    ],
)
def test_state_dict_of_each_kind_has_exactly_the_documented_names(
    changes: dict[str, Any], expected: dict[str, tuple[int, ...]]
) -> None:
    assert shapes(Transformer(make_config(**changes))) == expected


def test_state_dict_with_output_bias_has_one_name_more() -> None:
    model = Transformer(make_config(), has_output_bias=True)
    assert shapes(model) == ONE_TABLE | LAYERS | NORMS | {"output.bias": (37,)}


@pytest.mark.parametrize(
    ("projections", "missing"),
    [("qk", {"value"}), ("none", {"query", "key", "value"})],
)
def test_state_dict_with_fewer_projections_lacks_their_names(
    projections: str, missing: set[str]
) -> None:
    changes = {"num_heads": 2, "d_key": 11, "d_value": 11}
    full = shapes(Transformer(make_config(**changes)))
    fewer = shapes(Transformer(make_config(projections=projections, **changes)))
    assert full.keys() - fewer.keys() == {
        name for name in full if "attention." in name and name.split(".")[-2] in missing
    }
    assert fewer.items() <= full.items()


def test_state_dict_with_several_layers_numbers_them_from_zero() -> None:
    names = shapes(Transformer(make_config(num_encoder_layers=3, num_decoder_layers=2)))
    assert {name.split(".")[2] for name in names if name.startswith("encoder.layers")} == set("012")
    assert {name.split(".")[2] for name in names if name.startswith("decoder.layers")} == set("01")


def expected_parameters(d: int, f: int, n_encoder: int, n_decoder: int, vocabulary: int) -> int:
    """Count by hand: four square matrices an attention, two with biases a network, gains."""
    attention, network, norm = 4 * d * d, 2 * d * f + f + d, 2 * d
    encoder_layer = attention + network + 2 * norm
    decoder_layer = 2 * attention + network + 3 * norm
    return vocabulary * d + n_encoder * encoder_layer + n_decoder * decoder_layer


def count_parameters(size: str, vocabulary: int) -> int:
    with torch.device("meta"):
        model = Transformer(
            ModelConfig(
                **NAMED_SIZES[size],
                source_vocabulary_size=vocabulary,
                target_vocabulary_size=vocabulary,
            )
        )
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(
    ("size", "sizes"),
    [
        ("tiny", (128, 256, 4, 4)),
        ("small", (256, 1024, 3, 3)),
        ("base", (512, 2048, 6, 6)),
        ("big", (1024, 4096, 6, 6)),
    ],
)
def test_named_size_has_the_counted_number_of_parameters(
    size: str, sizes: tuple[int, int, int, int]
) -> None:
    assert count_parameters(size, 8009) == expected_parameters(*sizes, 8009)


@pytest.mark.parametrize(("size", "published"), [("base", 65e6), ("big", 213e6)])
def test_papers_sizes_have_about_the_published_number_of_parameters(
    size: str, published: float
) -> None:
    """Vaswani et al. 2017, table 3, with the shared vocabulary of about 37,000 tokens."""
    assert count_parameters(size, 37000) == pytest.approx(published, rel=0.04)


def test_named_sizes_have_the_documented_heads() -> None:
    heads = {name: size["num_heads"] for name, size in NAMED_SIZES.items()}
    assert heads == {"tiny": 4, "small": 8, "base": 8, "big": 16}


@pytest.mark.parametrize("field", ["source_vocabulary_size", "target_vocabulary_size"])
def test_model_without_vocabulary_size_raises_configuration_error(field: str) -> None:
    with pytest.raises(ConfigurationError, match=f"model.{field}"):
        Transformer(make_config(tied_embeddings="none", **{field: 0}))


def test_encode_of_a_source_too_long_raises_input_error() -> None:
    model = Transformer(make_config())
    model.encode(torch.zeros(1, 29, dtype=torch.long))
    with pytest.raises(InputError, match="at most 29 tokens for this encoder, but has 30"):
        model.encode(torch.zeros(1, 30, dtype=torch.long))


def test_decode_of_a_target_too_long_raises_input_error() -> None:
    model = Transformer(make_config())
    memory_BSD = model.encode(torch.zeros(1, 2, dtype=torch.long))
    with pytest.raises(InputError, match=r"at most 31 .* model\.max_target_length"):
        model.decode(torch.zeros(1, 32, dtype=torch.long), memory_BSD)


@pytest.mark.parametrize(
    ("tied", "encoder_table", "decoder_table", "output_table"),
    [
        ("all", "embedding", "embedding", "embedding"),
        ("decoder", "source_embedding", "target_embedding", "target_embedding"),
        ("none", "source_embedding", "target_embedding", "output"),
    ],
)
def test_tied_embeddings_name_the_table_that_is_used(
    tied: str, encoder_table: str, decoder_table: str, output_table: str
) -> None:
    """Shift one table at a time, and see which of the three uses changes."""
    model = Transformer(make_config(tied_embeddings=tied)).double()
    initialize(model, seed=5)
    ids = torch.tensor([[7, 11, 13]])
    states_1TD = torch.randn(1, 3, 22, dtype=torch.float64)

    def uses() -> tuple[torch.Tensor, ...]:
        with torch.no_grad():
            memory_1SD = torch.zeros(1, 2, 22, dtype=torch.float64)
            return model.encode(ids), model.decode(ids, memory_1SD), model.logits(states_1TD)

    before = uses()
    for name in ("embedding", "source_embedding", "target_embedding", "output"):
        if not hasattr(getattr(model, name, None), "weight"):
            continue
        table = model.get_parameter(f"{name}.weight")
        kept = table.detach().clone()
        with torch.no_grad():
            table.mul_(2).add_(torch.arange(22) * 0.01)
        changed = [not torch.equal(old, new) for old, new in zip(before, uses(), strict=True)]
        with torch.no_grad():
            table.copy_(kept)
        assert changed == [name == table for table in (encoder_table, decoder_table, output_table)]


@pytest.mark.parametrize("scale", ["sqrt", "none"])
@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "learned", "none"])
def test_what_enters_layer_0_is_embedding_plus_position(kind: str, scale: str) -> None:
    model = Transformer(make_config(positions=kind, embedding_scale=scale)).double()
    initialize(model, seed=5)
    seen: dict[str, torch.Tensor] = {}

    class Recorder:
        def see(self, site: str, stage: str, tensor: torch.Tensor) -> None:
            seen[f"{site}.{stage}"] = tensor

    ids = torch.tensor([[7, 11, 13, 36, 0], [5, 5, 5, 5, 5]])
    with torch.no_grad():
        model.encode(ids, probe=Recorder())
        factor = math.sqrt(22) if scale == "sqrt" else 1.0
        embedding_BSD = model.embedding.weight[ids] * factor
        if kind == "none":
            positions_LD = torch.zeros(5, 22, dtype=torch.float64)
            assert "encoder.positions" not in seen
        elif kind == "learned":
            positions_LD = model.encoder.positions.weight[:5]
        else:
            halves = kind == "sinusoidal_halves"
            positions_LD = sinusoidal_positions(5, 22, halves=halves, dtype=torch.float64)
    assert torch.equal(seen["encoder.embedding"], embedding_BSD)
    assert torch.equal(seen["encoder.input"], embedding_BSD + positions_LD)
    assert torch.equal(seen["encoder.0.self.input"], seen["encoder.input"])
