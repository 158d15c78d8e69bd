"""The worked recurrent step: every number computed again with NumPy."""

from __future__ import annotations

import re

import numpy as np

from pellucid.by_hand.examples.recurrent_step import (
    RECURRENT_ATTENTION,
    RECURRENT_CONTEXT,
    RECURRENT_INPUT,
    RECURRENT_STATE,
    RECURRENT_WEIGHTS,
    recurrent_step,
)
from pellucid.by_hand.sheet import Part, Step

Array = np.ndarray


def sigmoid(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def unit(x: Array, h: Array, context: Array | None = None) -> dict[str, Array]:
    """One step of the unit: gates, candidate and the state after."""
    entering, own = {}, {}
    for name, (input_weight, state_weight) in RECURRENT_WEIGHTS.items():
        entering[name] = x @ np.array(input_weight, float)
        if context is not None:
            entering[name] = entering[name] + context @ np.array(RECURRENT_CONTEXT[name], float)
        own[name] = h @ np.array(state_weight, float)
    reset = sigmoid(entering["r"] + own["r"])
    update = sigmoid(entering["z"] + own["z"])
    candidate = np.tanh(entering["n"] + reset * own["n"])
    state = (1 - update) * candidate + update * h
    return {"reset": reset, "update": update, "candidate": candidate, "h": state}


def step_of(part: Part, name: str) -> Step:
    (found,) = (step for step in part.steps if step.name == name)
    return found


def check(part: Part, expected: dict[str, Array]) -> None:
    """Compare tables, and the last number of each line of arithmetic."""
    for name, numbers in expected.items():
        step = step_of(part, name)
        rows = np.atleast_2d(numbers)
        assert np.abs(step.tables[0].values_LX.numpy() - rows).max() < 1e-12, name
        written = [float(line.rsplit("= ", 1)[1].replace("−", "-")) for line in step.lines]
        if written:
            assert len(written) == rows.size
            assert np.abs(np.array(written) - rows.ravel()).max() < 1e-6, name


def test_every_number_of_the_recurrent_step_equals_numpy() -> None:
    given, first_part, second_part, attention_part, decoder_part = recurrent_step().parts
    words = np.array(RECURRENT_INPUT, float)
    assert step_of(given, "x").tables[0].values_LX.tolist() == words.tolist()
    first = unit(words[0], np.zeros(2))
    check(first_part, first)
    second = unit(words[1], first["h"])
    check(second_part, second)
    memory = np.stack([first["h"], second["h"]])
    query_weight, key_weight, energy = (np.array(each, float) for each in RECURRENT_ATTENTION)
    state = np.array(RECURRENT_STATE)
    query, keys = state @ query_weight, memory @ key_weight
    hidden = np.tanh(query + keys)
    scores = hidden @ energy
    weights = np.exp(scores) / np.exp(scores).sum()
    context = weights @ memory
    numbers = {"query": query, "key": keys, "hidden": hidden, "scores": scores}
    check(attention_part, numbers | {"weights": weights, "context": context})
    check(decoder_part, unit(words[0], state, context))


def test_every_product_of_the_decoder_is_written_out() -> None:
    decoder = recurrent_step().parts[-1]
    line = step_of(decoder, "reset").lines[0]
    # Two numbers of the word, two of the context and two of the state, each times a weight.
    assert line.count("·") == 6
    assert line.startswith("pizza: r0 = σ(1·1 + 0.5·0.5 + ")
    candidate = step_of(decoder, "candidate").lines[0]
    assert re.search(r"\+ 0\.\d+·\(0\.5·2 \+ \(−0\.5\)·0\)\) = tanh\(", candidate)
