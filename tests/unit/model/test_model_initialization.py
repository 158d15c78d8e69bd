"""A new model's weights follow from the seed and each weight's name, and from nothing else."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from pellucid.config import ModelConfig
from pellucid.model import Transformer, initialize

GOLDEN_QUERY = [-0.041450973600149155, -0.20136727392673492, -0.030179433524608612]
GOLDEN_EMBEDDING = [-0.004322638735175133, -0.03131905570626259, 0.08354023844003677]


def make_model(seed: int, **changes: Any) -> Transformer:
    sizes: dict[str, Any] = {
        "d_model": 44,
        "d_ff": 53,
        "num_heads": 4,
        "num_encoder_layers": 2,
        "num_decoder_layers": 1,
        "positions": "learned",
        "tied_embeddings": "none",
        "source_vocabulary_size": 997,
        "target_vocabulary_size": 991,
        "projection_bias": True,
    }
    model = Transformer(ModelConfig(**{**sizes, **changes}), has_output_bias=True)
    initialize(model, seed)
    return model


def test_initialize_with_the_same_seed_gives_the_same_bytes() -> None:
    torch.manual_seed(1)
    first = make_model(7)
    torch.manual_seed(2)
    torch.rand(11)
    second = make_model(7)
    for name, parameter in first.named_parameters():
        assert torch.equal(parameter, second.get_parameter(name)), name


def test_initialize_twice_gives_what_once_gives() -> None:
    once, twice = make_model(7), make_model(5)
    initialize(twice, 7)
    for name, parameter in once.named_parameters():
        assert torch.equal(parameter, twice.get_parameter(name)), name


def test_initialize_leaves_torchs_own_generator_alone() -> None:
    model = make_model(7)
    before = torch.get_rng_state()
    initialize(model, 7)
    assert torch.equal(before, torch.get_rng_state())


def test_initialize_with_another_seed_gives_other_matrices() -> None:
    first, second = make_model(7), make_model(8)
    for name, parameter in first.named_parameters():
        is_drawn = parameter.dim() == 2
        assert torch.equal(parameter, second.get_parameter(name)) != is_drawn, name


def test_initialize_gives_every_matrix_its_own_numbers() -> None:
    matrices = [p.detach().flatten()[:8] for p in make_model(7).parameters() if p.dim() == 2]
    for index, matrix in enumerate(matrices):
        for other in matrices[index + 1 :]:
            ratio = matrix / other
            assert float((ratio - ratio[0]).abs().max()) > 1e-3


def test_initialize_of_a_weight_depends_on_its_name_and_shape_only() -> None:
    shallow = make_model(7)
    deep = make_model(7, num_encoder_layers=3, num_decoder_layers=2, norm="pre")
    name = "decoder.layers.0.cross_attention.key.weight"
    assert torch.equal(shallow.get_parameter(name), deep.get_parameter(name))


def test_initialize_fills_each_kind_as_documented() -> None:
    for name, parameter in make_model(7).state_dict().items():
        if name.endswith("norm.weight"):
            assert torch.equal(parameter, torch.ones_like(parameter)), name
        elif name.endswith("bias"):
            assert torch.equal(parameter, torch.zeros_like(parameter)), name
        elif "embedding" in name or "positions" in name or name == "output.weight":
            assert float(parameter.std()) == pytest.approx(1 / math.sqrt(44), rel=0.03), name
            assert abs(float(parameter.mean())) < 0.005, name
        else:
            bound = math.sqrt(6 / sum(parameter.shape))
            largest = float(parameter.abs().max())
            assert 0.97 * bound < largest <= bound, name
            assert float(parameter.std()) == pytest.approx(bound / math.sqrt(3), rel=0.05), name


def test_initialize_starts_logits_near_variance_one() -> None:
    model = make_model(7)
    ids = torch.arange(2 * 101).view(2, 101)
    logits_BTV = model(ids, ids)
    assert float(logits_BTV.detach().var()) == pytest.approx(1.0, rel=0.2)


def test_initialize_of_a_float64_model_gives_the_same_numbers_unrounded() -> None:
    single = make_model(7)
    double = Transformer(single.config, has_output_bias=True).double()
    initialize(double, 7)
    for name, parameter in double.named_parameters():
        assert torch.equal(parameter.float(), single.get_parameter(name)), name


def test_initialize_gives_the_numbers_it_always_gave() -> None:
    """Frozen: a change here would make every published run irreproducible."""
    model = make_model(7)
    query = model.get_parameter("encoder.layers.0.self_attention.query.weight")
    assert query[0, :3].tolist() == pytest.approx(GOLDEN_QUERY, abs=1e-7)
    table = model.get_parameter("source_embedding.weight")
    assert table[0, :3].tolist() == pytest.approx(GOLDEN_EMBEDDING, abs=1e-7)
