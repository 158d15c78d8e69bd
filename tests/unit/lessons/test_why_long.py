"""The long forms of `pellucid claim`: parts against plain computations, rules, toy runs."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from pellucid.attention.positions import sinusoidal_positions
from pellucid.lessons.why import MeasurementSetting, measure_claim
from pellucid.lessons.why.cells import Cells, Column, write, write_small
from pellucid.lessons.why.claims import scale
from pellucid.lessons.why.claims.fixed_size import ROWS, cut_batches
from pellucid.lessons.why.claims.length import crossing
from pellucid.lessons.why.claims.norm import average_updates
from pellucid.lessons.why.claims.parts.distances import (
    distance_of_maps,
    error_of_matrix,
    fit_of_offset,
    judge_map_distance,
    judge_matrix,
)
from pellucid.lessons.why.claims.position import KINDS
from pellucid.lessons.why.claims.residual import deepest_learned, gradient_by_layer
from pellucid.lessons.why.fits import PowerLaw, longest_below
from pellucid.lessons.why.result import Verdict, to_record
from pellucid.lessons.why.tiny.learn import thin, updates_until
from pellucid.lessons.why.tiny.tiny_language import draw_statements
from pellucid.machine.randomness import generator

FORMS = ("scale", "position", "mask", "residual", "norm", "length", "fixed-size", "padding")


@dataclass(frozen=True)
class ToyLong(MeasurementSetting):
    """The long form with the sizes of a test, and with one seed."""

    def seeds_of(self, count: int) -> tuple[int, ...]:
        return (self.seed,)

    def choose(self, quick: Any, toy: Any, full: Any = None) -> Any:
        return toy


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", FORMS)
def test_long_form_at_toy_size_gives_verdicts_tables_and_series(name: str) -> None:
    measurement = measure_claim(name, ToyLong(size="full"))
    assert measurement.claim == name
    for finding in measurement.findings:
        assert finding.verdict.rule
        assert finding.verdict.numbers
    for table in measurement.tables:
        assert len(table.forms) == len(table.columns)
        assert all(len(row) == len(table.columns) for row in table.rows)
    for panel in measurement.plot.panels:
        assert all(len(series.x) == len(series.y) for series in panel.series)
    assert json.loads(json.dumps(to_record(measurement)))["size"] == "full"


def test_long_form_of_cache_at_toy_size_times_steps_and_texts() -> None:
    measurement = measure_claim("cache", ToyLong(size="full"))
    assert len(measurement.findings) == 3
    (steps,) = [table for table in measurement.tables if table.columns[0] == "token"]
    assert [row[0] for row in steps.rows] == [1, 4, 16]
    # Two layers keep keys and values of width 24 in float32 for each token.
    assert [row[4] for row in steps.rows] == [2 * 2 * 24 * 4 * n / 2**20 for n in (1, 4, 16)]


def test_long_form_of_heads_at_toy_size_has_all_findings() -> None:
    measurement = measure_claim("heads", ToyLong(size="full"))
    assert len(measurement.findings) == 4
    assert len(measurement.plot.panels) == 3
    assert all(len(row) == len(table.columns) for table in measurement.tables for row in table.rows)


def test_only_full_measures_the_long_form() -> None:
    assert [MeasurementSetting(size=size).is_long for size in ("full", "toy", "quick")] == [
        True,
        False,
        False,
    ]


def test_fit_of_offset_is_perfect_for_sinusoids_and_nothing_for_random_tables() -> None:
    waves_LD = sinusoidal_positions(53, 14, dtype=torch.float64).numpy()
    assert fit_of_offset(waves_LD, 3) > 0.999
    assert fit_of_offset(generator(1, "test fit").standard_normal((53, 14)), 3) < 0.1


def test_fit_of_offset_is_not_fooled_by_as_many_numbers_as_positions() -> None:
    random_LD = generator(1, "test fit").standard_normal((31, 40))
    start_XD, end_XD = random_LD[:-1], random_LD[1:]
    # A map fits these positions perfectly, and says nothing about others.
    map_DD = np.linalg.lstsq(start_XD, end_XD, rcond=None)[0]
    assert np.abs(start_XD @ map_DD - end_XD).max() < 1e-9
    assert fit_of_offset(random_LD, 1) < 0.1


@pytest.mark.parametrize("offset", [1, 7])
def test_matrix_of_an_offset_is_exact_at_far_positions(offset: int) -> None:
    assert 0 < error_of_matrix(offset, 5003, 14) < 1e-11


def test_distance_of_maps_compares_words_and_places() -> None:
    first_HLM = torch.tensor([[[0.75, 0.25], [0.5, 0.5]]])
    second_HLM = torch.tensor([[[0.2, 0.4, 0.4], [0.5, 0.375, 0.125], [0.0, 0.0, 1.0]]])
    by_word, by_place = distance_of_maps(first_HLM, second_HLM)
    # Same words: (0.75, 0.25) is kept, (0.5, 0.5) became (0, 1).
    assert by_word == pytest.approx((0 + 0.5) / 2)
    # Same places: (1/3, 2/3) and (4/7, 3/7).
    assert by_place == pytest.approx(((0.75 - 1 / 3) + (4 / 7 - 0.5)) / 2, rel=1e-5)


def test_gradient_by_layer_vanishes_only_without_residual_connections_and_norms() -> None:
    pairs = draw_statements(5, seed=1, part="train")
    whole = gradient_by_layer(pairs, 5, {"d_model": 16, "d_ff": 22, "num_heads": 2}, seed=1)
    bare = gradient_by_layer(
        pairs, 5, {"d_model": 16, "d_ff": 22, "num_heads": 2, "residual": False, "norm": "none"},
        seed=1,
    )  # fmt: skip
    assert len(whole) == len(bare) == 5
    assert whole[0] > 0.3 > bare[0] > 0


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [((1.0, 4.0, 16.0), 14.0), ((8.0, 16.0, 64.0), 7.0), ((0.1, 0.2, 0.3), None)],
)
def test_crossing_is_the_first_length_at_which_attention_takes_as_long(
    seconds: tuple[float, ...], expected: float | None
) -> None:
    cells = [
        {"length": 7 * 2**k, "fast_seconds": one, "rest_seconds": 2.0 * 2**k}
        for k, one in enumerate(seconds)
    ]
    assert crossing(cells, "fast") == (None if expected is None else pytest.approx(expected))


def test_crossing_leaves_out_lengths_that_do_not_fit() -> None:
    cells: list[dict[str, Any]] = [
        {"length": 3, "explicit_seconds": 1.0, "rest_seconds": 2.0},
        {"length": 12, "explicit_seconds": 16.0, "rest_seconds": 8.0},
        {"length": 24, "explicit_seconds": None, "rest_seconds": 16.0},
    ]
    # From half to twice as much between 3 and 12: equal in the middle of the logarithms.
    assert crossing(cells, "explicit") == pytest.approx(6.0)
    assert crossing(cells[2:], "explicit") is None


def test_longest_below_inverts_a_power_law() -> None:
    law = PowerLaw(0.25, 1.7)
    assert longest_below(law.at, law.at(53.0)) == pytest.approx(53.0, rel=1e-9)
    assert longest_below(law.at, 1e-9) == pytest.approx(1.0)


def test_buckets_keep_every_sentence_and_waste_less_than_half() -> None:
    sentences = [[number] * length for number, length in enumerate((3, 11, 8, 17, 9, 19, 5))]
    batches = cut_batches(sentences, "buckets", fixed=19, rows=2)
    assert sorted(one for batch, _ in batches for one in batch) == sorted(sentences)
    assert {width for _, width in batches} == {8, 16, 19}
    for batch, width in batches:
        assert len(batch) <= 2 < ROWS
        assert all(len(one) <= width and (width == 8 or len(one) > width / 2) for one in batch)


def test_cells_have_means_with_dots_and_missing_numbers() -> None:
    shares = ((3, 0.1), (3, 0.2), (3, 0.3), (5, 0.7))
    cells = Cells(
        tuple({"seed": n, "size": size, "share": x} for n, (size, x) in enumerate(shares))
    )
    series = cells.line("a", "size", "share", scale=100)
    assert series.y == pytest.approx((20.0, 70.0))
    assert series.dots == (pytest.approx((10.0, 20.0, 30.0)), pytest.approx((70.0,)))
    table = cells.table("a", "size", [Column("b", "share", scale=100)])
    assert table.rows[0][1] == "10 · 20 · 30"
    assert write([]) == write([math.nan]) == "–"
    assert write([3e-7]) == "3e−07"


def test_cells_in_logarithms_have_geometric_means_and_their_dots() -> None:
    numbers = ((3, 0.01), (3, 1.0), (3, 100.0), (5, 0.0), (5, 2.0))
    cells = Cells(tuple({"size": size, "number": number} for size, number in numbers))
    series = cells.line("a", "size", "number", is_log=True)
    assert series.y == pytest.approx((1.0, 1.0))
    assert series.dots == ((0.01, 1.0, 100.0), (0.0, 2.0))


def test_many_seeds_are_written_by_their_middle_and_ends() -> None:
    assert write([0.5, 0.125, 0.25, 4.0, 1.0]) == "0.5 (0.125 to 4)"
    assert write([13.0, 94.0, -8.0], ".0f") == "13 · 94 · −8"
    assert (write_small(4.1e-9), write_small(0.08)) == ("4 · 10⁻⁹", "0.08")


def test_updates_are_counted_for_good_and_a_course_is_thinned() -> None:
    assert updates_until([3.0, 0.1, 2.0, 0.3, 0.2], 0.5) == 4
    assert updates_until([0.1, 0.6], 0.5) is None
    assert updates_until([math.nan], 0.5) is None
    assert thin([1.0, 3.0, 5.0], 2) == [2.0, 5.0]


def test_average_updates_are_infinite_unless_every_seed_learned() -> None:
    rows = ({"updates": 50}, {"updates": 70}, {"updates": None})
    assert average_updates(Cells(rows[:2])) == 60
    assert average_updates(Cells(rows)) == math.inf


def test_deepest_learned_ends_at_the_first_depth_that_fails() -> None:
    rows = [
        {"depth": depth, "seed": seed, "updates": None if (depth, seed) == (3, 2) else 9}
        for depth in (1, 3, 7)
        for seed in (1, 2)
    ]
    assert deepest_learned(Cells(tuple(rows))) == 1
    assert deepest_learned(Cells(({"depth": 1, "seed": 3, "updates": None}, *rows))) == 0


def expect(verdict: Verdict, outcome: str, part_of_condition: str) -> None:
    assert verdict.outcome == outcome
    assert part_of_condition in verdict.condition
    assert bool(verdict.condition) == (outcome == "holds only if")


@pytest.mark.parametrize(
    ("unit", "xavier", "outcome", "condition"),
    [
        ((50, 50), (50, 50), "holds", ""),
        ((None, 50), (None, 50), "fails", ""),
        ((None, 50), (50, 50), "holds", ""),
    ],
)
def test_scale_is_judged_by_the_trainings_that_learned(
    unit: tuple[int | None, int | None],
    xavier: tuple[int | None, int | None],
    outcome: str,
    condition: str,
) -> None:
    rows = [
        {"start": start, "width": width, "how": how, "seed": 1, "updates": updates}
        for start, counts in (("unit", unit), ("Xavier", xavier))
        for width, count in zip((8, 64), counts, strict=True)
        for how, updates in ((scale.SCALED, count), (scale.RAW, None if width == 8 else 100))
    ]
    expect(scale.judge_learning(Cells(tuple(rows))), outcome, condition)
    never = Cells(tuple(row | {"updates": None} for row in rows))
    expect(scale.judge_learning(never), "fails", "")


@pytest.mark.parametrize(
    ("error", "fit", "outcome"),
    [(1e-12, 0.95, "holds"), (1e-12, 0.6, "holds only if"), (1e-3, 0.95, "fails")],
)
def test_matrix_is_judged_by_its_error_and_by_learned_tables(
    error: float, fit: float, outcome: str
) -> None:
    learned = Cells(({"encoder": 0.99, "decoder": fit, "waves": 1.0},))
    expect(judge_matrix(error, learned), outcome, "")


@pytest.mark.parametrize(
    ("by_word", "by_place", "outcome", "condition"),
    [
        (0.01, 0.6, "holds", ""),
        (0.2, 0.6, "holds", ""),
        (0.6, 0.2, "fails", ""),
    ],
)
def test_relative_positions_are_judged_by_moving_maps(
    by_word: float, by_place: float, outcome: str, condition: str
) -> None:
    moved = {"moved_by_word": by_word, "moved_by_place": by_place}
    order = Cells(tuple({"kind": kind, **moved} for kind in KINDS))
    expect(judge_map_distance(order), outcome, condition)
