"""The recurrent model: its settings, its steps in decoding, and changes on the way."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from small_recurrent import FORMS, WORDS, V, make_recurrent, save_recurrent
from torch import Tensor

from pellucid.attention.probe import Probe
from pellucid.bundle import load_bundle
from pellucid.config import BundleConfig, ModelConfig, TrainingConfig, validate
from pellucid.config import DecodingConfig as Decoding
from pellucid.decode.constraints.request import Request, SpecialIds
from pellucid.decode.decoder import Decoder
from pellucid.decode.greedy import decode_greedily
from pellucid.decode.steppers import Ensemble, ModelStepper
from pellucid.errors import ConfigurationError, InputError
from pellucid.inside.changes.change import Changes, parse_change
from pellucid.inside.drawings.architecture import draw_architecture
from pellucid.inside.pair import make_pair
from pellucid.model import RecurrentModel, Transformer, initialize, make_model
from pellucid.training.update.memory_estimate import count_parameters
from pellucid.training.weights.schedule import make_dropout
from pellucid.translate.translator import load

SOURCES = [[5, 7, 3], [11, 13, 17, 19, 3], [4, 3], [6, 8, 9, 10, 12, 14, 3], [3]]
TARGET = [2, 9, 4, 16, 21, 8]
SPECIAL = SpecialIds(start=2, eos=3, never=(0, 2))


def config_of(**values: Any) -> ModelConfig:
    return validate(ModelConfig, {"architecture": "recurrent", **values}, "here")


# Settings


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"d_ff": 64}, "model.d_ff must be left out (it has no effect) when model.architecture"),
        ({"num_heads": 2}, "model.num_heads must be left out"),
        ({"norm": "pre"}, "model.norm must be left out"),
        ({"recurrent_attention": "dot", "d_key": 5}, "model.d_key must be left out"),
        ({"recurrent_attention": "dot-product"}, "recurrent_attention must be 'none', 'additive'"),
        ({"d_model": 7}, "d_model must be even for a recurrent model with attention"),
        (
            {"architecture": "transformer", "recurrent_attention": "none"},
            "model.recurrent_attention must be left out (it has no effect) when "
            "model.architecture is 'transformer'",
        ),
    ],
    ids=str,
)
def test_setting_of_another_architecture_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        config_of(**values)
    assert said in str(error.value)


@pytest.mark.parametrize("form", FORMS)
def test_written_configuration_holds_only_what_has_effect_and_reads_back(form: str) -> None:
    config = make_recurrent(form).config
    written = config.model_dump(mode="json")
    assert not {"d_ff", "num_heads", "norm", "positions", "projections"} & set(written)
    assert ("d_key" in written) is (form == "additive")
    assert ModelConfig.model_validate(written) == config


def test_configuration_of_a_transformer_is_written_as_before() -> None:
    assert "recurrent_attention" not in ModelConfig(d_model=8, num_heads=2).model_dump()


def test_bundle_of_lower_precision_is_refused() -> None:
    model = make_recurrent("dot").config.model_dump()
    values = {"model": model, "precision": "int8", "tokenizer": {"kind": "words"}}
    with pytest.raises(ConfigurationError, match="precision must be float32 for a recurrent"):
        validate(BundleConfig, values, "config.json")


# Steps


@pytest.mark.parametrize("form", FORMS)
def test_decoding_step_by_step_equals_teacher_forcing(form: str) -> None:
    model = make_recurrent(form).double()
    source, mask = padded(SOURCES)
    target = torch.tensor([TARGET] * len(SOURCES))
    whole = model(source, target, mask)
    memory, cache = model.encode(source, mask), model.new_cache()
    for column in range(len(TARGET)):
        states = model.decode(target[:, column : column + 1], memory, mask, cache=cache)
        assert (model.logits(states)[:, 0] - whole[:, column]).abs().max() < 1e-10
    assert cache.length == len(TARGET)


@pytest.mark.parametrize("form", FORMS)
def test_padding_of_the_batch_changes_nothing(form: str) -> None:
    model = make_recurrent(form).double()
    source, mask = padded(SOURCES)
    together = model(source, torch.tensor([TARGET] * len(SOURCES)), mask)
    for row, ids in enumerate(SOURCES):
        alone = model(torch.tensor([ids]), torch.tensor([TARGET]))
        assert (alone[0] - together[row]).abs().max() < 1e-10


@pytest.mark.parametrize("form", FORMS)
def test_search_with_a_beam_of_one_equals_greedy_decoding(form: str) -> None:
    model = make_recurrent(form)
    source, mask = padded(SOURCES)
    read = decode_greedily(
        model, source, mask, start_id=2, eos_id=3, max_lengths=[11] * len(SOURCES)
    )
    found = Decoder([model], SpecialIds(2, 3)).decode(requests(), Decoding(beam=1), batch_tokens=19)
    assert [one.ids for (one,) in found] == [one.ids for one in read]


@pytest.mark.sample(3)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("strict", [False, True])
def test_hypotheses_of_a_beam_have_the_log_probabilities_of_the_model(
    form: str, strict: bool
) -> None:
    model = make_recurrent(form)
    decoding = Decoding(beam=5, n_best=5, strict=strict)
    # A small batch makes sentences come and go, so that slots are used again.
    found = Decoder([model], SPECIAL).decode(requests(), decoding, batch_tokens=37)
    for ids, hypotheses in zip(SOURCES, found, strict=True):
        assert len(hypotheses) == 5
        for one in hypotheses:
            target = torch.tensor([[2, *one.ids[:-1]]])
            logs = model(torch.tensor([ids]), target).log_softmax(dim=-1)[0]
            expected = logs.gather(1, torch.tensor(one.ids)[:, None])[:, 0].tolist()
            assert list(one.token_log_probabilities) == pytest.approx(expected, abs=1e-4)


def test_ensemble_with_a_transformer_averages_their_probabilities() -> None:
    sizes = {"d_model": 22, "d_ff": 19, "num_heads": 2, "num_encoder_layers": 1}
    sizes |= {"num_decoder_layers": 1, "source_vocabulary_size": V, "target_vocabulary_size": V}
    transformer = Transformer(ModelConfig.model_validate(sizes)).eval()
    initialize(transformer, seed=5)
    models = [make_recurrent("additive"), transformer]
    ensemble = Ensemble([ModelStepper(model) for model in models])
    state = ensemble.new_state(1, 1)
    state.insert(torch.tensor([0]), ensemble.encode([SOURCES[1]]), torch.tensor([0]))
    logs = ensemble.step(state, torch.tensor([2]))
    with torch.inference_mode():
        each = [
            model(torch.tensor([SOURCES[1]]), torch.tensor([[2]])).softmax(dim=-1)[0]
            for model in models
        ]
    assert (logs.exp() - sum(each) / 2).abs().max() < 1e-6


@pytest.mark.parametrize("precision", ["int8", "bfloat16"])
def test_engine_of_another_precision_is_refused(precision: Any) -> None:
    with pytest.raises(InputError, match="must be float32, but is " + precision):
        ModelStepper(make_recurrent("dot"), precision)


def test_sentence_that_is_too_long_is_refused() -> None:
    model = make_recurrent("none", max_source_length=3)
    with pytest.raises(InputError, match="at most 3 tokens for this encoder, but has 4"):
        model.encode(torch.tensor([[5, 6, 7, 3]]))


# Looking inside


def test_cut_edge_changes_its_row_and_what_follows_only(tmp_path: Path) -> None:
    pair = make_pair(
        load_bundle(save_recurrent(tmp_path / "bundle", "additive")),
        " ".join(WORDS[:5]),
        " ".join(WORDS[3:8]),
        float64=True,
    )
    before, after = pair.logits(), pair.logits(probe=changes("cut decoder.0.cross.0:2>1"))
    moved = (before - after).abs().amax(dim=-1)
    assert moved[:2].max() == 0
    assert moved[2:].min() > 0
    uniform = pair.logits(probe=changes("average decoder.0.cross.0"))
    weights = Keep(changes("average decoder.0.cross.0"))
    assert torch.equal(pair.logits(probe=weights), uniform)
    assert (weights.seen["weights"] - 1 / len(pair.source_ids)).abs().max() < 1e-12


def changes(text: str) -> Changes:
    return Changes(parse_change(text))


class Keep:
    """A probe that keeps whole arrays, and makes changes row by row."""

    def __init__(self, inner: Changes) -> None:
        self.inner = inner
        self.seen: dict[str, Tensor] = {}

    def see(self, site: str, stage: str, tensor: Tensor) -> None:
        self.seen[stage] = tensor

    def see_rows(self, site: str, stage: str, rows: Tensor) -> Tensor | None:
        return self.inner.see_rows(site, stage, rows)


def test_replacing_rows_too_late_is_refused() -> None:
    class Late:
        def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
            return tensor * 2 if stage == "weights" else None

    late: Probe = Late()
    with pytest.raises(InputError, match="must have a method see_rows, but has none"):
        make_recurrent("dot")(torch.tensor([SOURCES[0]]), torch.tensor([TARGET]), probe=late)


def test_changed_result_must_keep_its_shape() -> None:
    class Wrong:
        def see(self, site: str, stage: str, tensor: Tensor) -> Tensor | None:
            return tensor[..., :1] if stage == "vector" else None

    with pytest.raises(InputError, match=r"encoder\.vector"):
        make_recurrent("none")(torch.tensor([SOURCES[0]]), torch.tensor([TARGET]), probe=Wrong())


@pytest.mark.parametrize("place", ["encoder.0.self.0", "decoder.1.cross.0", "decoder.0.self.0"])
def test_head_that_a_recurrent_model_lacks_is_refused(place: str) -> None:
    change = parse_change(f"cut {place}")
    with pytest.raises(InputError, match=r"only head of a recurrent model is decoder\.0\.cross\.0"):
        Changes(change).check(make_recurrent("dot").config, 5, 5)
    with pytest.raises(InputError, match="has no head"):
        Changes(change).check(make_recurrent("none").config, 5, 5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("depth", [1, 2])
def test_drawing_counts_every_parameter(form: str, depth: int) -> None:
    model = make_recurrent(form, num_encoder_layers=depth, num_decoder_layers=3 - depth)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count_parameters(model.config) == count
    drawing = draw_architecture(model.config, "whole")
    assert f"{count:,} parameters in the whole model" in drawing
    assert ("one vector of 14 numbers" in drawing) is (form == "none")
    assert "candidate n" in draw_architecture(model.config, "unit")
    with pytest.raises(InputError, match="must be one of whole, unit, but is 'heads'"):
        draw_architecture(model.config, "heads")


def test_drawing_of_a_unit_needs_a_recurrent_model() -> None:
    config = ModelConfig(d_model=8, num_heads=2)
    with pytest.raises(InputError, match="needs a recurrent model"):
        draw_architecture(config, "unit")


# Training


def test_gradients_reach_every_weight() -> None:
    for form in FORMS:
        model = make_model(make_recurrent(form).config)
        assert isinstance(model, RecurrentModel)
        initialize(model, seed=1)
        source, mask = padded(SOURCES)
        target = torch.tensor([TARGET] * len(SOURCES))
        model(source, target, mask).logsumexp(dim=-1).sum().backward()
        assert all(
            parameter.grad is not None and parameter.grad.abs().sum() > 0
            for parameter in model.parameters()
        )


def test_dropout_drops_inputs_states_between_layers_and_readouts() -> None:
    model = make_recurrent("additive")
    source, mask = padded(SOURCES)
    target = torch.tensor([TARGET] * len(SOURCES))
    dropout = make_dropout(TrainingConfig(dropout=0.5), step=1, part=0)
    first = model(source, target, mask, dropout=dropout)
    assert torch.equal(first, model(source, target, mask, dropout=dropout))
    assert (first - model(source, target, mask)).abs().max() > 0.01


def padded(sources: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, sources))
    ids = torch.tensor([[*one, *[0] * (longest - len(one))] for one in sources])
    lengths = torch.tensor([len(one) for one in sources])
    return ids, torch.arange(longest) < lengths[:, None]


def requests() -> list[Request]:
    return [Request(tuple(ids), max_length=11) for ids in SOURCES]


@pytest.mark.parametrize("stage", ["query", "scores", "masked", "weights", "context"])
def test_replay_refuses_a_probe_that_replaces_rows_too_late(stage: str) -> None:
    class Late:
        def see(self, site: str, name: str, tensor: Tensor) -> Tensor | None:
            return tensor * 2 if (site, name) == ("decoder.0.cross", stage) else None

    with pytest.raises(InputError, match="must have a method see_rows, but has none"):
        load("demo-recurrent").look("The pizza is good.", changes=Late())


@pytest.mark.parametrize("stage", ["key", "value"])
def test_replay_takes_replaced_keys_and_values(stage: str) -> None:
    class Zero:
        def see(self, site: str, name: str, tensor: Tensor) -> Tensor | None:
            return tensor * 0 if (site, name) == ("decoder.0.cross", stage) else None

    translator = load("demo-recurrent")
    before = translator.look("The pizza is good.")
    after = translator.look("The pizza is good.", changes=Zero())
    assert after.problems == ()
    assert after.log_probabilities != before.log_probabilities


def test_rows_that_a_probe_replaces_are_checked_like_every_result() -> None:
    class Rows:
        def __init__(self, change: Callable[[Tensor], Any]) -> None:
            self.change = change

        def see(self, site: str, stage: str, tensor: Tensor) -> None:
            return None

        def see_rows(self, site: str, stage: str, rows: Tensor) -> Any:
            return self.change(rows) if stage == "weights" else None

    model = make_recurrent("dot").double()
    batch = torch.tensor([SOURCES[0]]), torch.tensor([TARGET])
    half = model(*batch, probe=Rows(lambda rows: rows * 0.5))
    found = model(*batch, probe=Rows(lambda rows: rows.float() * 0.5))
    assert found.dtype == torch.float64
    assert torch.allclose(found, half, rtol=0, atol=1e-6)
    for wrong in (lambda rows: rows[..., :1], lambda rows: rows * math.nan, lambda rows: 1.0):
        with pytest.raises(InputError, match=r"decoder\.0\.cross\.weights"):
            model(*batch, probe=Rows(wrong))


@pytest.mark.parametrize("form", ["additive", "dot"])
def test_keys_changed_in_place_by_a_probe_leave_the_states(form: str) -> None:
    class Spoiler:
        def see(self, site: str, stage: str, tensor: Tensor) -> None:
            if stage in ("key", "value"):
                tensor.zero_()

    model = make_recurrent(form)
    memory = model.encode(torch.tensor([SOURCES[0]]))
    expected = memory.clone()
    with torch.inference_mode():
        model.decode(torch.tensor([TARGET]), memory, probe=Spoiler())
    assert torch.equal(memory, expected)
