"""A trace in a terminal: its tokens, one array, the steps of one row, one row of every head.

Arrays are always numbers, with colors if the terminal has them. A map that is wider than the window
continues below, a block of columns at a time. In plain text each row is a sentence, for screen
readers and pipes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from pellucid.inside.record.trace_data import TraceData, row_labels
from pellucid.inside.show.colors import ground_and_ink, scale_end
from pellucid.inside.show.steps import NumberTable
from pellucid.inside.show.view import HeadView, describe_model_of, views_of
from pellucid.terminal.grid import blocks_of_columns, fit, least_width, speakable, write_fixed

MOST_LABEL = 28
LEAST_COLUMN = 6
MOST_COLUMN = 12
"""Cells of a label, and of a column with the space after it."""


def draw_matrix(
    values_LM: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    is_share: bool,
    width: int,
) -> Iterator[Text]:
    """Draw a matrix, a cell for each number.

    Args:
        values_LM: the numbers; −∞ for a cell that the mask forbids.
        rows: the label of each row.
        columns: the label of each column.
        is_share: True for shares from 0 to 1, on the color scale of weights; other numbers go from
            blue through white to orange, with the largest magnitude at the ends.
        width: of the terminal, in cells.

    Yields:
        Lines.
    """
    label_width = min(least_width(rows, MOST_LABEL), max(map(cell_len, rows)))
    digits = _decimals(values_LM, is_share=is_share)
    texts = [[write_fixed(value, digits) for value in row] for row in values_LM.tolist()]
    # All columns are wide enough for the longest number, so that digits stand below each other.
    longest = max(len(text) for row in texts for text in row)
    most = least_width(columns, MOST_COLUMN - 1) + 1
    widths = [min(most, max(LEAST_COLUMN, longest + 1, cell_len(c) + 1)) for c in columns]
    limit = None if is_share else scale_end(values_LM)
    for block in blocks_of_columns(widths, width - label_width - 1):
        head = Text(" " * (label_width + 1))
        for column in block:
            head.append(fit(columns[column], widths[column] - 1) + " ")
        yield head
        for row, label in enumerate(rows):
            line = Text(fit(label, label_width) + " ")
            for column in block:
                value = float(values_LM[row, column])
                text = texts[row][column].rjust(widths[column] - 1) + " "
                line.append(text, _style(value, limit))
            yield line
        yield Text()


def say_matrix(
    values_LM: np.ndarray,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    is_share: bool,
    most: int = 5,
) -> Iterator[str]:
    """Describe a matrix, a sentence for each row: its largest numbers and what is left out.

    Shares are ordered by size. Signed numbers are ordered by magnitude, since the one that speaks
    most against something matters as much as the one that speaks most for it.

    Args:
        values_LM: the numbers.
        rows: the label of each row.
        columns: the label of each column.
        is_share: True if a row's numbers are shares of 1.
        most: the most numbers in a sentence.

    Yields:
        Lines.
    """
    digits = _decimals(values_LM, is_share=is_share)
    for index, (label, values) in enumerate(zip(rows, values_LM, strict=True)):
        # What the mask forbids comes last and is not said.
        ranks = np.where(np.isfinite(values), values if is_share else np.abs(values), -math.inf)
        order = np.argsort(-ranks, kind="stable")[:most]
        said = []
        for column in order:
            if np.isfinite(values[column]):
                number = write_fixed(float(values[column]), digits)
                said.append(f"{columns[column]} {speakable(number)}")
        left = len(columns) - len(said)
        if left and is_share:
            rest = float(values.sum() - values[order].sum())
            said.append(f"the other {left} together {rest:.2f}")
        elif left:
            said.append(f"{left} more")
        yield f"row {index}, {label}: {', '.join(said)}"


def _decimals(values_LM: np.ndarray, *, is_share: bool) -> int:
    sizes_LM = np.abs(values_LM[np.isfinite(values_LM)])
    return 0 if not is_share and sizes_LM.max(initial=0.0) >= 1000 else 2


def _style(value: float, limit: float | None) -> str:
    if value == -math.inf:
        return "dim"
    ground, ink = ground_and_ink(value, limit)
    return f"{ink} on {ground}"


def describe_array(trace: TraceData, name: str, head: int | None) -> tuple[str, ...]:
    """Describe an array: its name, how to read its rows and columns, and its model."""
    if head is not None:
        return HeadView.of(trace, name, head).caption()
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


def matrix_of(
    trace: TraceData, name: str, head: int | None
) -> tuple[np.ndarray, Sequence[str], Sequence[str]]:
    """Return the numbers of an array, and the labels of its rows and columns."""
    if head is not None:
        view = HeadView.of(trace, name, head)
        return view.cells, row_labels(view.rows, view.predicted), view.columns
    values_LD = trace[name]
    numbers = [str(index) for index in range(values_LD.shape[1])]
    part, *_, stage = name.split(".")
    if stage in _ONE_ROW:
        return values_LD, (stage,), numbers
    predicted = trace.predicted_tokens if part == "decoder" else None
    return values_LD, row_labels(trace.query_tokens(part), predicted), numbers


def likeliest(trace: TraceData, most: int = 5) -> Iterator[str]:
    """Describe the logits in sentences, a row at a time: they have too many columns to draw."""
    logits_TV = trace["decoder.logits"].astype(np.float64)
    for row, logits_V in enumerate(logits_TV):
        read = trace.target_tokens[row]
        predicted = trace.predicted_tokens[row]
        chosen = math.exp(trace.log_probabilities[row])
        # Subtracting the logarithm of the sum is the softmax, without overflow.
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
        predicted = trace.predicted_tokens[row]
        likeliest = trace.argmax_tokens[row]
        other = "" if likeliest == predicted else f"; likeliest: {likeliest}"
        yield f"row {row} reads {read} → predicts {predicted}  {probability:.3f}{other}"


def draw_table(table: NumberTable, *, width: int) -> Iterator[Table]:
    """Draw a table, or several if its columns do not fit into the width."""
    cells = [[_cell(cell) for cell in row] for row in table.rows]
    columns = zip(table.header, *cells, strict=True)
    first, *widths = (1 + max(map(cell_len, column)) for column in columns)
    for block in blocks_of_columns(widths, width - first):
        part = Table(box=None, padding=(0, 1, 0, 0))
        part.add_column(table.header[0], no_wrap=True)
        for column in block:
            part.add_column(table.header[column + 1], justify="right", no_wrap=True)
        for row in cells:
            part.add_row(row[0], *(row[column + 1] for column in block))
        yield part


def say_table(table: NumberTable) -> Iterator[str]:
    """Describe a table in sentences."""
    yield f"{table.title}. {table.formula}"
    for row in table.rows:
        cells = []
        for name, cell in zip(table.header, row, strict=True):
            if cell != "":
                said = cell if isinstance(cell, str) else speakable(_cell(cell))
                cells.append(f"{name} {said}".strip())
        yield ", ".join(cells)


def _cell(cell: str | float) -> str:
    return cell if isinstance(cell, str) else write_fixed(cell, 4)


def draw_row(trace: TraceData, row: int) -> list[Text]:
    """Draw what one decoder row attends to, a line for each layer and head of cross-attention.

    The color behind each source token shows its weight. Weights from 0.1 are also written in
    percent, so that the lines can be read without color.

    Args:
        trace: holds the weights.
        row: the decoder row, from 0.
    """
    reads = trace.target_tokens[row]
    predicts = trace.predicted_tokens[row]
    lines = [Text.assemble("reads ", (reads, "bold"), " → predicts ", (predicts, "bold"))]
    for view in views_of(trace):
        if (view.kind, view.stage) != ("cross", "weights"):
            continue
        line = Text(f"  layer {view.layer} head {view.head}  ")
        for token, weight in zip(view.columns, view.cells[row].tolist(), strict=True):
            number = f" {100 * weight:.0f}" if weight >= 0.1 else ""
            ground, ink = ground_and_ink(weight, None)
            line.append(f" {token.replace('▁', '')}{number} ", f"{ink} on {ground}")
        lines.append(line)
    return lines
