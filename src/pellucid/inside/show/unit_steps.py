"""The steps of one gated unit, number by number: from token id to the next state and its token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from torch import Tensor

from pellucid.config import ModelConfig
from pellucid.config.head_address import Part
from pellucid.inside.ask import check_number
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.show.steps import (
    SHOWN,
    NumberTable,
    by_dimension,
    choosing,
    mixing,
    numbers_table,
    weighing,
)
from pellucid.inside.show.view import HeadView
from pellucid.model import GatedCell, RecurrentModel
from pellucid.model.cross_attention import AdditiveAttention

_GATES = ("reset", "update", "candidate")


def follow_unit(
    trace: TraceData,
    model: RecurrentModel,
    row: int,
    *,
    part: Part = "decoder",
    layer: int = 0,
    column: int | None = None,
    shown: int | None = SHOWN,
) -> Iterator[NumberTable]:
    """Follow one position through one step of a layer's unit, and on to the chosen token.

    Args:
        trace: a trace with everything.
        model: the model, for its weights.
        row: the position, from 0.
        part: ``encoder`` or ``decoder``.
        layer: from 0.
        column: the source position whose score is shown dimension by dimension; by default the one
            with the largest weight.
        shown: how many numbers of each vector to show; None for all.

    Raises:
        InputError: the row, column or layer does not exist, or the trace lacks a stage.
    """
    tokens = trace.query_tokens(part)
    check_number("row", row, len(tokens), "this sentence", advice="Name one of its positions.")
    check_number("layer", layer, len(getattr(model, part).layers), f"this model's {part}")
    yield _way_in(trace, model, part, row, shown)
    # Only the first layer of the decoder reads the source.
    has_context = part == "decoder" and layer == 0
    if has_context and model.config.has_attention:
        yield from _attending(trace, model, row, column, shown)
    elif has_context:
        vector = ("the vector of fixed length, c", trace["encoder.vector"][0])
        yield numbers_table(
            "The context of every step", "c = the encoder's last state", [vector], shown
        )
    if part == "encoder":
        yield from _encoder_steps(trace, model, layer, row, shown)
        return
    yield from _decoder_step(trace, model, layer, row, shown)
    if layer == model.config.num_decoder_layers - 1:
        yield _reading_out(trace, model, row, shown)
        yield choosing(trace, row)


def follow_simple_unit(
    trace: TraceData, model: ModelConfig, row: int, *, layer: int = 0, shown: int | None = SHOWN
) -> Iterator[NumberTable]:
    """Follow a row through the unit that a decoder has in the place of self-attention.

    Args:
        trace: a trace with everything.
        model: sizes and switches.
        row: the position of the target, from 0.
        layer: of the decoder, from 0.
        shown: how many numbers of each vector to show; None for all.

    Raises:
        InputError: the row or layer does not exist.
    """
    advice = "Name one of its positions."
    check_number("row", row, len(trace.target_tokens), "this sentence", advice=advice)
    check_number("layer", layer, model.num_decoder_layers, "this model's decoder")
    site = f"decoder.{layer}.recurrent"
    stages = ("input", "norm", "candidate", "forget", "state", "output", "residual")
    at = {stage: trace[f"{site}.{stage}"] for stage in stages if f"{site}.{stage}" in trace.arrays}
    found = [("enters", at["input"][row])]
    if model.norm == "pre":
        found.append(("after the norm, x", at["norm"][row]))
    found.append(("candidate, W x", at["candidate"][row]))
    found.append(("forget gate, f", at["forget"][row]))
    yield numbers_table("Input and gate", "f = σ(W_f x + b)", found, shown)
    forget_D = at["forget"][row]
    before_D = at["state"][row - 1] if row else np.zeros_like(forget_D)
    found = [
        ("state before, c", before_D),
        ("f · c, what is kept", forget_D * before_D),
        ("(1 - f) · W x, what is added", (1 - forget_D) * at["candidate"][row]),
        ("sum: state after, c'", at["state"][row]),
    ]
    yield numbers_table(f"The state of {site}", "c' = f ⊙ c + (1 - f) ⊙ W x", found, shown)
    found = [("output, max(0, c')", at["output"][row])]
    found.append(("plus what entered" if model.residual else "no residual", at["residual"][row]))
    if model.norm == "post":
        found.append(("after the norm", at["norm"][row]))
    yield numbers_table("Out of the unit", "o = max(0, c')", found, shown)
    yield choosing(trace, row)


def _way_in(
    trace: TraceData, model: RecurrentModel, part: Part, row: int, shown: int | None
) -> NumberTable:
    config = model.config
    ids = trace.source_ids if part == "encoder" else trace.target_ids
    scale = f" · √{config.d_model}" if config.embedding_scale == "sqrt" else ""
    name = f"embedding of id {ids[row]}{scale}, x"
    found = [(name, trace[f"{part}.input"][row])]
    return numbers_table("The token's vector", f"x = E[id]{scale}", found, shown)


def _attending(
    trace: TraceData, model: RecurrentModel, row: int, column: int | None, shown: int | None
) -> Iterator[NumberTable]:
    """Show the attention of a decoder's row: query, one score in full, weights, context."""
    view = HeadView.of(trace, "decoder.0.cross.weights", 0)
    column = int(view.cells[row].argmax()) if column is None else column
    advice = "Name one of its positions."
    check_number("column", column, len(view.columns), "this sentence", advice=advice)
    attention = model.decoder.layers[0].cross_attention
    word = view.columns[column]
    query_K = view.at("query")[row]
    key_K = view.at("key")[column]
    vectors = [
        ("state before, s", _state_before(trace, 0, row)),
        ("query", query_K),
        (f"key of {word}", key_K),
        (f"value of {word}", view.at("value")[column]),
    ]
    is_additive = isinstance(attention, AdditiveAttention)
    formula = "q = W s, k = U h, v = h" if is_additive else "q = s, k = v = h"
    yield numbers_table(f"The state before the step asks; {word} answers", formula, vectors, shown)
    if isinstance(attention, AdditiveAttention):
        energy_K = _numbers(attention.energy.weight)[0]
        hidden_K = np.tanh(query_K.astype(np.float64) + key_K)
        columns = {"tanh(qᵢ + kᵢ)": hidden_K, "vᵢ": energy_K, "product": hidden_K * energy_K}
        formula = "vᵀ tanh(q + k)"
    else:
        columns = {"qᵢ kᵢ": query_K.astype(np.float64) * key_K}
        formula = "q · k = Σᵢ qᵢ kᵢ"
    yield by_dimension(
        f"The score of {word}, dimension by dimension",
        formula,
        {"qᵢ": query_K, "kᵢ": key_K, **columns},
        None if shown is None else 2 * shown,
    )
    yield weighing(view, row, "scores", {"scores": "score", "masked": "masked"})
    yield mixing(view, row, shown)


