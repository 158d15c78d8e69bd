"""Maps on axes of Matplotlib, for figures that a reader composes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pellucid.errors import InputError
from pellucid.inside.show.figures.panels import MapPanel, panel_of
from pellucid.inside.show.view import HeadView

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_view(view: HeadView, ax: Axes | None = None) -> Axes:
    """Draw one head's array on axes, and return them."""
    return plot_panel(panel_of(view), view.title, ax)


def plot_panel(panel: MapPanel, title: str, ax: Axes | None = None) -> Axes:
    """Draw a map with its words and color scale.

    Args:
        panel: the map. A decoder row is labeled with the token that it reads and the one that it
            predicts.
        title: above it.
        ax: the axes; those of a new figure unless given.

    Returns:
        The axes.

    Raises:
        InputError: ``ax`` are no axes.
    """
    if ax is None:
        # With its state, so that a notebook shows the figure.
        from matplotlib import pyplot

        _, ax = pyplot.subplots(layout="constrained")
    if not callable(getattr(ax, "imshow", None)):
        raise InputError(
            f"ax must be axes of Matplotlib, but is a {type(ax).__name__}. Make some with "
            "matplotlib.pyplot.subplots()."
        )
    colors, norm = panel.scale
    forbidden_LM = np.ma.nomask if panel.forbidden_LM is None else panel.forbidden_LM
    numbers_LM = np.ma.masked_array(panel.cells_LM, mask=forbidden_LM)
    image = ax.imshow(numbers_LM, cmap=colors, norm=norm, aspect="equal")
    rows = list(panel.rows)
    if panel.predicted is not None:
        rows = [f"{one} → {other}" for one, other in zip(rows, panel.predicted, strict=True)]
    ax.set_xticks(range(len(panel.columns)), list(panel.columns), rotation=90)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_title(title)
    ax.figure.colorbar(image, ax=ax)
    return ax
