"""One row followed through one head, number by number: from token index to chosen token."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from pellucid.config import ModelConfig
from pellucid.errors import InputError
from pellucid.inside.record.data import TraceData

__all__ = ["Place", "Step", "follow"]

Cell = str | float


@dataclass(frozen=True)
class Place:
    """Which row of which head is followed.

    Attributes:
        part: ``encoder`` or ``decoder``.
        layer: from 0.
        kind: ``self`` or ``cross``.
        head: from 0.
        row: the position that attends, from 0.
    """

    part: str
    layer: int
    kind: str
    head: int
    row: int

    @property
    def site(self) -> str:
        """``decoder.1.cross``."""
        return f"{self.part}.{self.layer}.{self.kind}"


@dataclass(frozen=True)
class Step:
    """One thing that happens to a row.

    Attributes:
        title: what.
        formula: the same in symbols.
        header: what the columns of the table hold.
        rows: the numbers.
    """

    title: str
    formula: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def follow(
    trace: TraceData, model: ModelConfig, place: Place, *, column: int | None = None
) -> Iterator[Step]:
    """Follow one row through one head, and then on to the token that is chosen.

    Args:
        trace: with everything.
        model: the model's sizes and switches.
        place: the row and the head.
        column: the position attended to whose product is shown dimension by dimension; the one
            with the largest weight unless given.

    Raises:
        InputError: there is no such row or column, or the trace lacks a stage.
    """
    rows = trace.query_tokens(place.part)
    columns = trace.key_tokens(place.part, place.kind)
    _check_number("row", place.row, len(rows))
    weights_M = trace.head(f"{place.site}.weights", place.head)[place.row]
    column = int(weights_M.argmax()) if column is None else column
    _check_number("column", column, len(columns))
    yield from _way_in(trace, model, place)
    yield from _vectors(trace, model, place, columns[column], column)
    yield _weighing(trace, model, place, columns)
    yield _mixing(trace, place, columns)
    yield from _way_out(trace, model, place)
    if place.part == "decoder":
        yield _choosing(trace, place.row)


def _check_number(what: str, number: int, count: int) -> None:
    if not 0 <= number < count:
        raise InputError(
            f"A {what} must be from 0 to {count - 1} for this sentence, but is {number}."
        )


def _way_in(trace: TraceData, model: ModelConfig, place: Place) -> Iterator[Step]:
    part, row = place.part, place.row
    ids = trace.source_ids if part == "encoder" else trace.target_ids
    scale = f" · √{model.d_model}" if model.embedding_scale == "sqrt" else ""
    found = [(f"embedding of id {ids[row]}{scale}", trace.get(f"{part}.embedding")[row])]
    if model.positions != "none":
        found.append((f"position {row}", trace.get(f"{part}.positions")[row]))
    found.append(("sum, enters layer 0", trace.get(f"{part}.input")[row]))
    entering = trace.get(f"{place.site}.input")[row]
    found.append((f"enters layer {place.layer}'s {place.kind} attention", entering))
    if model.norm == "pre":
        found.append(("after layer norm", trace.get(f"{place.site}.norm")[row]))
    place_term = " + P[position]" if model.positions != "none" else ""
    yield _table("The token's vector", f"x = E[id]{scale}{place_term}", found)


_PROJECTIONS = {
    "qkv": "q = x Wq, k = m Wk, v = m Wv",
    "qk": "q = x Wq, k = v = m Wk",
    "none": "q = x, k = v = m, the dimensions of the head",
}
"""By ``model.projections``."""


def _vectors(
    trace: TraceData, model: ModelConfig, place: Place, word: str, column: int
) -> Iterator[Step]:
    query_K = trace.head(f"{place.site}.query", place.head)[place.row]
    key_K = trace.head(f"{place.site}.key", place.head)[column]
    value_E = trace.head(f"{place.site}.value", place.head)[column]
    yield _table(
        f"Query of the row; key and value of {word}",
        _PROJECTIONS[model.projections],
        [("query", query_K), ("key", key_K), ("value", value_E)],
    )
    products = query_K.astype(np.float64) * key_K
    yield Step(
        f"Their product, dimension by dimension: {word}",
        "q · k = Σᵢ qᵢ kᵢ",
        ("dimension", "qᵢ", "kᵢ", "qᵢ kᵢ", "sum so far"),
        tuple(
            (str(index), float(q), float(k), float(product), float(total))
            for index, (q, k, product, total) in enumerate(
                zip(query_K, key_K, products, products.cumsum(), strict=True)
            )
        ),
    )


def _weighing(trace: TraceData, model: ModelConfig, place: Place, columns: Sequence[str]) -> Step:
    stages = {
        stage: trace.head(f"{place.site}.{stage}", place.head)[place.row].astype(np.float64)
        for stage in ("scores", "scaled", "masked", "weights")
    }
    largest = stages["masked"].max()
    exponentials = np.zeros_like(stages["masked"])
    if largest > -math.inf:
        exponentials = np.exp(stages["masked"] - largest)
    rows: list[tuple[Cell, ...]] = [
        (
            word,
            float(stages["scores"][index]),
            float(stages["scaled"][index]),
            float(stages["masked"][index]),
            float(exponentials[index]),
            float(stages["weights"][index]),
        )
        for index, word in enumerate(columns)
    ]
    rows.append(("sum", "", "", "", float(exponentials.sum()), float(stages["weights"].sum())))
    root = f"÷ √{model.d_key}" if model.scale_scores else "not scaled"
    divisor = " / √d_k" if model.scale_scores else ""
    return Step(
        "Scores become weights",
        f"softmax(q Kᵀ{divisor} + mask); exponentials after taking off the largest",
        ("attends to", "score q·k", root, "masked", "exponential", "weight"),
        tuple(rows),
    )


def _mixing(trace: TraceData, place: Place, columns: Sequence[str]) -> Step:
    weights_M = trace.head(f"{place.site}.weights", place.head)[place.row]
    value_ME = trace.head(f"{place.site}.value", place.head)
    context_E = trace.head(f"{place.site}.context", place.head)[place.row]
    found = [
        (f"{float(weights_M[index]):.4f} · value of {word}", weights_M[index] * value_ME[index])
        for index, word in enumerate(columns)
    ]
    return _table("Weights times values", "c = Σⱼ αⱼ vⱼ", [*found, ("sum: the context", context_E)])


def _way_out(trace: TraceData, model: ModelConfig, place: Place) -> Iterator[Step]:
    site, row = place.site, place.row
    found = [(f"output: {model.num_heads} heads' contexts · W_O", trace.get(f"{site}.output")[row])]
    word = "plus what entered (residual)" if model.residual else "no residual"
    found.append((word, trace.get(f"{site}.residual")[row]))
    if model.norm == "post":
        found.append(("after layer norm", trace.get(f"{site}.norm")[row]))
    yield _table("Out of the attention", "o = Concat(c₁ … c_h) W_O", found)
    site = f"{place.part}.{place.layer}.feed_forward"
    stages = ["input", "norm", "inner", "activated", "output", "residual"]
    if model.norm != "pre":
        stages.remove("norm")
    if model.norm == "post":
        stages.append("norm")
    yield _table(
        f"The feed-forward network of layer {place.layer}",
        f"{model.activation}(x W₁ + b₁) W₂ + b₂",
        [(stage, trace.get(f"{site}.{stage}")[row]) for stage in stages],
    )
    end = f"{place.part}.norm"
    if end in trace.arrays:
        yield _table("The last layer norm", "", [(end, trace.get(end)[row])])


def _choosing(trace: TraceData, row: int) -> Step:
    logits_V = trace.get("decoder.logits")[row].astype(np.float64)
    log_sum = float(np.logaddexp.reduce(logits_V))
    chosen = float(math.exp(trace.log_probabilities[row]))
    logit = trace.log_probabilities[row] + log_sum
    best = float(logits_V.max())
    return Step(
        f"Logits become probabilities: reads {trace.target_tokens[row]}",
        "p = softmax(E x)",
        ("token", "logit", "probability"),
        (
            (f"{trace.predicted_tokens[row]} (follows here)", logit, chosen),
            (f"{trace.argmax_tokens[row]} (likeliest)", best, math.exp(best - log_sum)),
            (f"log of the sum of exponentials of all {len(logits_V):,}", log_sum, 1.0),
        ),
    )


SHOWN = 5


def _table(title: str, formula: str, vectors: Sequence[tuple[str, np.ndarray]]) -> Step:
    """The first numbers of some vectors, and the length of each."""
    shown = min(SHOWN, *(len(vector) for _, vector in vectors))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (name, *vector[:shown].tolist(), float(np.linalg.norm(vector.astype(np.float64))))
        for name, vector in vectors
    )
    numbers = tuple(str(index) for index in range(shown))
    return Step(title, formula, ("", *numbers, "length"), rows)
