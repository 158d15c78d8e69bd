"""The examples that texts print, and every number of them recomputed.

The examples are data, so that they can be shown. No result is copied: each `WorkedNumber` holds
the printed numbers, those that `pellucid.attention` computes for the same, and the cause of a
difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.attention.forms import attend_with_values
from pellucid.attention.masks import apply_mask, causal_mask
from pellucid.attention.positions import sinusoidal_positions
from pellucid.attention.similarity import attention_pooling, edit_similarity
from pellucid.attention.stages import AttentionSteps, mix, scale, weigh
from pellucid.by_hand.example_numbers import read_matrix, read_numbers

SHOW_ME_THE_MONEY_TOKENS = ("show", "me", "the", "money")
NOT_ON_YOUR_LIFE_TOKENS = ("<start>", "not", "on", "your", "life", "<end>")
PIZZA_TOKENS = ("Pizza", "is", "awesome", "<EOS>")
ROOM_NUMBERS = {"Smith": 200.0, "Summer": 201.0, "Smeeth": 202.0}

_LECTURE = "A lecture on self-attention"
_SLIDES = 'Slides "Self-Attention"'
_NOTES = 'Notes "Transformers"'


@dataclass(frozen=True)
class WorkedNumber:
    """One printed row of numbers next to the same row computed.

    Attributes:
        text: the title of the text.
        place: the section or the name of the numbers.
        printed: the numbers as the text writes them; empty if it leaves the step out.
        computed: the same numbers computed.
        cause: the cause of a difference, or a remark; may be empty if they agree.
    """

    text: str
    place: str
    printed: tuple[str, ...]
    computed: tuple[float, ...]
    cause: str = ""

    @property
    def is_right(self) -> bool:
        """True if every printed number is the computed one, rounded as printed."""
        # A step that the text leaves out cannot be right.
        return bool(self.printed) and all(
            _rounds_to(value, text) for value, text in zip(self.computed, self.printed, strict=True)
        )

    @property
    def largest_difference(self) -> float:
        """The largest distance of a printed number from its computed one; 0 if none is printed."""
        # −∞ has no distance from anything.
        pairs = zip(self.computed, self.printed, strict=True) if self.printed else ()
        return max((abs(value - float(text)) for value, text in pairs if text != "−∞"), default=0.0)


def attend_toy_four() -> AttentionSteps:
    """Follow the scores 40 and 26 through scale (width 4) and softmax; values are one-hot."""
    return _follow(read_matrix("toy-four.scores"), d_key=4)


def attend_help_me() -> AttentionSteps:
    """Follow the scores of "help me!" through scale (width 16) and softmax."""
    return _follow(read_matrix("help-me.scores"), d_key=16)


def attend_not_on_your_life(*, d_key: int = 64, num_tokens: int = 6) -> AttentionSteps:
    """Follow the masked scores of "Not on your life!" from scale to softmax.

    Args:
        d_key: not in the text; 64 is the paper's.
        num_tokens: 5 leaves out ``<end>``, which no decoder reads.
    """
    scores_LM = read_matrix("not-on-your-life.scores")[:num_tokens, :num_tokens]
    return _follow(scores_LM, d_key=d_key, mask=causal_mask(num_tokens)[0, 0])


def attend_pizza(*, num_tokens: int = 3, is_transposed: bool = False) -> AttentionSteps:
    """Attend within "Pizza is awesome", with the slides' one matrix for all three roles.

    Args:
        num_tokens: 4 keeps ``<EOS>``, which the slides drop after the projections.
        is_transposed: multiply by the transpose, another reading of "Weights T".
    """
    x_LD = read_matrix("pizza.embeddings")[:num_tokens]
    weight = read_matrix("pizza.weight")
    weight = weight.T if is_transposed else weight
    return attend_with_values(x_LD, weight, weight, weight)


def attend_room_number(name: str = "Summeth", *, temperature: float = 1.0) -> AttentionSteps:
    """Look a name up in the room-number table by edit distance."""
    rooms = [[room] for room in ROOM_NUMBERS.values()]
    return attention_pooling(
        [name], list(ROOM_NUMBERS), rooms, edit_similarity, temperature=temperature
    )


def best_d_key(largest: int = 128) -> tuple[int, float]:
    """Find the d_k whose weights are nearest to the printed S′, and their largest error."""
    printed_LM = read_matrix("not-on-your-life.weights")
    errors = {
        d_key: float((attend_not_on_your_life(d_key=d_key).weights - printed_LM).abs().max())
        for d_key in range(1, largest + 1)
    }
    # The text names no d_k, so every one is tried.
    best = min(errors, key=lambda d_key: errors[d_key])
    return best, errors[best]


def implied_roots(row: int) -> tuple[float, ...]:
    r"""Compute the $\sqrt{d_k}$ that each printed weight of a row of S′ would need.

    The ratio of two weights gives it: $(s_i - s_j) / \ln(w_i / w_j)$, with the diagonal as i.
    """
    scores = read_numbers("not-on-your-life.scores")[row]
    weights = read_numbers("not-on-your-life.weights")[row]
    return tuple(
        (scores[row] - scores[column]) / math.log(weights[row] / weights[column])
        for column in range(row)
    )


def worked_numbers() -> tuple[WorkedNumber, ...]:
    """Recompute every number that the texts print and that can be recomputed."""
    return (
        *_lecture_numbers(),
        *_slide_numbers(),
        *_position_numbers(),
        *masked_numbers(),
        *_appendix_numbers(),
    )


def find_numbers(
    place: str, numbers: Iterable[WorkedNumber] | None = None
) -> tuple[WorkedNumber, ...]:
    """Find the numbers whose place contains some words, among all by default."""
    numbers = worked_numbers() if numbers is None else numbers
    return tuple(number for number in numbers if place in number.place)


def _compare(
    text: str, place: str, printed: str, computed: Tensor, cause: str = ""
) -> WorkedNumber:
    """Put a row of a tensor next to the numbers that a text prints, separated by spaces."""
    return WorkedNumber(text, place, tuple(printed.split()), tuple(computed.tolist()), cause)


def _lecture_numbers() -> Iterator[WorkedNumber]:
    toy = attend_toy_four()
    # What scores are divided by, read off the library's own scale.
    root = scale(torch.ones(1, dtype=torch.float64), 4).reciprocal()
    not_written = "said, not written out"
    yield _compare(_LECTURE, "√d_k for keys of width 4", "2", root)
    yield _compare(_LECTURE, "scores 40, 26, scaled", "", toy.scaled[0], not_written)
    yield _compare(_LECTURE, "their softmax", "", toy.weights[0], not_written)


def _slide_numbers() -> Iterator[WorkedNumber]:
    x_LD = read_matrix("pizza.embeddings")
    weight = read_matrix("pizza.weight")
    plain = x_LD @ weight
    transposed = x_LD @ weight.T
    one_matrix = "one matrix for all three must give Q = K = V; ours is X·W"
    for name, printed in (("Query", "0.8 0.8"), ("Key", "0.18 0.81"), ("Value", "0.18 0.81")):
        yield _compare(_SLIDES, f"{name} of “awesome”", printed, plain[2], one_matrix)
    for token, row, other in zip(PIZZA_TOKENS, plain, transposed, strict=True):
        dots = "" if token == "awesome" else "printed as dots"
        yield _compare(_SLIDES, f"X·W, `{token}`", "", row, dots)
        yield _compare(_SLIDES, f"X·Wᵀ, `{token}`", "", other, "if “Weights T” means this")
    yield from _slide_softmax_numbers()
    room = attend_room_number()
    distances = "edit distances of Summeth to Smith, Summer, Smeeth"
    sound = (
        "Smith is the farthest in writing; by sound (Soundex S530) it is the nearest, tied with "
        "Smeeth"
    )
    yield _compare(_SLIDES, distances, "", -room.scores[0])
    yield _compare(_SLIDES, "softmax of minus the distance", "", room.weights[0])
    yield _compare(_SLIDES, "room of Summeth", "200", room.context[0], sound)
    yield _compare(
        _SLIDES,
        "the same as a query to a database (temperature 0)",
        "200",
        attend_room_number(temperature=0).context[0],
        "Summer and Smeeth tie and share the weight",
    )


def _slide_softmax_numbers() -> Iterator[WorkedNumber]:
    three = attend_pizza()
    four = attend_pizza(num_tokens=4)
    # The slides print this row twice, differently, and a third time in words.
    row = read_numbers("pizza.row")
    later = read_numbers("pizza.row_later")
    yield _compare(
        _SLIDES,
        "softmax row “Pizza”, three tokens",
        " ".join(map(str, row)),
        three.weights[0],
        f"a row of weights sums to 1, the printed one to {sum(row):.2f}; "
        f"later it is 0.38 0.4 0.24 (sum {sum(later):.2f}), in words 36, 40 and 24 %",
    )
    with_eos = "softmax row “Pizza”, with `<EOS>`"
    yield _compare(_SLIDES, with_eos, "", four.weights[0], "`<EOS>` dropped")
    share = 100 * read_matrix("pizza.row")[:1]
    yield _compare(_SLIDES, "“0.38 % similar”", "0.38", share, "a fraction called per cent")
    column = read_matrix("pizza.column")
    words = read_matrix("pizza.row_in_words")
    digits = read_matrix("pizza.row_later")
    yield _compare(
        _SLIDES,
        "weights 36, 40, 24 % times 0.6, −0.35, 3.86",
        "1.0",
        mix(words[None], column[:, None])[0],
        "right to its digit, but the column of values is not the V of the slides before",
    )
    same = "weights 0.38, 0.4, 0.24 times the same"
    yield _compare(_SLIDES, same, "1.0", mix(digits[None], column[:, None])[0])
    cause = "1×3 times 3×1 is 1×1, not 3×2; the second column has no source; `<EOS>` is dropped"
    for token, printed, context in zip(
        PIZZA_TOKENS, ("1.0 1.9", "0.2 0.4", "3.86 2.2"), three.context, strict=False
    ):
        yield _compare(_SLIDES, f"final row “{token}”", printed, context, cause)


def _position_numbers() -> Iterator[WorkedNumber]:
    positions_LD = sinusoidal_positions(4, 4, dtype=torch.float64)
    encoded_LD = read_matrix("show-me-the-money.embeddings") + positions_LD
    yield _compare(_NOTES, "PE₀ (show)", "0 1 0 1", positions_LD[0])
    for position, place, sine in (
        (1, "PE₁ (me)", "0.02"),
        (2, "PE₂ (the)", "0.04"),
        (3, "PE₃ (money)", "0.05"),
    ):
        # The printed positions are sines of degrees.
        true_sine = math.sin(math.radians(position))
        cause = f"sines of degrees (sin {position}° = {true_sine:.6f})"
        if position == 2:
            cause += ", and a second slip: that is 0.03, not 0.04"
        yield _compare(_NOTES, place, f"{sine} 1 0 1", positions_LD[position], cause)
    for word, row in zip(SHOW_ME_THE_MONEY_TOKENS, encoded_LD, strict=True):
        is_money = word == "money"
        printed = "0.46 1.08 0.51 1.87" if is_money else ""
        cause = "the addition is right, the positions are those of degrees" if is_money else ""
        yield _compare(_NOTES, f"equation 5, “{word}”", printed, row, cause)
    filter_LM = read_matrix("show-me-the-money.filter")
    yield _compare(
        _NOTES,
        "section 3.3, sums of the rows of S",
        "1 1 1 1",
        filter_LM.sum(dim=-1),
        "no scores are given, so the weights themselves cannot be recomputed",
    )
    yield _compare(
        _NOTES,
        "section 3.3, the largest weight of each row of S",
        "0.61 0.57 0.74 0.48",
        filter_LM.amax(dim=-1),
        "the diagonal, as the text says",
    )


def masked_numbers(d_key: int = 64) -> Iterator[WorkedNumber]:
    """Recompute the masked example of the notes with a d_k, which they leave out.

    Yields:
        QKᵀ + B and S′ row by row, and how S′ changes without ``<end>``.
    """
    steps = attend_not_on_your_life(d_key=d_key)
    allowed = apply_mask(steps.scores, causal_mask(6)[0, 0])
    for token, printed, row in zip(
        NOT_ON_YOUR_LIFE_TOKENS, read_numbers("not-on-your-life.masked"), allowed, strict=True
    ):
        yield _compare(_NOTES, f"section 4.2, QKᵀ + B, `{token}`", " ".join(printed), row)
    best, error = best_d_key()
    no_fit = f"no d_k fits (nearest {best}, largest error {error:.2f}); computed with d_k = {d_key}"
    printed_weights = read_numbers("not-on-your-life.weights")
    for index, (token, weights) in enumerate(
        zip(NOT_ON_YOUR_LIFE_TOKENS, printed_weights, strict=True)
    ):
        shown = " ".join(f"{value:.0f}" if value in (0, 1) else f"{value:.2f}" for value in weights)
        cause = _masked_cause(index, no_fit)
        yield _compare(_NOTES, f"section 4.2, S′, `{token}`", shown, steps.weights[index], cause)
    five = attend_not_on_your_life(d_key=d_key, num_tokens=5).weights - steps.weights[:5, :5]
    yield _compare(
        _NOTES,
        "section 4.2, largest difference of S′ with five rows, without `<end>`",
        "",
        five.abs().max()[None],
        "inputs are `<start>` … last word, targets the same shifted by one: five rows suffice",
    )


def _masked_cause(index: int, no_fit: str) -> str:
    if index == 0:
        return "one token to attend to"
    roots = ", ".join(f"{root:.2f}" for root in implied_roots(index))
    cause = f"{no_fit}; this row implies √d_k = {roots}"
    if index == 5:
        cause += "; the score 4.0 has a smaller weight than 3.9, which no softmax gives"
    return cause


def _appendix_numbers() -> Iterator[WorkedNumber]:
    steps = attend_help_me()
    for index, (word, scaled, weights) in enumerate(
        (("help", "1.5 1", "0.62 0.38"), ("me", "0.75 2", "0.22 0.78"))
    ):
        yield _compare(_NOTES, f"appendix, “{word}”, scaled", scaled, steps.scaled[index])
        yield _compare(_NOTES, f"appendix, “{word}”, softmax", weights, steps.weights[index])


def _follow(scores_LM: Tensor, *, d_key: int, mask: Tensor | None = None) -> AttentionSteps:
    """Run stages 2 to 5 on given scores, with one-hot values: the context equals the weights."""
    scaled_LM = scale(scores_LM, d_key)
    masked_LM = apply_mask(scaled_LM, mask)
    weights_LM = weigh(masked_LM)
    one_hot = torch.eye(scores_LM.shape[-1], dtype=scores_LM.dtype)
    return AttentionSteps(scores_LM, scaled_LM, masked_LM, weights_LM, mix(weights_LM, one_hot))


def _rounds_to(value: float, text: str) -> bool:
    """True if a value, rounded to the digits of the text, is the text."""
    if text == "−∞":
        return value == -math.inf
    decimals = len(text.partition(".")[2])
    # Half of the last digit, and room for the rounding of binary numbers.
    return abs(value - float(text)) <= 0.5 * 0.1**decimals + 1e-12
