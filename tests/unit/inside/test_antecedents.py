"""Antecedents: which nouns a case has, what points where, intervals, and linear probes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from of_subwords import SUBWORDS
from source_text import source_text

import pellucid
from pellucid.bundle import Bundle
from pellucid.corpora import Example, Pronoun, make_split
from pellucid.corpora.baselines import baseline_accuracies
from pellucid.errors import InputError
from pellucid.inside import Ask, Pair
from pellucid.inside.changes.change import cut_source_word
from pellucid.inside.pair import attention_at
from pellucid.inside.replayed_pair import replay

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from antecedents.cases import (
    Case,
    choose_reading,
    count_hits,
    make_cases,
    share_by,
    share_of_hits,
)
from antecedents.probe import (
    collect_layers,
    encoder_vectors,
    fit_logistic,
    mean_vectors,
    probe_layers,
    split_combinations,
)
from antecedents.readings import CUTS, read_cuts, read_heads, read_map

COUNT = 26


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    bundle = pellucid.load(SUBWORDS).bundle
    assert bundle is not None
    return bundle


@pytest.fixture(scope="module")
def examples() -> list[Example]:
    return make_split("pronoun", count=COUNT)


@pytest.fixture(scope="module")
def cases(bundle: Bundle, examples: list[Example]) -> list[Case]:
    return make_cases(bundle, examples, is_paired=True)


def text_of(case: Case, tokens: Sequence[int], *, is_source: bool = True) -> str:
    pieces = case.pair.source_tokens if is_source else case.pair.predicted_tokens
    return "".join(pieces[token] for token in tokens).replace("▁", " ").strip()


def test_cases_of_minimal_pairs_differ_in_answer_and_gender(
    cases: list[Case], examples: list[Example]
) -> None:
    assert len(cases) == len(examples)
    for first, second in zip(cases[::2], cases[1::2], strict=True):
        assert first.group == second.group
        assert first.words == second.words
        assert {first.gender, second.gender} == {"m", "f"}
        assert {first.num_between, second.num_between} == {0, 1}


def test_case_has_the_tokens_of_the_words_that_the_corpus_names(
    cases: list[Case], examples: list[Example]
) -> None:
    for case, example in zip(cases, examples, strict=True):
        pieces = example.source.split(" ")
        (pronoun,) = example.pronouns
        assert text_of(case, case.nouns[case.answer]) == pieces[pronoun.source_antecedent]
        assert text_of(case, case.pronoun) == pieces[pronoun.source].rstrip(".!")
        clause = pieces[pieces.index("and") + 1 :]
        clause.remove(pieces[pronoun.source])
        assert text_of(case, case.predicate) == " ".join(clause).rstrip(".!")
        target = text_of(case, case.target_nouns[case.answer], is_source=False)
        assert target.endswith(example.target.split(" ")[pronoun.target_antecedent])


def make_example(target: str, alignment: tuple[tuple[int, int], ...], at: int) -> Example:
    source = "The pizza was near the book and it was good."
    return Example(source, target, alignment, (Pronoun(7, 1, at, 1),), "object pronoun")


@pytest.mark.parametrize(
    ("target", "at", "decisive"),
    [
        ("La pizza et elle était bonne.", 3, "elle"),
        ("La pizza parce qu'elle était bonne.", 3, "qu'elle"),
        ("La pizza et la mange.", 3, "la"),
        ("La pizza et l'a mangée.", 3, "mangée"),
        ("La pizza et les ont mangées.", 3, "mangées"),
        ("La pizza et les mange.", 3, None),
        ("La pizza et l'épluche.", 3, None),
    ],
)
def test_decisive_word_is_the_one_that_shows_the_gender(
    bundle: Bundle, target: str, at: int, decisive: str | None
) -> None:
    found = make_cases(bundle, [make_example(target, ((1, 1),), at)], is_paired=False)
    texts = [text_of(case, case.rows, is_source=False) for case in found]
    assert texts == ([] if decisive is None else [decisive])


def test_sentences_of_other_constructions_are_left_out(bundle: Bundle) -> None:
    example = replace(
        make_example("La pizza et elle était bonne.", ((1, 1),), 3), construction="told"
    )
    assert make_cases(bundle, [example], is_paired=False) == []


def test_rules_of_thumb_get_what_they_must_on_minimal_pairs(
    cases: list[Case], examples: list[Example]
) -> None:
    hits = count_hits(cases, [])
    assert hits["nearest noun"].mean() == 0.5
    expected = np.mean([1 / len(case.nouns) for case in cases])
    assert hits["random noun"].mean() == pytest.approx(expected)
    assert hits["first noun"].mean() <= baseline_accuracies(examples)["first noun"]
    share = share_of_hits("nearest noun", hits["nearest noun"], cases)
    assert (share.share, share.low, share.high, share.both_right) == (0.5, 0.5, 0.5, 0.0)


def test_reading_that_knows_the_answer_is_always_right(cases: list[Case]) -> None:
    def know(case: Case) -> dict[str, list[float]]:
        return {"knows": [float(place == case.answer) for place in range(len(case.nouns))]}

    hits = count_hits(cases, [know])
    share = share_of_hits("knows", hits["knows"], cases)
    assert (share.share, share.low, share.high, share.both_right) == (1.0, 1.0, 1.0, 1.0)
    assert choose_reading(hits, ["nearest noun", "knows"]) == "knows"
    parts = share_by("nearest noun", hits["nearest noun"], cases, lambda case: case.num_between)
    assert {value: part.share for value, part in parts.items()} == {0: 1.0, 1: 0.0}
    assert sum(part.num_cases for part in parts.values()) == len(cases)


def test_interval_holds_the_share_and_draws_pairs_together(cases: list[Case]) -> None:
    rng = np.random.default_rng(1)
    hits = rng.integers(0, 2, len(cases)).astype(float)
    share = share_of_hits("coin", hits, cases)
    assert share.low < share.share == hits.mean() < share.high
    assert share == share_of_hits("coin", hits, cases)
    both = (hits.reshape(-1, 2).sum(axis=1) == 2).mean()
    assert share.both_right == pytest.approx(both)


def test_nothing_to_count_is_refused() -> None:
    with pytest.raises(InputError, match="No case was given"):
        share_of_hits("none", np.zeros(0), [])


def test_head_readings_are_sums_of_weights_over_each_nouns_tokens(cases: list[Case]) -> None:
    case = next(case for case in cases if max(map(len, case.nouns)) > 1)
    found = read_heads(case)
    trace = replay(case.pair)
    weights_LM = trace["encoder.1.self.2"]
    expected = [
        weights_LM[list(case.pronoun)][:, list(noun)].sum(axis=1).mean() for noun in case.nouns
    ]
    assert found["encoder.1.self.2 weights, pronoun"] == pytest.approx(expected, abs=1e-6)
    weights_LM = trace["decoder.1.cross.3"]
    for name, shift in (("predicts", 0), ("reads", 1)):
        rows = [row + shift for row in case.rows]
        expected = [weights_LM[rows][:, list(noun)].sum(axis=1).mean() for noun in case.nouns]
        assert found[f"decoder.1.cross.3 weights, {name}"] == pytest.approx(expected, abs=1e-6)
    # 2 + 2 layers' self-attention and 2 of cross-attention, 4 heads, 2 measures, 2 choices of rows
    assert len(found) == 6 * 4 * 2 * 2


def test_decoder_self_readings_look_where_the_translated_nouns_are_read(cases: list[Case]) -> None:
    case = cases[0]
    trace = replay(case.pair)
    columns = [[token + 1 for token in tokens] for tokens in case.target_nouns]
    read = "".join(trace.target_tokens[column] for column in columns[case.answer])
    written = text_of(case, case.target_nouns[case.answer], is_source=False)
    assert read.replace("▁", " ").strip() == written
    weights_LM = trace["decoder.0.self.1"][list(case.rows)].mean(axis=0)
    expected = [weights_LM[one].sum() for one in columns]
    found = read_heads(case)["decoder.0.self.1 weights, predicts"]
    assert found == pytest.approx(expected, abs=1e-6)


def test_head_readings_of_norms_are_lengths_of_what_a_head_brings(cases: list[Case]) -> None:
    case = cases[0]
    trace = replay(case.pair, Ask(stages=("weights", "value")))
    value_ME = trace["encoder.0.self.1.value"]
    output = attention_at(case.pair.model, "encoder.0.self").output.weight.detach().numpy()
    (query,) = case.pronoun
    (key, *_) = case.nouns[0]
    brought_D = trace["encoder.0.self"][1, query, key] * (output[:, 24:48] @ value_ME[key])
    found = read_heads(replace(case, nouns=((key,), case.nouns[1])))
    assert found["encoder.0.self.1 norms, pronoun"][0] == pytest.approx(
        float(np.linalg.norm(brought_D)), rel=1e-5
    )


def test_any_map_of_a_pair_can_be_read(cases: list[Case]) -> None:
    case = cases[0]

    def number(pair: Pair) -> np.ndarray:
        return np.tile(np.arange(len(pair.source_ids) + 5.0), (len(pair.target_ids), 1))

    found = read_map("columns", number, "predicts")(case)
    assert found == {"columns, predicts": [float(sum(noun)) for noun in case.nouns]}


def test_cut_readings_are_what_the_decisive_word_loses(cases: list[Case]) -> None:
    case = cases[2]
    found = read_cuts(case)
    assert list(found) == list(CUTS)
    rows = list(case.rows)
    before = case.pair.log_probabilities()[rows].sum()
    for noun, loss in zip(case.nouns, found["cut word"], strict=True):
        after = case.pair.log_probabilities(probe=cut_source_word(noun))[rows].sum()
        assert loss == pytest.approx(float(before - after), abs=1e-4)
    assert np.argmax(found["cut word"]) == case.answer


def test_vectors_of_the_pronoun_are_those_of_a_trace(cases: list[Case]) -> None:
    case = cases[0]
    found = encoder_vectors(case.pair, case.pronoun)
    trace = replay(case.pair)
    everything = pellucid.load(SUBWORDS).look(
        source_text(case.pair.tokenizer, case.pair.source_ids),
        translation=case.pair.tokenizer.decode_target(case.pair.target_ids),
        everything=True,
    )
    assert trace.source_tokens == everything.source_tokens
    places = list(case.pronoun)
    for name, array in (
        ("input", "encoder.input"),
        ("layer 0", "encoder.0.feed_forward.residual"),
        ("layer 1", "encoder.1.feed_forward.residual"),
        ("norm", "encoder.norm"),
    ):
        np.testing.assert_allclose(found[name], everything[array][places].mean(axis=0), atol=1e-6)
    assert len(found) == 4


def test_minimal_pairs_have_one_vector_before_the_first_layer(cases: list[Case]) -> None:
    first, second = next(
        (one, other)
        for one, other in zip(cases[::2], cases[1::2], strict=True)
        if one.pronoun == other.pronoun
    )
    vectors = [encoder_vectors(case.pair, case.pronoun) for case in (first, second)]
    np.testing.assert_array_equal(vectors[0]["input"], vectors[1]["input"])
    assert np.abs(vectors[0]["layer 0"] - vectors[1]["layer 0"]).max() > 1e-3


def test_held_out_pairs_of_nouns_are_on_one_side_only(cases: list[Case]) -> None:
    is_test = split_combinations(cases)
    sides: dict[frozenset[str], set[bool]] = {}
    for case, is_held_out in zip(cases, is_test, strict=True):
        sides.setdefault(frozenset(case.words[-2:]), set()).add(bool(is_held_out))
    assert all(len(side) == 1 for side in sides.values())
    assert 0 < is_test.sum() < len(cases) / 2


def test_logistic_regression_is_where_its_gradient_is_zero() -> None:
    rng = np.random.default_rng(5)
    features = rng.normal(size=(61, 7))
    labels = features[:, 0] + 0.5 * rng.normal(size=61) > 0.3
    weights, bias = fit_logistic(features, labels, penalty=0.01)
    share = 1 / (1 + np.exp(-(features @ weights + bias)))
    slope = features.T @ (share - labels) / len(labels) + 0.01 * weights
    np.testing.assert_allclose(slope, 0, atol=1e-5)
    assert (share - labels).mean() == pytest.approx(0, abs=1e-5)


def test_probes_read_each_layer_and_the_embedding_gets_no_pair_right(
    bundle: Bundle, tmp_path: Path
) -> None:
    cases = make_cases(bundle, make_split("pronoun", count=160), is_paired=True)
    one_pronoun = [
        case
        for first, second in zip(cases[::2], cases[1::2], strict=True)
        for case in (first, second)
        if first.pronoun == second.pronoun
    ]
    results = probe_layers(one_pronoun)
    files = collect_layers(bundle, one_pronoun, tmp_path)
    assert probe_layers(one_pronoun, files) == results
    case = one_pronoun[5]
    means = mean_vectors(files["layer 0"], [case.pronoun for case in one_pronoun])
    alone = encoder_vectors(case.pair, case.pronoun)["layer 0"]
    np.testing.assert_allclose(means[5], alone, atol=2e-5)
    assert {one.word for one in results} == {"pronoun"}
    assert [one.layer for one in results[::2]] == ["input", "layer 0", "layer 1", "norm"]
    for one in results:
        assert one.selectivity == one.accuracy.share - one.control.share
        assert one.accuracy.num_cases + one.num_train == len(one_pronoun)
        assert one.control.num_cases < one.accuracy.num_cases
    assert [one.accuracy.both_right for one in results[:2]] == [0.0, 0.0]
    assert [one.accuracy.share for one in results[:2]] == [0.5, 0.5]
    assert [one.control.share for one in results[:2]] == [0.5, 0.5]


def test_probe_with_too_few_sentences_is_refused(cases: list[Case]) -> None:
    with pytest.raises(InputError, match="at least 10 sentences"):
        probe_layers(cases[:8])
