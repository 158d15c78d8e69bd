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
from pellucid.by_hand.example_numbers import read_matrix, read_numbers
from pellucid.by_hand.printed import WorkedNumber, find_numbers
from pellucid.by_hand.sheet import (
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
from pellucid.by_hand.written_stages import Product, stage_steps

_TEXT = 'Notes "Transformers", appendix'
_WORDS = ("help", "me")


def help_me() -> WorkedExample:
    """Work out both words as vectors, and both at once as the rows of a matrix."""
    x_LD = read_matrix("help-me.embeddings")
    free = "The width of the values is free: it need be neither 4 nor 16."
    given = (
        make_weight_step("W^q", read_matrix("help-me.query"), "4 × 16, ours"),
        make_weight_step("W^k", read_matrix("help-me.key"), "4 × 16, ours"),
        make_weight_step("W^v", read_matrix("help-me.value"), "4 × 3, ours", free),
    )
    return write_example(
        "help-me",
        write_part("help-me.given", *given),
        *(_one_word(x_LD, index) for index in range(len(_WORDS))),
        _both_words(x_LD),
    )


def _one_word(x_LD: Tensor, index: int) -> Part:
    word = _WORDS[index]
    number = "₁₂"[index]
    query_K = read_matrix("help-me.query").T @ x_LD[index]
    keys = [read_matrix("help-me.key").T @ x_D for x_D in x_LD]
    values = [read_matrix("help-me.value").T @ x_D for x_D in x_LD]
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
        tuple(f"{score:.0f}" for score in read_numbers("help-me.scores")[index]),
        tuple(attention.scores_LM[0].tolist()),
    )
    # The notes write the context as a sum of both values, each with its weight.
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
    products = {"query": Product((word,), x_LD[index : index + 1], read_matrix("help-me.query"))}
    # Keys and values serve both words: they are computed once.
    if index == 0:
        for name in ("key", "value"):
            products[name] = Product(_WORDS, x_LD, read_matrix(f"help-me.{name}"))
    return products


def _both_words(x_LD: Tensor) -> Part:
    weights = (
        read_matrix("help-me.query"),
        read_matrix("help-me.key"),
        read_matrix("help-me.value"),
    )
    context_LE = attend_with_values(x_LD, *weights).context
    attentions = [_one_word(x_LD, index).attention for index in range(len(_WORDS))]
    # The vectors that were worked out one word at a time.
    one_by_one = [a.context_LE for a in attentions if a is not None and a.context_LE is not None]
    largest = float((context_LE - torch.cat(one_by_one)).abs().max())
    step = make_step(
        "context",
        "softmax(XW^q (XW^k)ᵀ ÷ √16) · XW^v",
        named_matrix(_WORDS, context_LE, "c"),
        note=f"Largest difference from the vectors above: {write_number(largest)}.",
    )
    return write_part("help-me.both", step)
