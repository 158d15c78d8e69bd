"""Attention in a terminal: colors where there are any, numbers always."""

from __future__ import annotations

from rich.text import Text

from pellucid.inside.color import ink_on, shade
from pellucid.inside.cross import CrossAttention

__all__ = ["draw_row"]


def draw_row(attention: CrossAttention, row: int) -> list[Text]:
    """Draw what one decoder row attends to, a line for each layer and head.

    Every source token is shown on the color of its weight; the largest weights also as a number
    in per cent, so that the lines can be read without color.

    Args:
        attention: the weights.
        row: the decoder row, from 0.
    """
    lines = [
        Text.assemble(
            "reads ",
            (attention.read_tokens[row], "bold"),
            " → predicts ",
            (attention.predicted_tokens[row], "bold"),
        )
    ]
    depth, num_heads = attention.weights_NHTS.shape[:2]
    for layer in range(depth):
        for head in range(num_heads):
            line = Text(f"  layer {layer} head {head}  ")
            weights = attention.weights_NHTS[layer, head, row].tolist()
            for token, weight in zip(attention.source_tokens, weights, strict=True):
                number = f" {100 * weight:.0f}" if weight >= 0.1 else ""
                color = shade(weight)
                ground = "#{:02x}{:02x}{:02x}".format(*color)
                line.append(f" {token.replace('▁', '')}{number} ", f"{ink_on(color)} on {ground}")
            lines.append(line)
    return lines
