"""A figure of two models: the map of each, on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pellucid.errors import InputError
from pellucid.inside.show.figures.panels import (
    MOST_NUMBERS,
    MapPanel,
    draw_panel,
    draw_scale,
    panel_of,
    reduced,
    room_of,
    sizes_of_one,
)
from pellucid.inside.show.figures.style import (
    LINE,
    MARGIN,
    Lettering,
    captioned,
    check_ending,
    width_in_inches,
)
from pellucid.inside.show.view import HeadView, describe_model_of
from pellucid.inside.two_models import AnswerOfModel

TITLE_SIZE = 9


def draw_answers_figure(sides: Sequence[AnswerOfModel], path: str | Path) -> None:
    """Draw the maps of models that answered the same line, next to each other.

    A model without attention has no map and is described in the caption.

    Args:
        sides: the answers.
        path: the file, ending in ``.svg``, ``.png`` or ``.pdf``.

    Raises:
        InputError: no model has attention, or the file's ending is not known.
        OutputError: the file cannot be written.
    """
    path = check_ending(path)
    shown = [(side.name, side.view) for side in sides if side.view is not None]
    if not shown:
        raise InputError(
            "A picture needs attention, but neither model has any: their decoders read one vector "
            "of fixed length. Leave the picture out to see the tokens."
        )
    panels = [reduced(panel_of(view), len(shown)) for _, view in shown]
    caption = _caption(sides, panels)
    names = [name for name, _ in shown]
    texts = [text for panel in panels for text in panel.texts]
    lettering = Lettering(path, [*texts, *names, *caption])
    all_sizes = [sizes_of_one(panel, lettering) for panel in panels]
    rooms = [room_of(panel, sizes) for panel, sizes in zip(panels, all_sizes, strict=True)]
    head = LINE + 0.06
    # All maps begin at one height, below the longest words of any.
    top = MARGIN + head + max(above for _, above, _ in rooms)
    lefts = []
    at = MARGIN
    bottom = top
    for panel, sizes, (left, _, overhang) in zip(panels, all_sizes, rooms, strict=True):
        num_rows, num_columns = panel.cells_LM.shape
        lefts.append(at + left)
        title = width_in_inches(lettering.write(panel.title), TITLE_SIZE)
        at += left + max(num_columns * sizes.cell[0] + max(overhang, 0.25), title - left)
        bottom = max(bottom, top + max(0.9, num_rows * sizes.cell[1]))
    width = max(at + 0.6 + MARGIN, 4.2)
    with captioned(path, lettering, caption, width, bottom + 0.12) as sheet:
        for name, panel, sizes, left in zip(names, panels, all_sizes, lefts, strict=True):
            sheet.text(left, MARGIN, lettering.write(name), size=TITLE_SIZE, weight="bold")
            draw_panel(sheet, panel, sizes, left=left, top=top)
        draw_scale(sheet, panels[-1], left=at, top=top, height=bottom - top, label="weight")


def _caption(sides: Sequence[AnswerOfModel], panels: Sequence[MapPanel]) -> list[str]:
    """Say what each model is and answered, and how to read the maps."""
    found = [f"{' next to '.join(side.name for side in sides)}: weights of cross-attention."]
    found += [f"{one.name}: {one.about}. {one.reason} “{one.translation}”" for one in sides]
    view: HeadView = next(side.view for side in sides if side.view is not None)
    found += [view.describe_axes(), view.describe_scale()]
    found += [describe_model_of(side.trace) for side in sides]
    found += [f"WARNING: {problem}" for side in sides for problem in side.trace.problems]
    if any(max(panel.cells_LM.shape) > MOST_NUMBERS for panel in panels):
        found.append(f"More than {MOST_NUMBERS} words: the numbers are in the traces' file.")
        found += dict.fromkeys(note for panel in panels for note in panel.notes)
    return found
