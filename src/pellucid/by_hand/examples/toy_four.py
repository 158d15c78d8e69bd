"""``toy-four``: the lecture's example of width 4 in its three forms.

The lecture prints two scores and nothing else. Embeddings and matrices are ours: small whole
numbers from which the scores 40 and 26 come out.

Source:
    A lecture on self-attention.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pellucid.attention.forms import query_network
from pellucid.by_hand.example_numbers import read_matrix, read_numbers
from pellucid.by_hand.printed import WorkedNumber, find_numbers
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Part,
    Step,
    WorkedExample,
    attend_by_hand,
    make_given,
    make_weight_step,
    named_matrix,
    write_example,
    write_part,
)
from pellucid.by_hand.written_stages import Product, make_product_step, stage_steps

_TEXT = "A lecture on self-attention"
_WORDS = ("word 1", "word 2", "word 3")
_READ = 1
_OTHERS = "Only the other words are scored; −∞ leaves the word itself out."


def toy_four() -> WorkedExample:
    """Work out the three forms for the second of three words."""
    x_LD = read_matrix("toy-four.embeddings")
    words = named_matrix(_WORDS, x_LD, "x")
    return write_example(
        "toy-four",
        write_part("toy-four.words", make_given("x", words, "one embedding a word")),
        _first_form(x_LD),
        _second_form(x_LD),
        _third_form(x_LD, is_own_left_out=True),
        _third_form(x_LD, is_own_left_out=False),
        _network_form(x_LD),
    )


def _first_form(x_LD: Tensor) -> Part:
    own_LD = x_LD[_READ : _READ + 1]
    attention = _attend(own_LD, x_LD, x_LD, added_LE=own_LD)
    (root,) = find_numbers("√d_k for keys")
    return write_part(
        "toy-four.first",
        *stage_steps(
            attention,
            formulas={"query": "the embedding itself", "key = value": "the embeddings themselves"},
            notes={"masked": _OTHERS},
            printed={"scaled": [root]},
        ),
        attention=attention,
    )


def _second_form(x_LD: Tensor) -> Part:
    query_LK, key_MK = _project(x_LD)
    attention = _attend(query_LK, key_MK, key_MK)
    steps = (
        make_weight_step("W^q", read_matrix("toy-four.query"), "ours"),
        make_weight_step("W^k", read_matrix("toy-four.key"), "ours"),
    )
    return write_part(
        "toy-four.second",
        *steps,
        *_stages(attention, {"key = value": "X · W^k", "context": "weights · K"}, x_LD),
        attention=attention,
    )


def _third_form(x_LD: Tensor, *, is_own_left_out: bool) -> Part:
    query_LK, key_MK = _project(x_LD)
    value_ME = x_LD @ read_matrix("toy-four.value")
    if is_own_left_out:
        attention = _attend(query_LK, key_MK, value_ME)
        steps = _stages(attention, {"key": "X · W^k", "value": "X · W^v"}, x_LD)
        weight = make_weight_step("W^v", read_matrix("toy-four.value"), "ours")
        return write_part("toy-four.third", weight, *steps, attention=attention)
    attention = attend_by_hand(
        query_LK, key_MK, value_ME, query_names=_WORDS[_READ : _READ + 1], key_names=_WORDS
    )
    # Queries, keys and values stand in the form before.
    return write_part("toy-four.itself", *stage_steps(attention)[3:], attention=attention)


def _network_form(x_LD: Tensor) -> Part:
    inner = read_matrix("toy-four.inner")
    bias = read_matrix("toy-four.inner_bias")
    outer = read_matrix("toy-four.outer")
    outer_bias = read_matrix("toy-four.outer_bias")
    own_LD = x_LD[_READ : _READ + 1]
    inner_LF = torch.relu(own_LD @ inner + bias)
    query_LK = query_network(inner, bias, outer, outer_bias)(own_LD)
    _, key_MK = _project(x_LD)
    attention = _attend(query_LK, key_MK, x_LD @ read_matrix("toy-four.value"))
    name = (_WORDS[_READ],)
    steps = (
        make_product_step(
            "inner", "max(0, x·W₁ + b₁)", name, own_LD, inner, "h", bias_K=bias, is_rectified=True
        ),
        make_product_step("query", "inner·W₂ + b₂", name, inner_LF, outer, "q", bias_K=outer_bias),
    )
    return write_part(
        "toy-four.network",
        *steps,
        *stage_steps(attention, notes={"masked": _OTHERS})[3:],
        attention=attention,
    )


def _stages(attention: AttentionByHand, formulas: dict[str, str], x_LD: Tensor) -> tuple[Step, ...]:
    # The lecture prints the scores of the other two words.
    first, _, third = attention.scores_LM[0].tolist()
    products = {
        "query": Product(
            attention.query_names, x_LD[_READ : _READ + 1], read_matrix("toy-four.query")
        )
    }
    for name, weight in (("key", "key"), ("key = value", "key"), ("value", "value")):
        if name in formulas:
            products[name] = Product(_WORDS, x_LD, read_matrix(f"toy-four.{weight}"))
    printed = tuple(f"{score:.0f}" for score in read_numbers("toy-four.scores")[0])
    scores = WorkedNumber(_TEXT, "scores of the other two words", printed, (first, third))
    return stage_steps(
        attention,
        products=products,
        formulas={"query": "X · W^q", **formulas},
        notes={"masked": _OTHERS},
        printed={"scores": [scores]},
    )


def _attend(
    query_LK: Tensor, key_MK: Tensor, value_ME: Tensor, added_LE: Tensor | None = None
) -> AttentionByHand:
    """Let the second word attend to the others."""
    # The lecture scores the other words only.
    is_other_LM = torch.arange(len(_WORDS))[None] != _READ
    return attend_by_hand(
        query_LK,
        key_MK,
        value_ME,
        query_names=_WORDS[_READ : _READ + 1],
        key_names=_WORDS,
        mask_LM=is_other_LM,
        added_LE=added_LE,
    )


def _project(x_LD: Tensor) -> tuple[Tensor, Tensor]:
    """Make the query of the second word, and all keys."""
    query_LK = x_LD[_READ : _READ + 1] @ read_matrix("toy-four.query")
    return query_LK, x_LD @ read_matrix("toy-four.key")
