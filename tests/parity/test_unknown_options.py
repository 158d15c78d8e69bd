"""A value of a layer option that was added to one Transformer is computed by no other in secret."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from page_in_node import learning_page_computes
from small_native import SPECIAL, make_requests, make_transformer
from small_words import make_words_bundle

from pellucid.bundle import load_bundle
from pellucid.by_hand import small_translator
from pellucid.config import DecodingConfig, ModelConfig, TrainingConfig
from pellucid.config.model import AS_FIRST_BUILT
from pellucid.decode.constraints.request import Request
from pellucid.decode.decoder import Decoder
from pellucid.errors import ConfigurationError, InputError
from pellucid.formats import to_ctranslate2, to_marian
from pellucid.formats.exporting import check_model
from pellucid.inside.show.model_page import cannot_carry
from pellucid.model import Stack, layers, make_model
from pellucid.native.engine import NativeEngine
from pellucid.native.weight_shapes import find_obstacle
from pellucid.training.fast.kernels.kernel_model import choose_kernels

sys.path.insert(0, str(Path(__file__).parent))
from numpy_transformer import NumpyTransformer

CPU = torch.device("cpu")
NUMBERS = {name for name, field in ModelConfig.model_fields.items() if field.annotation is int} | {
    *("d_ff", "d_key", "d_value", "layer_norm_epsilon", "num_heads", "d_model"),
}
NUMBERS -= {"num_key_value_heads"}  # A number, but each computes only the values that it lists.
OPTIONS = [
    name for name in ModelConfig.model_fields if name not in NUMBERS | {"recurrent_attention"}
]


class GrownConfig(ModelConfig):
    """A configuration with an option that no implementation has heard of."""

    gate: bool = False


def with_unknown(name: str) -> ModelConfig:
    """A configuration that validation would pass if the new value were listed there."""
    plain = make_transformer().config
    if name == "gate":
        return GrownConfig.model_validate(plain.model_dump())
    return plain.model_copy(update={name: "unheard-of"})


def translate_plainly(model: Any, source_ids: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Search greedily without a cache, a batch or C."""
    memory = model.encode(torch.tensor([source_ids]))
    ids = [SPECIAL.start]
    while len(ids) <= length:
        logits_V = model.logits(model.decode(torch.tensor([ids]), memory))[0, -1]
        logits_V[list(SPECIAL.never)] = -torch.inf
        ids.append(int(logits_V.argmax()))
    return tuple(ids[1:])


def test_options_that_are_tested_are_all_that_there_are() -> None:
    assert set(OPTIONS) == set(AS_FIRST_BUILT)
    assert len(OPTIONS) == 17


@pytest.mark.parametrize(
    "computes", [learning_page_computes(), small_translator.COMPUTES], ids=["page", "by hand"]
)
def test_models_built_from_no_configuration_list_every_option(
    computes: Mapping[str, Collection[object]],
) -> None:
    # A new option is missing here until it is decided what these two do about it.
    assert set(computes) == set(OPTIONS)
    for name, values in computes.items():
        assert set(values) <= set(AS_FIRST_BUILT[name]), name


@pytest.mark.parametrize("name", [*OPTIONS, "gate"])
def test_unknown_value_is_refused_by_engine_kernels_exports_and_page(
    name: str, tmp_path: Path
) -> None:
    config = with_unknown(name)
    value = getattr(config, name)
    assert find_obstacle(config, "float32") == f"model.{name} is {value}"
    weights = {key: one.numpy() for key, one in make_transformer().state_dict().items()}
    assert NativeEngine(config, weights).obstacle is not None
    kernels = choose_kernels(config, TrainingConfig(), "float32", CPU)
    assert kernels.kernels is None
    assert f"model.{name} is {value}" in kernels.description
    with pytest.raises(ConfigurationError, match=f"model.{name} is {value}"):
        choose_kernels(config, TrainingConfig(kernels="own"), "float32", CPU)

    bundle: Any = load_bundle(make_words_bundle(tmp_path / "model"))
    changed: Any = SimpleNamespace(
        config=bundle.config.model_copy(update={"model": config}), folder=bundle.folder
    )
    assert f"model.{name} is {value}" in cannot_carry(changed)
    for target, allowed in (
        ("CTranslate2", to_ctranslate2.ALLOWED),
        ("Marian", to_marian.ALLOWED),
    ):
        with pytest.raises(InputError, match=f"model.{name} must be .* for {target}, but is"):
            check_model(changed, target, allowed)


