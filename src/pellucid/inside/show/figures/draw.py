"""Figures of attention, fit for a paper: SVG, PNG or PDF by the file's ending.

Everything is laid out in inches by the lengths of the words, so that sentences of one token and of
sixty are equally readable. Colors are those of `pellucid.inside.show.colors`. Every figure has a
caption: model, place, stage, convention, decoding and precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pellucid.errors import InputError
from pellucid.inside.heads.compare import MapDifference, compare_maps
from pellucid.inside.record.trace_data import TraceData
from pellucid.inside.show.colors import scale_end
from pellucid.inside.show.figures.panels import (
    MOST_NUMBERS,
    MapPanel,
    PanelSizes,
    draw_panel,
    draw_scale,
    panel_of,
    reduced,
    room_of,
    side_of,
    sizes_of_one,
)
from pellucid.inside.show.figures.style import (
    LINE,
    MARGIN,
    Lettering,
    captioned,
    check_ending,
)
from pellucid.inside.show.view import SPECIAL_TOKENS, HeadView, describe_model_of, views_of
from pellucid.terminal.text import percent

FIVE_STAGES = ("scores", "scaled", "masked", "weights", "context")


def draw_trace_figure(
    trace: TraceData,
    path: str | Path,
    *,
    part: str,
    layer: int,
    kind: str,
    head: int,
    stage: str = "weights",
) -> None:
    """Draw one head: a map with numbers in its cells.

    Args:
        trace: holds the array.
        path: the file, ending in ``.svg``, ``.png`` or ``.pdf``.
        part: ``encoder`` or ``decoder``.
        layer: from 0.
        kind: ``self`` or ``cross``.
        head: from 0.
        stage: one with heads.

    Raises:
        InputError: the trace does not hold the array, or the file's ending is not known.
        OutputError: the file cannot be written.
    """
    draw_view(HeadView(trace, part, layer, kind, head, stage), path)


def draw_view(view: HeadView, path: str | Path) -> None:
    """Draw one head's array of one stage, as `draw_trace_figure` does."""
    label = "weight" if view.stage == "weights" else view.stage
    draw_map_figure(panel_of(view), path, caption=view.caption(), label=label)


def draw_map_figure(
    panel: MapPanel, path: str | Path, *, caption: Sequence[str], label: str = "weight"
) -> None:
    """Draw any map with its words, numbers and color scale.

    Args:
        panel: the map.
        path: the file.
        caption: sentences below the map, each on a new line; the first is also the file's title.
        label: of the color scale.

    Raises:
        InputError: the file's ending is not known.
        OutputError: the file cannot be written.
    """
    path = check_ending(path)
    if max(panel.cells_LM.shape) > MOST_NUMBERS:
        left_out = f"More than {MOST_NUMBERS} words: the numbers are in the trace's file."
        panel = reduced(panel)
        caption = [*caption, left_out, *panel.notes]
    lettering = Lettering(path, [*panel.texts, *caption])
    sizes = sizes_of_one(panel, lettering)
    num_rows, num_columns = panel.cells_LM.shape
    left, above, beside = room_of(panel, sizes)
    head = LINE + 0.06 if panel.title else 0.0
    body = num_columns * sizes.cell[0], num_rows * sizes.cell[1]
    # A map of one row still needs a scale that can be read.
    bar = max(0.9, body[1])
    # A caption needs some width, however small the map is.
    width = max(2 * MARGIN + left + body[0] + max(0.75, beside), 4.2)
    top = MARGIN + head + above
    with captioned(path, lettering, caption, width, top + bar + 0.12) as sheet:
        if panel.title:
            sheet.text(MARGIN, MARGIN, lettering.write(panel.title), size=9, weight="bold")
        draw_panel(sheet, panel, sizes, left=MARGIN + left, top=top)
        draw_scale(
            sheet, panel, left=MARGIN + left + body[0] + 0.15, top=top, height=bar, label=label
        )


def draw_difference_figure(
    first: HeadView,
    second: HeadView,
    path: str | Path,
    *,
    names: tuple[str, str] = ("first", "second"),
) -> None:
    """Draw one head's weights minus another's: blue for less weight, orange for more.

    The two may be two heads, two sentences, two checkpoints or two models. Rows and columns that
    only one of two sentences has are left out, and the caption lists them with their weight.

    Args:
        first: one head's weights.
        second: the weights to subtract.
        path: the file.
        names: of the two, for the caption.

    Raises:
        InputError: the two are not weights of one part and kind, they share no words, or the file's
            ending is not known.
        OutputError: the file cannot be written.
    """
    kinds = [(view.part, view.kind, view.stage) for view in (first, second)]
    if kinds[0] != kinds[1] or kinds[0][2] != "weights":
        raise InputError(
            "The two sides of a difference must be weights of one part and kind, but are "
            f"{first.name} and {second.name}. Choose two of one kind."
        )
    difference = compare_maps(
        first.cells, second.cells, (first.rows, second.rows), (first.columns, second.columns)
    )
    if not difference.values.size:
        raise InputError("The two maps share no words to compare. Choose two similar sentences.")
    rows, columns = ([one for one, _ in pairs] for pairs in (difference.rows, difference.columns))
    # The same for both: they are of one part and kind.
    forbidden_LM = first.forbidden[np.ix_(rows, columns)]
    limit = scale_end(difference.values)
    pairs = [
        (first.predicted[row], second.predicted[other])
        for row, other in difference.rows
        if first.predicted is not None and second.predicted is not None
    ]
    panel = MapPanel(
        difference.values,
        difference.row_tokens,
        difference.column_tokens,
        predicted=[a if a == b else f"{a} | {b}" for a, b in pairs] or None,
        forbidden_LM=forbidden_LM,
        limit=limit,
    )
    caption = _difference_caption((first, second), difference, names, limit)
    draw_map_figure(panel, path, caption=caption, label="difference of weights")


