"""The encoder's end feeds every layer of the decoder: in training and in inference."""

from __future__ import annotations

from pellucid.inside.drawings.canvas import Box, Canvas
from pellucid.inside.drawings.counts import Counts

__all__ = ["draw_inference", "draw_training"]

LEFT, RIGHT, BUS = 120.0, 600.0, 345.0
STEP = 82.0
WIDE = 230.0


def draw_training(canvas: Canvas, counts: Counts) -> None:
    """All rows of the target at once, each reading the right token and predicting the next."""
    _draw_encoder(canvas, counts, "every source token at once")
    way_in = canvas.box(
        Box(RIGHT, 0, WIDE, 54),
        ["target, one to the right", "<s> y₁ y₂ … : T tokens", "all rows at once"],
        fill="table",
    )
    note = "a row sees itself and before" if counts.config.look_ahead_mask else "a row sees all"
    top = _draw_decoder(canvas, counts, way_in, rows="T", note=note)
    logits = _draw_logits(canvas, counts, top, "T")
    loss = Box(RIGHT, logits.y - STEP, WIDE, 44)
    canvas.box(loss, ["loss", "each row against y₁ y₂ … </s>"])
    size = counts.config.target_vocabulary_size
    canvas.arrow(
        [(RIGHT, logits.top), (RIGHT, loss.bottom)],
        shape=f"T × {size:,}",
        count=_count(counts.logits),
    )
    canvas.text(RIGHT, loss.top - 14, "gradients flow back to every weight", size=11)


def draw_inference(canvas: Canvas, counts: Counts) -> None:
    """One row a turn: the token chosen last goes in, the next one comes out."""
    _draw_encoder(canvas, counts, "once for a sentence")
    way_in = canvas.box(
        Box(RIGHT, 0, WIDE, 54),
        ["the token chosen last", "at first <s>", "one row a turn"],
        fill="table",
    )
    top = _draw_decoder(canvas, counts, way_in, rows="1", note="keys, values before: cached")
    logits = _draw_logits(canvas, counts, top, "1")
    chosen = Box(RIGHT, logits.y - STEP, WIDE, 44)
    canvas.box(chosen, ["choose a token", "greedy, beam or sampling"])
    size = counts.config.target_vocabulary_size
    canvas.arrow(
        [(RIGHT, logits.top), (RIGHT, chosen.bottom)],
        shape=f"1 × {size:,}",
        count=_count(counts.logits),
    )
    beside = RIGHT + WIDE / 2 + 60
    canvas.arrow(
        [
            (chosen.right, chosen.y),
            (beside, chosen.y),
            (beside, way_in.y),
            (way_in.right, way_in.y),
        ],
        is_dashed=True,
    )
    middle = (chosen.y + way_in.y) / 2
    canvas.text(beside + 8, middle - 8, "next turn:", anchor="start", size=11)
    canvas.text(beside + 8, middle + 8, "1 token", anchor="start", size=11)


def _draw_encoder(canvas: Canvas, counts: Counts, note: str) -> None:
    config = counts.config
    width = f"S × {config.d_model}"
    box = canvas.box(Box(LEFT, 0, WIDE, 54), ["source", "S tokens with </s>", note], fill="table")
    count = counts.source_embedding + counts.positions("encoder")
    for index in range(config.num_encoder_layers):
        layer = Box(LEFT, -(index + 1) * STEP, WIDE, 44)
        words = [f"encoder layer {index}", "self-attention, feed-forward"]
        canvas.box(layer, words, fill="network")
        canvas.arrow([(LEFT, box.top), (LEFT, layer.bottom)], shape=width, count=_count(count))
        box, count = layer, counts.encoder_layer
    top = box.top - 44
    highest = -config.num_decoder_layers * STEP
    canvas.arrow(
        [(LEFT, box.top), (LEFT, top)],
        shape=f"memory: {width}",
        count=_count(count + counts.final_norm),
    )
    for index in range(config.num_decoder_layers):
        y = -(index + 1) * STEP
        canvas.arrow([(BUS, y), (RIGHT - WIDE / 2, y)], shape=width)
    ends = [top, highest, -STEP]
    canvas.line([(LEFT, top), (BUS, top)])
    canvas.line([(BUS, min(ends)), (BUS, max(ends))])


def _draw_decoder(canvas: Canvas, counts: Counts, way_in: Box, *, rows: str, note: str) -> Box:
    config = counts.config
    shape = f"{rows} × {config.d_model}"
    box = way_in
    count = counts.target_embedding + counts.positions("decoder")
    for index in range(config.num_decoder_layers):
        layer = Box(RIGHT, -(index + 1) * STEP, WIDE, 54)
        words = [f"decoder layer {index}", "self-, cross-attention, feed-forward", note]
        canvas.box(layer, words, fill="network")
        canvas.arrow([(RIGHT, box.top), (RIGHT, layer.bottom)], shape=shape, count=_count(count))
        box, count = layer, counts.decoder_layer
    return box


def _draw_logits(canvas: Canvas, counts: Counts, top: Box, rows: str) -> Box:
    config = counts.config
    box = Box(RIGHT, top.y - STEP, WIDE, 44)
    tied = "the embeddings' matrix" if config.tied_embeddings != "none" else "its own matrix"
    canvas.box(box, ["logits", tied], fill="table")
    canvas.arrow(
        [(RIGHT, top.top), (RIGHT, box.bottom)],
        shape=f"{rows} × {config.d_model}",
        count=_count(counts.decoder_layer + counts.final_norm),
    )
    return box


def _count(number: int) -> str:
    return f"{number:,}" if number else ""
