"""Drawings of both stacks in training and in inference: the encoder feeds every decoder layer."""

from __future__ import annotations

from collections.abc import Sequence

from pellucid.inside.drawings.canvas import Box, Canvas
from pellucid.inside.drawings.counts import Counts

LEFT = 120.0
RIGHT = 600.0
BUS = 345.0
STEP = 82.0
WIDE = 230.0
_MEMORY = {
    "attention": ("a row sees itself and before", "keys, values before: cached"),
    "ssru": ("a state goes from row to row", "the state before: cached"),
}
"""What a decoder's rows know of earlier ones in training, and in inference."""


def draw_training(canvas: Canvas, counts: Counts) -> None:
    """Draw training: all target rows at once, each reads the right token and predicts the next."""
    has_mask = counts.config.look_ahead_mask
    _draw_encoder(canvas, counts, "every source token at once")
    _, loss = _draw_decoder(
        canvas,
        counts,
        start=["target, one to the right", "<s> y₁ y₂ … : T tokens", "all rows at once"],
        end=["loss", "each row against y₁ y₂ … </s>"],
        rows="T",
        note=_MEMORY[counts.config.decoder][0] if has_mask else "a row sees all",
    )
    canvas.text(RIGHT, loss.top - 14, "gradients flow back to every weight", size=11)


def draw_inference(canvas: Canvas, counts: Counts) -> None:
    """Draw inference: one row a turn, from the token chosen last to the next one."""
    _draw_encoder(canvas, counts, "once for a sentence")
    way_in, chosen = _draw_decoder(
        canvas,
        counts,
        start=["the token chosen last", "at first <s>", "one row a turn"],
        end=["choose a token", "greedy, beam or sampling"],
        rows="1",
        note=_MEMORY[counts.config.decoder][1],
    )
    side = RIGHT + WIDE / 2 + 60
    turn = [(chosen.right, chosen.y), (side, chosen.y), (side, way_in.y), (way_in.right, way_in.y)]
    canvas.arrow(turn, is_dashed=True)
    middle = (chosen.y + way_in.y) / 2
    canvas.text(side + 8, middle - 8, "next turn:", anchor="start", size=11)
    canvas.text(side + 8, middle + 8, "1 token", anchor="start", size=11)


def _draw_encoder(canvas: Canvas, counts: Counts, note: str) -> None:
    """Draw the encoder's layers, and the bus that carries its output to every decoder layer."""
    config = counts.config
    width = f"S × {config.d_model}"
    box = canvas.box(Box(LEFT, 0, WIDE, 54), ["source", "S tokens with </s>", note], fill="table")
    count = counts.source_table + counts.of("encoder.positions", "encoder.input_norm")
    for index in range(config.num_encoder_layers):
        words = [f"encoder layer {index}", "self-attention, feed-forward"]
        box = _stack(canvas, box, 44, words, fill="network", shape=width, count=count)
        count = counts.of("encoder.layers.0")
    top = box.top - 44
    count += counts.of("encoder.norm")
    canvas.rise(LEFT, box.top, top, shape=f"memory: {width}", count=count)
    # One arrow into each decoder layer: all of them read the same memory.
    heights = [-(index + 1) * STEP for index in range(config.num_decoder_layers)]
    for y in heights:
        canvas.arrow([(BUS, y), (RIGHT - WIDE / 2, y)], shape=width)
    ends = [top, *heights]
    canvas.line([(LEFT, top), (BUS, top)])
    canvas.line([(BUS, min(ends)), (BUS, max(ends))])


def _draw_decoder(
    canvas: Canvas,
    counts: Counts,
    *,
    start: Sequence[str],
    end: Sequence[str],
    rows: str,
    note: str,
) -> tuple[Box, Box]:
    """Draw the decoder, from its tokens to the use of its logits; return the first and last box.

    Args:
        canvas: to draw on.
        counts: the parameters of each step.
        start: the words of the first box.
        end: the words of the last box.
        rows: the number of rows that run at once.
        note: a remark in the box of every layer.
    """
    config = counts.config
    parts = "self-, cross-attention, feed-forward"
    if config.decoder == "ssru":
        parts = "unit, cross-attention, feed-forward"
    shape = f"{rows} × {config.d_model}"
    way_in = box = canvas.box(Box(RIGHT, 0, WIDE, 54), start, fill="table")
    count = counts.of("target_embedding", "decoder.positions", "decoder.input_norm")
    for index in range(config.num_decoder_layers):
        words = [f"decoder layer {index}", parts, note]
        box = _stack(canvas, box, 54, words, fill="network", shape=shape, count=count)
        count = counts.of("decoder.layers.0")
    tied = "the embeddings' matrix" if config.tied_embeddings != "none" else "its own matrix"
    count += counts.of("decoder.norm")
    box = _stack(canvas, box, 44, ["logits", tied], fill="table", shape=shape, count=count)
    shape = f"{rows} × {config.target_vocabulary_size:,}"
    return way_in, _stack(canvas, box, 44, end, shape=shape, count=counts.of("output"))


def _stack(
    canvas: Canvas,
    below: Box,
    height: float,
    words: Sequence[str],
    *,
    shape: str,
    count: int,
    fill: str = "plain",
) -> Box:
    """Draw the next box of a column above the last one."""
    box = Box(below.x, below.y - STEP, WIDE, height)
    return canvas.stack(below, box, words, fill=fill, shape=shape, count=count)
