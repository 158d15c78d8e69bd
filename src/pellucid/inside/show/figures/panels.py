"""One panel of a figure: colored cells with numbers, and the words at their sides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from matplotlib.collections import PatchCollection
from matplotlib.colors import Colormap, Normalize
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from pellucid.inside.show.colors import ground_and_ink
from pellucid.inside.show.figures.style import (
    DOTS_PER_INCH,
    FORBIDDEN_COLOR,
    INK,
    ONE_WAY,
    SIGNED,
    Lettering,
    Sheet,
    draw_color_bar,
    width_in_inches,
)
from pellucid.inside.show.view import HeadView, number_in_cell

MOST_NUMBERS = 64
"""The most rows or columns of a map that has a number printed in each cell."""

MOST_DOTS = 12_000_000
"""The most dots of all maps of a figure together, if they were squares."""

_DOTS_OF_WORD = 4
"""The fewest dots of a cell whose row and column have words."""

_NO_WORDS = "Too many words to write: they are in the trace's file."
_OF_BLOCKS = "More cells than dots: each dot shows the number farthest from 0 among its cells."
READS_PREDICTS = ("reads", "predicts")
FAINT = "#6b6b6b"
_SINE = 0.87  # of 60 degrees, the angle of the columns' words


@dataclass(frozen=True, eq=False)
class MapPanel:
    """The content of one panel.

    Attributes:
        cells_LM: the numbers, rows by columns.
        rows: a word for each row.
        columns: a word for each column.
        predicted: the token that each row predicts; None if rows predict nothing.
        forbidden_LM: True for each cell that the mask forbids; it has no number.
        limit: the end of the signed scale; None for weights from 0 to 1.
        title: written above the panel.
        notes: sentences about what it leaves out, see `reduced`.
    """

    cells_LM: np.ndarray
    rows: Sequence[str]
    columns: Sequence[str]
    predicted: Sequence[str] | None = None
    forbidden_LM: np.ndarray | None = None
    limit: float | None = None
    title: str = ""
    notes: tuple[str, ...] = ()

    @property
    def scale(self) -> tuple[Colormap, Normalize]:
        """The color map, and the numbers at its ends."""
        if self.limit is None:
            return ONE_WAY, Normalize(0, 1)
        return SIGNED, Normalize(-self.limit, self.limit)

    @property
    def texts(self) -> list[str]:
        """All words of the panel, for the choice of fonts."""
        return [*self.rows, *self.columns, *(self.predicted or ()), self.title]


@dataclass(frozen=True)
class PanelSizes:
    """Sizes in inches, fonts in points.

    Attributes:
        cell: width and height of a cell.
        word: the font size of the words at the sides.
        digit: the font size of the numbers in the cells; 0 prints none.
        lettering: the fonts.
    """

    cell: tuple[float, float]
    word: float
    digit: float
    lettering: Lettering = field(repr=False)


def panel_of(view: HeadView, *, limit: float | None = None) -> MapPanel:
    """Make a panel of a view of a trace.

    Args:
        view: the array to show.
        limit: the end of a signed scale; by default its own largest magnitude.
    """
    return MapPanel(
        view.cells,
        view.rows,
        view.columns,
        predicted=view.predicted,
        forbidden_LM=view.forbidden,
        limit=(limit or view.largest) if view.is_signed else None,
    )


def sizes_of_one(panel: MapPanel, lettering: Lettering) -> PanelSizes:
    """Choose the sizes of a panel that has a figure to itself."""
    if max(panel.cells_LM.shape) <= MOST_NUMBERS:
        return PanelSizes((0.32, 0.21), 8, 6.2, lettering)
    side = side_of(panel, 0.13 * MOST_NUMBERS, 0.06)
    return PanelSizes((side, side), 56 * side, 0, lettering)


def side_of(panel: MapPanel, length: float, least: float, count: int = 1) -> float:
    """Choose the side of a cell without a number, in inches.

    Args:
        panel: the map.
        length: of the map, in inches.
        least: the least side, unless the maps would have more than `MOST_DOTS` dots.
        count: the number of maps.
    """
    # The length is shared by the cells, but each is large enough to be seen.
    side = max(length / max(panel.cells_LM.shape), least)
    return float(min(side, _dots_of_cell(panel, count) / DOTS_PER_INCH))


def reduced(panel: MapPanel, count: int = 1) -> MapPanel:
    """Drop words that would be too small to read, and reduce a map with more cells than dots.

    A cell of the result is the number farthest from 0 in a block of cells, so that nothing large
    is lost; it is forbidden if all of them are.

    Args:
        panel: the panel.
        count: the number of maps in the figure.
    """
    dots = _dots_of_cell(panel, count)
    if dots >= _DOTS_OF_WORD:
        return panel
    panel = replace(panel, rows=(), columns=(), predicted=None, notes=(_NO_WORDS,))
    if dots >= 1:
        return panel
    shape = panel.cells_LM.shape
    sizes = [max(1, int(length * dots)) for length in shape]
    starts = [np.arange(size) * length // size for size, length in zip(sizes, shape, strict=True)]

    def reduce(how: np.ufunc, cells_LM: np.ndarray) -> np.ndarray:
        return how.reduceat(how.reduceat(cells_LM, starts[0], axis=0), starts[1], axis=1)

    hidden_LM = _hidden(panel)
    # Cells without a color must not win.
    shown_LM = np.where(hidden_LM, 0, panel.cells_LM)
    high_LM = reduce(np.maximum, shown_LM)
    low_LM = reduce(np.minimum, shown_LM)
    return replace(
        panel,
        # Of a block, the number farthest from 0, so that nothing large is lost.
        cells_LM=np.where(-low_LM > high_LM, low_LM, high_LM),
        forbidden_LM=reduce(np.logical_and, hidden_LM),
        notes=(_NO_WORDS, _OF_BLOCKS),
    )


def _dots_of_cell(panel: MapPanel, count: int) -> float:
    """Return the most dots that the side of a cell may have."""
    return float(math.sqrt(MOST_DOTS / count) / max(panel.cells_LM.shape))


def _hidden(panel: MapPanel) -> np.ndarray:
    forbidden_LM = False if panel.forbidden_LM is None else panel.forbidden_LM
    hidden_LM: np.ndarray = ~np.isfinite(panel.cells_LM) | forbidden_LM
    return hidden_LM


def room_of(panel: MapPanel, sizes: PanelSizes) -> tuple[float, float, float]:
    """Return the inches needed to the left for rows, above for columns, and right of the last."""
    write = sizes.lettering.write
    size = sizes.word
    words = [*panel.rows, "" if panel.predicted is None else READS_PREDICTS[0]]
    left = max(width_in_inches(write(word), size) for word in words) + 0.1
    if panel.predicted is not None:
        left += _inches_of_predicted(panel, sizes)
    longest = max((width_in_inches(write(word), size) for word in panel.columns), default=0)
    return left, longest * _SINE + 0.16, longest * 0.5 + 0.05


def draw_panel(
    sheet: Sheet,
    panel: MapPanel,
    sizes: PanelSizes,
    *,
    left: float,
    top: float,
    with_rows: bool = True,
    with_columns: bool = True,
) -> Any:
    """Draw a panel.

    Args:
        sheet: to draw on.
        panel: the content.
        sizes: the sizes.
        left: of the cells, in inches.
        top: of the cells, in inches.
        with_rows: write the words of the rows.
        with_columns: write the words of the columns.

    Returns:
        The axes.
    """
    num_rows, num_columns = panel.cells_LM.shape
    width, height = sizes.cell
    axes = sheet.axes(left, top, num_columns * width, num_rows * height)
    axes.set_xlim(0, num_columns)
    # Row 0 stands at the top, as one reads.
    axes.set_ylim(num_rows, 0)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(color="#8a8a8a", linewidth=0.5)
    _draw_cells(axes, panel, sizes)
    if with_columns:
        _write_columns(axes, panel, sizes)
    if with_rows:
        _write_rows(axes, panel, sizes)
    return axes


def draw_scale(
    sheet: Sheet, panel: MapPanel, *, left: float, top: float, height: float, label: str
) -> None:
    """Draw the color scale next to a panel, with the numbers at its ends."""
    ticks = [0, 0.25, 0.5, 0.75, 1] if panel.limit is None else [-panel.limit, 0, panel.limit]
    bar = draw_color_bar(sheet, (left, top, 0.11, height), *panel.scale, ticks)
    bar.set_label(label, size=7)


def _draw_cells(axes: Any, panel: MapPanel, sizes: PanelSizes) -> None:
    colors, norm = panel.scale
    shown_LM = np.ma.masked_where(_hidden(panel), panel.cells_LM)
    if sizes.digit:
        mesh = {"edgecolors": "white", "linewidth": 0.4}
        axes.pcolormesh(shown_LM, cmap=colors, norm=norm, **mesh)
    else:
        num_rows, num_columns = panel.cells_LM.shape
        box = (0, num_columns, num_rows, 0)
        # Thousands of cells as one image; as a mesh they would be a shape each.
        axes.imshow(
            shown_LM, cmap=colors, norm=norm, extent=box, aspect="auto", interpolation="none"
        )
    _hatch(axes, np.ma.getmaskarray(shown_LM), dense=bool(sizes.digit))
    if not sizes.digit:
        return
    # A forbidden cell has no number.
    for row, column in zip(*np.nonzero(~np.ma.getmaskarray(shown_LM)), strict=True):
        value = float(panel.cells_LM[row, column])
        _, ink = ground_and_ink(value, panel.limit)
        style = {"size": sizes.digit, "ha": "center", "va": "center_baseline"}
        text = number_in_cell(value, panel.limit)
        axes.text(column + 0.5, row + 0.52, text, color=ink, **style)


def _hatch(axes: Any, forbidden_LM: np.ndarray, *, dense: bool) -> None:
    """Cover the cells that the mask forbids: gray and hatched, no color of the scale."""
    runs = []  # One for each run of neighbors, so that its hatching is unbroken.
    for row, is_forbidden_M in enumerate(forbidden_LM):
        places = np.flatnonzero(is_forbidden_M)
        for run in np.split(places, np.flatnonzero(np.diff(places) > 1) + 1):
            if len(run):
                runs.append((row, run[0], run[0] + len(run)))
    if not runs:
        return
    style: Any = {"facecolor": FORBIDDEN_COLOR, "edgecolor": "#a6a6a6", "linewidth": 0}
    style["hatch"] = "//////" if dense else "////"
    if len(runs) > MOST_NUMBERS:  # As one shape, which is hatched once.
        corners = [[(a, y), (b, y), (b, y + 1), (a, y + 1)] for y, a, b in runs]
        axes.add_patch(PathPatch(Path.make_compound_path_from_polys(np.array(corners)), **style))
        return
    patches = [Rectangle((first, row), last - first, 1) for row, first, last in runs]
    axes.add_collection(PatchCollection(patches, **style), autolim=False)


def _write_columns(axes: Any, panel: MapPanel, sizes: PanelSizes) -> None:
    for index, word in enumerate(panel.columns):
        axes.annotate(
            sizes.lettering.write(word),
            (index + 0.5, 0),
            xytext=(0, 4),
            textcoords="offset points",
            rotation=60,
            rotation_mode="anchor",
            ha="left",
            va="center",
            size=sizes.word,
            annotation_clip=False,
        )


def _write_rows(axes: Any, panel: MapPanel, sizes: PanelSizes) -> None:
    write = sizes.lettering.write
    size = sizes.word
    # In points, as the fonts are, so that it is the same at every size of cells.
    gap = 4.0
    predicted = panel.predicted
    place = gap
    if predicted is not None:
        place += 72 * _inches_of_predicted(panel, sizes)
        arrow = place - 72 * width_in_inches(" →", size)
        for text, points in zip((*READS_PREDICTS, "→"), (place, gap, arrow), strict=True):
            _write_beside(axes, text, -1, points, size, color=FAINT)
    for index, word in enumerate(panel.rows):
        _write_beside(axes, write(word), index, place, size)
        if predicted is not None:
            _write_beside(axes, "→", index, arrow, size, color=FAINT)
            _write_beside(axes, write(predicted[index]), index, gap, size)


def _inches_of_predicted(panel: MapPanel, sizes: PanelSizes) -> float:
    """Return the room for the tokens that rows predict, with the arrow before them."""
    words = [*map(sizes.lettering.write, panel.predicted or ()), READS_PREDICTS[1]]
    size = sizes.word
    return max(width_in_inches(word, size) for word in words) + width_in_inches(" → ", size)


def _write_beside(
    axes: Any, text: str, row: int, points: float, size: float, *, color: str = INK
) -> None:
    axes.annotate(
        text,
        (0, row + 0.5),
        xytext=(-points, -1 if row < 0 else 0),
        textcoords="offset points",
        ha="right",
        va="center",
        size=size,
        color=color,
        annotation_clip=False,
    )
