"""``not-on-your-life``: masked self-attention from printed scores, for any d_k.

The notes print scores, mask and weights, but neither d_k nor values.

Source:
    Notes "Transformers", section 4.2 and equation 18.
"""

from __future__ import annotations

import itertools

import torch

from pellucid.attention.masks import additive_mask, causal_mask, mask_then_scale
from pellucid.attention.stages import weigh
from pellucid.by_hand.example_numbers import read_matrix
from pellucid.by_hand.printed import (
    NOT_ON_YOUR_LIFE_TOKENS,
    attend_not_on_your_life,
    best_d_key,
    find_numbers,
    masked_numbers,
)
from pellucid.by_hand.sheet import (
    AttentionByHand,
    NamedMatrix,
    Part,
    WorkedExample,
    make_given,
    make_step,
    make_weight_step,
    write_example,
    write_number,
    write_part,
    write_root,
)
from pellucid.by_hand.written_stages import make_product_step, stage_steps
from pellucid.errors import InputError

LARGEST_D_KEY = 1_000_000

_TOKENS = NOT_ON_YOUR_LIFE_TOKENS


def not_on_your_life(d_key: int = 64) -> WorkedExample:
    """Work out the masked example.

    Args:
        d_key: not in the text; 64 is the paper's.

    Raises:
        InputError: it is not from 1 to a million.
    """
    if not 1 <= d_key <= LARGEST_D_KEY:
        raise InputError(
            f"d_k must be from 1 to {LARGEST_D_KEY}, but is {d_key} (--d-key). The paper's is 64."
        )
    best, error = best_d_key()
    return write_example(
        "not-on-your-life",
        _vectors_part(),
        _mask_part(),
        _attention_part(d_key),
        _five_rows_part(d_key),
        d_key=d_key,
        best=best,
        error=error,
    )


def _mask_part() -> Part:
    mask_LM = causal_mask(len(_TOKENS))[0, 0]
    scores_LM = read_matrix("not-on-your-life.scores")
    additive_LM = additive_mask(mask_LM, dtype=scores_LM.dtype)
    added = NamedMatrix(_TOKENS, _TOKENS, scores_LM + additive_LM)
    rows = find_numbers("QKᵀ + B", masked_numbers())
    return write_part(
        "not-on-your-life.mask",
        make_given("B", NamedMatrix(_TOKENS, _TOKENS, additive_LM)),
        make_step("QKᵀ + B", "", added, printed=rows),
    )


def _vectors_part() -> Part:
    """Give vectors from which the printed scores come out."""
    # With one-hot rows for x, and for keys, W^q is the matrix of the printed scores.
    x_LD = torch.eye(len(_TOKENS), dtype=torch.float64)
    scores_LM = read_matrix("not-on-your-life.scores")
    numbers = tuple(f"x{index}" for index in range(len(_TOKENS)))
    query = make_product_step("query", "x · W^q", _TOKENS, x_LD, scores_LM, "q")
    return write_part(
        "not-on-your-life.vectors",
        make_given("x", NamedMatrix(_TOKENS, numbers, x_LD), "one row a word"),
        make_weight_step("W^q", scores_LM, "the printed scores"),
        query,
    )


def _attention_part(d_key: int) -> Part:
    mask_LM = causal_mask(len(_TOKENS))[0, 0]
    scores_LM = read_matrix("not-on-your-life.scores")
    attention = AttentionByHand(
        _TOKENS, _TOKENS, scores_LM, d_key**0.5, write_root(d_key), mask_LM=mask_LM
    )
    additive_LM = additive_mask(mask_LM, dtype=scores_LM.dtype)
    # The notes add the mask before they divide: −∞ divided is still −∞, so nothing changes.
    other_LM = weigh(mask_then_scale(scores_LM, additive_LM, d_key))
    apart = write_number(float((other_LM - attention.weights_LM).abs().max()))
    weights = find_numbers(", S′, `", masked_numbers(d_key))
    return write_part(
        "not-on-your-life.attention",
        *stage_steps(
            attention,
            formulas={"scores": "Q·Kᵀ as printed"},
            notes={"masked": "A later word is out of reach, whatever its score."},
            printed={"weights": weights},
        ),
        attention=attention,
        apart=apart,
    )


def _five_rows_part(d_key: int) -> Part:
    steps = attend_not_on_your_life(d_key=d_key, num_tokens=5)
    (five,) = find_numbers("five rows", masked_numbers(d_key))
    # Inputs and targets are the same words, shifted by one.
    lines = [f"reads {read} → predicts {said}" for read, said in itertools.pairwise(_TOKENS)]
    return write_part(
        "not-on-your-life.five_rows",
        make_step("weights", "", NamedMatrix(_TOKENS[:5], _TOKENS[:5], steps.weights), lines=lines),
        number=write_number(five.computed[0]),
    )
