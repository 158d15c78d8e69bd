"""The choice of a trace's picture if none is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pellucid.errors import InputError
from pellucid.inside.record.data import TraceData
from pellucid.inside.show.figures.draw import (
    FIVE_STAGES,
    draw_grid_figure,
    draw_stages_figure,
    draw_trace_figure,
)
from pellucid.inside.show.view import views_of


def draw_picture(trace: TraceData, path: Path) -> None:
    """Draw one head if the trace holds only one, otherwise every layer and head of one kind.

    One head with all stages is drawn as five stages side by side. Of several kinds, the decoder's
    cross-attention is drawn; of several stages, the weights.

    Raises:
        InputError: the trace holds no array of a head, or the file's ending is not known.
        OutputError: the file cannot be written.
    """
    views = views_of(trace)
    if not views:
        raise InputError(
            "The trace holds no array of a head to draw. Ask for a stage such as weights."
        )
    best = max(views, key=lambda view: (view.stage == "weights", view.kind == "cross"))
    one: Any = {"part": best.part, "layer": best.layer, "kind": best.kind, "head": best.head}
    is_one_head = len({(view.site, view.head) for view in views}) == 1
    if is_one_head and {view.stage for view in views} >= set(FIVE_STAGES):
        draw_stages_figure(trace, path, **one)
    elif is_one_head:
        draw_trace_figure(trace, path, **one, stage=best.stage)
    else:
        draw_grid_figure(trace, path, part=best.part, kind=best.kind, stage=best.stage)
