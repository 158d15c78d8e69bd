"""``pizza`` and ``room-number``: the slides in full.

Source:
    Slides "Self-Attention".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from torch import Tensor

from pellucid.attention.stages import mix
from pellucid.by_hand.printed import (
    PIZZA_EMBEDDINGS,
    PIZZA_TOKENS,
    PIZZA_WEIGHT,
    WorkedNumber,
    worked_numbers,
)
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Example,
    Part,
    Step,
    Table,
    attend_by_hand,
    matrix,
    table,
    write_number,
)
from pellucid.by_hand.stages import stage_steps

__all__ = ["pizza"]

_TEXT = 'Slides "Self-Attention"'
_EOS = "<EOS>"


def pizza() -> Example:
    """Work the slides out, for both readings of their transposed weights."""
    features = ("x0", "x1")
    given = (
        Step("x", "one embedding a word", tables=(table(PIZZA_TOKENS, _embeddings(), "x"),)),
        Step(
            "W",
            "the one matrix that stands for W^q, W^k and W^v",
            "Two encoded values take a 2 × 2 matrix; 512 could take one of 512 × 512, or of "
            "512 × d_k.",
            (table(features, matrix(PIZZA_WEIGHT), ""),),
        ),
    )
    return Example(
        name="pizza",
        title="“Pizza is awesome”",
        text=_TEXT,
        note="The slides multiply by “Weights T”. That can mean the matrix they show, or its "
        "transpose; both are worked out. With one matrix for all three roles, queries, keys and "
        "values are equal.",
        parts=(
            Part("What is given", steps=given),
            *_reading(is_transposed=False),
            *_reading(is_transposed=True),
            _slides_own_part(),
        ),
    )


def _embeddings() -> Tensor:
    return matrix(PIZZA_EMBEDDINGS)


def _reading(*, is_transposed: bool) -> tuple[Part, Part, Part]:
    weight = matrix(PIZZA_WEIGHT)
    formula = "X·Wᵀ" if is_transposed else "X·W"
    projected_LK = _embeddings() @ (weight.T if is_transposed else weight)
    number = "Second" if is_transposed else "First"
    roles = Part(
        f"{number} reading, {formula}: queries, keys, values",
        steps=(
            Step(
                "query = key = value",
                formula,
                tables=(table(PIZZA_TOKENS, projected_LK, "q"),),
                printed=_role_numbers(projected_LK[2].tolist(), formula),
            ),
        ),
    )
    three_LK = projected_LK[:3]
    three = attend_by_hand(three_LK, three_LK, three_LK, query_names=PIZZA_TOKENS[:3])
    stages = stage_steps(
        three,
        printed={
            "weights": _softmax_numbers(three.weights_LM[0].tolist(), formula),
            "context": _context_numbers(mix(three.weights_LM, three_LK), formula),
        },
    )[1:]  # queries, keys and values stand above
    attention = Part(
        f"{number} reading, {formula}: three words",
        f"From here on the slides drop {_EOS} without saying so.",
        stages,
        three,
    )
    return roles, attention, _four_words_part(projected_LK, f"{number} reading, {formula}", three)


def _four_words_part(projected_LK: Tensor, title: str, three: AttentionByHand) -> Part:
    four = attend_by_hand(projected_LK, projected_LK, projected_LK, query_names=PIZZA_TOKENS)
    change = float((four.weights_LM[:3, :3] - three.weights_LM).abs().max())
    return Part(
        f"{title}: with {_EOS}",
        f"Had {_EOS} been kept, the weights of the three words would be others, by at most "
        f"{write_number(change)}.",
        stage_steps(four)[1:],
        four,
    )


def _role_numbers(row: Sequence[float], formula: str) -> tuple[WorkedNumber, ...]:
    cause = f"one matrix for all three must give Q = K = V; computed as {formula}"
    return tuple(
        WorkedNumber(_TEXT, f"{number.place}, {formula}", number.printed, tuple(row), cause)
        for number in _printed("of “awesome”")
    )


def _softmax_numbers(row: Sequence[float], formula: str) -> tuple[WorkedNumber, ...]:
    (number,) = _printed("softmax row “Pizza”, three tokens")
    return (
        WorkedNumber(_TEXT, f"row “Pizza”, {formula}", number.printed, tuple(row), number.cause),
    )


def _context_numbers(context_LE: Tensor, formula: str) -> tuple[WorkedNumber, ...]:
    return tuple(
        WorkedNumber(_TEXT, f"{number.place}, {formula}", number.printed, tuple(row), number.cause)
        for number, row in zip(_printed("final row"), context_LE.tolist(), strict=True)
    )


def _slides_own_part() -> Part:
    """What the slides compute with the weights that they print."""
    words = ("Pizza", "is", "awesome")
    column = matrix([[0.6], [-0.35], [3.86]])
    tables = []
    for title, shares in (
        ("with the row as it is printed later, 0.38 0.4 0.24", (0.38, 0.40, 0.24)),
        ("with the row as it is said in words, 36, 40 and 24 %", (0.36, 0.40, 0.24)),
    ):
        weights_M1 = matrix(shares)[:, None]
        products_MX = matrix(
            [*(weights_M1 * column).tolist(), [float((weights_M1 * column).sum())]]
        )
        tables.append(Table((*words, "sum"), ("product",), products_MX, title))
    in_words, in_digits = (
        replace(number, cause="but this column of values is not the V of the slides before")
        for start in ("weights 36, 40", "weights 0.38")
        for number in _printed(start)
    )
    return Part(
        "What the slides compute with the weights they print",
        "A row of weights times a column of values is one number (1 × 3 times 3 × 1 is 1 × 1), "
        "not the 3 × 2 matrix that they show at the end; its second column has no source.",
        (
            Step(
                "value", "the column that the slides show", tables=(Table(words, ("v",), column),)
            ),
            Step(
                "weights × values",
                tables=tuple(tables),
                printed=(in_digits, in_words, *_printed("“0.38 % similar”")),
            ),
        ),
    )


def _printed(part_of_place: str) -> tuple[WorkedNumber, ...]:
    return tuple(n for n in worked_numbers() if n.text == _TEXT and part_of_place in n.place)