def draw_grid_figure(
    trace: TraceData,
    path: str | Path,
    *,
    part: str,
    kind: str,
    stage: str = "weights",
    layers: Sequence[int] | None = None,
) -> None:
    """Draw every head of every layer side by side, on one scale.

    Args:
        trace: holds the arrays.
        path: the file, ending in ``.svg``, ``.png`` or ``.pdf``.
        part: ``encoder`` or ``decoder``.
        kind: ``self`` or ``cross``.
        stage: one with heads.
        layers: the layers to draw; all that the trace holds unless given.

    Raises:
        InputError: the trace holds no such array, or the file's ending is not known.
        OutputError: the file cannot be written.
    """
    path = check_ending(path)
    if layers is None:
        names = [name.split(".") for name in trace.arrays]
        # A name is part, layer, kind and stage.
        layers = [int(n[1]) for n in names if n[::2] == [part, kind] and n[3:] == [stage]]
    views = [[HeadView(trace, part, n, kind, head, stage) for head in trace.heads] for n in layers]
    if not views:
        # Raises the error that says what the trace holds.
        trace[f"{part}.0.{kind}.{trace.heads[0]}.{stage}"]
    limit = None
    if stage != "weights":
        # One scale for all, so that heads can be compared by color.
        limit = max(view.largest for row in views for view in row)
    count = len(views) * len(trace.heads)
    panels = [[reduced(panel_of(view, limit=limit), count) for view in row] for row in views]
    caption = [*_grid_caption(views, panels[0][0]), *panels[0][0].notes]
    lettering = Lettering(path, [*panels[0][0].texts, *caption])
    num_rows, num_columns = panels[0][0].cells_LM.shape
    side = min(side_of(panels[0][0], 2.4, 0.075, count), 0.17)
    sizes = PanelSizes((side, side), min(52 * side, 7.5), 0, lettering)
    left, above, beside = room_of(panels[0][0], sizes)
    wide = num_columns * side
    high = num_rows * side
    step_right = max(wide, 0.9) + 0.16
    step_down = max(high, 0.3) + 0.36
    first_left = MARGIN + left + 0.2
    first_top = MARGIN + above + 0.2
    body = len(panels[0]) * step_right, len(panels) * step_down
    width = max(first_left + body[0] + max(0.75, beside), 4.2)
    with captioned(path, lettering, caption, width, first_top + body[1]) as sheet:
        for index, (row, seen) in enumerate(zip(panels, views, strict=True)):
            top = first_top + index * step_down
            style = {"rotation": 90, "va": "center", "ha": "center", "size": 8, "weight": "bold"}
            sheet.text(MARGIN + 0.06, top + high / 2, f"layer {seen[0].layer}", **style)
            for place, (panel, view) in enumerate(zip(row, seen, strict=True)):
                at = first_left + place * step_right
                # Only the outer panels have words; all have the same.
                words = {"with_rows": not place, "with_columns": not index}
                draw_panel(sheet, panel, sizes, left=at, top=top, **words)
                sheet.text(at, top + high + 0.04, _name_of(view), size=6.5)
        draw_scale(
            sheet,
            panels[0][0],
            left=first_left + body[0] + 0.05,
            top=first_top,
            height=max(0.9, min(high, 2.5)),
            label="weight" if limit is None else stage,
        )


