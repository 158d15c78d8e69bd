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
from pellucid.by_hand.printed import (
    attend_not_on_your_life,
    best_d_key,
    find_numbers,
    masked_numbers,
)
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Example,
    Part,
    Table,
    make_step,
    make_weight_step,
    matrix,
    write_number,
    write_root,
)
from pellucid.by_hand.stages import stage_steps
from pellucid.by_hand.sums import make_product_step
from pellucid.by_hand.texts import NOT_ON_YOUR_LIFE_SCORES, NOT_ON_YOUR_LIFE_TOKENS
from pellucid.errors import InputError

LARGEST_D_KEY = 1_000_000

_TEXT = 'Notes "Transformers", section 4.2'
_TOKENS = NOT_ON_YOUR_LIFE_TOKENS


def not_on_your_life(d_key: int = 64) -> Example:
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
    return Example(
        name="not-on-your-life",
        title=f"“Not on your life!” with the look-ahead mask and d_k = {d_key}",
        text=_TEXT,
        note="The notes print the scores, the mask and the weights S′, but not d_k. This is "
        f"computed with d_k = {d_key} (--d-key). No d_k gives the printed weights: the nearest is "
        f"{best}, and with it a weight is still off by {error:.2f}.",
        parts=(_vectors_part(), _mask_part(), _attention_part(d_key), _five_rows_part(d_key)),
    )


def _mask_part() -> Part:
    mask_LM = causal_mask(len(_TOKENS))[0, 0]
    scores_LM = matrix(NOT_ON_YOUR_LIFE_SCORES)
    additive_LM = additive_mask(mask_LM, dtype=scores_LM.dtype)
    added = Table(_TOKENS, _TOKENS, scores_LM + additive_LM)
    rows = find_numbers("QKᵀ + B", masked_numbers())
    return Part(
        "The mask as it is printed",
        "B is 0 on and below the diagonal: a token attends to those before it and to itself. "
        "Above the diagonal it is −∞, which leaves a weight of exactly 0.",
        (
            make_step("B", "", Table(_TOKENS, _TOKENS, additive_LM), is_given=True),
            make_step("QKᵀ + B", "", added, printed=rows),
        ),
        corrections=(
            "The notes say “those that precede it”; their B has the token itself too, rightly.",
        ),
    )


def _vectors_part() -> Part:
    """Give vectors from which the printed scores come out."""
    x_LD, scores_LM = torch.eye(len(_TOKENS), dtype=torch.float64), matrix(NOT_ON_YOUR_LIFE_SCORES)
    numbers = tuple(f"x{index}" for index in range(len(_TOKENS)))
    query = make_product_step("query", "x · W^q", _TOKENS, x_LD, scores_LM, "q")
    return Part(
        "Vectors that give these scores",
        "The notes print scores without vectors. The simplest that give them are ours: each word "
        "is a row with a single 1, W^q holds the scores, and W^k changes nothing. Such a row "
        "times a matrix picks one of its rows; that is how an embedding is looked up.",
        (
            make_step("x", "one row a word", Table(_TOKENS, numbers, x_LD), is_given=True),
            make_weight_step("W^q", scores_LM, "the printed scores"),
            query,
        ),
    )


def _attention_part(d_key: int) -> Part:
    mask_LM = causal_mask(len(_TOKENS))[0, 0]
    scores_LM = matrix(NOT_ON_YOUR_LIFE_SCORES)
    attention = AttentionByHand(
        _TOKENS, _TOKENS, scores_LM, d_key**0.5, write_root(d_key), mask_LM=mask_LM
    )
    additive_LM = additive_mask(mask_LM, dtype=scores_LM.dtype)
    other_LM = weigh(mask_then_scale(scores_LM, additive_LM, d_key))
    apart = write_number(float((other_LM - attention.weights_LM).abs().max()))
    weights = find_numbers(", S′, `", masked_numbers(d_key))
    return Part(
        "Attention, stage by stage",
        "The scores are scaled and masked; then each row becomes shares of what is left.",
        stage_steps(
            attention,
            formulas={"scores": "Q·Kᵀ as printed"},
            notes={"masked": "A later word is out of reach, whatever its score."},
            printed={"weights": weights},
        ),
        attention,
        (
            "Equation 18 adds B before dividing. For 0 and −∞ the order does not matter: the "
            f"weights differ by {apart}. For a finite B they would differ.",
        ),
    )


def _five_rows_part(d_key: int) -> Part:
    steps = attend_not_on_your_life(d_key=d_key, num_tokens=5)
    (five,) = find_numbers("five rows", masked_numbers(d_key))
    lines = [f"reads {read} → predicts {said}" for read, said in itertools.pairwise(_TOKENS)]
    return Part(
        "Without <end>",
        "A row reads one token and predicts the next, so <end> is only ever predicted, never "
        "read: five rows suffice. Because of the mask they are the first five above "
        f"(largest difference {write_number(five.computed[0])}).",
        (make_step("weights", "", Table(_TOKENS[:5], _TOKENS[:5], steps.weights), lines=lines),),
        corrections=("The notes have <end> among the decoder's inputs.",),
    )