def _state_before(trace: TraceData, layer: int, row: int) -> np.ndarray:
    name, place = ("state", row - 1) if row else ("initial", 0)
    before: np.ndarray = trace[f"decoder.{layer}.recurrent.{name}"][place]
    return before


def _context(trace: TraceData, model: RecurrentModel, row: int) -> np.ndarray:
    if model.config.has_attention:
        context_D: np.ndarray = trace["decoder.0.cross.0.context"][row]
    else:
        context_D = trace["encoder.vector"][0]
    return context_D


def _decoder_step(
    trace: TraceData, model: RecurrentModel, layer: int, row: int, shown: int | None
) -> Iterator[NumberTable]:
    below = "decoder.input" if layer == 0 else f"decoder.{layer - 1}.recurrent.state"
    module = model.decoder.layers[layer]
    parts = []
    if layer == 0:
        from_context_D = _numbers(module.context.weight) @ _context(trace, model, row)
        parts.append(("C c, from the context", from_context_D))
    yield from _unit(
        f"decoder.{layer}",
        module.cell,
        (trace[below][row], _state_before(trace, layer, row)),
        parts,
        {stage: trace[f"decoder.{layer}.recurrent.{stage}"][row] for stage in _STAGES},
        shown,
    )


_STAGES = ("reset", "update", "candidate", "state")


