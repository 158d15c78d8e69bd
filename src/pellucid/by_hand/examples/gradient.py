"""``gradient``: dL/dW^q of one row of attention by hand, and its check by finite differences."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pellucid.by_hand.sheet import (
    AttentionByHand,
    NamedMatrix,
    Step,
    WorkedExample,
    attend_by_hand,
    make_given,
    make_step,
    make_weight_step,
    matrix,
    name_columns,
    named_matrix,
    write_example,
    write_number,
    write_part,
)
from pellucid.by_hand.written_stages import (
    bracket,
    make_product_step,
    stage_steps,
    write_products,
    write_sum_of_products,
)

WORDS = ("pizza", "oven", "it")
GRADIENT_INPUT = ((1, 0), (0, 1), (1, 0.5))
GRADIENT_WEIGHTS = (((1, 0), (0, 1)), ((1, 2), (2, 1)), ((1,), (-1,)))
"""W^q, W^k and W^v. The values say gender: pizza 1, oven −1."""
WANTED = 1.0
EPSILON = 0.001
RATE = 1.0


def gradient() -> WorkedExample:
    """Work out the gradient, check it, and make one step of training."""
    x_LD = matrix(GRADIENT_INPUT)
    query_DK, key_DK, value_DE = map(matrix, GRADIENT_WEIGHTS)
    x_1D = x_LD[-1:]
    found = attend_row(query_DK)
    assert found.context_LE is not None
    gradients = backward(found)
    return write_example(
        "gradient",
        write_part(
            "gradient.given",
            make_given("x", named_matrix(WORDS, x_LD, "x")),
            make_weight_step("W^q", query_DK),
            make_weight_step("W^k", key_DK),
            make_weight_step("W^v", value_DE),
        ),
        write_part(
            "gradient.forward",
            make_product_step("key", "x·W^k", WORDS, x_LD, key_DK, "k"),
            make_product_step("value", "x·W^v", WORDS, x_LD, value_DE, "v"),
            make_product_step("query", "x·W^q, of “it”", ("it",), x_1D, query_DK, "q"),
            *stage_steps(found)[3:],
            make_step("loss", "½(c − y)²", lines=(f"L = {_write_loss(found)}",)),
            attention=found,
        ),
        write_part("gradient.softmax", *_to_scores(found, gradients)),
        write_part("gradient.weights", *_to_weights(found, x_1D, gradients)),
        write_part(
            "gradient.check", *_check(query_DK, gradients["W^q"]), step=EPSILON, twice=2 * EPSILON
        ),
        write_part("gradient.update", *_update(query_DK, gradients["W^q"]), rate=RATE),
    )


def attend_row(query_DK: Tensor) -> AttentionByHand:
    """Attend from “it” to all three words with a matrix for queries."""
    x_LD = matrix(GRADIENT_INPUT)
    _, key_DK, value_DE = map(matrix, GRADIENT_WEIGHTS)
    return attend_by_hand(
        x_LD[-1:] @ query_DK, x_LD @ key_DK, x_LD @ value_DE, query_names=("it",), key_names=WORDS
    )


def loss_of(found: AttentionByHand) -> float:
    """Compute ½(c − y)²."""
    return 0.5 * (float(_only(found.context_LE)) - WANTED) ** 2


def backward(found: AttentionByHand) -> dict[str, Tensor]:
    """Compute the gradient of the loss in everything from the context back to W^q."""
    w_M = found.weights_LM[0]
    v_M = _only(found.value_ME)[:, 0]
    context = _only(found.context_LE)[0] - WANTED
    weights_M = context * v_M
    # The Jacobian of the softmax, diag(w) − wwᵀ, times the gradient, without making the matrix.
    scaled_M = w_M * (weights_M - w_M @ weights_M)
    scores_M = scaled_M / found.divisor
    query_K = scores_M @ _only(found.key_MK)
    return {
        "c": context,
        "weights": weights_M,
        "scaled": scaled_M,
        "scores": scores_M,
        "query": query_K,
        "W^q": torch.outer(matrix(GRADIENT_INPUT)[-1], query_K),
    }


def _only(tensor: Tensor | None) -> Tensor:
    assert tensor is not None
    return tensor


def _write_loss(found: AttentionByHand) -> str:
    context = write_number(float(_only(found.context_LE)))
    return f"½·({context} − {write_number(WANTED)})² = {write_number(loss_of(found))}"


def _row(
    name: str,
    formula: str,
    values_M: Tensor,
    columns: Sequence[str],
    form: str,
    *numbers: Sequence[float],
) -> Step:
    """Show one gradient for each column, with a line of arithmetic in which letters are numbers.

    Args:
        name: of the step.
        formula: how it is computed.
        values_M: the gradients, which end each line.
        columns: their names.
        form: the arithmetic, with a pair of braces for each of `numbers`.
        numbers: those of each column.
    """
    lines = tuple(
        f"{column}: {form.format(*map(bracket, row))} = {write_number(value)}"
        for column, value, *row in zip(columns, values_M.tolist(), *numbers, strict=True)
    )
    return make_step(
        name, formula, NamedMatrix(("it",), tuple(columns), values_M[None]), lines=lines
    )


def _to_scores(found: AttentionByHand, gradients: dict[str, Tensor]) -> tuple[Step, ...]:
    w_M = found.weights_LM[0].tolist()
    v_M = _only(found.value_ME)[:, 0].tolist()
    weights_M = gradients["weights"].tolist()
    context = float(gradients["c"])
    mean = sum(w * g for w, g in zip(w_M, weights_M, strict=True))
    before = f"{write_number(float(_only(found.context_LE)))} − {write_number(WANTED)}"
    added = f"{write_sum_of_products(w_M, weights_M)} = {write_number(mean)}"
    return (
        make_step("dL/dc", "c − y", lines=(f"{before} = {write_number(context)}",)),
        _row(
            "dL/dweights", "dL/dc · v", gradients["weights"], WORDS, f"{bracket(context)}·{{}}", v_M
        ),
        make_step("mean", "Σ weight · dL/dweight", lines=(added,)),
        _row(
            "dL/dscaled",
            "weight · (dL/dweight − mean)",
            gradients["scaled"],
            WORDS,
            f"{{}}·({{}} − {bracket(mean)})",
            w_M,
            weights_M,
        ),
        _row(
            "dL/dscores",
            f"dL/dscaled ÷ {found.divisor_words}",
            gradients["scores"],
            WORDS,
            f"{{}} ÷ {write_number(found.divisor)}",
            gradients["scaled"].tolist(),
        ),
    )


def _to_weights(
    found: AttentionByHand, x_1D: Tensor, gradients: dict[str, Tensor]
) -> tuple[Step, ...]:
    names = name_columns("q", 2)
    form = " + ".join(f"{bracket(score)}·{{}}" for score in gradients["scores"].tolist())
    products = write_products(name_columns("x", 2), x_1D.T, gradients["query"][None], "g")
    return (
        _row(
            "dL/dq",
            "dL/dscores · K",
            gradients["query"],
            names,
            form,
            *_only(found.key_MK).tolist(),
        ),
        make_step(
            "dL/dW^q",
            "x of “it” times dL/dq",
            named_matrix(("x0", "x1"), gradients["W^q"], ""),
            arithmetic=products,
        ),
    )


def _check(query_DK: Tensor, by_hand_DK: Tensor) -> tuple[Step, ...]:
    """Compute each slope from two losses, and compare."""
    rows = []
    lines = []
    names = []
    for row, column in ((row, column) for row in range(2) for column in range(2)):
        # One entry at a time, as a slope needs.
        moved = torch.zeros_like(query_DK)
        moved[row, column] = EPSILON
        # A difference to both sides is exact to the second order, one to a single side only to the
        # first.
        more, less = (loss_of(attend_row(query_DK + sign * moved)) for sign in (1, -1))
        slope = (more - less) / (2 * EPSILON)
        by_hand = float(by_hand_DK[row, column])
        names.append(f"x{row}, q{column}")
        rows.append([by_hand, slope, by_hand - slope])
        lines.append(
            f"{names[-1]}: ({more:.9f} − {less:.9f}) ÷ {2 * EPSILON:g} = {write_number(slope)}"
        )
    compared = NamedMatrix(tuple(names), ("by hand", "slope", "difference"), matrix(rows))
    return (make_step("check", "(L(W + ε) − L(W − ε)) ÷ 2ε", compared, lines=lines),)


def _update(query_DK: Tensor, by_hand_DK: Tensor) -> tuple[Step, ...]:
    new_DK = query_DK - RATE * by_hand_DK
    before = attend_row(query_DK)
    after = attend_row(new_DK)
    return (
        make_step(
            "W^q after the step",
            f"W^q − {RATE:g} · dL/dW^q",
            named_matrix(("x0", "x1"), new_DK, ""),
        ),
        make_step(
            "weights",
            "of “it”, before and after",
            NamedMatrix(
                ("before", "after"), WORDS, torch.cat([before.weights_LM, after.weights_LM])
            ),
        ),
        make_step(
            "loss",
            "½(c − y)²",
            lines=(f"before: {_write_loss(before)}", f"after: {_write_loss(after)}"),
        ),
    )
