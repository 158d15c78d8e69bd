"""A trace in a terminal: its tokens, one array, and the steps of one row."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from pellucid.inside.record.data import TraceData, row_labels
from pellucid.inside.show.steps import Step
from pellucid.inside.show.terminal.map import draw_matrix, say_matrix
from pellucid.inside.show.view import View, describe_model_of


def describe_array(trace: TraceData, name: str, head: int | None) -> tuple[str, ...]:
    """Describe an array: its name, how to read its rows and columns, and its model."""
    if head is not None:
        return View.of(trace, name, head).caption()
    about = describe_model_of(trace)
    part, *place, stage = name.split(".")
    where = f"{part} layer {place[0]}, {place[1].replace('_', '-')}" if place else part
    rows = (
        "A decoder row reads one token → predicts the next" if part == "decoder" else "Rows: tokens"
    )
    if stage in _ONE_ROW:
        return (f"{stage}, {where}.", f"{_ONE_ROW[stage]} Columns: dimensions.", about)
    columns = "probabilities" if stage == "logits" else "dimensions"
    return (f"{stage}, {where}.", f"{rows}; columns: {columns}.", about)


_ONE_ROW = {
    "vector": "One row: the encoder's last state, in each direction that it reads.",
    "initial": "One row: the state before the first step.",
}


def draw_array(trace: TraceData, name: str, head: int | None, *, width: int) -> Iterator[Text]:
    """Draw an array: the map of a head, or the numbers of each position."""
    if name == "decoder.logits":
        yield from map(Text, _likeliest(trace))
        return
    values, rows, columns = _matrix(trace, name, head)
    yield from draw_matrix(values, rows, columns, is_share=name.endswith(".weights"), width=width)


def say_array(trace: TraceData, name: str, head: int | None) -> Iterator[str]:
    """Describe an array in sentences, a row at a time."""
    if name == "decoder.logits":
        yield from _likeliest(trace)
        return
    values, rows, columns = _matrix(trace, name, head)
    yield from say_matrix(values, rows, columns, is_share=name.endswith(".weights"))


def _matrix(
    trace: TraceData, name: str, head: int | None
) -> tuple[np.ndarray, Sequence[str], Sequence[str]]:
    if head is not None:
        view = View.of(trace, name, head)
        return view.cells, row_labels(view.rows, view.predicted), view.columns
    part = name.split(".")[0]
    values_LD = trace.get(name)
    if name.endswith((".vector", ".initial")):
        numbers = [str(index) for index in range(values_LD.shape[1])]
        return values_LD, (name.rpartition(".")[2],), numbers
    predicted = trace.predicted_tokens if part == "decoder" else None
    numbers = [str(index) for index in range(values_LD.shape[1])]
    return values_LD, row_labels(trace.query_tokens(part), predicted), numbers


def _likeliest(trace: TraceData, most: int = 5) -> Iterator[str]:
    logits_TV = trace.get("decoder.logits").astype(np.float64)
    for row, logits_V in enumerate(logits_TV):
        read, predicted = trace.target_tokens[row], trace.predicted_tokens[row]
        chosen = math.exp(trace.log_probabilities[row])
        found = np.sort(logits_V)[::-1][:most] - np.logaddexp.reduce(logits_V)
        largest = ", ".join(f"{math.exp(value):.3f}" for value in found)
        yield (
            f"reads {read} → predicts {predicted} {chosen:.3f}; likeliest "
            f"{trace.argmax_tokens[row]}; the {most} largest probabilities: {largest}"
        )


def draw_tokens(trace: TraceData) -> Iterator[str]:
    """List what each decoder row reads and predicts, with the probability."""
    for row, read in enumerate(trace.target_tokens):
        probability = math.exp(trace.log_probabilities[row])
        predicted, likeliest = trace.predicted_tokens[row], trace.argmax_tokens[row]
        other = "" if likeliest == predicted else f"; likeliest: {likeliest}"
        yield f"row {row} reads {read} → predicts {predicted}  {probability:.3f}{other}"


def draw_step(step: Step, *, width: int) -> Iterator[Table]:
    """Draw one step as a table, or as several if its columns do not fit into the width."""
    cells = [step.header, *(tuple(map(_cell, row)) for row in step.rows)]
    widths = [1 + max(map(cell_len, column)) for column in zip(*cells, strict=True)]
    columns = list(range(1, len(widths)))
    while columns:
        fitting = 0
        left = width - widths[0]
        while fitting < len(columns) and left >= widths[columns[fitting]]:
            left -= widths[columns[fitting]]
            fitting += 1
        taken, columns = columns[: max(fitting, 1)], columns[max(fitting, 1) :]
        table = Table(box=None, padding=(0, 1, 0, 0))
        for index in (0, *taken):
            name = step.header[index]
            table.add_column(name, justify="right" if index else "left", no_wrap=True)
        for row in cells[1:]:
            table.add_row(*(row[index] for index in (0, *taken)))
        yield table


def say_step(step: Step) -> Iterator[str]:
    """Describe one step in sentences."""
    yield f"{step.title}. {step.formula}"
    for row in step.rows:
        cells = [
            f"{name} {_cell(cell)}".strip()
            for name, cell in zip(step.header, row, strict=True)
            if cell != ""
        ]
        yield ", ".join(cells)


def _cell(cell: str | float) -> str:
    if isinstance(cell, str):
        return cell
    return "-inf" if cell == -math.inf else f"{cell:.4f}"