def _encoder_steps(
    trace: TraceData, model: RecurrentModel, layer: int, row: int, shown: int | None
) -> Iterator[NumberTable]:
    below = "encoder.input" if layer == 0 else f"encoder.{layer - 1}.recurrent.state"
    start = 0
    for name, cell in model.encoder.layers[layer].directions():
        width = cell.state.in_features
        own = slice(start, start + width)
        states = trace[f"encoder.{layer}.recurrent.state"][:, own]
        # The other direction comes from the right, and begins at the end.
        at = row - 1 if name == "left_to_right" else row + 1
        before = states[at] if 0 <= at < len(states) else np.zeros(width)
        stages = {stage: trace[f"encoder.{layer}.recurrent.{stage}"][row, own] for stage in _STAGES}
        where = f"encoder.{layer}, {name.replace('_', ' ')}"
        yield from _unit(where, cell, (trace[below][row], before), [], stages, shown)
        start += width


def _unit(
    where: str,
    cell: GatedCell,
    entering: tuple[np.ndarray, np.ndarray],
    parts: Sequence[tuple[str, np.ndarray]],
    stages: dict[str, np.ndarray],
    shown: int | None,
) -> Iterator[NumberTable]:
    """Show one step of a unit: each gate from its parts, then the state from the gates."""
    x_D, state_D = entering
    # Computed here from the weights: a trace holds the results of the gates, not their parts.
    from_input = _numbers(cell.input.weight) @ x_D + _numbers(cell.input.bias)
    from_state = _numbers(cell.state.weight) @ state_D + _numbers(cell.state.bias)
    width = len(state_D)
    for number, gate in enumerate(_GATES):
        # The three gates lie one after the other in one matrix.
        own = slice(number * width, (number + 1) * width)
        own_state = from_state[own]
        said = "U h + c"
        sign = "σ"
        letter = gate[0].replace("u", "z")
        name = f"{gate} gate"
        if gate == "candidate":
            # The reset gate decides how much of the state the candidate sees.
            own_state = stages["reset"] * own_state
            said = "r ⊙ (U h + c)"
            sign = "tanh"
            letter = "n"
            name = gate
        found = [("W x + b, from the input", from_input[own])]
        found += [(what, part[own]) for what, part in parts]
        found.append((f"{said}, from the state", own_state))
        found.append(("sum", sum(part for _, part in found)))
        found.append((f"{sign} of the sum, {letter}", stages[gate]))
        yield numbers_table(f"The {name} of {where}", f"{letter} = {sign}(sum)", found, shown)
    update_D = stages["update"]
    candidate_D = stages["candidate"]
    found = [
        ("state before, h", state_D),
        ("1 - z", 1 - update_D),
        ("(1 - z) · n", (1 - update_D) * candidate_D),
        ("z · h", update_D * state_D),
        ("sum: state after, h'", stages["state"]),
    ]
    yield numbers_table(f"The state of {where}", "h' = (1 - z) ⊙ n + z ⊙ h", found, shown)


def _reading_out(
    trace: TraceData, model: RecurrentModel, row: int, shown: int | None
) -> NumberTable:
    last = f"decoder.{model.config.num_decoder_layers - 1}.recurrent.state"
    found = [
        ("x", trace["decoder.input"][row]),
        ("state after, h'", trace[last][row]),
        ("context, c", _context(trace, model, row)),
        ("readout, o", trace["decoder.readout"][row]),
    ]
    return numbers_table(
        "Input, state and context read out", "o = tanh(R [x; h'; c] + b)", found, shown
    )


def _numbers(weight: Tensor) -> np.ndarray:
    numbers: np.ndarray = weight.detach().double().numpy(force=True)
    return numbers
