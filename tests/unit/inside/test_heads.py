"""The table of heads: each figure against a case by hand, and the effect of cutting."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pellucid.bundle import Bundle, load_bundle
from pellucid.errors import InputError
from pellucid.evaluation.word_links import GoldLinks
from pellucid.inside import Trace
from pellucid.inside.align.attention_links import align_pairs
from pellucid.inside.align.link_views import all_views
from pellucid.inside.align.linked_units import PairWords, words_of_pair
from pellucid.inside.changes.change import Changes, parse_change
from pellucid.inside.changes.place import Place, all_heads
from pellucid.inside.heads.head_rows import (
    Gold,
    HeadRow,
    cut_effects,
    head_rows,
    sort_rows,
)
from pellucid.inside.pair import make_pair
from pellucid.inside.replayed_pair import replay
from pellucid.text.token_words import is_punctuation

SOURCE = "The pizza came out of the oven ."
TARGET = "La pizza est sortie du four ."


@pytest.fixture(scope="module")
def bundle(bundle_folder: Path) -> Bundle:
    return load_bundle(bundle_folder)


def make_trace(**arrays: list[list[float]]) -> Trace:
    """A trace of *a b . </s>* read, *x y* written, with one head."""
    return Trace(
        arrays={name.replace("_", "."): np.array([map_]) for name, map_ in arrays.items()},
        source_tokens=("▁a", "b", "▁.", "</s>"),
        source_ids=(4, 5, 6, 3),
        target_tokens=("<s>", "▁x", "▁y"),
        target_ids=(2, 7, 8),
        predicted_tokens=("▁x", "▁y", "</s>"),
        predicted_ids=(7, 8, 3),
        log_probabilities=(-1.0, -1.0, -1.0),
        argmax_tokens=("▁x", "▁y", "</s>"),
        heads=(0,),
    )


CROSS = [[0.5, 0.25, 0.25, 0.0], [0.0, 0.0, 0.0, 1.0], [0.25, 0.25, 0.25, 0.25]]


def test_figures_of_a_cross_map_are_those_computed_by_hand() -> None:
    (row,) = head_rows(make_trace(decoder_0_cross_weights=CROSS))
    assert row.head == Place("decoder", 0, "cross", 0)
    assert row.entropy == pytest.approx((1.5 * math.log(2) + 0 + math.log(4)) / 3)
    assert row.confidence == pytest.approx((0.5 + 1 + 0.25) / 3)
    assert row.end_mass == pytest.approx((0 + 1 + 0.25) / 3)
    assert row.punctuation_mass == pytest.approx((0.25 + 0 + 0.25) / 3)
    distances = (0.25 * 1 + 0.25 * 2, 2.0, 0.25 * (2 + 1 + 0 + 1))
    assert row.distance == pytest.approx(sum(distances) / 3)
    assert row.cut_effect is None
    assert row.alignment_error is None


def test_figures_leave_out_rows_that_attend_nowhere() -> None:
    (row,) = head_rows(make_trace(decoder_0_cross_weights=[CROSS[0], [0.0] * 4, [0.0] * 4]))
    assert row.confidence == 0.5
    assert row.end_mass == 0


def test_end_mass_of_the_decoders_self_attention_is_on_its_start_token() -> None:
    self_map = [[1.0, 0.0, 0.0], [0.75, 0.25, 0.0], [0.5, 0.25, 0.25]]
    (row,) = head_rows(make_trace(decoder_0_self_weights=self_map))
    assert row.end_mass == pytest.approx((1 + 0.75 + 0.5) / 3)
    assert row.distance == pytest.approx((0 + 0.75 + 0.5 * 2 + 0.25) / 3)


@pytest.mark.parametrize(
    ("convention", "counts"),
    [("predicts", (2, 2, 1, 1)), ("reads", (2, 2, 0, 1))],
)
def test_alignment_error_counts_rows_for_what_they_predict_or_read(
    convention: str, counts: tuple[int, int, int, int]
) -> None:
    # Rows predict x, y, </s>, and read <s>, x, y. Words: a b → 0, "." → 1; x → 0, y → 1.
    map_TS = [[0.5, 0.25, 0.25, 0.0], [0.3, 0.3, 0.4, 0.0], [0.1, 0.1, 0.2, 0.6]]
    gold = Gold(
        GoldLinks(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (0, 1)})),
        PairWords([range(0, 1), range(0, 1), range(1, 2)], [range(0, 1), range(1, 2)], (2, 2)),
        rule="best",
    )
    if convention == "reads":
        gold = replace(gold, convention="reads")
        map_TS = [map_TS[1], [0.1, 0.1, 0.5, 0.3], map_TS[0]]
    (row,) = head_rows(make_trace(decoder_0_cross_weights=map_TS), gold=gold)
    found, sure, found_sure, found_possible = counts
    if convention == "predicts":
        # x → word 0 (0.75), y → word 0 (0.6): one sure, both possible.
        assert row.link_counts == (2, 2, 1, 2)
        assert row.alignment_error == pytest.approx(1 - 3 / 4)
    else:
        # x is read by row 1 → word 1, y by row 2 → word 0.
        assert row.link_counts == (found, sure, found_sure, found_possible)
        assert row.alignment_error == pytest.approx(1 - 1 / 4)


def test_alignment_error_of_nothing_found_and_nothing_to_find_is_0() -> None:
    # As in `score_links`: without any link nothing is wrong.
    assert make_row(0, link_counts=(0, 0, 0, 0)).alignment_error == 0.0  # type: ignore[arg-type]


def test_alignment_error_agrees_with_the_aligner(bundle: Bundle) -> None:
    gold = GoldLinks(
        frozenset({(0, 0), (1, 1), (6, 5)}), frozenset({(0, 0), (1, 1), (6, 5), (4, 4)})
    )
    pair = make_pair(bundle, SOURCE, TARGET)
    ids = pair.source_ids, pair.target_ids
    words = words_of_pair(bundle.tokenizer, (SOURCE, TARGET), ids)
    rows = head_rows(replay(pair), gold=Gold(gold, words, convention="reads"), pair=pair)
    views = all_views(bundle.config.model, maps=("head",), conventions=("reads",))
    (aligned,) = align_pairs(bundle.model, bundle.tokenizer, [SOURCE], [TARGET], views)
    by_place = {row.head: row for row in rows if row.head.kind == "cross"}
    assert len(by_place) == len(views) == 4
    for view, links in zip(views, aligned.links, strict=True):
        counts = by_place[Place("decoder", view.layer, "cross", view.head)].link_counts
        assert counts == (
            len(links),
            3,
            len(links & gold.sure),
            len(links & gold.possible),
        )


def test_cut_effect_is_the_difference_that_the_cut_makes(bundle: Bundle) -> None:
    pair = make_pair(bundle, SOURCE, TARGET)
    rows = head_rows(replay(pair), pair=pair)
    assert [row.head for row in rows] == list(all_heads(pair.model.config))
    before = float(pair.log_probabilities().sum())
    for row in rows:
        probe = Changes(parse_change(f"cut {row.head}"))
        after = float(pair.log_probabilities(probe=probe).sum())
        assert row.cut_effect == pytest.approx(after - before, abs=1e-5)
    assert len({row.cut_effect for row in rows}) > 1
    assert cut_effects(pair, [rows[0].head]) == {rows[0].head: rows[0].cut_effect}


def make_row(head: int, **figures: float | None) -> HeadRow:
    row = HeadRow(Place("encoder", 0, "self", head), 1.0, 0.5, 0.0, 0.0, 2.0)
    return replace(row, **figures)  # type: ignore[arg-type]


def test_sorting_puts_heads_without_the_figure_last_and_keeps_ties_in_order() -> None:
    rows = [
        make_row(0, cut_effect=None),
        make_row(1, cut_effect=-1.0),
        make_row(2, cut_effect=-3.0),
        make_row(3, cut_effect=-1.0),
    ]

    def heads(**options: bool) -> list[int | None]:
        return [row.head.head for row in sort_rows(rows, "cut_effect", **options)]

    assert heads() == [2, 1, 3, 0]
    assert heads(descending=True) == [1, 3, 2, 0]


def test_sorting_by_something_unknown_is_refused_with_a_suggestion() -> None:
    with pytest.raises(InputError, match="Did you mean 'entropy'"):
        sort_rows([], "entropie")


def test_trace_without_weights_is_refused() -> None:
    with pytest.raises(InputError, match="holds no weights"):
        head_rows(make_trace())


@pytest.mark.parametrize(
    ("token", "is_mark"),
    [
        ("▁.", True),
        ("!", True),
        ("▁«", True),
        ("▁", False),
        ("▁a", False),
        ("l'", False),
        ("</s>", False),
        ("\uffed!", True),  # joined to the word before it, as vocabularies of words write it
        ("\uffed...", True),
        ("\uffeda", False),
        ("\uffed", False),
    ],
)
def test_punctuation_is_marks_alone(token: str, is_mark: bool) -> None:
    assert is_punctuation(token) is is_mark
