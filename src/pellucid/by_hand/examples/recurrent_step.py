"""``recurrent-step``: translation as it was in 2015, one step of it with all its arithmetic.

A gated recurrent unit reads two words; another one writes a word, and attends to the states of the
first by additive attention. Numbers are ours, small.

Source:
    Cho et al. 2014, "Learning Phrase Representations using RNN Encoder-Decoder for Statistical
    Machine Translation", equations 5 to 8, in PyTorch's form; Bahdanau et al. 2015, "Neural
    Machine Translation by Jointly Learning to Align and Translate", appendix A.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pellucid.by_hand.sheet import (
    AttentionByHand,
    NamedMatrix,
    Part,
    Step,
    WorkedExample,
    make_given,
    make_step,
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
    write_sum_of_products,
)

RECURRENT_INPUT = ((1, 0.5), (-1, 2))
"""The vectors of two words."""

RECURRENT_WEIGHTS = {
    "r": (((1, 0), (0.5, -1)), ((1, 0), (0, 1))),
    "z": (((-1, 1), (0, 0.5)), ((0, 1), (1, 0))),
    "n": (((1, -1), (1, 1)), ((2, 0), (0, -1))),
}
"""W, for the input, and U, for the state, of reset gate, update gate and candidate."""

RECURRENT_STATE = (0.5, -0.5)
"""The decoder's state before the step."""

RECURRENT_ATTENTION = (((1, 0), (1, 1)), ((2, -1), (0, 1)), (1, 2))
"""W^a, for the decoder's state, U^a, for the encoder's states, and v."""

RECURRENT_CONTEXT = {
    "r": ((0, 1), (1, 0)),
    "z": ((1, 1), (0, -1)),
    "n": ((1, 0), (0, 2)),
}
"""C, for the context, of each gate and the candidate of the decoder."""

_WORDS = ("Pizza", "awesome")
_NAMES = {"r": "reset", "z": "update", "n": "candidate"}


@dataclass(frozen=True)
class _Stepped:
    """The steps of a unit, and the state after it."""

    steps: tuple[Step, ...]
    state_1D: Tensor


def recurrent_step() -> WorkedExample:
    """Work out two steps of an encoder, the attention, and one step of a decoder."""
    x_LD = matrix(RECURRENT_INPUT)
    state_1D = torch.zeros(1, 2, dtype=torch.float64)
    read = []
    for word, x_D in zip(_WORDS, x_LD, strict=True):
        inputs = {"x": (x_D[None], {name: w for name, (w, _) in RECURRENT_WEIGHTS.items()})}
        read.append(_step(word, inputs, state_1D))
        state_1D = read[-1].state_1D
    states_MD = torch.cat([one.state_1D for one in read])
    attention = _attend(states_MD)
    assert attention.context_LE is not None
    asked_1D = matrix(RECURRENT_STATE)[None]
    start_1D = matrix(RECURRENT_INPUT[0])[None]
    written = _step(
        "pizza",
        {
            "x": (start_1D, {name: w for name, (w, _) in RECURRENT_WEIGHTS.items()}),
            "c": (attention.context_LE, RECURRENT_CONTEXT),
        },
        asked_1D,
    )
    return write_example(
        "recurrent-step",
        write_part("recurrent-step.given", *_given(x_LD)),
        write_part("recurrent-step.first", *read[0].steps),
        write_part("recurrent-step.second", *read[1].steps),
        _attention_part(attention, asked_1D, states_MD),
        write_part(
            "recurrent-step.decoder",
            *(
                _given_weight(f"C^{name}", weight, "c", f"{_NAMES[name]}, for the context")
                for name, weight in RECURRENT_CONTEXT.items()
            ),
            *written.steps,
        ),
    )


def _given(x_LD: Tensor) -> tuple[Step, ...]:
    weights = [
        step
        for name, (input_weight, state_weight) in RECURRENT_WEIGHTS.items()
        for step in (
            _given_weight(f"W^{name}", input_weight, "x", f"{_NAMES[name]}, for the input"),
            _given_weight(f"U^{name}", state_weight, "h", f"{_NAMES[name]}, for the state"),
        )
    ]
    return (make_given("x", named_matrix(_WORDS, x_LD, "x")), *weights)


def _given_weight(name: str, weight: object, letter: str, formula: str) -> Step:
    """Show a matrix of weights, one row for each feature of what it is multiplied with."""
    values_DD = matrix(weight)
    rows = NamedMatrix(name_columns(letter, len(values_DD)), ("0", "1"), values_DD)
    return make_given(name, rows, formula)


