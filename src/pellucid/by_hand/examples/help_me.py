r"""``help-me``: attention in vector form, one word at a time.

The notes print four scores and what follows from them. Embeddings and matrices are ours, whole
numbers from which these scores come out; widths are theirs: d = 4, d_q = d_k = 16.

Source:
    Notes "Transformers", appendix.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.attention.forms import attend_with_values
from pellucid.by_hand.example_words import write_example, write_part
from pellucid.by_hand.printed import HELP_ME_SCORES, WorkedNumber, find_numbers
from pellucid.by_hand.sheet import (
    Part,
    WorkedExample,
    attend_by_hand,
    make_given,
    make_step,
    make_weight_step,
    matrix,
    named_matrix,
    write_number,
)
from pellucid.by_hand.written_stages import Product, stage_steps

HELP_ME_EMBEDDINGS = ((1, 0, 1, 0), (0, 1, 0, 1))
HELP_ME_QUERY = (
    (1, 0, -1, 1, 0, -1, 1, -1, 1, 0, 0, 1, -1, 1, -1, 0),
    (-1, 0, -1, 1, 0, 0, 0, -1, 0, 1, 0, 1, 0, 0, 1, 1),
    (0, 1, 0, 0, 0, 1, -1, 0, 0, -1, -1, -1, 1, -1, 0, -1),
    (0, -1, 0, 0, -1, 0, 1, 0, -1, -1, -1, 0, -1, 1, 0, 0),
)
HELP_ME_KEY = (
    (0, 1, -1, 1, 0, -1, 1, 0, 0, -1, 1, 0, 0, 0, 0, 0),
    (1, 0, -1, 0, -1, 0, 0, 0, -1, -1, -1, 1, 0, 0, 0, 0),
    (0, 0, 0, 0, 1, 0, 0, -1, 1, 0, -1, 0, -1, 1, 0, 0),
    (0, -1, 0, 1, 0, -1, 0, -1, 1, 0, 0, 0, 0, 1, 0, 1),
)
HELP_ME_VALUE = ((1, 0, 2), (0, 3, 0), (1, 1, 0), (2, 0, 1))

_TEXT = 'Notes "Transformers", appendix'
_WORDS = ("help", "me")


def help_me() -> WorkedExample:
    """Work out both words as vectors, and both at once as the rows of a matrix."""
    x_LD = matrix(HELP_ME_EMBEDDINGS)
    free = "The width of the values is free: it need be neither 4 nor 16."
    given = (
        make_weight_step("W^q", HELP_ME_QUERY, "4 × 16, ours"),
        make_weight_step("W^k", HELP_ME_KEY, "4 × 16, ours"),
        make_weight_step("W^v", HELP_ME_VALUE, "4 × 3, ours", free),
    )
    return write_example(
        "help-me",
        write_part("help-me.given", *given),
        *(_one_word(x_LD, index) for index in range(len(_WORDS))),
        _both_words(x_LD),
    )


def _one_word(x_LD: Tensor, index: int) -> Part:
    word, number = _WORDS[index], "₁₂"[index]
    query_K = matrix(HELP_ME_QUERY).T @ x_LD[index]
    keys = [matrix(HELP_ME_KEY).T @ x_D for x_D in x_LD]
    values = [matrix(HELP_ME_VALUE).T @ x_D for x_D in x_LD]
    attention = attend_by_hand(
        query_K[None],
        matrix([key_K.tolist() for key_K in keys]),
        matrix([value_E.tolist() for value_E in values]),
        query_names=(word,),
        key_names=_WORDS,
    )
    start = f"appendix, “{word}”, "
    scaled, softmax = find_numbers(start)
    scores = WorkedNumber(
        _TEXT,
        f"{start}scores",
        tuple(f"{score:.0f}" for score in HELP_ME_SCORES[index]),
        tuple(attention.scores_LM[0].tolist()),
    )
    first, second = map(write_number, attention.weights_LM[0].tolist())
    return write_part(
        f"help-me.{word}",
        make_given("embedding", named_matrix((word,), x_LD[index : index + 1], "x"), f"x{number}"),
        *stage_steps(
            attention,
            products=_products(x_LD, index),
            formulas={
                "query": f"q{number} = (W^q)ᵀ x{number}",
                "key": "k₁ = (W^k)ᵀ x₁, k₂ = (W^k)ᵀ x₂",
                "value": "v₁ = (W^v)ᵀ x₁, v₂ = (W^v)ᵀ x₂",
                "scores": f"q{number}·k₁, q{number}·k₂",
                "context": f"A{number} = {first} v₁ + {second} v₂",
            },
            printed={"scores": [scores], "scaled": [scaled], "weights": [softmax]},
        ),
        attention=attention,
    )


def _products(x_LD: Tensor, index: int) -> dict[str, Product]:
    """List the products that are new for a word: all for the first, its query for the second."""
    word = _WORDS[index]
    query = Product((word,), x_LD[index : index + 1], matrix(HELP_ME_QUERY))
    if index:
        return {"query": query}
    weights = {"key": HELP_ME_KEY, "value": HELP_ME_VALUE}
    return {
        "query": query,
        **{name: Product(_WORDS, x_LD, matrix(weight)) for name, weight in weights.items()},
    }


def _both_words(x_LD: Tensor) -> Part:
    weights = (matrix(HELP_ME_QUERY), matrix(HELP_ME_KEY), matrix(HELP_ME_VALUE))
    context_LE = attend_with_values(x_LD, *weights).context
    attentions = [_one_word(x_LD, index).attention for index in range(len(_WORDS))]
    one_by_one = [a.context_LE for a in attentions if a is not None and a.context_LE is not None]
    largest = float((context_LE - torch.cat(one_by_one)).abs().max())
    step = make_step(
        "context",
        "softmax(XW^q (XW^k)ᵀ ÷ √16) · XW^v",
        named_matrix(_WORDS, context_LE, "c"),
        note=f"Largest difference from the vectors above: {write_number(largest)}.",
    )
    return write_part("help-me.both", step)
