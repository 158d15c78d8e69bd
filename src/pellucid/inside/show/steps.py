"""The steps of one row through one head, number by number: from token id to chosen token."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pellucid.config import ModelConfig
from pellucid.inside.ask import check_number
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.show.view import HeadView

Cell = str | float

SHOWN = 5
"""Numbers of a vector that are shown unless all are asked for."""


@dataclass(frozen=True)
class NumberTable:
    """One step of a row, as a table.

    Attributes:
        title: of the step, in words.
        formula: the same in symbols.
        header: the names of the table's columns.
        rows: the cells: words and numbers.
    """

    title: str
    formula: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def follow_one_row(
    view: HeadView,
    model: ModelConfig,
    row: int,
    *,
    column: int | None = None,
    shown: int | None = SHOWN,
) -> Iterator[NumberTable]:
    """Follow one row through one head, and then on to the token that is chosen.

    Args:
        view: the weights of the head, in a trace with everything.
        model: the model's sizes and switches.
        row: the position that attends, from 0.
        column: the position whose product with the row is shown dimension by dimension; by
            default the one with the largest weight.
        shown: how many numbers of each vector to show; None for all.

    Raises:
        InputError: the row or column does not exist, or the trace lacks a stage.
    """
    advice = "Name one of its positions."
    check_number("row", row, len(view.rows), "this sentence", advice=advice)
    column = int(view.cells[row].argmax()) if column is None else column
    check_number("column", column, len(view.columns), "this sentence", advice=advice)
    yield _way_in(view, model, row, shown)
    yield from _vectors(view, model, row, column, shown)
    root = f"÷ √{model.d_key}" if model.scale_scores else "not scaled"
    divisor = " / √d_k" if model.scale_scores else ""
    # Cross-attention has no order between its two sides, so positions add nothing there.
    kind = model.positions if view.kind == "self" else ""
    added = {"relative": " + q·a", "alibi": " − slope · distance"}.get(kind, "")
    score, masked = (added, "") if kind == "relative" else ("", added)
    stages = {"scores": f"score q·k{score}", "scaled": root, "masked": f"masked{masked}"}
    product = f"(q Kᵀ{score})" if score else "q Kᵀ"
    yield weighing(view, row, f"{product}{divisor}{masked}", stages)
    yield mixing(view, row, shown)
    yield from _way_out(view, model, row, shown)
    if view.part == "decoder":
        yield choosing(view.trace, row)


def _way_in(view: HeadView, model: ModelConfig, row: int, shown: int | None) -> NumberTable:
    trace = view.trace
    part = view.part
    ids = trace.source_ids if part == "encoder" else trace.target_ids
    scale = f" · √{model.d_model}" if model.embedding_scale == "sqrt" else ""
    found = [(f"embedding of id {ids[row]}{scale}", trace[f"{part}.embedding"][row])]
    if model.adds_positions:
        found.append((f"position {row}", trace[f"{part}.positions"][row]))
    # A trace keeps the sum itself only where nothing normalizes it.
    entry = f"sum after {_NORMS[model.norm_kind]}" if model.input_norm else "sum"
    found.append((f"{entry}, enters layer 0", trace[f"{part}.input"][row]))
    entering = trace[f"{view.site}.input"][row]
    found.append((f"enters layer {view.layer}'s {view.kind} attention", entering))
    norm = f"after {_NORMS[model.norm_kind]}"
    if model.norm == "pre":
        found.append((norm, trace[f"{view.site}.norm"][row]))
    position = " + P[position]" if model.adds_positions else ""
    formula = f"E[id]{scale}{position}"
    formula = f"norm({formula})" if model.input_norm else formula
    return numbers_table("The token's vector", f"x = {formula}", found, shown)


_NORMS = {"layer": "layer norm", "rms": "RMS norm"}

_PROJECTIONS = {
    "qkv": "q = x Wq, k = m Wk, v = m Wv",
    "qk": "q = x Wq, k = v = m Wk",
    "none": "q = x, k = v = m, the dimensions of the head",
}
"""Formulas by ``model.projections``."""


def _vectors(
    view: HeadView, model: ModelConfig, row: int, column: int, shown: int | None
) -> Iterator[NumberTable]:
    word = view.columns[column]
    query_K = view.at("query")[row]
    key_K = view.at("key")[column]
    value_E = view.at("value")[column]
    is_turned = model.positions == "rotary" and view.kind == "self"
    yield numbers_table(
        f"Query of the row; key and value of {word}",
        _PROJECTIONS[model.projections] + ("; q and k turned by position" if is_turned else ""),
        [("query", query_K), ("key", key_K), ("value", value_E)],
        shown,
    )
    products_K = query_K.astype(np.float64) * key_K
    yield by_dimension(
        f"Their product, dimension by dimension: {word}",
        "q · k = Σᵢ qᵢ kᵢ",
        {"qᵢ": query_K, "kᵢ": key_K, "qᵢ kᵢ": products_K},
    )


def by_dimension(
    title: str, formula: str, columns: Mapping[str, np.ndarray], most: int | None = None
) -> NumberTable:
    """Show how a score adds up, a row for each dimension.

    Args:
        title: of the table.
        formula: the score in symbols.
        columns: the numbers of each dimension, by their headings; those of the last are added up.
        most: rows to show, the others together in one more; None for all.
    """
    # The last column holds the products, which add up to the score.
    *_, parts_K = columns.values()
    numbers = np.stack([*columns.values(), parts_K.cumsum()], axis=1).tolist()
    cells: list[tuple[Cell, ...]] = [(str(i), *line) for i, line in enumerate(numbers[:most])]
    if rest := numbers[len(cells) :]:
        empty = [""] * (len(columns) - 1)
        together = sum(line[-2] for line in rest)
        cells.append((f"the other {len(rest)}", *empty, together, numbers[-1][-1]))
    return NumberTable(title, formula, ("dimension", *columns, "sum so far"), tuple(cells))


def weighing(view: HeadView, row: int, scores: str, stages: Mapping[str, str]) -> NumberTable:
    """Show how the scores of a row become weights.

    Args:
        view: the weights of the head.
        row: the position that attends.
        scores: their formula.
        stages: the headings of the stages before the softmax, in order; the last is masked.
    """
    before = [view.at(stage)[row].astype(np.float64) for stage in stages]
    masked = before[-1]
    weights = view.at("weights")[row].astype(np.float64)
    largest = masked.max()
    # A row that may attend nowhere has no exponentials.
    exponentials = np.exp(masked - largest) if largest > -math.inf else np.zeros_like(masked)
    numbers = np.stack([*before, exponentials, weights], axis=1).tolist()
    rows: list[tuple[Cell, ...]] = [
        (word, *cells) for word, cells in zip(view.columns, numbers, strict=True)
    ]
    empty = [""] * len(stages)
    rows.append(("sum", *empty, float(exponentials.sum()), float(weights.sum())))
    return NumberTable(
        "Scores become weights",
        f"softmax({scores} + mask); exponentials after taking off the largest",
        ("attends to", *stages.values(), "exponential", "weight"),
        tuple(rows),
    )


def mixing(view: HeadView, row: int, shown: int | None) -> NumberTable:
    """Show the weights times the values, and their sum, the context of a row."""
    found = [
        (f"{float(weight):.4f} · value of {word}", weight * value_E)
        for word, weight, value_E in zip(
            view.columns, view.at("weights")[row], view.at("value"), strict=True
        )
    ]
    found.append(("sum: the context", view.at("context")[row]))
    return numbers_table("Weights times values", "c = Σⱼ αⱼ vⱼ", found, shown)


def _way_out(
    view: HeadView, model: ModelConfig, row: int, shown: int | None
) -> Iterator[NumberTable]:
    trace = view.trace
    site = view.site
    found = [(f"output: {model.num_heads} heads' contexts · W_O", trace[f"{site}.output"][row])]
    word = "plus what entered (residual)" if model.residual else "no residual"
    found.append((word, trace[f"{site}.residual"][row]))
    if model.norm == "post":
        found.append((f"after {_NORMS[model.norm_kind]}", trace[f"{site}.norm"][row]))
    yield numbers_table("Out of the attention", "o = Concat(c₁ … c_h) W_O", found, shown)
    site = f"{view.part}.{view.layer}.feed_forward"
    before, after = (["norm"] if model.norm == when else [] for when in ("pre", "post"))
    gate = ["gate"] if model.gated_feed_forward else []
    stages = ["input", *before, "inner", *gate, "activated", "output", "residual", *after]
    inner = f"{model.activation}(x W₁ + b₁)"
    if gate:
        inner = f"({inner} ⊙ (x V + c))"
    yield numbers_table(
        f"The feed-forward network of layer {view.layer}",
        f"{inner} W₂ + b₂",
        [(stage, trace[f"{site}.{stage}"][row]) for stage in stages],
        shown,
    )
    end = f"{view.part}.norm"
    if end in trace.arrays:
        yield numbers_table(
            f"The last {_NORMS[model.norm_kind]}", "", [(end, trace[end][row])], shown
        )


def choosing(trace: TraceData, row: int) -> NumberTable:
    """Show the logits of a decoder's row as probabilities."""
    logits_V = trace["decoder.logits"][row].astype(np.float64)
    log_sum = float(np.logaddexp.reduce(logits_V))
    chosen = float(math.exp(trace.log_probabilities[row]))
    # The trace holds log-probabilities of the predicted tokens; their logits follow from these.
    logit = trace.log_probabilities[row] + log_sum
    best = float(logits_V.max())
    return NumberTable(
        f"Logits become probabilities: reads {trace.target_tokens[row]}",
        "p = softmax(E x)",
        ("token", "logit", "probability"),
        (
            (f"{trace.predicted_tokens[row]} (follows here)", logit, chosen),
            (f"{trace.argmax_tokens[row]} (likeliest)", best, math.exp(best - log_sum)),
            (f"log of the sum of exponentials of all {len(logits_V):,}", log_sum, 1.0),
        ),
    )


def numbers_table(
    title: str, formula: str, vectors: Sequence[tuple[str, np.ndarray]], shown: int | None
) -> NumberTable:
    """Show the numbers of some vectors, or the first of them, and the norm of each.

    With all numbers, vectors of different widths stand in one table; the shorter have empty cells.
    """
    widest = max(len(vector) for _, vector in vectors)
    if shown is not None:
        # The shortest vector decides, so that no row has an empty cell.
        widest = min(shown, *(len(vector) for _, vector in vectors))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            name,
            *vector[:widest].tolist(),
            *[""] * (widest - len(vector)),
            float(np.linalg.norm(vector.astype(np.float64))),
        )
        for name, vector in vectors
    )
    return NumberTable(title, formula, ("", *map(str, range(widest)), "length"), rows)
