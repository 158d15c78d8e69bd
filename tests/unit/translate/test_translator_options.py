"""Every way to ask a translator for a translation, on the model that comes with the package."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from of_subwords import SUBWORDS

import pellucid
from pellucid.bundle import load_bundle, resolve_model
from pellucid.decode.constraints.request import Constraints
from pellucid.errors import ConfigurationError, DataError, InputError
from pellucid.model import Transformer
from pellucid.translate.translator import Translator, load

PIZZA = "The pizza came out of the oven and it tasted good."
LINES = [
    PIZZA,
    "The girl closed the window.",
    "The cat slept because it was tired.",
    "A man sold the old car.",
]


@pytest.fixture(scope="module")
def translator() -> Translator:
    return pellucid.load(SUBWORDS)


@pytest.fixture(scope="module")
def rough() -> Translator:
    """The demo's model with noise in its weights, so that its choices are less sure."""
    bundle = load_bundle(resolve_model(SUBWORDS))
    torch.manual_seed(1)
    for parameter in bundle.model.parameters():
        parameter.data += 0.06 * torch.randn_like(parameter)
    return Translator(bundle.model, bundle.tokenizer, decoding=bundle.config.decoding)


def test_n_best_comes_ranked_and_scores_as_given_pairs_do(rough: Translator) -> None:
    found = rough.translate(LINES, beam=5, n_best=5)
    checked = 0
    for translation in found:
        assert translation.error is None
        assert len(translation.hypotheses) == 5
        assert len({hypothesis.ids for hypothesis in translation.hypotheses}) == 5
        scores = [hypothesis.score for hypothesis in translation.hypotheses]
        assert scores == sorted(scores, reverse=True)
        for hypothesis in translation.hypotheses:
            assert hypothesis.log_probability == pytest.approx(
                sum(hypothesis.token_log_probabilities)
            )
            ids = tuple(rough.tokenizer.encode_target(hypothesis.text))
            if ids == hypothesis.ids:
                (scored,) = rough.score([translation.source], [hypothesis.text])
                assert scored.token_log_probabilities == pytest.approx(
                    hypothesis.token_log_probabilities, abs=1e-4
                )
                checked += 1
    assert checked > 10


def test_strict_translation_is_the_same_in_any_company(rough: Translator) -> None:
    texts = [f"{a[:-1]} and {b[0].lower()}{b[1:]}" for a in LINES for b in LINES] + LINES
    for options in ({"strict": True}, {"strict": True, "beam": 4, "n_best": 2}):
        alone = [rough.translate([text], **options)[0] for text in texts]
        for batch_tokens in (64, 300, 5000):
            together = rough.translate(texts, batch_tokens=batch_tokens, **options)
            for one, other in zip(alone, together, strict=True):
                assert [h.ids for h in one.hypotheses] == [h.ids for h in other.hypotheses]


def test_sample_depends_on_its_line_and_seed_alone(rough: Translator) -> None:
    options: dict[str, Any] = {"sample": True, "n_best": 3, "temperature": 1.3}
    first = rough.translate(LINES, **options)
    backwards = rough.translate([*LINES[::-1], "It was cold."], **options)
    for one, other in zip(first, backwards[len(LINES) - 1 :: -1], strict=True):
        assert [h.text for h in one.hypotheses] == [h.text for h in other.hypotheses]
    texts = {h.text for translation in first for h in translation.hypotheses}
    assert len(texts) > len(LINES)
    other_seed = rough.translate(LINES, seed=2, **options)
    assert [t.text for t in other_seed] != [t.text for t in first]


def test_sample_at_almost_no_temperature_is_greedy(translator: Translator) -> None:
    cold = translator.translate(LINES, sample=True, temperature=1e-4)
    assert [t.text for t in cold] == [t.text for t in translator.translate(LINES)]


