"""``pizza``: the slides "Pizza is awesome" in full.

Source:
    Slides "Self-Attention".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from torch import Tensor

from pellucid.attention.stages import mix
from pellucid.by_hand.example_numbers import read_matrix
from pellucid.by_hand.printed import (
    PIZZA_TOKENS,
    WorkedNumber,
    find_numbers,
)
from pellucid.by_hand.sheet import (
    AttentionByHand,
    NamedMatrix,
    Part,
    WorkedExample,
    attend_by_hand,
    make_given,
    make_step,
    make_weight_step,
    matrix,
    named_matrix,
    write_example,
    write_number,
    write_part,
)
from pellucid.by_hand.written_stages import make_product_step, stage_steps


def pizza() -> WorkedExample:
    """Work out the slides, for both readings of their transposed weights."""
    sizes = (
        "Two encoded values take a 2 × 2 matrix; 512 could take one of 512 × 512, or of 512 × d_k."
    )
    given = (
        make_given("x", named_matrix(PIZZA_TOKENS, _embeddings(), "x"), "one embedding a word"),
        make_weight_step(
            "W",
            read_matrix("pizza.weight"),
            "the one matrix that stands for W^q, W^k and W^v",
            sizes,
        ),
    )
    return write_example(
        "pizza",
        write_part("pizza.given", *given),
        *_reading(is_transposed=False),
        *_reading(is_transposed=True),
        _slides_own_part(),
    )


def _embeddings() -> Tensor:
    return read_matrix("pizza.embeddings")


def _reading(*, is_transposed: bool) -> tuple[Part, Part, Part]:
    weight = read_matrix("pizza.weight")
    formula = "X·Wᵀ" if is_transposed else "X·W"
    title = f"{'Second' if is_transposed else 'First'} reading, {formula}"
    projected_LK = _embeddings() @ (weight.T if is_transposed else weight)
    cause = f"one matrix for all three must give Q = K = V; computed as {formula}"
    printed = [replace(number, cause=cause) for number in find_numbers("of “awesome”")]
    # One product for all three roles, so the numbers that the slides print for each are compared
    # with the same row.
    roles = replace(
        make_product_step(
            "query = key = value",
            formula,
            PIZZA_TOKENS,
            _embeddings(),
            weight.T if is_transposed else weight,
            "q",
        ),
        printed=_recompute(printed, 3 * [projected_LK[2].tolist()], formula),
    )
    # The slides drop <EOS> after the projections, not before them.
    three_LK = projected_LK[:3]
    three = attend_by_hand(three_LK, three_LK, three_LK, query_names=PIZZA_TOKENS[:3])
    (row,) = find_numbers("softmax row “Pizza”, three tokens")
    row = replace(row, place="row “Pizza”")
    contexts = mix(three.weights_LM, three_LK).tolist()
    stages = stage_steps(
        three,
        printed={
            "weights": _recompute([row], [three.weights_LM[0].tolist()], formula),
            "context": _recompute(find_numbers("final row"), contexts, formula),
        },
    )[1:]  # queries, keys and values stand above
    return (
        write_part(f"pizza.{'second' if is_transposed else 'first'}", roles),
        write_part("pizza.three", *stages, attention=three, title=title),
        _four_words_part(projected_LK, title, three),
    )


def _recompute(
    numbers: Iterable[WorkedNumber], rows: Sequence[Sequence[float]], formula: str
) -> tuple[WorkedNumber, ...]:
    """Compare printed numbers with those of one reading of the weights."""
    return tuple(
        replace(number, place=f"{number.place}, {formula}", computed=tuple(row))
        for number, row in zip(numbers, rows, strict=True)
    )


def _four_words_part(projected_LK: Tensor, title: str, three: AttentionByHand) -> Part:
    four = attend_by_hand(projected_LK, projected_LK, projected_LK, query_names=PIZZA_TOKENS)
    change = float((four.weights_LM[:3, :3] - three.weights_LM).abs().max())
    return write_part(
        "pizza.four",
        *stage_steps(four)[1:],
        attention=four,
        title=title,
        change=write_number(change),
    )


def _slides_own_part() -> Part:
    """Show the slides' own computation with the weights that they print."""
    words = PIZZA_TOKENS[:3]
    column = read_matrix("pizza.column")[:, None]
    tables = []
    for title, shares in (
        ("with the row as it is printed later, 0.38 0.4 0.24", "pizza.row_later"),
        ("with the row as it stands in words, 36, 40 and 24 %", "pizza.row_in_words"),
    ):
        products = read_matrix(shares)[:, None] * column
        values_MX = matrix([*products.tolist(), [float(products.sum())]])
        tables.append(NamedMatrix((*words, "sum"), ("product",), values_MX, title))
    in_digits = find_numbers("weights 0.38")
    in_words = find_numbers("weights 36, 40")
    cause = "but this column of values is not the V of the slides before"
    printed = [replace(number, cause=cause) for number in (*in_digits, *in_words)]
    return write_part(
        "pizza.own",
        make_step("value", "the column that the slides show", NamedMatrix(words, ("v",), column)),
        make_step(
            "weights × values",
            "",
            *tables,
            printed=(*printed, *find_numbers("“0.38 % similar”")),
        ),
    )
