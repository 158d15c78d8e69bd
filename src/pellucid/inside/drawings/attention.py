"""Drawings of one head of attention, and of all heads side by side."""

from __future__ import annotations

import math

from pellucid.inside.drawings.canvas import Box, Canvas
from pellucid.inside.drawings.counts import ATTENTION, Counts

STEP = 76
MOST_HEADS = 8


def draw_one_attention(canvas: Canvas, counts: Counts) -> None:
    """Draw the five stages of one head, from two inputs to context vectors."""
    config = counts.config
    width = config.d_model
    d_key = config.d_key
    d_value = config.d_value
    heads = config.num_heads
    columns = {"Q": 130.0, "K": 330.0, "V": 530.0}
    start = 0.0
    first = canvas.box(Box(130, start, 170, 40), ["L tokens that attend", f"L × {width}"])
    second = canvas.box(Box(430, start, 370, 40), ["M tokens attended to", f"M × {width}"])
    projected = start - STEP - 8
    query, key, value = (counts.of(f"{ATTENTION}.{name}") for name in ("query", "key", "value"))
    sizes = {"Q": (query, d_key), "K": (key, d_key), "V": (value, d_value)}
    owners = {"Q": heads, "K": config.num_key_value_heads or heads}
    # Keys and values are shared by the same groups of heads.
    owners["V"] = owners["K"]
    tops: dict[str, Box] = {}
    for name, x in columns.items():
        source = first if name == "Q" else second
        count, per_head = sizes[name]
        words = [f"W_{name}", f"{width} × {per_head}"]
        # A model without this projection: keys serve as values, or everything is the input.
        if not count:
            is_keys = (name, config.projections) == ("V", "qk")
            words = ["the keys" if is_keys else "a block of the input"]
        shape = f"{'L' if name == 'Q' else 'M'} × {width}"
        tops[name] = canvas.stack(
            source, Box(x, projected, 150, 44), words, fill="attention", shape=shape
        )
    y = projected - STEP - 8
    product = {
        "rotary": ["Q Kᵀ", "both turned by position"],
        "relative": ["Q (K + A)ᵀ", "A: one vector for each distance"],
    }.get(config.positions, ["Q Kᵀ", "every query by every key"])
    scores = canvas.box(Box(230, y, 350, 40), product)
    for name, letter in (("Q", "L"), ("K", "M")):
        shape = f"{name}: {letter} × {d_key}"
        count = sizes[name][0] // owners[name]
        canvas.rise(columns[name], tops[name].top, scores.bottom, shape=shape, count=count)
    last, mixed = _draw_stages(canvas, counts, scores)
    shape = f"V: M × {d_value}"
    count = sizes["V"][0] // owners["V"]
    canvas.rise(columns["V"], tops["V"].top, mixed.bottom, shape=shape, count=count)
    canvas.rise(last.x, last.top, mixed.bottom, shape="weights: L × M")
    canvas.rise(mixed.x, mixed.top, mixed.top - 46, shape=f"context: L × {d_value}")
    canvas.text(
        mixed.x,
        mixed.top - 56,
        "encoder: L = M = S · decoder: L = M = T · cross-attention: L = T, M = S",
    )


def _draw_stages(canvas: Canvas, counts: Counts, scores: Box) -> tuple[Box, Box]:
    """Draw scaling, mask and softmax above the scores; return the boxes of softmax and mixture."""
    config = counts.config
    steps = []
    if config.scale_scores:
        root = f"√{config.d_key} = {math.sqrt(config.d_key):.3g}"
        steps.append(("scores", ["÷ √d_k", f"÷ {root}"], False))
    masks = "padding, later tokens" if config.look_ahead_mask else "padding"
    before = "scaled" if config.scale_scores else "scores"
    if config.positions == "alibi":
        steps.append((before, ["bias", "− slope · distance"], False))
    steps.append((before, ["mask", f"−∞ at {masks}"], True))
    steps.append(("masked", ["softmax", "of each row"], False))
    below = scores
    for shape, words, is_dashed in steps:
        box = Box(scores.x, below.y - STEP, 200, 40)
        below = canvas.stack(below, box, words, is_dashed=is_dashed, shape=f"{shape}: L × M")
    mixed = Box(380, below.y - STEP, 450, 40)
    canvas.box(mixed, ["weights · V", "a mixture of the values"], fill="attention")
    return below, mixed


def draw_heads(canvas: Canvas, counts: Counts) -> None:
    """Draw the heads of one attention, their concatenation and the projection after it."""
    config = counts.config
    heads = config.num_heads
    d_value = config.d_value
    width = config.d_model
    # More do not fit; the last head shows how many there are.
    shown = list(range(heads)) if heads <= MOST_HEADS else [*range(MOST_HEADS - 2), -1, heads - 1]
    step = 118
    wide = step * len(shown) - 18
    middle = wide / 2
    source = canvas.box(
        Box(middle, 0, max(wide, 300), 40), ["the layer's input", f"L × {width} and M × {width}"]
    )
    owners = config.num_key_value_heads or heads
    each = counts.of(f"{ATTENTION}.query") // heads
    each += counts.of(f"{ATTENTION}.key", f"{ATTENTION}.value") // owners
    joined = Box(middle, -230, max(wide, 300), 44)
    for index, head in enumerate(shown):
        x = 50 + index * step
        if head < 0:
            canvas.text(x, -110, "⋯", size=22)
            continue
        words = [f"head {head}", f"d_k {config.d_key}", f"d_v {d_value}"]
        box = Box(x, -110, 100, 50)
        canvas.stack(source, box, words, fill="attention", shape=f"L × {width}")
        canvas.rise(x, box.top, joined.bottom, shape=f"L×{d_value}", count=each)
    size = heads * d_value
    canvas.box(joined, ["concatenation", f"{heads} heads × {d_value} = {size}"])
    words = ["W_O", f"{size} × {width}"]
    output = Box(middle, -340, 260, 44)
    canvas.stack(joined, output, words, fill="attention", shape=f"L × {size}")
    canvas.rise(
        middle,
        output.top,
        output.top - 60,
        shape=f"L × {width}",
        count=counts.of(f"{ATTENTION}.output"),
    )