def test_prefix_begins_the_translation(translator: Translator) -> None:
    plain = translator.translate([PIZZA])[0].text
    asked = [Constraints(prefix="La pizza"), Constraints(prefix="Le four")]
    for beam in (1, 4):
        found = translator.translate([PIZZA, PIZZA], constraints=asked, beam=beam)
        assert found[0].text == plain
        assert found[1].text.startswith("Le four")
        scored = translator.score([PIZZA], [found[1].text])[0]
        assert found[1].log_probability == pytest.approx(scored.log_probability, abs=1e-3)


def test_alternatives_are_different_next_words_each_carried_to_the_end(
    translator: Translator,
) -> None:
    constraints = Constraints(prefix="La pizza")
    options: dict[str, Any] = {"alternatives": True, "n_best": 4, "constraints": constraints}
    (found,) = translator.translate([PIZZA], **options)
    prefix = translator.tokenizer.encode_target("La pizza")[:-1]
    nexts = [hypothesis.ids[len(prefix)] for hypothesis in found.hypotheses]
    assert len(set(nexts)) == 4
    assert all(h.ids[: len(prefix)] == tuple(prefix) for h in found.hypotheses)
    logs = [hypothesis.token_log_probabilities[len(prefix)] for hypothesis in found.hypotheses]
    assert logs == sorted(logs, reverse=True)
    assert found.text == translator.translate([PIZZA])[0].text
    assert all(h.tokens[-1] == "</s>" for h in found.hypotheses)


def test_forbidden_and_required_words_are_obeyed(translator: Translator) -> None:
    plain = translator.translate([PIZZA], beam=4)[0].text
    assert "pizza" in plain
    (without,) = translator.translate(
        [PIZZA], constraints=Constraints(forbidden=("pizza",)), beam=4
    )
    assert "pizza" not in without.text
    (held,) = translator.translate(
        [PIZZA], constraints=Constraints(required=("fenêtre", "voiture")), beam=8
    )
    assert "fenêtre" in held.text
    assert "voiture" in held.text


def test_lengths_are_kept(translator: Translator) -> None:
    (short,) = translator.translate([PIZZA], max_length=5)
    assert len(short.ids) == 5
    assert short.tokens[-1] != "</s>"
    (long,) = translator.translate(["Hello."], min_length=13, beam=3)
    assert len(long.ids) >= 13
    (relative,) = translator.translate([PIZZA], min_length_ratio=2.0)
    assert len(relative.ids) >= 2 * len(translator.tokenizer.encode_source(PIZZA))


def test_repetition_is_avoided(rough: Translator) -> None:
    found = rough.translate(LINES, min_length=31, max_length=31, no_repeat_ngram=2)
    for translation in found:
        pairs = list(zip(translation.ids, translation.ids[1:], strict=False))
        assert len(set(pairs)) == len(pairs)
    plain = rough.translate(LINES, min_length=31, max_length=31)
    punished = rough.translate(LINES, min_length=31, max_length=31, repetition_penalty=3.0)
    assert sum(len(set(t.ids)) for t in punished) > sum(len(set(t.ids)) for t in plain)
    for translation in punished:  # what is reported is the model's own, without the penalty
        target = torch.tensor([[rough.tokenizer.config.target_start_id, *translation.ids[:-1]]])
        source = torch.tensor([rough.tokenizer.encode_source(translation.source)])
        with torch.inference_mode():
            logs_TV = rough.model(source, target)[0].log_softmax(-1)
        wanted = [logs_TV[t, id_].item() for t, id_ in enumerate(translation.ids)]
        assert translation.token_log_probabilities == pytest.approx(wanted, abs=1e-4)


def test_stream_is_the_translation_in_pieces(rough: Translator) -> None:
    for options in ({}, {"beam": 4}, {"strict": True}, {"sample": True}):
        for text in LINES:
            pieces = list(rough.stream(text, **options))
            (whole,) = rough.translate([text], **options)
            assert "".join(pieces) == whole.text
            if not options:
                assert len(pieces) > 3
    assert list(rough.stream("  ")) == ["  "]


