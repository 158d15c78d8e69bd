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
from pellucid.by_hand.example_words import write_example, write_part
from pellucid.by_hand.printed import TOY_FOUR_SCORES, WorkedNumber, find_numbers
from pellucid.by_hand.sheet import (
    AttentionByHand,
    Part,
    Step,
    WorkedExample,
    attend_by_hand,
    make_given,
    make_weight_step,
    matrix,
    named_matrix,
)
from pellucid.by_hand.written_stages import Product, make_product_step, stage_steps

TOY_FOUR_EMBEDDINGS = ((0, 1, 2, 1), (0, 0, 2, 1), (0, 2, 1, 0))
TOY_FOUR_QUERY = ((0, 2, 2, 1), (0, 1, 2, 1), (2, 0, 0, 1), (1, 1, 0, 2))
TOY_FOUR_KEY = ((1, 0, 1, 0), (0, 0, 0, 1), (2, 0, 0, 2), (0, 0, 0, 0))
TOY_FOUR_VALUE = ((1, 0, 0, 2), (0, 1, 3, 0), (2, 0, 1, 0), (0, 1, 0, 1))

_INNER = ((1, 0, -1, 0, 1), (0, 1, 0, 1, 0), (1, 1, 0, -1, 0), (0, 0, 1, 0, 1))
_INNER_BIAS = (0, -1, 0, 1, 0)
_OUTER = ((2, 0, 0, 1), (1, 1, 0, 0), (0, 0, 1, 1), (0, 1, 1, 0), (1, 0, 0, 2))
_OUTER_BIAS = (0, 0, 1, 0)

_TEXT = "A lecture on self-attention"
_WORDS = ("word 1", "word 2", "word 3")
_READ = 1
_OTHERS = "Only the other words are scored; −∞ leaves the word itself out."


def toy_four() -> WorkedExample:
    """Work out the three forms for the second of three words."""
    x_LD = matrix(TOY_FOUR_EMBEDDINGS)
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
        make_weight_step("W^q", TOY_FOUR_QUERY, "ours"),
        make_weight_step("W^k", TOY_FOUR_KEY, "ours"),
    )
    return write_part(
        "toy-four.second",
        *steps,
        *_stages(attention, {"key = value": "X · W^k", "context": "weights · K"}, x_LD),
        attention=attention,
    )


def _third_form(x_LD: Tensor, *, is_own_left_out: bool) -> Part:
    query_LK, key_MK = _project(x_LD)
    value_ME = x_LD @ matrix(TOY_FOUR_VALUE)
    if is_own_left_out:
        attention = _attend(query_LK, key_MK, value_ME)
        steps = _stages(attention, {"key": "X · W^k", "value": "X · W^v"}, x_LD)
        weight = make_weight_step("W^v", TOY_FOUR_VALUE, "ours")
        return write_part("toy-four.third", weight, *steps, attention=attention)
    attention = attend_by_hand(
        query_LK, key_MK, value_ME, query_names=_WORDS[_READ : _READ + 1], key_names=_WORDS
    )
    return write_part("toy-four.itself", *stage_steps(attention)[3:], attention=attention)


def _network_form(x_LD: Tensor) -> Part:
    inner, bias, outer, outer_bias = map(matrix, (_INNER, _INNER_BIAS, _OUTER, _OUTER_BIAS))
    own_LD = x_LD[_READ : _READ + 1]
    inner_LF = torch.relu(own_LD @ inner + bias)
    query_LK = query_network(inner, bias, outer, outer_bias)(own_LD)
    _, key_MK = _project(x_LD)
    attention = _attend(query_LK, key_MK, x_LD @ matrix(TOY_FOUR_VALUE))
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
    first, _, third = attention.scores_LM[0].tolist()
    weights = {"key": TOY_FOUR_KEY, "key = value": TOY_FOUR_KEY, "value": TOY_FOUR_VALUE}
    others = {name: weight for name, weight in weights.items() if name in formulas}
    printed = tuple(f"{score:.0f}" for score in TOY_FOUR_SCORES[0])
    scores = WorkedNumber(_TEXT, "scores of the other two words", printed, (first, third))
    return stage_steps(
        attention,
        products={
            "query": Product(
                attention.query_names, x_LD[_READ : _READ + 1], matrix(TOY_FOUR_QUERY)
            ),
            **{name: Product(_WORDS, x_LD, matrix(weight)) for name, weight in others.items()},
        },
        formulas={"query": "X · W^q", **formulas},
        notes={"masked": _OTHERS},
        printed={"scores": [scores]},
    )


def _attend(
    query_LK: Tensor, key_MK: Tensor, value_ME: Tensor, added_LE: Tensor | None = None
) -> AttentionByHand:
    """Let the second word attend to the others."""
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
    return x_LD[_READ : _READ + 1] @ matrix(TOY_FOUR_QUERY), x_LD @ matrix(TOY_FOUR_KEY)
