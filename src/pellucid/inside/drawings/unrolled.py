"""Drawings of a recurrent model: unrolled in time, word by word, and one step of its unit."""

from __future__ import annotations

from itertools import pairwise

from pellucid.inside.drawings.canvas import COUNT, Box, Canvas
from pellucid.inside.drawings.counts import Counts

WIDE = 104.0
HIGH = 36.0
COLUMN = 168.0
STEP = 78.0
ASIDE = 14.0
"""The distance of a line from the box that it goes around."""
SOURCE = ("x₀", "x₁", "x₂", "</s>")
TARGET = ("<s>", "y₀", "y₁")
"""Few enough words to read; any number follows the same way."""


def draw_unrolled(canvas: Canvas, counts: Counts) -> None:
    """Draw encoder and decoder side by side, one column a word, states flowing to the right."""
    config = counts.config
    tops = _draw_encoder(canvas, counts)
    last = tops[-1]
    # Some room, for what goes from the encoder to the decoder.
    start = last.x + COLUMN + 64
    units = _draw_decoder(canvas, counts, start)
    width = f"{config.d_model}"
    if config.has_attention:
        count = counts.of("decoder.layers.0.cross_attention")
        middle = (start + units[-1].x) / 2
        place = Box(middle, units[0].y - 3.4 * STEP, units[-1].x - start + WIDE + 4 * ASIDE, 54)
        words = {"additive": "vᵀ tanh(W s + U h)", "dot": "s · h"}[config.recurrent_attention]
        lines = ["attention, asked by the state before", words, "a context for each step"]
        canvas.box(place, lines, fill="attention")
        for box in tops:
            canvas.line([(box.x, box.top), (box.x, place.y)])
        canvas.arrow(
            [(tops[0].x, place.y), (place.left, place.y)], shape=f"all states, S × {width}"
        )
        said = f"{count:,} parameters" if count else "no parameters"
        canvas.text(place.x, place.top - 12, said, size=11, color=COUNT)
        for unit in units:
            side = unit.right + ASIDE
            low = unit.top - ASIDE
            path = [(side, place.bottom), (side, low), (unit.x + 34, low)]
            canvas.arrow([*path, (unit.x + 34, unit.top)])
    else:
        top = units[0].y - 2.2 * STEP
        canvas.line([(last.x, last.top), (last.x, top), (units[-1].right + ASIDE, top)])
        for unit in units:
            side = unit.right + ASIDE
            low = unit.top - ASIDE
            path = [(side, top), (side, low), (unit.x + 34, low)]
            canvas.arrow([*path, (unit.x + 34, unit.top)])
        words = f"one vector of {width} numbers for every step"
        canvas.text((start + last.x) / 2, top - 12, words, size=11)
    bottom = units[0].y
    canvas.arrow(
        [
            (last.right + (2 * ASIDE if config.has_attention else 0), bottom),
            (units[0].left, bottom),
        ],
        shape="first state",
        count=counts.of("decoder.layers.0.initial"),
    )


def _draw_encoder(canvas: Canvas, counts: Counts) -> list[Box]:
    """Draw one column a source word; return the boxes whose states the decoder gets."""
    config = counts.config
    both = config.has_attention
    rows: list[list[Box]] = [[] for _ in range(2 if both else 1)]
    for index, word in enumerate(SOURCE):
        x = index * COLUMN
        canvas.text(x, 30, word, is_bold=True)
        box = canvas.box(Box(x, -20, WIDE, HIGH), ["embedding"], fill="table")
        canvas.rise(x, 20, box.bottom)
        for number, row in enumerate(rows):
            words = ["unit", "reads →" if number == 0 else "reads ←"]
            unit = canvas.box(Box(x, -20 - STEP * (number + 1), WIDE, HIGH), words, fill="network")
            row.append(unit)
        canvas.rise(x, box.top, rows[0][-1].bottom, shape=f"{config.d_model}")
        if both:
            _join(canvas, box, rows[0][-1], rows[1][-1])
    for number, row in enumerate(rows):
        width = config.d_model // 2 if both else config.d_model
        for one, other in pairwise(row):
            ends = [(one.right, one.y), (other.left, other.y)]
            canvas.arrow(ends if number == 0 else ends[::-1], shape=f"{width}")
    layers = config.num_encoder_layers
    each = "" if layers == 1 else f"{layers} layers, {counts.of('encoder.layers.0'):,} each; "
    total = f"{each}{counts.of('encoder'):,} parameters"
    canvas.text(-WIDE / 2, 58, f"encoder: {total}", anchor="start", size=11, color=COUNT)
    return rows[-1]


