"""The choice of least risk in ``benchmarks/choose_risk.py``."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

import choose_risk
from choose_risk import Candidate, best_of, choose, joined, weigh

TEXTS = (
    "un homme fait du vélo .",
    "un homme fait un vélo .",
    "une femme lit un livre dans le parc .",
    "le",
    "",
)


def test_utilities_equal_sacrebleu() -> None:
    chrf = choose_risk.chrf(TEXTS)
    bleu = choose_risk.bleu(TEXTS)
    exact = CHRF(eps_smoothing=True)
    same = BLEU(tokenize="none", smooth_method="add-k", smooth_value=1, effective_order=False)
    for at, one in enumerate(TEXTS):
        for place, other in enumerate(TEXTS):
            # Of shorter texts sacreBLEU leaves other lengths out.
            if min(len(one), len(other)) > 6 and one != other:
                wanted = exact.sentence_score(one, [other]).score
                assert 100 * chrf[at, place] == pytest.approx(wanted, abs=1e-6)
            if min(len(one.split()), len(other.split())) >= 4:
                wanted = same.sentence_score(one, [other]).score
                assert 100 * bleu[at, place] == pytest.approx(wanted, abs=1e-6)
    assert chrf.diagonal() == pytest.approx(1.0)
    assert bleu[4].tolist() == [0.0] * 5, "an empty text"
    assert chrf[4, 0] == 0.0


def test_chosen_text_is_the_one_that_others_resemble() -> None:
    lonely = Candidate("une femme lit un livre .", -1.0)
    crowd = [Candidate(f"un homme fait du vélo {end}", -2.0) for end in (".", "!", "là", "ici")]
    for utility in choose_risk.UTILITIES:
        (chosen,) = choose([[lonely, *crowd]], utility, ["equal"])["equal"]
        assert chosen in [one.text for one in crowd]


def test_weight_of_a_probable_text_wins() -> None:
    probable = Candidate("une femme lit un livre .", -1.0)
    crowd = [Candidate(f"un homme fait du vélo {end}", -11.0) for end in (".", "!", "là", "ici")]
    found = choose([[probable, *crowd]], "chrf", choose_risk.WEIGHTS)
    assert found.pop("equal") != [probable.text]
    assert set(map(tuple, found.values())) == {(probable.text,)}


def test_weights_sum_to_one_and_count_repeated_texts() -> None:
    candidates = [Candidate("a", -1.0), Candidate("b", -2.0), Candidate("a", -3.0)]
    assert weigh(candidates, "equal") == {"a": pytest.approx(2 / 3), "b": pytest.approx(1 / 3)}
    ours = 1 / (1 + math.exp(-1))
    assert weigh(candidates, "probability") == {
        "a": pytest.approx(ours),
        "b": pytest.approx(1 - ours),
    }


def test_score_weights_favor_longer_texts_than_probability() -> None:
    short = Candidate("un vélo", -3.0)
    longer = Candidate("un homme fait du vélo dans un parc", -3.5)
    by_probability, by_score = (weigh([short, longer], kind) for kind in ("probability", "score 3"))
    assert by_probability[short.text] > 0.5 > by_score[short.text]


def test_choice_is_compared_with_what_the_same_search_takes_first() -> None:
    found = {
        ("seed 1", "beam 5"): ([[Candidate("a", -1.0)]], 0.0),
        ("seed 1", "7 best"): ([[Candidate("b", -1.0), Candidate("a", -2.0)]], 0.0),
        ("ensemble", "7 best"): ([[Candidate("c", -1.0)]], 0.0),
    }
    assert choose_risk.baseline_of(("seed 1", "7 best"), found) == ["b"]
    assert choose_risk.baseline_of(("seed 1", "7 samples"), found) == ["a"]
    assert choose_risk.baseline_of(("all seeds", "7 best"), found) == ["c"]


def test_lists_of_models_are_joined_sentence_by_sentence() -> None:
    one, two, three = (Candidate(text, -1.0) for text in "xyz")
    assert joined([[[one], [two]], [[three], [one]]]) == [[one, three], [two, one]]


def test_best_row_is_chosen_apart_for_single_models_and_several() -> None:
    rows = [
        {"model": "seed 1", "gain": 0.3},
        {"model": "seed 2", "gain": 0.7},
        {"model": "all seeds", "gain": 0.2},
        {"model": "ensemble", "bleu": 61.0},
    ]
    assert best_of(rows, single=True) == rows[1]
    assert best_of(rows, single=False) == rows[2]
    assert best_of(rows[:2], single=False) is None
