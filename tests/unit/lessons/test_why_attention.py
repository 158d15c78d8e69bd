"""Claims about attention: heads, projections, similarity and distance, against plain numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from pellucid.lessons.why import MeasurementSetting
from pellucid.lessons.why.cells import Cells, judge_seeds
from pellucid.lessons.why.claims import cache, queries, relevance
from pellucid.lessons.why.claims.diagonal import look_at_heads, look_at_inputs, rank_with
from pellucid.lessons.why.claims.parts import needed_heads as heads
from pellucid.lessons.why.claims.parts.apart import draw_apart_packaged, draw_apart_tiny
from pellucid.lessons.why.claims.parts.needed_heads import cut_heads
from pellucid.lessons.why.claims.relevance import LONG, PACKAGED, SHORT, explain
from pellucid.lessons.why.packaged import load_packaged
from pellucid.lessons.why.result import Verdict
from pellucid.lessons.why.tiny.learn import make_tiny
from pellucid.lessons.why.tiny.trials import make_task, run_trial, updates_to
from pellucid.lessons.why.tiny.two_nouns import (
    HESITATIONS,
    draw_hesitant,
    draw_others,
    draw_unseen,
)
from pellucid.machine.randomness import generator


def expect(verdict: Verdict, outcome: str, part_of_condition: str = "") -> None:
    assert verdict.outcome == outcome
    assert part_of_condition in verdict.condition
    assert bool(verdict.condition) == (outcome == "holds only if")


def test_rank_with_equals_spearman_by_hand_with_ties() -> None:
    given_HO = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.2, 0.2, 0.2, 0.4]])
    similar_O = np.array([0.0, 0.5, 0.6, 0.9])
    ranks_H, is_first_H = rank_with(given_HO, similar_O)
    # Ranks 1, 1, 1, 3 against 0, 1, 2, 3: 3 / sqrt(3 · 5).
    assert ranks_H.tolist() == pytest.approx([1.0, -1.0, 3 / 15**0.5])
    assert is_first_H.tolist() == [True, False, True]


def test_rows_without_projections_are_highest_on_the_diagonal_and_follow_similarity() -> None:
    model = load_packaged().model
    source = load_packaged().tokenizer.encode_source("The cow was near the old piano.")
    plain = look_at_inputs(model, [(source, [])])
    assert plain["highest"] > 0.9
    assert plain["chance"] == pytest.approx(1 / len(source))
    assert plain["chance_first"] == pytest.approx(1 / (len(source) - 1))
    heads_found = look_at_heads(model, [(source, [5, 6, 7])], "decoder")
    assert heads_found[0]["chance"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert heads_found[0]["ranks"] == 0  # No word of three sees three others.


@pytest.mark.parametrize("cause", ["distance", "words"])
def test_explain_finds_what_weights_were_made_from(cause: str) -> None:
    numbers = generator(1, "test explain")
    by_distance = dict(zip(range(-7, 8), numbers.normal(1 / 7, 0.3, 15), strict=True))
    by_words = numbers.normal(1 / 7, 0.3, (5, 5))
    sentences = [numbers.integers(0, 5, 7).tolist() for _ in range(101)]
    weights = []
    for ids in sentences:
        raw = [
            [by_distance[j - i] if cause == "distance" else by_words[ids[i], ids[j]]
             for j in range(7)]
            for i in range(7)
        ]  # fmt: skip
        weights.append(np.array([raw]))
    (found,) = explain(weights, sentences)
    assert found.pop("both") > 0.95
    assert found.pop(cause) > 0.95
    assert max(found.values()) < 0.6


def test_explain_of_noise_finds_nothing() -> None:
    numbers = generator(1, "test noise")
    sentences = [numbers.integers(0, 50, 11).tolist() for _ in range(40)]
    weights = [numbers.dirichlet(np.ones(11), (2, 11)) for _ in sentences]
    for one in explain(weights, sentences):
        assert max(one.values()) < 0.1


def test_hesitations_stand_between_both_nouns_and_the_pronoun() -> None:
    for (english, french), antecedent, other in draw_hesitant(
        13, least=5, most=5, seed=1, part="test"
    ):
        words = english.split()
        between = [word for word in words if word in HESITATIONS]
        assert len(between) == 5
        assert words[words.index("it") - 6 : words.index("it") - 1] == between
        assert max(words.index(antecedent), words.index(other)) < words.index(between[0])
        assert not set(french.split()) & set(HESITATIONS)


def test_cases_of_the_packaged_model_point_at_nouns_and_pronoun() -> None:
    bundle = load_packaged()
    cases = draw_apart_packaged(bundle, 6, 7, seed=1, part="look")
    assert {case.is_far for case in cases} == {True, False}
    for case in cases:
        tokens = bundle.tokenizer.source_tokens(case.source)
        it, antecedent = case.rows[0], case.antecedent
        assert tokens[it].strip("▁") == "it"
        distance = it - max(antecedent)
        assert (distance > 7) == case.is_far
        assert not set(antecedent) & set(case.other)
        written = bundle.tokenizer.target_tokens([case.right, case.wrong])
        assert {token.strip("▁") for token in written} == {"il", "elle"}


def test_cases_of_a_tiny_model_point_at_nouns_and_pronoun() -> None:
    text = [one[0] for one in draw_hesitant(40, most=3, seed=1, part="train")]
    tiny = make_tiny([*text, *((" ".join(HESITATIONS), "il elle"),)], seed=1)
    for case in draw_apart_tiny(tiny, 7, 3, seed=1, part="look"):
        words = [tiny.source.words[id_] for id_ in case.source]
        assert words[case.rows[0]] == "it"
        assert case.rows[1] == len(words) - 2
        assert {tiny.target.words[case.right], tiny.target.words[case.wrong]} == {"il", "elle"}
        assert case.antecedent != case.other


def test_unseen_sentences_are_not_known() -> None:
    known = draw_others(500, seed=1)
    found = draw_unseen(known, 100, seed=1)
    assert len(set(found)) == 100
    assert not set(found) & set(known)


def test_frozen_projections_keep_their_first_weights() -> None:
    task = make_task("lists", MeasurementSetting(size="toy"), seed=1)
    first = make_tiny([*task.train, *task.tests], seed=1, d_model=32, d_ff=64, num_heads=2)
    _, tiny = run_trial(task, seed=1, frozen=("query",))
    before, after = (dict(one.model.named_parameters()) for one in (first, tiny))
    for name, parameter in after.items():
        assert torch.equal(parameter, before[name]) == name.endswith("_attention.query.weight"), (
            name
        )


@pytest.mark.parametrize("task_name", ["lists", "pronouns"])
def test_kinds_have_as_many_parameters_where_filled(task_name: str) -> None:
    task = make_task(task_name, MeasurementSetting(size="toy"), seed=1)  # type: ignore[arg-type]
    counts = []
    for way in queries.EQUAL.values():
        trial, _ = run_trial(replace(task, steps=1), seed=1, **way.settings(task))
        counts.append(trial.parameters)
    assert max(counts) < 1.02 * min(counts)


def test_updates_to_waits_until_the_mean_of_ten_is_below() -> None:
    assert updates_to([1.0] * 10 + [0.0] * 20, 0.35) == 17
    assert updates_to([1.0] * 13, 0.5) == 13


def test_distance_between_heads_is_half_the_sum_of_gaps() -> None:
    same = torch.tensor([[0.5, 0.5, 0.0]] * 3)
    other = torch.tensor([[0.0, 0.5, 0.5]] * 3)
    apart = torch.tensor([[0.0, 0.0, 1.0]] * 3)
    assert heads.distance_between(torch.stack([same, same])) == 0
    assert heads.distance_between(torch.stack([same, other])) == pytest.approx(0.5)
    found = heads.distance_between(torch.stack([same, other, apart]))
    assert found == pytest.approx((0.5 + 1.0 + 0.5) / 3)


def test_heads_are_cut_one_by_one_until_nothing_is_left() -> None:
    found = cut_heads(1, 2)
    config = load_packaged().model.config
    total = config.num_heads * (config.num_encoder_layers + 2 * config.num_decoder_layers)
    losses, drawn = found["losses"], found["random"]
    assert len(set(found["order"])) == len(found["order"]) == total
    assert len(losses) == len(found["right"]) == len(drawn) == total + 1
    assert losses[0] == drawn[0] < losses[-1]
    assert losses[-1] == pytest.approx(drawn[-1], rel=1e-5)


def trials(way: str, *found: tuple[float, int]) -> list[dict[str, float | str]]:
    return [
        {"text": "lists", "way": way, "seed": seed, "exact": exact, "updates": updates}
        for seed, (exact, updates) in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("other", "outcome"),
    [((0.5, 100), "holds"), ((0.99, 140), "fails"), ((1.0, 100), "fails")],
)
def test_projections_are_judged_by_lost_sentences(other: tuple[float, int], outcome: str) -> None:
    for way in (queries.TWO, queries.NONE, queries.RANDOM):
        cells = Cells((*trials(queries.ALL, (1.0, 100)), *trials(way, other)))
        expect(queries.judge(cells, way), outcome)
        if outcome == "fails":  # A score x·x is static by itself, whatever other layers make of it.
            alone = queries.judge(cells, way, "one attention and nothing else")
            expect(alone, "holds only if", "the model is one attention and nothing else")


def test_projections_with_unsteady_seeds_are_open() -> None:
    unsteady = trials(queries.NONE, (1.0, 90), (0.9, 120), (0.7, 300))
    cells = Cells((*trials(queries.ALL, *[(1.0, 100)] * 3), *unsteady))
    assert judge_seeds(lambda one: queries.judge(one, queries.NONE), cells).outcome == "open"


@pytest.mark.parametrize(
    ("lists", "pronouns", "outcome", "condition"),
    [
        ((200, 100, 100), (300, 200, 200), "holds", ""),
        ((200, 100, 190), (300, 200, 200), "fails", ""),
        ((200, 100, 100), (200, 200, 200), "fails", ""),
    ],
)
def test_number_of_heads_is_judged_by_updates(
    lists: tuple[int, ...], pronouns: tuple[int, ...], outcome: str, condition: str
) -> None:
    rows = [
        {"text": text, "heads": number, "seed": 1, "updates": count}
        for text, counts in (("lists", lists), ("pronouns", pronouns))
        for number, count in zip((1, 2, 4), counts, strict=True)
    ]
    expect(heads.judge_number(Cells(tuple(rows))), outcome, condition)


def test_distance_of_heads_is_judged_against_random_weights() -> None:
    more, less = (Cells(({"seed": 1, "trained": after, "untrained": 0.4},)) for after in (0.6, 0.3))
    expect(heads.judge_head_distance(more, more), "holds")
    expect(heads.judge_head_distance(less, more), "holds only if", "tiny")
    expect(heads.judge_head_distance(more, less), "holds only if", "`demo`")
    expect(heads.judge_head_distance(less, less), "fails")


@pytest.mark.parametrize(
    ("losses", "outcome"),
    [
        ((0.1, 0.2, 0.3, 0.4), "holds"),
        ((0.1, 0.105, 0.3, 0.4), "fails"),
        ((0.1, 0.105, 0.105, 0.4), "fails"),
    ],
)
def test_cutting_is_judged_by_the_heads_that_go_without_loss(
    losses: tuple[float, ...], outcome: str
) -> None:
    rows = [{"cut": number, "seed": 1, "loss": loss} for number, loss in enumerate(losses)]
    expect(heads.judge_cut(Cells(tuple(rows))), outcome)


def test_reach_is_judged_by_pronouns_at_the_largest_distance() -> None:
    far, wrong = ((0.8, 1.0), (0.1, 0.95)), ((0.8, 1.0), (0.8, 0.5))

    def judge(curves: dict[str, tuple[tuple[float, float], ...]]) -> Verdict:
        return relevance.judge_reach(Cells(tuple(
            {"model": model, "seed": 1, "words": 3 * n, "weight": weight, "even": 0.1,
             "right": right}
            for model, curve in curves.items() for n, (weight, right) in enumerate(curve)
        )))  # fmt: skip

    expect(judge({LONG: far, PACKAGED: far}), "holds")
    expect(judge({LONG: wrong, PACKAGED: wrong}), "fails")
    of_training = judge({LONG: far, SHORT: wrong, PACKAGED: wrong})
    expect(of_training, "holds only if", "training had")
    expect(judge({LONG: wrong, PACKAGED: far}), "fails")


def test_shares_are_judged_by_head() -> None:
    def judge(*heads: tuple[float, float]) -> Verdict:
        return relevance.judge_shares(Cells(tuple(
            {"place": place, "seed": 1, "distance": distance, "words": words}
            for place, (distance, words) in enumerate(heads)
        )))  # fmt: skip

    words, place = (0.1, 0.5), (0.5, 0.1)
    expect(judge(words, words), "holds")
    expect(judge(words, place), "fails")
    assert "more in 1 of 2 heads" in judge(words, place).numbers
    expect(judge(place), "fails")


@pytest.mark.parametrize(
    ("times", "outcome", "condition"),
    [
        ((2.0, 3.0, 9.0), "holds", ""),
        ((0.8, 1.0, 9.0), "holds", ""),
        ((2.0, 3.0, 1.0), "fails", ""),
    ],
)
def test_kept_keys_are_judged_by_the_time_that_they_save_at_64_tokens(
    times: tuple[float, ...], outcome: str, condition: str
) -> None:
    rows = [
        {"length": length, "seed": 1, "cached_seconds": 0.1, "plain_seconds": 0.1 * one}
        for length, one in zip((4, 16, 64), times, strict=True)
    ]
    expect(cache.judge_saved_time(Cells(tuple(rows))), outcome, condition)