def test_stream_of_what_cannot_be_translated_is_one_sentence(translator: Translator) -> None:
    with pytest.raises(InputError, match="at most 256 tokens"):
        list(translator.stream("word " * 600))
    constraints = Constraints(required=("pizza",), forbidden=("pizza",))
    with pytest.raises(InputError, match=r"No translation within .* meets the constraints"):
        list(translator.stream(PIZZA, constraints=constraints))


@pytest.mark.parametrize("name", ["forbidden", "required"])
def test_a_single_phrase_is_not_taken_for_its_letters(name: str) -> None:
    with pytest.raises(InputError, match=rf"Constraints\.{name} .* Write \('chat',\)\."):
        Constraints(**{name: "chat"})  # type: ignore[arg-type]


def test_ensemble_averages_probabilities(rough: Translator, translator: Translator) -> None:
    both = Translator(translator.model, translator.tokenizer, others=[rough.model])
    target = "La pizza est bonne."
    one, other, mean = (t.score([PIZZA], [target])[0] for t in (translator, rough, both))
    for a, b, m in zip(*(s.token_log_probabilities for s in (one, other, mean)), strict=True):
        assert math.exp(m) == pytest.approx((math.exp(a) + math.exp(b)) / 2, rel=1e-4)
    for beam in (1, 3):
        for found in both.translate(LINES, beam=beam):
            scored = both.score([found.source], [found.text])[0]
            if scored.ids == found.ids:
                assert found.log_probability == pytest.approx(scored.log_probability, abs=1e-4)
    twins = Translator(translator.model, translator.tokenizer, others=[translator.model])
    for alone, twin in zip(translator.translate(LINES), twins.translate(LINES), strict=True):
        assert alone.ids == twin.ids


def test_ensemble_of_strangers_is_refused(bundle_folder: Path) -> None:
    with pytest.raises(InputError, match="one source vocabulary"):
        load(SUBWORDS, ensemble=[bundle_folder])


def test_long_line_is_split_where_asked(translator: Translator) -> None:
    text = " ".join([PIZZA] * 40)
    (refused,) = translator.translate([text], split="none")
    assert refused.error is not None
    assert "Split it into sentences." in refused.error
    (whole,) = translator.translate([text], split="long")
    assert whole.error is None
    assert whole.text == " ".join([translator.translate([PIZZA])[0].text] * 40)
    assert whole.log_probability == pytest.approx(sum(whole.token_log_probabilities))
    (hopeless,) = translator.translate(["word " * 600], split="long")
    assert hopeless.error is not None
    assert "too long by itself" in hopeless.error


@pytest.mark.parametrize("precision", ["bfloat16", "int8"])
def test_translation_in_fewer_bits_is_much_the_same(translator: Translator, precision: Any) -> None:
    exact = translator.translate(LINES, beam=3)
    coarse = translator.translate(LINES, beam=3, precision=precision)
    pairs = list(zip(exact, coarse, strict=True))
    assert sum(one.text.lower() == other.text.lower() for one, other in pairs) == len(LINES)
    for one, other in pairs:
        assert one.log_probability == pytest.approx(other.log_probability, abs=1.0)
        assert one.log_probability != other.log_probability


