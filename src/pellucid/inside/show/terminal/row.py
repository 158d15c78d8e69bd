"""One decoder row's cross-attention in a terminal, a line for each layer and head."""

from __future__ import annotations

from rich.text import Text

from pellucid.inside.record.data import TraceData
from pellucid.inside.show.colors import ground_and_ink
from pellucid.inside.show.view import views_of


def draw_row(trace: TraceData, row: int) -> list[Text]:
    """Draw what one decoder row attends to, a line for each layer and head of cross-attention.

    The color behind each source token shows its weight. Weights from 0.1 are also written in
    percent, so that the lines can be read without color.

    Args:
        trace: holds the weights.
        row: the decoder row, from 0.
    """
    reads, predicts = trace.target_tokens[row], trace.predicted_tokens[row]
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
