"""A drawing of the whole architecture: every step of an encoder and a decoder layer, bottom up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pellucid.inside.drawings.canvas import COUNT, Box, Canvas, in_words
from pellucid.inside.drawings.counts import ATTENTION, IN_LAYER, Counts
from pellucid.model.rotary import IN_ATTENTION

LEFT = 170.0
RIGHT = 640.0
BUS = 405.0
STEP = 66.0
WIDE = 210.0
HIGH = 36.0
UNIT = "recurrent unit (SSRU)"
BESIDE = 130.0
"""The distance of a residual connection from the middle of its column."""


def draw_whole(canvas: Canvas, counts: Counts) -> None:
    """Draw both stacks; one layer of each is drawn in full and stands for all of them."""
    encoder = _Column(canvas, counts, "encoder")
    encoder.draw(["self-attention", "feed-forward"])
    decoder = _Column(canvas, counts, "decoder")
    masked = "masked " if counts.config.look_ahead_mask else ""
    reader = UNIT if counts.config.decoder == "ssru" else f"{masked}self-attention"
    sublayers = [reader, "cross-attention", "feed-forward"]
    _, cross, _ = decoder.draw(sublayers)
    _draw_output(decoder)
    # Above both stacks, so that the line crosses no box.
    top = encoder.top - 34
    canvas.arrow(
        [(LEFT, encoder.top), (LEFT, top), (BUS, top), (BUS, cross.y), (cross.left, cross.y)],
        shape=encoder.shape,
    )
    count = in_words(encoder.pending)
    canvas.text(LEFT - 7, top + 17, count, anchor="end", size=11, color=COUNT)
    canvas.text(LEFT + 8, top - 10, "memory, to every decoder layer", anchor="start", size=11)


class _Column:
    """A column of boxes that grows upwards; each arrow has its shape and its count."""

    def __init__(self, canvas: Canvas, counts: Counts, part: Literal["encoder", "decoder"]) -> None:
        self.canvas = canvas
        self.counts = counts
        self.part = part
        self.x, self.length = (LEFT, "S") if part == "encoder" else (RIGHT, "T")
        self.shape = f"{self.length} × {counts.config.d_model}"
        self.top = 0.0
        self.pending = 0
        """The parameters of the last box, written at the arrow that leaves it."""

    def draw(self, sublayers: Sequence[str]) -> list[Box]:
        """Draw one part of the model, with one layer in full; return its sub-layers' boxes."""
        counts = self.counts
        config = self.counts.config
        if self.part == "encoder":
            self._enter("source", counts.source_table, config.source_vocabulary_size)
            num_layers = config.num_encoder_layers
        else:
            self._enter("target", counts.of("target_embedding"), config.target_vocabulary_size)
            num_layers = config.num_decoder_layers
        count = counts.of(f"{self.part}.layers.0")
        self._lengthen(12)
        bottom = self.top + 2
        boxes = [self._sublayer(name) for name in sublayers]
        top = self.top - 10
        frame = Box(self.x, (top + bottom) / 2, 2 * BESIDE + 24, bottom - top)
        self.canvas.frame(frame, f"{num_layers} × {self.part} layer")
        self.canvas.text(self.x + 8, top - 9, f"{count:,} each", anchor="start", color=COUNT)
        self._lengthen(30)
        # Only models with pre-norm have one.
        if last_norm := counts.of(f"{self.part}.norm"):
            self.box([f"{self.counts.config.norm_kind} norm"], last_norm)
        return boxes

    def box(self, words: Sequence[str], count: int, *, fill: str = "plain", shape: str = "") -> Box:
        """Add a box and the arrow into it."""
        box = Box(self.x, self.top - STEP + HIGH / 2, WIDE, HIGH)
        shape = shape or self.shape
        self.canvas.rise(self.x, self.top, box.bottom, shape=shape, count=self.pending)
        self.canvas.box(box, words, fill=fill)
        self.top = box.top
        self.pending = count
        return box

    def _lengthen(self, by: float) -> None:
        """Draw a piece of line without a head."""
        self.canvas.line([(self.x, self.top), (self.x, self.top - by)])
        self.top -= by

    def _enter(self, side: str, count: int, size: int) -> None:
        """Draw the way from token ids to the first layer's input."""
        config = self.counts.config
        self.canvas.text(self.x, 10, f"{side}: {self.length} token ids", is_bold=True)
        # A table that both sides share is counted once, at the source.
        is_shared = config.tied_embeddings == "all" and side == "target"
        table = f"{size:,} × {config.d_model}" + (", the source's" if is_shared else "")
        self.box([f"{side} embedding", table], count, fill="table", shape=f"{self.length} ids")
        scale = f"× √{config.d_model}" if config.embedding_scale == "sqrt" else ""
        if config.adds_positions:
            kind = config.positions.replace("_", " in ")
            words = [f"{scale} + positions".strip(), kind]
            self.box(words, self.counts.of(f"{self.part}.positions"), fill="table")
        elif scale:
            self.box([scale], 0)
        if input_norm := self.counts.of(f"{self.part}.input_norm"):
            self.box([f"{config.norm_kind} norm"], input_norm)

    def _sublayer(self, name: str) -> Box:
        """Draw a sub-layer with the norm and the residual connection around it."""
        counts = self.counts
        norm = self.counts.config.norm
        norm_count = counts.of(f"{ATTENTION}_norm")
        start = self.top - 6
        if norm == "pre":
            self.box([f"{counts.config.norm_kind} norm"], norm_count)
        if name == "feed-forward":
            config = counts.config
            gate = " gated" if config.gated_feed_forward else ""
            sizes = f"{config.d_model} → {config.d_ff} {config.activation}{gate} → {config.d_model}"
            count = counts.of(f"{IN_LAYER}.feed_forward")
            box = self.box(["feed-forward", sizes], count, fill="network")
        elif name == UNIT:
            count = counts.of("decoder.layers.0.recurrent")
            box = self.box([name, "f ⊙ state + (1 − f) ⊙ W x"], count, fill="network")
        else:
            heads = f"{counts.config.num_heads} heads"
            if groups := counts.config.num_key_value_heads:
                heads += f", {groups} of keys"
            if name.endswith("self-attention") and counts.config.positions in IN_ATTENTION:
                heads += f", {counts.config.positions}"
            box = self.box([name, heads], counts.of(ATTENTION), fill="attention")
        if counts.config.residual:
            added = self.box(["add the input"], 0)
            # Residual connections run on the outer sides, where nothing else is.
            side = self.x - BESIDE if self.length == "S" else self.x + BESIDE
            edge = added.left if self.length == "S" else added.right
            self.canvas.arrow([(self.x, start), (side, start), (side, added.y), (edge, added.y)])
        if norm == "post":
            self.box([f"{counts.config.norm_kind} norm"], norm_count)
        return box


def _draw_output(decoder: _Column) -> None:
    counts = decoder.counts
    config = counts.config
    size = config.target_vocabulary_size
    tied = "" if config.tied_embeddings == "none" else ", the embeddings'"
    words = ["logits", f"{config.d_model} × {size:,}{tied}"]
    decoder.box(words, counts.of("output"), fill="table")
    shape = f"T × {size:,}"
    decoder.box(["softmax", "a probability for every word"], 0, shape=shape)
    decoder.canvas.arrow([(decoder.x, decoder.top), (decoder.x, decoder.top - 34)], shape=shape)
