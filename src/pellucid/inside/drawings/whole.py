"""The whole architecture: every step of an encoder and a decoder layer, bottom up."""

from __future__ import annotations

from pellucid.inside.drawings.canvas import COUNT, Box, Canvas
from pellucid.inside.drawings.counts import Counts

__all__ = ["draw_whole"]

LEFT, RIGHT, BUS = 170.0, 640.0, 405.0
STEP = 66.0
WIDE, HIGH = 210.0, 36.0
BESIDE = 130.0
"""How far from the middle a residual connection runs."""


def draw_whole(canvas: Canvas, counts: Counts) -> None:
    """Both stacks; a layer of each is drawn in full and stands for all of its kind."""
    encoder = _Column(canvas, counts, LEFT, "S")
    encoder.enter("source", counts.source_embedding, counts.config.source_vocabulary_size)
    encoder.begin_layer()
    encoder.sublayer("self-attention")
    encoder.sublayer("feed-forward")
    encoder.end_layer("encoder", counts.config.num_encoder_layers, counts.encoder_layer)
    encoder.leave()
    decoder = _Column(canvas, counts, RIGHT, "T")
    decoder.enter("target", counts.target_embedding, counts.config.target_vocabulary_size)
    decoder.begin_layer()
    decoder.sublayer("masked self-attention" if counts.config.look_ahead_mask else "self-attention")
    cross = decoder.sublayer("cross-attention")
    decoder.sublayer("feed-forward")
    decoder.end_layer("decoder", counts.config.num_decoder_layers, counts.decoder_layer)
    decoder.leave()
    _draw_output(decoder)
    top = encoder.top - 34
    canvas.arrow(
        [(LEFT, encoder.top), (LEFT, top), (BUS, top), (BUS, cross.y), (cross.left, cross.y)],
        shape=f"S × {counts.config.d_model}",
    )
    canvas.text(LEFT - 7, top + 17, encoder.pending, anchor="end", size=11, color=COUNT)
    canvas.text(LEFT + 8, top - 10, "memory, to every decoder layer", anchor="start", size=11)


class _Column:
    """A stack of boxes that grows upwards; each arrow carries its shape and its count."""

    def __init__(self, canvas: Canvas, counts: Counts, x: float, length: str) -> None:
        self.canvas, self.counts, self.x = canvas, counts, x
        self.shape = f"{length} × {counts.config.d_model}"
        self.length = length
        self.top = 0.0
        self.pending = ""
        self._layer_bottom = 0.0

    def box(self, words: list[str], count: int, *, fill: str = "plain", shape: str = "") -> Box:
        """Add a box and the arrow into it."""
        box = Box(self.x, self.top - STEP + HIGH / 2, WIDE, HIGH)
        self.canvas.arrow(
            [(self.x, self.top), (self.x, box.bottom)],
            shape=shape or self.shape,
            count=self.pending,
        )
        self.canvas.box(box, words, fill=fill)
        self.top = box.top
        self.pending = f"{count:,}" if count else ""
        return box

    def enter(self, side: str, count: int, size: int) -> None:
        """From token ids to the first layer's input."""
        config = self.counts.config
        self.canvas.text(self.x, 10, f"{side}: {self.length} token ids", is_bold=True)
        is_shared = config.tied_embeddings == "all" and side == "target"
        table = f"{size:,} × {config.d_model}" + (", the source's" if is_shared else "")
        self.box([f"{side} embedding", table], count, fill="table", shape=f"{self.length} ids")
        scale = f"× √{config.d_model}" if config.embedding_scale == "sqrt" else ""
        part = "encoder" if side == "source" else "decoder"
        if config.positions != "none":
            kind = config.positions.replace("_", " in ")
            words = [f"{scale} + positions".strip(), kind]
            self.box(words, self.counts.positions(part), fill="table")
        elif scale:
            self.box([scale], 0)

    def begin_layer(self) -> None:
        """Begin the frame of a layer."""
        self.top -= 12
        self.canvas.line([(self.x, self.top + 12), (self.x, self.top)])
        self._layer_bottom = self.top

    def end_layer(self, part: str, num_layers: int, count: int) -> None:
        """Draw the frame of a layer, and say how many there are."""
        bottom, top = self._layer_bottom + 2, self.top - 10
        wide = 2 * BESIDE + 24
        box = Box(self.x, (top + bottom) / 2, wide, bottom - top)
        self.canvas.frame(box, f"{num_layers} × {part} layer")
        self.canvas.text(self.x + 8, top - 9, f"{count:,} each", anchor="start", color=COUNT)

    def sublayer(self, name: str) -> Box:
        """A sub-layer with the norm and the residual connection around it."""
        counts, norm = self.counts, self.counts.config.norm
        start = self.top - 6
        if norm == "pre":
            self.box(["layer norm"], counts.norm)
        if name == "feed-forward":
            config = counts.config
            sizes = f"{config.d_model} → {config.d_ff} {config.activation} → {config.d_model}"
            count = counts.inner + counts.outer
            box = self.box(["feed-forward", sizes], count, fill="network")
        else:
            heads = f"{counts.config.num_heads} heads"
            box = self.box([name, heads], counts.attention, fill="attention")
        if counts.config.residual:
            added = self.box(["add the input"], 0)
            side = self.x - BESIDE if self.length == "S" else self.x + BESIDE
            edge = added.left if self.length == "S" else added.right
            self.canvas.arrow([(self.x, start), (side, start), (side, added.y), (edge, added.y)])
        if norm == "post":
            self.box(["layer norm"], counts.norm)
        return box

    def leave(self) -> None:
        """The norm at the end of a pre-norm stack."""
        self.top -= 30
        self.canvas.line([(self.x, self.top + 30), (self.x, self.top)])
        if self.counts.final_norm:
            self.box(["layer norm"], self.counts.final_norm)


def _draw_output(decoder: _Column) -> None:
    counts = decoder.counts
    config = counts.config
    size = config.target_vocabulary_size
    tied = "" if config.tied_embeddings == "none" else ", the embeddings'"
    words = ["logits", f"{config.d_model} × {size:,}{tied}"]
    decoder.box(words, counts.logits, fill="table")
    shape = f"T × {size:,}"
    decoder.box(["softmax", "a probability for every word"], 0, shape=shape)
    decoder.canvas.arrow([(decoder.x, decoder.top), (decoder.x, decoder.top - 34)], shape=shape)
