"""The model's configuration: derived values, and impossible combinations."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from pellucid.config import (
    NAMED_SIZES,
    BundleConfig,
    ModelConfig,
    TokenizerConfig,
    validate,
)
from pellucid.errors import ConfigurationError, InputError, PellucidError


def refused(values: dict[str, Any]) -> str:
    with pytest.raises(ConfigurationError) as caught:
        validate(ModelConfig, values, "config.json")
    message = str(caught.value)
    assert "config.json" in message
    assert "pydantic" not in message.lower()
    assert "\n" not in message
    return message


def test_model_config_without_keys_is_the_papers_base_model() -> None:
    assert ModelConfig().model_dump() == {
        "architecture": "transformer",
        "d_model": 512,
        "d_ff": 2048,
        "num_heads": 8,
        "d_key": 64,
        "d_value": 64,
        "num_encoder_layers": 6,
        "num_decoder_layers": 6,
        "norm": "post",
        "layer_norm_epsilon": 1e-5,
        "activation": "relu",
        "positions": "sinusoidal",
        "embedding_scale": "sqrt",
        "projection_bias": False,
        "tied_embeddings": "all",
        "source_vocabulary_size": 0,
        "target_vocabulary_size": 0,
        "max_source_length": 1024,
        "max_target_length": 1024,
        "residual": True,
        "scale_scores": True,
        "look_ahead_mask": True,
        "projections": "qkv",
    }


@pytest.mark.parametrize(
    ("changes", "widths"),
    [
        ({"d_model": 22, "num_heads": 2}, (11, 11)),
        ({"d_model": 22, "num_heads": 2, "d_key": 5}, (5, 11)),
        ({"d_model": 22, "num_heads": 2, "d_value": 7}, (11, 7)),
        ({"d_model": 4, "num_heads": 3, "d_key": 16, "d_value": 16}, (16, 16)),
    ],
)
def test_head_widths_default_to_d_model_by_heads(
    changes: dict[str, int], widths: tuple[int, int]
) -> None:
    config = ModelConfig(**changes)
    assert (config.d_key, config.d_value) == widths


def test_model_config_is_frozen() -> None:
    config = ModelConfig()
    with pytest.raises(pydantic.ValidationError):
        config.d_model = 256  # type: ignore[misc]


@pytest.mark.parametrize("name", sorted(NAMED_SIZES))
def test_named_sizes_are_possible(name: str) -> None:
    config = ModelConfig(**NAMED_SIZES[name])
    assert config.num_heads * config.d_key == config.d_model


@pytest.mark.parametrize(
    ("changes", "fragments"),
    [
        ({"d_model": 22, "num_heads": 3}, ["d_model", "22", "multiple", "num_heads", "3"]),
        ({"d_model": 0}, ["d_model", "greater than 0", "0"]),
        ({"d_model": -512}, ["d_model", "greater than 0", "-512"]),
        ({"num_heads": 0}, ["num_heads", "greater than 0"]),
        ({"d_model": "wide"}, ["d_model", "whole number", "'wide'"]),
        ({"d_model": 12.5, "num_heads": 1}, ["d_model", "whole number", "12.5"]),
        ({"d_model": None}, ["d_model", "whole number", "null"]),
        ({"num_heads": [8]}, ["num_heads", "whole number", "a list"]),
        ({"d_ff": 0}, ["d_ff", "greater than 0"]),
        ({"num_decoder_layers": 0}, ["num_decoder_layers", "greater than 0"]),
        ({"d_model": 11, "num_heads": 1}, ["d_model", "even", "11"]),
        ({"norm": "middle"}, ["norm", "'post'", "'pre'", "'none'", "'middle'"]),
        ({"activation": "Relu"}, ["activation", "'relu'", "'Relu'"]),
        ({"positions": "circular"}, ["positions", "'sinusoidal'", "'rotary'", "'circular'"]),
        ({"architecture": "lstm"}, ["architecture", "'transformer'", "'lstm'"]),
        ({"layer_norm_epsilon": 0.0}, ["layer_norm_epsilon", "greater than 0"]),
        ({"layer_norm_epsilon": float("nan")}, ["layer_norm_epsilon", "finite", "nan"]),
        ({"source_vocabulary_size": -1}, ["source_vocabulary_size", "-1"]),
        ({"projections": "qk", "d_key": 5, "d_value": 7}, ["d_value", "d_key", "7", "5"]),
        ({"projections": "none", "d_key": 5, "d_value": 5}, ["num_heads", "d_key", "40", "512"]),
        ({"source_vocabulary_size": 37, "target_vocabulary_size": 41}, ["37", "41", "tied"]),
        ({"d_modell": 512}, ["'d_modell'", "Did you mean 'd_model'?"]),
        ({"num_head": 8}, ["'num_head'", "Did you mean 'num_heads'?"]),
        ({"zzz": 1}, ["'zzz'", "Known are:", "d_model"]),
    ],
)
def test_model_config_that_is_impossible_says_what_and_where(
    changes: dict[str, Any], fragments: list[str]
) -> None:
    message = refused(changes)
    for fragment in fragments:
        assert fragment in message, message


@pytest.mark.parametrize("d_model", [128.0, "128", True])
def test_model_config_of_almost_a_whole_number_is_refused(d_model: Any) -> None:
    """As a whole number it would not give the widths of the heads."""
    assert "d_model must be a whole number" in refused({"d_model": d_model, "num_heads": 1})


def test_model_config_switches_take_truth_values_only() -> None:
    assert "residual" in refused({"residual": "perhaps"})


def test_odd_width_without_sinusoidal_positions_is_possible() -> None:
    assert ModelConfig(d_model=11, num_heads=1, positions="learned").d_key == 11


def test_bundle_config_of_a_newer_format_is_refused_with_its_place() -> None:
    values = {"format": 2, "model": {}, "tokenizer": {}}
    with pytest.raises(ConfigurationError, match=r"format must be 1, but is 2 \(config.json\)"):
        validate(BundleConfig, values, "config.json")


def test_bundle_config_error_inside_a_section_has_the_dotted_key() -> None:
    with pytest.raises(ConfigurationError, match=r"model\.d_ff must be .* \(config.json\)"):
        validate(BundleConfig, {"model": {"d_ff": -3}, "tokenizer": {}}, "config.json")


def test_bundle_config_without_a_section_says_which() -> None:
    with pytest.raises(ConfigurationError, match=r"'model' is missing \(config.json\)"):
        validate(BundleConfig, {"tokenizer": {}}, "config.json")


def test_bundle_config_survives_json() -> None:
    config = BundleConfig(
        model=ModelConfig(d_model=22, num_heads=2, d_key=13), tokenizer=TokenizerConfig(pad_id=5)
    )
    assert validate(BundleConfig, config.model_dump(mode="json"), "config.json") == config


def test_tokenizer_config_has_the_documented_ids() -> None:
    config = TokenizerConfig()
    ids = (config.pad_id, config.unk_id, config.bos_id, config.eos_id, config.target_start_id)
    assert ids == (0, 1, 2, 3, 2)


def test_configuration_error_is_the_users_and_the_natural_built_in() -> None:
    assert issubclass(ConfigurationError, InputError)
    assert issubclass(ConfigurationError, ValueError)
    assert issubclass(ConfigurationError, PellucidError)
    assert ConfigurationError.exit_code == 2
