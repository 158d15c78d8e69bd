"""Verdicts follow from numbers: each rule with numbers that it must judge differently."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

from pellucid.lessons.why.cells import Cells, each_seed, judge_seeds, say_seeds, write_small
from pellucid.lessons.why.claims import (
    cache,
    diagonal,
    examples,
    fixed_size,
    heads,
    length,
    mask,
    norm,
    padding,
    parallel,
    position,
    residual,
    scale,
)
from pellucid.lessons.why.fits import PowerLaw
from pellucid.lessons.why.known_claims import CLAIMS
from pellucid.lessons.why.result import Verdict


def expect(verdict: Verdict, outcome: str, part_of_condition: str = "") -> None:
    assert verdict.outcome == outcome
    assert part_of_condition in verdict.condition
    assert bool(verdict.condition) == (outcome == "holds only if")
    assert verdict.rule
    assert verdict.numbers
    assert re.search(r"\d.*\.$", verdict.reason)
    assert verdict.sentence == f"{verdict.outcome} {verdict.condition}".strip()


@pytest.mark.parametrize(
    ("raw", "scaled", "alike", "outcome"),
    [
        (0.01, 0.9, 0.8, "holds"),
        (0.01, 0.9, 0.1, "holds only if"),
        (0.01, 0.3, 0.1, "fails"),
        (0.7, 0.9, 0.9, "fails"),
    ],
)
def test_scale_is_judged_by_what_is_left_of_the_gradient(
    raw: float, scaled: float, alike: float, outcome: str
) -> None:
    rows = [
        {"kind": kind, "how": how, "width": width, "seed": 1, "gradient": gradient}
        for kind, how, left in (
            ("independent", scale.RAW, raw),
            ("independent", scale.SCALED, scaled),
            ("alike", scale.RAW, raw),
            ("alike", scale.SCALED, alike),
        )
        for width, gradient in ((8, 2.0), (512, 2.0 * left))
    ]
    expect(scale.judge(Cells(tuple(rows))), outcome)


FAIR = {"training_loss": 0.1, "exact": 0.9, "weight_on_next": 0.0}
CHEAT = {"training_loss": 0.001, "exact": 0.01, "weight_on_next": 0.8}


@pytest.mark.parametrize(
    ("fair", "cheat", "outcome"),
    [
        (FAIR, CHEAT, "holds"),
        (FAIR, CHEAT | {"weight_on_next": 0.2}, "holds"),
        (FAIR, CHEAT | {"training_loss": 0.09}, "fails"),
        (FAIR, CHEAT | {"exact": 0.8}, "fails"),
        (FAIR | {"training_loss": 0.01}, CHEAT, "fails"),
        (FAIR | {"exact": 0.0}, CHEAT | {"exact": 0.0}, "fails"),
    ],
)
def test_mask_is_judged_by_loss_and_decoding(
    fair: dict[str, float], cheat: dict[str, float], outcome: str
) -> None:
    rows = [
        {"depth": 1, "model": model, "seed": 1, "floor": 0.09} | numbers
        for model, numbers in ((mask.MASKED, fair), (mask.OPEN, cheat))
    ]
    expect(mask.judge(Cells(tuple(rows))), outcome)


def laws(explicit: float, fast: float, memory: float, lean: float, factor: float) -> length.Laws:
    return {
        "explicit_seconds": PowerLaw(factor, explicit),
        "fast_seconds": PowerLaw(factor / 5, fast),
        "rest_seconds": PowerLaw(factor, 1),
        "explicit_bytes": PowerLaw(128, memory),
        "fast_bytes": PowerLaw(2048, lean),
    }


@pytest.mark.parametrize(
    ("exponents", "outcome", "condition"),
    [
        ((2.0, 1.9, 2.0, 2.1), "holds", ""),
        ((2.0, 1.9, 2.0, 1.0), "holds", ""),
        ((2.0, 1.2, 2.0, 1.0), "holds only if", "all weights are kept"),
        ((1.2, 2.0, 2.0, 1.0), "holds only if", "attention is fused"),
        ((1.2, 1.0, 2.0, 1.0), "fails", ""),
    ],
)
def test_length_is_judged_by_exponents(
    exponents: tuple[float, float, float, float], outcome: str, condition: str
) -> None:
    expect(length.judge_quadratic(laws(*exponents, 1e-8)), outcome, condition)


@pytest.mark.parametrize(
    ("factor", "outcome"), [(1e-9, "fails"), (1e-6, "holds only if"), (1e-3, "holds")]
)
def test_page_is_judged_by_the_time_of_two_pages(factor: float, outcome: str) -> None:
    expect(length.judge_page(laws(2, 2, 2, 1, factor)), outcome)


@pytest.mark.parametrize(
    ("numbers", "outcome"),
    [
        ((1e-7, 0.0, 2.0, 0.5), "holds only if"),
        ((1e-7, 0.0, 1e-7, 0.0), "holds"),
        ((1e-2, 0.0, 2.0, 0.5), "fails"),
        ((1e-7, 0.1, 2.0, 0.5), "fails"),
    ],
)
def test_padding_is_judged_by_what_it_changes(
    numbers: tuple[float, float, float, float], outcome: str
) -> None:
    names = ("masked_difference", "masked_changed", "open_difference", "open_changed")
    rows = [
        dict(zip(names, one, strict=True), num_padding=amount, seed=1)
        for amount, one in ((1, (0.0, 0.0, 0.0, 0.0)), (8, numbers))
    ]
    expect(padding.judge(Cells(tuple(rows))), outcome)


@pytest.mark.parametrize(
    ("mixed", "alike", "outcome"),
    [(95.0, 95.0, "holds"), (40.0, 95.0, "holds only if"), (40.0, 60.0, "fails")],
)
def test_fixed_size_is_judged_by_the_best_other_speed(
    mixed: float, alike: float, outcome: str
) -> None:
    rows = [
        {"kind": kind, "way": way, "seed": 1, "sentences_per_second": speed}
        for kind, fixed in (("mixed", mixed), ("alike", alike))
        for way, speed in (
            ("one at a time", 30.0), ("fixed size", fixed), ("longest of batch", 100.0)
        )
    ]  # fmt: skip
    expect(fixed_size.judge(Cells(tuple(rows))), outcome)


WRITTEN = {"length": 8, "seed": 1, "cached_keys": 8, "plain_keys": 36, "difference": 1e-7}


@pytest.mark.parametrize(
    ("decoder", "encoder", "difference", "outcome"),
    [
        (0.0, 0.2, 1e-7, "holds only if"),
        (0.0, 0.0, 1e-7, "holds"),
        (0.3, 0.2, 1e-7, "fails"),
        (0.0, 0.2, 0.1, "fails"),
    ],
)
def test_kept_keys_are_judged_by_their_change(
    decoder: float, encoder: float, difference: float, outcome: str
) -> None:
    keys = [{"decoder": 0.0, "encoder": 0.0}, {"decoder": decoder, "encoder": encoder}]
    written = Cells((WRITTEN | {"difference": difference},))
    expect(cache.judge_kept(Cells(tuple(keys)), written), outcome)


def test_rows_of_a_step_are_judged_with_and_without_kept_keys() -> None:
    def judge(**changed: float) -> Verdict:
        return cache.judge_rows(Cells((WRITTEN | changed,)))

    expect(judge(), "holds only if", "kept")
    expect(judge(plain_keys=8), "holds")
    expect(judge(cached_keys=36), "fails")
    expect(judge(difference=0.5), "fails")


@pytest.mark.parametrize(
    ("speedups", "off", "outcome", "condition"),
    [
        ((12.0, 30.0), 1e-9, "holds", ""),
        ((3.0, 30.0), 1e-9, "holds", ""),
        ((12.0, 8.0), 1e-9, "fails", ""),
        ((1.0, 1.2), 1e-9, "fails", ""),
        ((12.0, 30.0), 1e-2, "fails", ""),
    ],
)
def test_parallel_is_judged_by_times_and_equal_gradients(
    speedups: tuple[float, float], off: float, outcome: str, condition: str
) -> None:
    rows = [
        {"length": words, "seed": 1, "pass_seconds": 1.0, "loop_seconds": speedup,
         "pass_loss": 2.0, "loop_loss": 2.0, "gradient_difference": off}
        for words, speedup in zip((4, 16), speedups, strict=True)
    ]  # fmt: skip
    expect(parallel.judge(parallel.average_races(Cells(tuple(rows)))), outcome, condition)


@pytest.mark.parametrize(
    ("scores", "occlusion", "outcome", "condition"),
    [
        ((0.5, 0.7), 3.0, "holds", ""),
        ((0.5, -0.7), 3.0, "holds only if", "the word is “it”"),
        ((-0.5, 0.7), 3.0, "holds only if", "the word is “tasted”"),
        ((-0.5, 0.0), 3.0, "fails", ""),
    ],
)
def test_examples_are_judged_by_both_scores(
    scores: tuple[float, float], occlusion: float, outcome: str, condition: str
) -> None:
    first, last = (
        {"count": count, "seed": 1, "it_score": it, "tasted_score": tasted, "occlusion": effect}
        for count, it, tasted, effect in ((0, 0.0, 0.0, 0.0), (1000, *scores, occlusion))
    )
    expect(examples.judge_score(Cells((first, last))), outcome, condition)
    if outcome == "holds":
        # The text speaks of a lot of examples, not of every one.
        between = first | {"count": 10, "tasted_score": 9.0}
        unsteady = Cells((first, between, last))
        expect(examples.judge_score(unsteady), "holds")


@pytest.mark.parametrize(
    ("accuracies", "outcome", "condition"),
    [
        ((0.95, 1.0), "holds", ""),
        ((0.5, 0.95, 1.0), "holds only if", "training had such sentences"),
        ((0.5, 0.95, 0.6), "fails", ""),
        ((0.5, 0.8), "fails", ""),
    ],
)
def test_examples_are_enough_when_pronouns_are_right(
    accuracies: tuple[float, ...], outcome: str, condition: str
) -> None:
    found = Cells(tuple(
        {"count": count, "seed": 1, "accuracy": share, "control": 1.0}
        for count, share in zip((0, 10, 30), accuracies, strict=False)
    ))  # fmt: skip
    expect(examples.judge_correct(found), outcome, condition)
    always_pizza = found.add(control=lambda row: 0.0)
    expect(examples.judge_correct(always_pizza), "fails")


def test_reason_of_an_open_verdict_says_what_the_seeds_disagree_about() -> None:
    rows = [
        {"count": count, "seed": seed, "it_score": float(count), "tasted_score": count * tasted}
        for seed, tasted in enumerate((1.0, -1.0, -1.0), start=1)
        for count in (0, 10)
    ]
    verdict = judge_seeds(examples.judge_score, Cells(tuple(rows)))
    assert verdict.outcome == "open"
    assert "“it” for “pizza” rises by at least 0.1 in 3 of 3 trainings." in verdict.reason
    assert "“tasted” does in 1 of 3." in verdict.reason
    assert verdict.reason.endswith(
        "With the first seed it holds, with the second and third it holds only if the word is "
        "“it”, so it is open."
    )


def test_numbers_of_seeds_stand_once_if_they_agree() -> None:
    assert say_seeds([2, 2, 2]) == say_seeds([2]) == "2"
    assert each_seed(say_seeds([2, 2, 2])) == "With every seed"
    assert each_seed(say_seeds([2, 2, 3])) == "Seed by seed"
    assert say_seeds([1, -2.5, math.inf], ".1f") == "1.0, −2.5 and never"
    assert write_small(0) == "0"


def test_diagonal_is_judged_by_heads_then_without_projections() -> None:
    low, high = (
        {"highest": share, "ranks": share, "first": share, "chance": 0.0, "chance_first": 0.0}
        for share in (0.1, 0.9)
    )

    def cells(heads: Any, plain: Any, decoder: Any = ()) -> Cells:
        rows = [
            {"kind": diagonal.TRAINED, "part": part, "place": f"layer 9 head {n}", "seed": 1} | one
            for part, found in (("encoder", heads), ("decoder", decoder))
            for n, one in enumerate(found)
        ]
        where = {"kind": diagonal.PLAIN, "part": "encoder", "place": diagonal.PLAIN, "seed": 1}
        return Cells((*rows, where | plain))

    for judge in (diagonal.judge, diagonal.judge_similar):
        expect(judge(cells([high, high], low)), "holds")
        expect(judge(cells([low, low, high], low)), "fails")
        expect(judge(cells([low], high)), "holds only if", "the embeddings themselves")
        expect(judge(cells([low], low)), "fails")
    of_decoder = diagonal.judge(cells([low], high, [low, high]))
    expect(of_decoder, "holds only if", "the embeddings themselves")
    assert "decoder: average 50%, 1 of 2 heads" in of_decoder.numbers


def head(name: str | None) -> dict[str, Any]:
    lifts = {one: 3.0 if one == name else 1.0 for one in heads.FEATURES}
    return {"loss": 0.01, "nearest": 0.4, **heads.name_feature(lifts)}


def test_heads_are_judged_by_clear_unique_and_linguistic_features() -> None:
    def judge(*names: str | None) -> Verdict:
        rows = ({"place": place} | head(name) for place, name in enumerate(names))
        return heads.judge(Cells(tuple(rows)))

    assert [head(name)["feature"] for name in ("antecedent", None)] == ["antecedent", "–"]
    expect(judge("antecedent", "article"), "holds")
    expect(judge("antecedent", "antecedent"), "fails")
    expect(judge("antecedent", "previous"), "fails")
    expect(judge(None, None), "fails")


@pytest.mark.parametrize(
    ("changes", "exact", "outcome"),
    [
        ((0.0, 0.0, 0.5), 0.3, "holds only if"),
        ((0.0, 0.0, 0.0), 0.3, "holds"),
        ((0.4, 0.0, 0.5), 0.3, "fails"),
        ((0.0, 0.0, 0.5), 1.0, "fails"),
    ],
)
def test_order_is_judged_by_shuffling_and_by_training(
    changes: tuple[float, float, float], exact: float, outcome: str
) -> None:
    shuffled = dict(zip(position.SHUFFLED, (*changes, 1.0), strict=True))
    order = ({"kind": "sinusoidal", "exact": 1.0}, {"kind": "none", "exact": exact})
    expect(position.judge_shuffling(Cells((shuffled,)), Cells(order)), outcome)


@pytest.mark.parametrize(
    ("right", "outcome"),
    [((1.0, 0.9), "holds"), ((1.0, 0.1), "holds only if"), ((0.2, 0.2), "fails")],
)
def test_lengths_are_judged_beyond_training(right: tuple[float, float], outcome: str) -> None:
    expect(position.judge_lengths(dict(zip((1, 2), right, strict=True)), 1), outcome)


KINDS = ("residual and norm", "norm only", "neither")


@pytest.mark.parametrize(
    ("gradients", "outcome", "condition"),
    [
        ((0.9, 1e-4, 1e-4), "holds", ""),
        ((0.2, 0.9, 1e-4), "holds only if", "no norms"),
        ((0.9, 1e-4, 0.9), "holds only if", "are norms"),
        ((0.9, 0.01, 0.01), "fails", ""),
        ((0.05, 1e-4, 1e-4), "fails", ""),
    ],
)
def test_residual_gradient_is_judged_at_the_deepest(
    gradients: tuple[float, float, float], outcome: str, condition: str
) -> None:
    rows = [
        {"kind": kind, "depth": depth, "seed": 1, "share": share}
        for kind, gradient in zip(KINDS, gradients, strict=True)
        for depth, share in ((1, 1.0), (6, gradient))
    ]
    expect(residual.judge_gradient(Cells(tuple(rows))), outcome, condition)


@pytest.mark.parametrize(
    ("differences", "rights", "outcome", "condition"),
    [
        ((0.2, 0.001, 0.0), (1.0, 0.0, 0.0), "holds", ""),
        ((0.2, 0.2, 0.2), (1.0, 0.2, 0.2), "holds", ""),
        ((0.2, 0.2, 0.0), (1.0, 0.9, 0.9), "holds only if", "no norms"),
        ((0.2, 0.2, 0.2), (1.0, 0.9, 0.9), "fails", ""),
        ((0.2, 0.2, 0.2), (0.0, 0.0, 0.0), "fails", ""),
    ],
)
def test_residual_knowledge_is_judged_by_words_and_training(
    differences: tuple[float, float, float],
    rights: tuple[float, float, float],
    outcome: str,
    condition: str,
) -> None:
    rows = [
        {"kind": kind, "depth": 6, "seed": 1, "difference": left, "exact": right, "updates": 9}
        for kind, left, right in zip(KINDS, differences, rights, strict=True)
    ]
    expect(residual.judge_knowledge(Cells(tuple(rows)), Cells(tuple(rows))), outcome, condition)


def courses(**updates: tuple[int | None, ...]) -> Cells:
    """Trainings whose norms learned after so many updates at each rate."""
    rows = [
        {"norm": name, "rate": float(rate), "seed": 1, "updates": number,
         "test_loss": 9.0 if number is None else 0.1}
        for name, place in norm.NORMS.items()
        for rate, number in enumerate(updates[place])
    ]  # fmt: skip
    return Cells(tuple(rows))


DEEP: Any = {"post": (80, None), "pre": (50, 90), "none": (None, None)}


@pytest.mark.parametrize(
    ("changes", "shallow", "outcome", "condition"),
    [
        ({}, None, "holds", ""),
        ({}, 30, "holds only if", "several layers"),
        ({"post": (None, None)}, None, "holds only if", "the norm stands before each layer"),
        ({"none": (40, 40)}, None, "fails", ""),
    ],
)
def test_norm_is_judged_by_rates_and_updates(
    changes: Any, shallow: int | None, outcome: str, condition: str
) -> None:
    deep, flat = courses(**DEEP | changes), courses(post=(35,), pre=(35,), none=(shallow,))
    for verdict in (norm.judge_stable(deep, flat), norm.judge_updates(deep, flat)):
        expect(verdict, outcome, condition)
        # Networks of one layer are part of the rule.
        assert re.search(r"To hold, .*one layer at least one", verdict.reason)


def shares(*found: float) -> Cells:
    """Make one number for each seed."""
    return Cells(tuple({"seed": seed, "share": share} for seed, share in enumerate(found, 1)))


def above_half(cells: Cells) -> Verdict:
    mean = cells.mean("share")
    return Verdict("holds" if mean >= 0.5 else "fails", "", "a half or more", f"{mean:.2f}")


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ((0.9, 0.8, 0.7), "holds"),
        ((0.1, 0.2, 0.4), "fails"),
        # The limit lies within what the seeds span, on whichever side the mean is.
        ((0.9, 0.9, 0.4), "open"),
        ((0.1, 0.2, 0.6), "open"),
        ((0.9,), "holds"),
    ],
)
def test_verdict_is_open_if_the_limit_lies_within_the_seeds(
    found: tuple[float, ...], outcome: str
) -> None:
    verdict = judge_seeds(above_half, shares(*found))
    assert verdict.outcome == outcome
    assert verdict.numbers == above_half(shares(*found)).numbers
    if outcome == "open":
        assert verdict.condition.startswith("by themselves, the seeds say 2 “")
        assert verdict.sentence.startswith("open: by themselves")
        assert verdict.answer == "Open, since runs with other random numbers (seeds) disagree"


def test_verdict_that_changes_without_one_seed_is_open() -> None:
    def spread(cells: Cells) -> Verdict:
        found = cells.all("share")
        is_wide = max(found) - min(found) > 0.5
        return Verdict("fails" if is_wide else "holds", "", "narrow", "")

    # Each seed by itself is narrow, all are, but for one pair that leaves nothing between.
    assert judge_seeds(spread, shares(0.1, 0.2, 0.3)).outcome == "holds"
    one = judge_seeds(spread, shares(0.1, 0.2, 0.9))
    assert one.outcome == "open"
    assert one.reason == "With each seed alone it holds, but not with some together, so it is open."


def test_verdicts_answer_a_question_in_words() -> None:
    answers = {
        Verdict(outcome, "it rains", "", "").answer  # type: ignore[arg-type]
        for outcome in ("holds", "fails", "open", "holds only if")
    }
    open_one = "Open, since runs with other random numbers (seeds) disagree"
    assert answers == {"Yes", "No", open_one, "Only if it rains"}


def test_short_runs_are_open_where_the_kept_seeds_disagree() -> None:
    results = Path(__file__).parents[3] / "benchmarks" / "results" / "claims"
    for name, claim in CLAIMS.items():
        record = json.loads((results / f"{name}.json").read_text(encoding="utf-8"))
        outcomes = {
            one["statement"]["says"]: one["verdict"]["outcome"]
            for one in record["measurement"]["findings"]
        }
        kept = {key for key, (_, _, says) in claim.says.items() if outcomes.get(says) == "open"}
        assert set(claim.open) == kept, name


def test_a_doubted_verdict_is_open_and_says_what_the_seed_said() -> None:
    verdict = Verdict("holds only if", "it is deep", "a rule", "2 of 3").doubted()

    assert verdict.sentence == (
        "open: this seed says “holds only if it is deep”, but the seeds of --full disagree"
    )
    assert verdict.answer.startswith("Open")