@pytest.mark.parametrize("name", OPTIONS)
def test_unknown_value_is_refused_by_the_model_and_its_second_opinion(
    name: str, tmp_path: Path
) -> None:
    config = with_unknown(name)

    def run() -> None:
        model, ids = make_model(config), torch.tensor([[5, 6, 3]])
        model.decode(ids, model.encode(ids))

    with pytest.raises(ConfigurationError, match=f"model.{name} must be .*unheard-of"):
        run()
    folder = make_words_bundle(tmp_path / "model")
    values = json.loads((folder / "config.json").read_text())
    values["model"][name] = "unheard-of"
    (folder / "config.json").write_text(json.dumps(values))
    with pytest.raises(NotImplementedError, match=f"{name} = unheard-of"):
        NumpyTransformer(folder)


def test_unknown_switch_is_not_taken_for_a_number_by_the_second_opinion(tmp_path: Path) -> None:
    folder = make_words_bundle(tmp_path / "model")
    values = json.loads((folder / "config.json").read_text())
    values["model"]["gate"] = True
    (folder / "config.json").write_text(json.dumps(values))
    with pytest.raises(NotImplementedError, match="gate = True"):
        NumpyTransformer(folder)


def test_new_values_are_translated_by_pytorch_with_the_tokens_of_the_plain_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = Stack.positions_of

    def ramp(self: Stack, start: int, end: int, *, like: torch.Tensor) -> torch.Tensor | None:
        if self.config.positions != "ramp":  # type: ignore[comparison-overlap]
            return plain(self, start, end, like=like)
        return torch.arange(start, end, dtype=like.dtype)[:, None].expand(-1, like.shape[-1]) / 7

    monkeypatch.setattr(Stack, "positions_of", ramp)
    monkeypatch.setitem(layers.ACTIVATIONS, "square", lambda x: x.relu() ** 2)
    model = make_transformer(norm="pre")
    requests = [Request(one.source_ids, max_length=19) for one in make_requests(model, 7)]
    before = Decoder([model], SPECIAL).decode(requests, DecodingConfig(), batch_tokens=512)
    changed = model.config.model_copy(update={"positions": "ramp", "activation": "square"})
    variant = make_model(changed, has_output_bias=True).eval()
    variant.load_state_dict(model.state_dict())
    decoder = Decoder([variant], SPECIAL)
    assert decoder.describe(DecodingConfig()).startswith("PyTorch, since model.")
    found = decoder.decode(requests, DecodingConfig(), batch_tokens=512)
    assert [one[0].ids for one in found] != [one[0].ids for one in before]
    for request, (hypothesis,) in zip(requests, found, strict=True):
        assert hypothesis.ids == translate_plainly(variant, request.source_ids, len(hypothesis.ids))


def test_weights_that_no_option_describes_are_not_left_out_by_engine_and_kernels() -> None:
    from built_kernels import kernels_of_machine

    from pellucid.training.fast.kernels.kernel_model import ModelOnKernels

    model = make_transformer()
    model.encoder.layers[0].register_parameter(
        "bias_by_distance", torch.nn.Parameter(torch.ones(7))
    )
    weights = {key: one.numpy() for key, one in model.state_dict().items()}
    obstacle = NativeEngine(model.config, weights).obstacle
    assert obstacle is not None
    assert "encoder.layers.0.bias_by_distance" in obstacle
    with pytest.raises(ConfigurationError, match=r"bias_by_distance .*kernels = 'pytorch'"):
        ModelOnKernels(model, kernels_of_machine("float32"))


def test_options_of_decoding_that_the_engine_does_not_know_are_left_to_python() -> None:
    class Grown(DecodingConfig):
        surprise: float = 0.0

    decoder = Decoder([make_transformer()], SPECIAL)
    assert "since" not in decoder.describe(Grown())
    described = decoder.describe(Grown(surprise=0.5))
    assert described.endswith("step by step, since decoding.surprise is 0.5")
