"""The picture of a trace where nobody said which one."""

from __future__ import annotations

from pathlib import Path

from pellucid.errors import InputError
from pellucid.inside.figures import draw_grid_figure, draw_trace_figure
from pellucid.inside.trace import Trace
from pellucid.inside.view import views_of

__all__ = ["draw_picture"]


def draw_picture(trace: Trace, path: Path) -> None:
    """Draw one head where the trace holds one, otherwise every layer and head of one kind.

    Of several kinds it is the decoder's cross-attention, of several stages the weights.

    Raises:
        InputError: the trace holds nothing of any head, or the file's ending is not known.
        OutputError: the file cannot be written.
    """
    views = views_of(trace)
    if not views:
        raise InputError(
            "A picture must show an array of heads, but this trace holds none. Ask for a stage "
            "such as weights."
        )
    best = max(views, key=lambda view: (view.stage == "weights", view.kind == "cross"))
    if len(views) == 1:
        draw_trace_figure(
            trace,
            path,
            part=best.part,
            layer=best.layer,
            kind=best.kind,
            head=best.head,
            stage=best.stage,
        )
    else:
        draw_grid_figure(trace, path, part=best.part, kind=best.kind, stage=best.stage)
