"""Drawings of an architecture, made from its configuration: SVG with shapes and counts.

To the right of every arrow is the shape of what flows; to the left, in blue, the number of
parameters of the step that it comes from. S is the number of source tokens, T of target tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from pellucid.arguments import checked
from pellucid.config import ModelConfig
from pellucid.errors import InputError, suggestion
from pellucid.inside.drawings.attention import draw_heads, draw_one_attention
from pellucid.inside.drawings.canvas import Canvas
from pellucid.inside.drawings.counts import Counts
from pellucid.inside.drawings.stacks import draw_inference, draw_training
from pellucid.inside.drawings.unrolled import draw_unit, draw_unrolled
from pellucid.inside.drawings.whole import draw_whole

Drawing = Literal["whole", "attention", "heads", "training", "inference", "unit"]
_DRAWERS: dict[str, tuple[str, Callable[[Canvas, Counts], None]]] = {
    "whole": ("The whole architecture", draw_whole),
    "attention": ("One head of attention", draw_one_attention),
    "heads": ("All heads of one attention, joined and projected", draw_heads),
    "training": ("Training: the encoder feeds every decoder layer", draw_training),
    "inference": ("Inference: one row at a time", draw_inference),
}
_OF_RECURRENT: dict[str, tuple[str, Callable[[Canvas, Counts], None]]] = {
    "whole": ("The recurrent model, unrolled in time", draw_unrolled),
    "unit": ("One step of a gated recurrent unit", draw_unit),
}


@checked
def draw_architecture(
    config: ModelConfig, what: Drawing, *, model: str = "", has_output_bias: bool = False
) -> str:
    """Draw a model from its configuration.

    Args:
        config: sizes and switches; the vocabulary sizes must be set.
        what: ``whole``; ``attention``, one head; ``heads``, their concatenation and W_O;
            ``training`` and ``inference``, how the encoder feeds every layer of the decoder. Of a
            recurrent model ``whole``, unrolled in time, and ``unit``, one step.
        model: its name and hash, for the caption.
        has_output_bias: True if the logits have a bias, which the configuration does not say.

    Returns:
        An SVG document.

    Raises:
        InputError: the drawing does not exist.
    """
    if what not in get_args(Drawing):
        raise InputError(
            f"A drawing must be one of {', '.join(get_args(Drawing))}, but is {what!r}. "
            f"{suggestion(what, get_args(Drawing))}"
        )
    if what == "unit" and not config.is_recurrent:
        raise InputError("The drawing of a unit needs a recurrent model. Draw the whole instead.")
    drawers = _OF_RECURRENT if config.is_recurrent else _DRAWERS
    if what not in drawers:
        raise InputError(
            f"A drawing of a recurrent model must be one of {', '.join(drawers)}, but is "
            f"{what!r}. Name one of these."
        )
    title, draw = drawers[what]
    counts = Counts(config, has_output_bias)
    canvas = Canvas(title)
    draw(canvas, counts)
    named = f" Model {model}." if model else ""
    canvas.notes(
        [
            f"{title}.{named} {counts.total:,} parameters in the whole model.",
            "Right of an arrow: the shape of what flows (S source tokens, T target tokens). Left, "
            "in blue: the parameters of the step it comes from; none where nothing stands.",
        ]
    )
    return canvas.to_svg()
