"""The printed examples: correct values to the digits given, and printed ones that differ."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import pytest
import torch

from pellucid.attention import causal_mask, mask_then_scale, scale_then_mask, weigh
from pellucid.attention.masks import additive_mask
from pellucid.by_hand.example_numbers import read_matrix, read_numbers
from pellucid.by_hand.printed import (
    WorkedNumber,
    attend_help_me,
    attend_not_on_your_life,
    attend_pizza,
    attend_room_number,
    attend_toy_four,
    best_d_key,
    implied_roots,
    worked_numbers,
)

DOCS = Path(__file__).parents[2] / "docs" / "attention"
NUMBERS = {number.place: number for number in worked_numbers()}

# A place on the page → the correct values, with as many digits as the page gives.
CORRECT = {
    "√d_k for keys of width 4": "2",
    "scores 40, 26, scaled": "20 13",
    "their softmax": "0.999089 0.000911",
    "Query of “awesome”": "2.9808 5.7410",
    "Key of “awesome”": "2.9808 5.7410",
    "Value of “awesome”": "2.9808 5.7410",
    "X·W, `Pizza`": "1.9950 3.8210",
    "X·W, `is`": "2.0028 3.8410",
    "X·W, `awesome`": "2.9808 5.7410",
    "X·W, `<EOS>`": "1.4340 3.1300",
    "X·Wᵀ, `Pizza`": "4.3380 3.7110",
    "X·Wᵀ, `is`": "4.3458 3.7200",
    "X·Wᵀ, `awesome`": "6.4238 5.5100",
    "X·Wᵀ, `<EOS>`": "2.4240 2.2500",
    "softmax row “Pizza”, three tokens": "0.001386 0.001480 0.997134",
    "softmax row “Pizza”, with `<EOS>`": "0.001386 0.001479 0.997037 0.000097",
    "“0.38 % similar”": "38",
    "weights 36, 40, 24 % times 0.6, −0.35, 3.86": "1.0024",
    "final row “Pizza”": "2.977986 5.735527",
    "final row “is”": "2.978076 5.735701",
    "final row “awesome”": "2.980694 5.740793",
    "edit distances of Summeth to Smith, Summer, Smeeth": "3 2 2",
    "softmax of minus the distance": "0.155 0.422 0.422",
    "room of Summeth": "201.27",
    "PE₀ (show)": "0 1 0 1",
    "PE₁ (me)": "0.841471 0.540302 0.010000 0.999950",
    "PE₂ (the)": "0.909297 -0.416147 0.019999 0.999800",
    "PE₃ (money)": "0.141120 -0.989992 0.029996 0.999550",
    "equation 5, “show”": "0.12 1.63 0.29 1.41",
    "equation 5, “me”": "1.671471 0.880302 0.050000 1.529950",
    "equation 5, “the”": "1.299297 0.353853 0.659999 1.089800",
    "equation 5, “money”": "0.551120 -0.909992 0.539996 1.869550",
    "section 3.3, sums of the rows of S": "1.00 1.00 1.00 1.00",
    "section 4.2, S′, `<start>`": "1 0 0 0 0 0",
    "section 4.2, S′, `not`": "0.0922 0.9078 0 0 0 0",
    "section 4.2, S′, `on`": "0.0951 0.1284 0.7765 0 0 0",
    "section 4.2, S′, `your`": "0.0640 0.0762 0.1181 0.7417 0 0",
    "section 4.2, S′, `life`": "0.0586 0.0698 0.0801 0.0681 0.7233 0",
    "section 4.2, S′, `<end>`": "0.0897 0.0885 0.1257 0.1354 0.1166 0.4441",
    "appendix, “help”, scaled": "1.5 1",
    "appendix, “me”, scaled": "0.75 2",
    "appendix, “help”, softmax": "0.622459 0.377541",
    "appendix, “me”, softmax": "0.222700 0.777300",
}

DIFFERENT = {
    *(f"{name} of “awesome”" for name in ("Query", "Key", "Value")),
    *(f"final row “{token}”" for token in ("Pizza", "is", "awesome")),
    *(f"section 4.2, S′, `{token}`" for token in ("not", "on", "your", "life", "<end>")),
    "softmax row “Pizza”, three tokens",
    "“0.38 % similar”",
    "room of Summeth",
    "the same as a query to a database (temperature 0)",
    "PE₁ (me)",
    "PE₂ (the)",
    "PE₃ (money)",
    "equation 5, “money”",
}


@pytest.mark.parametrize("place", CORRECT)
def test_worked_number_recomputed_equals_the_correct_value(place: str) -> None:
    expected = CORRECT[place].split()
    computed = NUMBERS[place].computed
    assert len(computed) == len(expected)
    for value, text in zip(computed, expected, strict=True):
        # half a unit of the last digit given
        assert abs(value - float(text)) <= 0.5 * 0.1 ** len(text.partition(".")[2]) + 1e-9


def test_worked_numbers_printed_wrongly_are_exactly_the_errata() -> None:
    wrong = {number.place for number in worked_numbers() if number.printed and not number.is_right}
    assert wrong == DIFFERENT


def test_worked_numbers_that_differ_name_a_cause() -> None:
    assert all(
        number.cause for number in worked_numbers() if number.printed and not number.is_right
    )


def test_worked_numbers_have_unique_places() -> None:
    places = [(number.text, number.place) for number in worked_numbers()]
    assert len(places) == len(set(places))


def test_worked_number_rounding_to_another_digit_is_not_right() -> None:
    assert WorkedNumber("a", "b", ("0.62",), (0.622459,)).is_right
    assert not WorkedNumber("a", "b", ("0.63",), (0.622459,)).is_right
    assert not WorkedNumber("a", "b", (), (0.622459,)).is_right


def test_printed_positions_are_sines_of_degrees() -> None:
    for position, printed in ((1, 0.02), (3, 0.05)):
        assert round(math.sin(math.radians(position)), 2) == printed
    assert round(math.sin(math.radians(2)), 2) == 0.03  # printed: 0.04


def test_printed_masked_weights_no_d_key_fits() -> None:
    best, error = best_d_key()
    assert 48 <= best <= 52
    assert 0.055 < error < 0.065


def test_printed_masked_weights_rows_imply_different_scales() -> None:
    assert implied_roots(1) == pytest.approx((9.63,), abs=0.005)
    assert implied_roots(2) == pytest.approx((6.55, 9.09), abs=0.005)


def test_printed_masked_weights_last_row_larger_score_has_smaller_weight() -> None:
    scores = read_numbers("not-on-your-life.scores")[5]
    weights = read_numbers("not-on-your-life.weights")[5]
    assert scores[0] > scores[1]
    assert weights[0] < weights[1]
    ours = attend_not_on_your_life().weights[5]
    assert ours[0] > ours[1]


def test_masked_weights_without_end_five_rows_suffice() -> None:
    five, six = attend_not_on_your_life(num_tokens=5), attend_not_on_your_life()
    assert torch.equal(five.weights, six.weights[:5, :5])


def test_equation_18_both_orders_for_zero_and_minus_infinity_agree() -> None:
    scores = read_matrix("not-on-your-life.scores")
    additive = additive_mask(causal_mask(6)[0, 0], dtype=torch.float64)
    first, second = mask_then_scale(scores, additive, 64), scale_then_mask(scores, additive, 64)
    assert torch.equal(first, second)
    assert torch.equal(weigh(first), attend_not_on_your_life().weights)


def test_equation_18_both_orders_for_a_finite_mask_differ() -> None:
    scores = read_matrix("not-on-your-life.scores")
    finite = torch.where(causal_mask(6)[0, 0], 0.0, -10.0).double()
    first, second = mask_then_scale(scores, finite, 64), scale_then_mask(scores, finite, 64)
    assert (weigh(first) - weigh(second)).abs().max() > 0.1


def test_toy_four_context_with_one_hot_values_is_the_weights() -> None:
    steps = attend_toy_four()
    assert torch.equal(steps.context, steps.weights)


def test_help_me_weights_print_right() -> None:
    assert [[round(w, 2) for w in row] for row in attend_help_me().weights.tolist()] == [
        [0.62, 0.38],
        [0.22, 0.78],
    ]


def test_pizza_transposed_differs_from_plain() -> None:
    plain, transposed = attend_pizza(), attend_pizza(is_transposed=True)
    assert (plain.context - transposed.context).abs().max() > 1


def test_room_number_of_summeth_by_writing_is_shared_by_summer_and_smeeth() -> None:
    assert attend_room_number("Smith", temperature=0).context.item() == 200
    assert attend_room_number("Summeth", temperature=0).weights[0].tolist() == [0, 0.5, 0.5]


def _load_maker() -> ModuleType:
    path = DOCS / "make_worked_numbers.py"
    spec = importlib.util.spec_from_file_location("make_worked_numbers", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_worked_numbers_page_is_up_to_date() -> None:
    maker = _load_maker()
    page: Path = maker.PAGE
    assert page.read_text(encoding="utf-8") == maker.worked_numbers_page(), (
        "Run python docs/attention/make_worked_numbers.py"
    )