@pytest.mark.parametrize(
    ("options", "fragments"),
    [
        ({"beam": 0}, ["beam", "1", "0"]),
        ({"beam": 10_000}, ["beam", "1000", "10000"]),
        ({"n_best": 3}, ["n_best", "at most beam (1)", "3"]),
        ({"sample": True, "beam": 5}, ["beam must be 1 when sampling", "5"]),
        ({"beam": 5, "diverse_groups": 2}, ["multiple of diverse_groups", "5", "2"]),
        ({"sample": True, "alternatives": True}, ["alternatives", "sample"]),
        ({"beam": 4, "alternatives": True}, ["n_best must be at least 2 with alternatives"]),
        ({"strict": True, "precision": "int8"}, ["float32", "int8"]),
        ({"min_length": 9, "max_length": 4}, ["min_length", "9", "4"]),
        ({"temperature": 0.0}, ["temperature", "greater than 0"]),
        ({"top_p": 1.5}, ["top_p", "1.5"]),
        ({"beem": 5}, ["'beem'", "Did you mean 'beam'"]),
    ],
)
def test_options_that_are_impossible_are_one_sentence(
    translator: Translator, options: dict[str, Any], fragments: list[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        translator.translate([PIZZA], **options)
    for fragment in fragments:
        assert fragment in str(caught.value)
    assert "\n" not in str(caught.value)


def test_constraints_that_cannot_be_met_are_errors_of_their_lines_alone(
    translator: Translator,
) -> None:
    asked = [
        Constraints(),
        Constraints(required=("pizza " * 60,)),
        Constraints(prefix="La pizza", forbidden=("La pizza",)),
        Constraints(required=("four",), forbidden=("four",)),
    ]
    found = translator.translate([PIZZA] * len(asked), constraints=asked, beam=3)
    assert [translation.error is None for translation in found] == [True, False, True, False]
    assert "at most" in str(found[1].error)
    assert "meets the constraints" in str(found[3].error)
    with pytest.raises(DataError, match="one set of constraints for each text"):
        translator.translate([PIZZA], constraints=asked)


@pytest.mark.parametrize("options", [{"sample": True}, {"beam": 4, "diverse_groups": 2}], ids=str)
def test_required_phrases_need_a_plain_beam(
    translator: Translator, options: dict[str, Any]
) -> None:
    constraints = Constraints(required=("pizza",))
    (found,) = translator.translate([PIZZA], constraints=constraints, **options)
    assert found.error is not None
    assert "cannot be combined with sample or diverse_groups" in found.error


def test_prefix_with_unknown_characters_is_one_sentence(bundle_folder: Path) -> None:
    translator = load(bundle_folder)
    (found,) = translator.translate(["The pizza"], constraints=Constraints(prefix="La 漢字"))
    assert found.error is not None
    assert "漢字" in found.error


def test_decoding_leaves_the_model_as_it_was() -> None:
    bundle = load_bundle(resolve_model(SUBWORDS))
    before = {name: tensor.clone() for name, tensor in bundle.model.state_dict().items()}
    model: Transformer = bundle.model
    translator = Translator(model, bundle.tokenizer)
    for options in ({}, {"beam": 3}, {"precision": "int8"}, {"strict": True}):
        translator.translate(LINES, **options)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_the_shortest_limits_of_an_ensemble_count(translator: Translator) -> None:
    limits = {"max_source_length": 11, "max_target_length": 5}
    shorter = Transformer(translator.model.config.model_copy(update=limits))
    shorter.load_state_dict(translator.model.state_dict())
    both = Translator(translator.model, translator.tokenizer, others=[shorter])
    long, short = both.translate([PIZZA, "The cat slept."])
    assert long.error is not None
    assert "at most 11 tokens" in long.error
    assert short.error is None
    assert len(short.hypotheses[0].ids) <= 5
    (scored,) = both.score(["The cat slept."], ["Le chat a dormi dans la grande maison bleue."])
    assert scored.error is not None
    assert "at most 5" in scored.error


def test_every_part_of_a_line_that_is_split_begins_with_its_language(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    encode = translator.tokenizer.encode_sources

    def encode_sources(texts: list[str]) -> list[list[int]]:
        asked.append(texts)
        return encode(texts)

    monkeypatch.setattr(translator.tokenizer, "language_code", lambda text: text[:7])
    monkeypatch.setattr(translator.tokenizer, "encode_sources", encode_sources)
    text = ">>fra<< " + " ".join([PIZZA] * 40)
    (whole,) = translator.translate([text], split="long")
    assert whole.error is None
    assert asked == [[text], [f">>fra<< {PIZZA}"] * 40]


def test_defaults_that_change_between_calls_are_followed() -> None:
    translator = pellucid.load("demo")
    before = translator.options()
    translator.decoding = translator.options(beam=3)
    assert before.beam != translator.options().beam == 3
