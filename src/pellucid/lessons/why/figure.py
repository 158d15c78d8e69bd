"""The picture of a measurement."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, NullFormatter

from pellucid.inside.show.figures.style import (
    INK,
    Lettering,
    captioned,
    check_ending,
)
from pellucid.lessons.why.result import Measurement, Panel, Series

ACCENT = "#d9801f"
_PLAINS = ("#3d3d3d", "#8a8a8a", "#bdbdbd", "#08468b", "#8fb8e0")
_FAINT = "#b5b5b5"
_MARKS = ("s", "^", "D", "v", "P")
_PANEL = 3.5
_HEIGHT = 2.35
_LEFT = 0.68
_GAP = 0.85
_MOST_DOTTED = 12
"""Places of a line up to which its seeds are drawn: a course has hundreds."""


def draw_measurement(measurement: Measurement, path: str | Path) -> None:
    """Draw the plot of a measurement with its question, verdicts and number.

    Args:
        measurement: what to draw.
        path: the file, ending in ``.svg``, ``.png`` or ``.pdf``.

    Raises:
        InputError: the file's ending is not known.
        OutputError: the file cannot be written.
    """
    path = check_ending(path)
    panels = measurement.plot.panels
    width = max(2 * 0.12 + _LEFT + len(panels) * (_PANEL + _GAP) - _GAP + 0.15, 5.4)
    caption = [measurement.number]
    for finding in measurement.findings:
        said = f"“{finding.statement.says}” ({finding.statement.text})"
        caption.append(f"{said}: {finding.verdict.sentence}.")
    if measurement.machine:
        caption.append(f"Times of this machine: {measurement.machine}.")
    # All that will be written decides the font, which must have every letter.
    texts = [measurement.question, *caption]
    for panel in panels:
        texts += [panel.title, panel.x_label, panel.y_label, *panel.names]
        texts += [series.name for series in panel.series]
    lettering = Lettering(path, texts)
    num_legend = max(_rows_of_legend(panel) for panel in panels)
    more_lines = max(_lines_of_names(panel) for panel in panels) - 1
    below = 0.62 + 0.12 * more_lines + 0.16 * num_legend
    top = 0.72
    with captioned(path, lettering, caption, width, top + _HEIGHT + below) as sheet:
        sheet.text(0.12, 0.12, lettering.write(measurement.question), size=10, weight="bold")
        for index, panel in enumerate(panels):
            left = 0.12 + _LEFT + index * (_PANEL + _GAP)
            axes = sheet.axes(left, top, _PANEL, _HEIGHT)
            _draw_panel(axes, panel)
            drop = (0.48 + 0.12 * more_lines) / _HEIGHT
            if len(panel.series) > 1 or panel.series[0].name:
                axes.legend(
                    loc="upper left",
                    bbox_to_anchor=(-0.02, -drop),
                    ncols=_columns_of_legend(panel),
                    frameon=False,
                    fontsize=7,
                    borderaxespad=0,
                    handlelength=1.8,
                    columnspacing=1.2,
                    labelspacing=0.3,
                )


def _columns_of_legend(panel: Panel) -> int:
    # About 58 letters fit under a panel, and each name has a line and a gap of 7.
    longest = max(len(series.name) for series in panel.series)
    return max(1, min(len(panel.series), int(58 / (longest + 7))))


def _rows_of_legend(panel: Panel) -> int:
    if not panel.series[0].name:
        return 0
    # Division that rounds up.
    return -(-len(panel.series) // _columns_of_legend(panel))


def _broken_names(panel: Panel) -> list[str]:
    """Break the names of places into lines if they would touch."""
    if sum(len(name) + 2 for name in panel.names) <= 62:
        return list(panel.names)
    return [
        "\n".join(part for line in name.split("\n") for part in textwrap.wrap(line, 10))
        for name in panel.names
    ]


def _lines_of_names(panel: Panel) -> int:
    return max((name.count("\n") + 1 for name in _broken_names(panel)), default=1)


def _draw_panel(axes: Any, panel: Panel) -> None:
    (_draw_bars if panel.kind == "bars" else _draw_lines)(axes, panel)
    axes.set_title(panel.title, loc="left", size=8.5, color=INK, pad=6)
    axes.set_xlabel(panel.x_label, size=7.5)
    axes.set_ylabel(panel.y_label, size=7.5)
    axes.tick_params(labelsize=7, length=2.5, width=0.5)
    axes.grid(axis="y", color="#e6e6e6", linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set(color="#8a8a8a", linewidth=0.6)
    if panel.y_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(_write_power))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="y", which="minor", length=0)
    if panel.y_range is not None:
        axes.set_ylim(*panel.y_range)
    elif not panel.y_log:
        numbers = [height for series in panel.series for height in series.y]
        # Bars and shares start at 0, so that their sizes compare.
        if not any(height < 0 for height in numbers):
            axes.set_ylim(bottom=0.0)


def _write_power(value: float, _place: int) -> str:
    """Write a number of a logarithmic axis."""
    return (
        f"{value:,g}"
        if 1e-3 <= value < 1e6
        else f"{value:.0e}".replace("e-0", "e−").replace("e-", "e−")
    )


def _draw_lines(axes: Any, panel: Panel) -> None:
    for series, look in _looks(panel):
        order = 3 if series.role == "accent" else 2
        x = np.array(series.x)
        y = np.array(series.y)
        # A logarithmic axis has no place for 0.
        is_shown = np.isfinite(y) & ((y > 0) if panel.y_log else True)
        marks = {"marker": look["marker"], "markersize": 3.5} if len(x) <= _MOST_DOTTED else {}
        if series.role == "faint":
            marks = {}
        axes.plot(
            x[is_shown],
            y[is_shown],
            color=look["color"],
            linestyle=look["line"],
            linewidth=1.8 if series.role == "accent" else 1.1,
            label=series.name,
            zorder=order,
            **marks,
        )
        if len(x) <= _MOST_DOTTED:
            _draw_dots(axes, x, series, look["color"], order)
    if panel.x_log:
        axes.set_xscale("log", base=2)
        places = sorted({place for series in panel.series for place in series.x if place > 0})
        # Each measured place gets its tick, as long as they do not touch.
        if len(places) <= 12:
            axes.set_xticks(places)
            axes.xaxis.set_minor_formatter(NullFormatter())
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    elif panel.names:
        axes.set_xticks(range(len(panel.names)), labels=panel.names)


def _draw_bars(axes: Any, panel: Panel) -> None:
    looks = _looks(panel)
    bars = [(series, look) for series, look in looks if series.role != "faint"]
    heights_XP = np.array([series.y for series, _ in bars])
    is_shown_XP = np.isfinite(heights_XP)
    # Bars that share a place stand side by side; a bar with a place to itself is in its middle.
    num_beside_P = is_shown_XP.sum(axis=0)
    width = 0.8 / max(1, int(num_beside_P.max()))
    order_XP = is_shown_XP.cumsum(axis=0) - 1
    shift_XP = (order_XP - (num_beside_P - 1) / 2) * width
    for (series, look), is_shown_P, shift_P in zip(bars, is_shown_XP, shift_XP, strict=True):
        places_P = np.array(series.x)[is_shown_P]
        heights_P = np.array(series.y)[is_shown_P]
        style = {"color": look["color"], "label": series.name, "zorder": 2}
        axes.bar(places_P + shift_P[is_shown_P], heights_P, width * 0.94, **style)
        _draw_dots(axes, np.array(series.x) + shift_P, series, INK, 3)
    for series, _ in looks:
        if series.role == "faint":
            style = {"linewidth": 1, "linestyle": "--", "label": series.name, "zorder": 1}
            axes.axhline(series.y[0], color=_FAINT, **style)
    axes.set_xticks(range(len(panel.names)), labels=_broken_names(panel))


def _draw_dots(axes: Any, x: Any, series: Series, color: str, order: int) -> None:
    """Draw one dot a seed."""
    for place, heights in zip(x, series.dots, strict=False):
        axes.plot([place] * len(heights), heights, ".", color=color, markersize=3, zorder=order)


def _looks(panel: Panel) -> list[tuple[Series, dict[str, Any]]]:
    """Give each series its color, mark and line: one is orange, the others are gray or blue."""
    found: list[tuple[Series, dict[str, Any]]] = []
    plain = 0
    for series in panel.series:
        if series.role == "accent":
            found.append((series, {"color": ACCENT, "marker": "o", "line": "-"}))
        elif series.role == "faint":
            found.append((series, {"color": _FAINT, "marker": None, "line": "--"}))
        else:
            # More series than colors repeat them.
            place = plain % len(_PLAINS)
            look = {"color": _PLAINS[place], "marker": _MARKS[place], "line": "-"}
            found.append((series, look))
            plain += 1
    return found
