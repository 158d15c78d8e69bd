"""A decoder whose recurrent units take the place of self-attention (``decoder = "ssru"``).

Every number of its traces is compared with NumPy in `test_trace_parity.py`, and `test_variants.py`
looks at it as at all later variants.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from small_native import make_transformer
from small_words import make_words_bundle

import pellucid
from pellucid.errors import ConfigurationError, InputError
from pellucid.inside.show.unit_steps import follow_simple_unit
from pellucid.translate.translator import Translator

TEXT = "The pizza came out of the oven"


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("units") / "bundle"
    return pellucid.load(make_words_bundle(folder, decoder="ssru"))


def test_decoder_keeps_one_vector_whatever_the_length() -> None:
    model = make_transformer(decoder="ssru")
    memory = model.encode(torch.tensor([[5, 6, 3]]))
    cache = model.new_cache()
    for length in range(1, 7):
        model.decode(torch.tensor([[4 + length]]), memory, cache=cache)
        assert cache.length == length
        assert [one.past.state_BD.shape for one in cache.layers] == [(1, 14)] * 3


def test_state_stays_in_float32_when_the_model_computes_in_bfloat16() -> None:
    model = make_transformer(decoder="ssru").bfloat16()
    cache = model.new_cache()
    states = model.decode(torch.tensor([[5, 6]]), model.encode(torch.tensor([[5, 3]])), cache=cache)
    assert states.dtype == torch.bfloat16
    assert cache.layers[0].past.state_BD.dtype == torch.float32


def test_trace_has_the_units_stages_and_no_self_attention_in_the_decoder(
    translator: Translator,
) -> None:
    trace = translator.look(TEXT, everything=True)
    names = {name for name in trace.arrays if name.startswith("decoder.0.")}
    assert not any(".self." in name for name in names)
    stages = {"candidate", "forget", "state", "output"}
    assert {f"decoder.0.recurrent.{stage}" for stage in stages} <= names
    forget_TD = trace["decoder.0.recurrent.forget"]
    assert 0 < forget_TD.min() < forget_TD.max() < 1
    model = translator.bundle.config.model
    titles = [one.title for one in follow_simple_unit(trace, model, 2, shown=None)]
    assert titles[1] == "The state of decoder.0.recurrent"
    kept, added, after = (
        next(
            one for one in follow_simple_unit(trace, model, 2, shown=None) if "state" in one.title
        ).rows[place][1:-1]
        for place in (1, 2, 3)
    )
    assert [a + b for a, b in zip(kept, added, strict=True)] == pytest.approx(after, abs=1e-6)


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: one.look(TEXT, ask="decoder.0.self.1"),
        lambda one: one.translate(TEXT, changes="cut decoder.1.self.0"),
        lambda one: one.pair(TEXT).measure("norms", "decoder.0.self"),
    ],
)
def test_self_attention_of_the_decoder_is_refused_in_a_sentence(
    translator: Translator, ask: object
) -> None:
    with pytest.raises(InputError, match="recurrent units read its earlier words"):
        ask(translator)  # type: ignore[operator]


@pytest.mark.parametrize("name", ["rollout", "alti", "gradients"])
def test_measures_through_the_decoders_self_attention_are_refused(
    translator: Translator, name: str
) -> None:
    pair = translator.pair(TEXT)
    with pytest.raises(InputError, match="needs self-attention in the decoder"):
        pair.measure(name)


def test_measures_of_what_is_there_work(translator: Translator) -> None:
    pair = translator.pair(TEXT)
    for name, head in (
        *(("weights", None), ("norms", None), ("gradients", "decoder.*.cross")),
        *(
            ("value-zeroing", "decoder.*.cross"),
            ("alti", "decoder.*.cross"),
            ("rollout", "encoder"),
        ),
        *(("occlusion", None), ("integrated-gradients", None)),
    ):
        assert pair.measure(name, head).matrix.size


def test_samples_have_the_log_probabilities_of_a_replay(translator: Translator) -> None:
    found = translator.translate(TEXT, sample=True, n_best=2, max_length=6)
    for number in range(2):
        assert len(found.hypotheses[number].ids) <= 6
    trace = translator.look(TEXT, max_length=6)
    assert trace.problems == ()


@pytest.mark.parametrize(("key", "value"), [("training.score_penalty_decoder", "0.1")])
def test_recipes_with_settings_that_units_lack_are_refused(
    key: str, value: str, tmp_path: Path
) -> None:
    from pellucid.config.training_recipe import load_recipe

    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        "[data]\ntrain = ['a.tsv']\nvalidation = ['b.tsv']\n[model]\ndecoder = 'ssru'\n"
    )
    with pytest.raises(ConfigurationError, match=f"{key} must be .* decoder of recurrent units"):
        load_recipe(recipe, [f"{key}={value}"])