def _join(canvas: Canvas, word: Box, forward: Box, backward: Box) -> None:
    """Draw the word's way around one unit to the other, and both states' way up."""
    side = word.right + ASIDE
    low = backward.bottom + ASIDE
    canvas.arrow(
        [
            (word.right, word.y),
            (side, word.y),
            (side, low),
            (word.x + 34, low),
            (word.x + 34, backward.bottom),
        ]
    )
    side = word.left - ASIDE
    low = forward.top - ASIDE
    high = backward.top - ASIDE
    canvas.line(
        [(word.x - 34, forward.top), (word.x - 34, low), (side, low), (side, high), (word.x, high)]
    )


def _draw_decoder(canvas: Canvas, counts: Counts, start: float) -> list[Box]:
    """Draw one column a target word; return the units."""
    config = counts.config
    units: list[Box] = []
    for index, word in enumerate(TARGET):
        x = start + index * COLUMN
        canvas.text(x, 30, word, is_bold=True)
        box = canvas.box(Box(x, -20, WIDE, HIGH), ["embedding"], fill="table")
        canvas.rise(x, 20, box.bottom)
        unit = canvas.box(Box(x, -20 - STEP, WIDE, HIGH), ["unit", "writes →"], fill="network")
        canvas.rise(x, box.top, unit.bottom, shape=f"{config.d_model}")
        out = canvas.box(Box(x, -20 - 2 * STEP, WIDE, HIGH), ["readout", "tanh"], fill="network")
        canvas.rise(x, unit.top, out.bottom, shape=f"{config.d_model}")
        answer = f"y{'₀₁₂'[index]}" if index + 1 < len(TARGET) else "</s>"
        canvas.rise(x, out.top, out.top - 30)
        words = f"{answer}, of {config.target_vocabulary_size:,}"
        canvas.text(x - 8, out.top - 22, words, anchor="end", size=11)
        if units:
            ends = [(units[-1].right, unit.y), (unit.left, unit.y)]
            canvas.arrow(ends, shape=f"{config.d_model}")
        units.append(unit)
    layers = config.num_decoder_layers
    each = "" if layers == 1 else f"{layers} layers; "
    words = f"decoder: {each}{counts.of('decoder'):,} parameters"
    canvas.text(start - WIDE / 2, 58, words, anchor="start", size=11, color=COUNT)
    return units


def draw_unit(canvas: Canvas, counts: Counts) -> None:
    """Draw one step: two gates and a candidate, then a mixture of the old state and the new."""
    config = counts.config
    width = config.d_model
    x = Box(0, 0, 150, HIGH)
    state = Box(320, 0, 150, HIGH)
    canvas.box(x, ["input x", "a word's vector"], fill="table")
    canvas.box(state, ["state h", "what was read so far"], fill="table")
    middle = 160.0
    gates = []
    for index, (name, formula) in enumerate(
        (
            ("reset gate r", "σ(W x + U h + b)"),
            ("update gate z", "σ(W x + U h + b)"),
            ("candidate n", "tanh(W x + r ⊙ U h + b)"),
        )
    ):
        box = Box(middle + (index - 1) * 230, -STEP * 1.4, 200, HIGH)
        canvas.box(box, [name, formula], fill="network")
        canvas.arrow([(x.x, x.top), (box.x - 20, box.bottom)])
        canvas.arrow([(state.x, state.top), (box.x + 20, box.bottom)])
        gates.append(box)
    reset, update, candidate = gates
    low = reset.top - 26
    path = [(reset.x, reset.top), (reset.x, low), (candidate.x - 40, low)]
    canvas.arrow([*path, (candidate.x - 40, candidate.top)])
    canvas.text((reset.x + update.x) / 2 + 10, low - 9, "how much of h the candidate sees", size=11)
    new = Box(middle, -STEP * 2.9, 290, HIGH)
    canvas.box(new, ["new state h′", "(1 − z) ⊙ n + z ⊙ h"], fill="plain")
    canvas.arrow([(update.x, update.top), (update.x, new.bottom)], shape="z")
    canvas.arrow([(candidate.x, candidate.top), (candidate.x, new.y), (new.right, new.y)])
    side = candidate.right + 40
    canvas.line([(state.right, state.y), (side, state.y)])
    canvas.line([(side, state.y), (side, new.top - 24)])
    canvas.line([(side, new.top - 24), (new.x + 100, new.top - 24)])
    canvas.arrow([(new.x + 100, new.top - 24), (new.x + 100, new.top)])
    canvas.text(side + 8, -STEP * 1.4, "h, kept where z is 1", anchor="start", size=11)
    words = f"{counts.of('decoder.layers.0.cell'):,} parameters in a unit of {width} numbers"
    canvas.text(new.x, new.top - 44, words, size=11, color=COUNT)
