"""Links: the Pharaoh format, scores by hand, intervals, and joining two directions."""

from __future__ import annotations

import numpy as np
import pytest

from pellucid.errors import DataError, InputError
from pellucid.evaluation.word_links import (
    SYMMETRIZATIONS,
    GoldLinks,
    count_links,
    parse_gold,
    parse_links,
    score_counts,
    score_links,
    symmetrize,
    write_links,
)


def test_parse_links_knows_sure_and_possible() -> None:
    gold = parse_links(" 2p1  0-0 11-13 0p0 ", "gold:1")
    assert gold.sure == {(0, 0), (11, 13)}
    assert gold.possible == {(0, 0), (11, 13), (2, 1)}
    assert parse_links("", "gold:1") == GoldLinks(frozenset(), frozenset())


@pytest.mark.parametrize("word", ["0", "0-", "-1-2", "1–2", "a-b", "0-1-2", "0P1", "1,2", "²-1"])
def test_parse_links_of_something_else_names_it_and_the_place(word: str) -> None:
    with pytest.raises(DataError, match=r"gold:7"):
        parse_links(f"0-0 {word}", "gold:7")


def test_write_links_is_what_parse_links_reads() -> None:
    line = write_links({(10, 2), (0, 0)}, {(0, 0), (2, 5)})
    assert line == "0-0 2p5 10-2"
    gold = parse_links(line, "x:1")
    assert gold.sure == {(0, 0), (10, 2)}
    assert gold.possible == {(0, 0), (10, 2), (2, 5)}


@pytest.mark.parametrize(
    ("line", "side"), [("3-0", "source that has 3"), ("0p2", "target that has 2")]
)
def test_parse_gold_link_to_a_word_that_is_not_there_says_where(line: str, side: str) -> None:
    with pytest.raises(DataError) as caught:
        parse_gold(["2-1", line], [(3, 2), (3, 2)], "some.align")
    assert side in str(caught.value)
    assert "some.align:2" in str(caught.value)


def test_parse_gold_of_another_length_names_both_numbers() -> None:
    with pytest.raises(DataError, match=r"3 pairs, but some\.align has 2"):
        parse_gold(["0-0", "0-0"], [(1, 1)] * 3, "some.align")


def test_score_of_a_case_by_hand() -> None:
    gold = GoldLinks(
        frozenset({(0, 0), (1, 1), (2, 2)}), frozenset({(0, 0), (1, 1), (2, 2), (3, 2)})
    )
    found = {(0, 0), (1, 1), (3, 2), (0, 3), (4, 4)}
    assert count_links(found, gold) == (5, 3, 2, 3)
    score = score_links([found], [gold])
    assert score.precision == pytest.approx(3 / 5)
    assert score.recall == pytest.approx(2 / 3)
    assert score.error == pytest.approx(1 - (2 + 3) / (5 + 3))
    assert (score.low, score.high) == pytest.approx((score.error, score.error))
    assert score.num_sentences == 1


def test_score_adds_counts_up_rather_than_averaging_sentences() -> None:
    sure = [frozenset({(0, 0)}), frozenset({(i, i) for i in range(7)})]
    golds = [GoldLinks(links, links) for links in sure]
    score = score_links([{(0, 1)}, sure[1]], golds)
    assert score.error == pytest.approx(1 - 14 / 16)


def test_score_without_any_links_has_nothing_wrong() -> None:
    nothing = GoldLinks(frozenset(), frozenset())
    score = score_links([set()], [nothing])
    assert (score.precision, score.recall, score.error) == (1, 1, 0)
    missed = score_links([set()], [GoldLinks(frozenset({(0, 0)}), frozenset({(0, 0)}))])
    assert (missed.recall, missed.error) == (0, 1)


def test_score_interval_is_that_of_resampled_texts_and_paired_over_ways() -> None:
    random = np.random.default_rng(5)
    sure = random.integers(1, 11, size=(97, 1))
    right = random.binomial(sure, 0.7)
    good = np.concatenate([sure, sure, right, right], axis=1)
    counts = np.stack([good, good * [1, 1, 0, 0]], axis=1)
    first, second = score_counts(counts, num_resamples=400)
    draws = np.random.default_rng(12345)
    errors = []
    for _ in range(400):
        chosen = draws.choice(97, size=97)
        errors.append(1 - right[chosen].sum() / sure[chosen].sum())
    errors.sort()
    assert (first.low, first.high) == pytest.approx((errors[10], errors[-11]))
    assert first.low < first.error < first.high
    assert (second.error, second.low, second.high) == (1, 1, 1)


def test_score_of_no_sentences_or_other_numbers_is_refused() -> None:
    with pytest.raises(DataError, match="at least one pair"):
        score_links([], [])
    with pytest.raises(DataError, match="0 for 1"):
        score_links([set()], [])


FORWARD = {(0, 0), (1, 1), (2, 1), (4, 4), (6, 5)}
BACKWARD = {(0, 0), (1, 1), (1, 2), (4, 3), (5, 6)}


@pytest.mark.parametrize(
    ("method", "added"),
    [
        ("intersection", set()),
        ("grow-diag", {(2, 1), (1, 2)}),
        ("grow-diag-final-and", {(2, 1), (1, 2), (4, 4), (6, 5), (5, 6)}),
        ("grow-diag-final", {(2, 1), (1, 2), (4, 4), (4, 3), (6, 5), (5, 6)}),
        ("union", {(2, 1), (1, 2), (4, 4), (4, 3), (6, 5), (5, 6)}),
    ],
)
def test_symmetrize_case_by_hand(method: str, added: set[tuple[int, int]]) -> None:
    # (4, 3) reaches one free word only: 4 has a link by then, from the other direction.
    assert symmetrize(FORWARD, BACKWARD, method) == {(0, 0), (1, 1)} | added  # type: ignore[arg-type]


def test_symmetrize_grow_reaches_along_diagonals_and_stops_at_taken_words() -> None:
    forward = {(0, 0), (1, 1), (2, 2), (0, 1)}
    backward = {(0, 0)}
    assert symmetrize(forward, backward, "grow-diag") == {(0, 0), (0, 1), (1, 1), (2, 2)}
    # Both words of (0, 1) are taken once (1, 1) is in the intersection.
    assert (0, 1) not in symmetrize(forward, backward | {(1, 1)}, "grow-diag")


def test_symmetrize_methods_lie_between_intersection_and_union() -> None:
    random = np.random.default_rng(7)
    for _ in range(50):
        one, other = (
            {(int(i), int(j)) for i, j in random.integers(0, 7, size=(9, 2))} for _ in range(2)
        )
        found = {method: symmetrize(one, other, method) for method in SYMMETRIZATIONS}
        assert found["intersection"] == one & other
        assert found["union"] == one | other
        assert found["intersection"] <= found["grow-diag"] <= found["grow-diag-final-and"]
        assert found["grow-diag-final-and"] <= found["union"]
        assert found["grow-diag"] <= found["grow-diag-final"] <= found["union"]
        for index in (0, 1):
            reached = {link[index] for link in found["grow-diag-final"]}
            assert reached == {link[index] for link in one | other}


def test_symmetrize_unknown_method_is_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="Did you mean 'grow-diag'"):
        symmetrize(FORWARD, BACKWARD, "growdiag")  # type: ignore[arg-type]