def draw_stages_figure(
    trace: TraceData, path: str | Path, *, part: str, layer: int, kind: str, head: int
) -> None:
    """Draw the five stages of one head side by side, from scores to context vectors.

    Args:
        trace: holds all five stages.
        path: the file, ending in ``.svg``, ``.png`` or ``.pdf``.
        part: ``encoder`` or ``decoder``.
        layer: from 0.
        kind: ``self`` or ``cross``.
        head: from 0.

    Raises:
        InputError: the trace does not hold them, or the file's ending is not known.
        OutputError: the file cannot be written.
    """
    path = check_ending(path)
    views = [HeadView(trace, part, layer, kind, head, stage) for stage in FIVE_STAGES]
    panels = [reduced(panel_of(view), len(views)) for view in views]
    caption = [*_stages_caption(views), *panels[0].notes]
    lettering = Lettering(path, [*panels[0].texts, *caption])
    # Numbers in small type fit five maps next to each other, up to a size.
    digit = 4.2 if max(panels[0].cells_LM.shape) <= MOST_NUMBERS else 0
    side = side_of(panels[0], 0, 0.09, len(views))
    sizes = PanelSizes(
        (0.215, 0.17) if digit else (side, side), 6.5 if digit else 56 * side, digit, lettering
    )
    left, above, _ = room_of(panels[0], sizes)
    wides = [panel.cells_LM.shape[1] * sizes.cell[0] for panel in panels]
    steps = [max(wide, 1.35) + 0.68 for wide in wides]
    high = panels[0].cells_LM.shape[0] * sizes.cell[1]
    bar = max(high, 0.6)
    top = MARGIN + 0.2 + above
    width = 2 * MARGIN + left + sum(steps)
    with captioned(path, lettering, caption, width, top + bar + 0.15) as sheet:
        at = MARGIN + left
        for index, (panel, view) in enumerate(zip(panels, views, strict=True)):
            draw_panel(sheet, panel, sizes, left=at, top=top, with_rows=not index)
            sheet.text(at, MARGIN, f"{index + 1}. {view.stage}", size=8, weight="bold")
            draw_scale(sheet, panel, left=at + wides[index] + 0.06, top=top, height=bar, label="")
            at += steps[index]


def _name_of(view: HeadView) -> str:
    """Return a head's number, and for weights the share on special tokens."""
    name = f"head {view.head}"
    special = [i for i, token in enumerate(view.columns) if token in SPECIAL_TOKENS]
    if view.stage != "weights" or not special:
        return name
    mass = view.cells[:, special].sum(axis=1).mean()
    return f"{name}   special {percent(mass, most=2)}"


def _grid_caption(views: Sequence[Sequence[HeadView]], panel: MapPanel) -> list[str]:
    first = views[0][0]
    what = f"{first.title.split(',')[0]}, {first.part} {first.kind}-attention, every head"
    where = f"layer {first.layer}" if len(views) == 1 else f"{len(views)} layers"
    found = [f"{what} of {where}, none averaged; all counted from 0."]
    hatched = "; hatched: may not be seen" if first.forbidden.any() else ""
    if panel.limit is None:
        scale = f"Color: weight from 0 to 1, each row sums to 1{hatched}."
        mass = "Below each: the head's weight on special tokens, averaged over the rows."
        found += [first.describe_axes(), f"{scale} {mass}"]
    else:
        scale = f"−{panel.limit:.3g} (blue) over 0 to {panel.limit:.3g} (orange)"
        found += [first.describe_axes(), f"Color: {scale}{hatched}."]
    found.append(describe_model_of(first.trace))
    return [*found, *(f"WARNING: {problem}" for problem in first.trace.problems)]


def _difference_caption(
    views: tuple[HeadView, HeadView],
    difference: MapDifference,
    names: tuple[str, str],
    limit: float,
) -> list[str]:
    found = [f"“{names[0]}” minus “{names[1]}”, cell by cell; all counted from 0."]
    for side, (name, view) in enumerate(zip(names, views, strict=True)):
        place = view.title.removeprefix("Weights, ")
        found.append(
            f"“{name}”: {place}. {view.describe_special()} {describe_model_of(view.trace)}"
        )
        found += [f"WARNING: {problem}" for problem in view.trace.problems]
        compared = {pair[side] for pair in difference.columns}
        alone = [token for index, token in enumerate(view.columns) if index not in compared]
        if alone:
            mass = percent(difference.left_out[:, side].mean(), most=2)
            found.append(
                f"Left out, only in “{name}”: {' '.join(alone)}, with {mass} of its weight on "
                "average over the rows."
            )
        rows = difference.only_second if side else difference.only_first
        if rows:
            words = " ".join(view.rows[row] for row in rows)
            found.append(f"Rows left out, only in “{name}”: {words}.")
    predictions = f"Two predictions: “{names[0]}” | “{names[1]}”." if views[0].predicted else ""
    found.append(f"{views[0].describe_axes()} {predictions}")
    return [*found, f"Color: {limit:.3g} less (blue) to {limit:.3g} more (orange) in “{names[0]}”."]


def _stages_caption(views: Sequence[HeadView]) -> list[str]:
    weights = views[FIVE_STAGES.index("weights")]
    where = weights.title.removeprefix("Weights, ")
    return [
        f"The five stages, {where}. One head, nothing averaged; all counted from 0.",
        "Scores QKᵀ, ÷ √d_k, masked (−∞ is gray and hatched), softmax of each row, times the "
        "values. Each stage has its own scale; weights go from 0 to 1.",
        f"{weights.describe_axes()} {weights.describe_special()}",
        *weights.caption(scale=False)[3:],
    ]


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