def _step(
    word: str, inputs: Mapping[str, tuple[Tensor, Mapping[str, object]]], state_1D: Tensor
) -> _Stepped:
    """Write out one step of a unit.

    Args:
        word: names the row.
        inputs: each input by its letter, and its matrices for each gate and the candidate.
        state_1D: the state before.
    """
    before = make_given("h before", named_matrix((word,), state_1D, "h"))
    steps = [before]
    found: dict[str, Tensor] = {}
    for name in RECURRENT_WEIGHTS:
        # A decoder's step has two inputs next to its state, an encoder's one.
        terms = []
        total_1D = torch.zeros_like(state_1D)
        for letter, (vector_1D, weights) in inputs.items():
            weight_DD = matrix(weights[name])
            terms.append((f"W^{name}" if letter == "x" else f"C^{name}", vector_1D, weight_DD))
            total_1D = total_1D + vector_1D @ weight_DD
        weight_DD = matrix(RECURRENT_WEIGHTS[name][1])
        from_state_1D = state_1D @ weight_DD
        if name == "n":
            from_state_1D = found["r"] * from_state_1D
        total_1D = total_1D + from_state_1D
        function: Callable[[Tensor], Tensor] = torch.tanh if name == "n" else torch.sigmoid
        found[name] = function(total_1D)
        reset_1D = found["r"] if name == "n" else None
        lines = _lines(word, name, terms, (state_1D, weight_DD, reset_1D), total_1D)
        parts = " + ".join(
            f"{letter}·{term[0]}" for letter, term in zip(inputs, terms, strict=True)
        )
        from_state = f"r ⊙ (h·U^{name})" if name == "n" else f"h·U^{name}"
        formula = f"{'tanh' if name == 'n' else 'σ'}({parts} + {from_state})"
        result = named_matrix((word,), found[name], name)
        steps.append(make_step(_NAMES[name], formula, result, arithmetic=(tuple(lines),)))
    new_1D = (1 - found["z"]) * found["n"] + found["z"] * state_1D
    lines = [
        f"{word}: h{index} = (1 − {bracket(update)})·{bracket(candidate)} + {bracket(update)}·"
        f"{bracket(old)} = {write_number(new)}"
        for index, (update, candidate, old, new) in enumerate(
            zip(
                *(one[0].tolist() for one in (found["z"], found["n"], state_1D, new_1D)),
                strict=True,
            )
        )
    ]
    steps.append(
        make_step(
            "h",
            "(1 − z) ⊙ n + z ⊙ h before",
            named_matrix((word,), new_1D, "h"),
            arithmetic=(tuple(lines),),
        )
    )
    return _Stepped(tuple(steps), new_1D)


def _lines(
    word: str,
    name: str,
    terms: Sequence[tuple[str, Tensor, Tensor]],
    from_state: tuple[Tensor, Tensor, Tensor | None],
    total_1D: Tensor,
) -> list[str]:
    """Write out each number of a gate or of the candidate, product by product."""
    state_1D, state_weight_DD, reset_1D = from_state
    function = "tanh" if name == "n" else "σ"
    lines = []
    for index, total in enumerate(total_1D[0].tolist()):
        products = [
            write_sum_of_products(vector_1D[0].tolist(), weight_DD[:, index].tolist())
            for _, vector_1D, weight_DD in terms
        ]
        own = write_sum_of_products(state_1D[0].tolist(), state_weight_DD[:, index].tolist())
        if reset_1D is not None:
            own = f"{bracket(float(reset_1D[0, index]))}·({own})"
        value = torch.tanh(total_1D[0, index]) if name == "n" else torch.sigmoid(total_1D[0, index])
        lines.append(
            f"{word}: {name}{index} = {function}({' + '.join([*products, own])}) = "
            f"{function}({write_number(total)}) = {write_number(float(value))}"
        )
    return lines


def _attend(states_MD: Tensor) -> AttentionByHand:
    """Score each encoder state with the small network, and mix them."""
    query_weight, key_weight, energy = map(matrix, RECURRENT_ATTENTION)
    query_1K = matrix(RECURRENT_STATE)[None] @ query_weight
    hidden_MK = torch.tanh(query_1K + states_MD @ key_weight)
    return AttentionByHand(
        ("pizza",),
        _WORDS,
        (hidden_MK @ energy)[None],
        divisor=1.0,
        divisor_words="",
        value_ME=states_MD,
    )


def _attention_part(attention: AttentionByHand, asked_1D: Tensor, states_MD: Tensor) -> Part:
    query_weight, key_weight, energy_K = map(matrix, RECURRENT_ATTENTION)
    query_1K = asked_1D @ query_weight
    key_MK = states_MD @ key_weight
    hidden_MK = torch.tanh(query_1K + key_MK)
    lines = tuple(
        f"{word}: t{index} = tanh({write_number(float(query_1K[0, index]))} + "
        f"{bracket(float(key_K[index]))}) = {write_number(float(hidden_K[index]))}"
        for word, key_K, hidden_K in zip(_WORDS, key_MK, hidden_MK, strict=True)
        for index in range(2)
    )
    scores = tuple(
        f"{word}: score = {write_sum_of_products(hidden_K.tolist(), energy_K.tolist())} = "
        f"{write_number(score)}"
        for word, hidden_K, score in zip(
            _WORDS, hidden_MK, attention.scores_LM[0].tolist(), strict=True
        )
    )
    mixed = stage_steps(attention, formulas={"exponentials": "exp(scores − largest of the row)"})
    kept = tuple(step for step in mixed if step.name not in ("scores", "scaled"))
    return write_part(
        "recurrent-step.attention",
        make_given("s", named_matrix(("pizza",), asked_1D, "s"), "the decoder's state"),
        make_step("states", "the encoder's", named_matrix(_WORDS, states_MD, "h")),
        _given_weight("W^a", query_weight, "s", "for the decoder's state"),
        _given_weight("U^a", key_weight, "h", "for the encoder's states"),
        make_given("v", NamedMatrix(("v",), name_columns("v", 2), energy_K[None])),
        make_product_step("query", "s · W^a", ("pizza",), asked_1D, query_weight, "q"),
        make_product_step("key", "h · U^a", _WORDS, states_MD, key_weight, "k"),
        make_step("hidden", "tanh(q + k)", named_matrix(_WORDS, hidden_MK, "t"), lines=lines),
        make_step(
            "scores",
            "hidden · v",
            NamedMatrix(("pizza",), _WORDS, attention.scores_LM),
            note="One number a word. Nothing is divided: no product of query and key was made.",
            lines=scores,
        ),
        *kept,
        attention=attention,
    )
