"""Curves of a run, as pictures: SVG for the page, one PNG for everything else.

Only Matplotlib's objects are used, never its global state. Equal data give equal bytes.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from pellucid.training.report.run_history import RunHistory, speeds

PALETTES: Mapping[str, Mapping[str, str]] = {
    "light": {
        "ink": "#1a1a1a",
        "faint": "#5c5c5c",
        "line": "#dddddd",
        "first": "#1f5fa8",
        "second": "#b4500f",
    },
    "dark": {
        "ink": "#eeeeee",
        "faint": "#a8a8a8",
        "line": "#3c3c3c",
        "first": "#7db8ff",
        "second": "#ffab66",
    },
}
"""Colors by meaning, on a light and on a dark background; the page has them as CSS variables."""

_PLACEHOLDERS = {name: f"#fe010{number}" for number, name in enumerate(PALETTES["light"], 1)}
"""Colors to draw with that no picture has otherwise; CSS variables replace them."""

MOST_POINTS = 1000
MOST_BUCKETS = MOST_POINTS // 2
LARGEST_VALUE = 1e30
SETTINGS: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 12.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "pellucid",
    "axes.formatter.use_mathtext": False,
}


@dataclass(frozen=True)
class Curve:
    """One line of a panel: values by step; ``color`` is a name of the palette."""

    label: str
    points: tuple[tuple[int, float], ...]
    color: str
    has_dots: bool = False

    @property
    def finite(self) -> tuple[tuple[int, float], ...]:
        """The points whose values can be drawn."""
        return tuple(point for point in self.points if abs(point[1]) <= LARGEST_VALUE)


@dataclass(frozen=True)
class CurvePanel:
    """One picture: curves over the steps, and the step of the best validation."""

    name: str
    title: str
    curves: tuple[Curve, ...]
    best_step: int | None = None
    may_be_logarithmic: bool = False

    @property
    def is_empty(self) -> bool:
        """True if no point can be drawn."""
        return not any(curve.finite for curve in self.curves)

    @property
    def num_left_out(self) -> int:
        """The number of values that are not finite."""
        return sum(len(curve.points) - len(curve.finite) for curve in self.curves)

    def describe(self) -> str:
        """Describe the picture in words, for those who do not see it."""
        ranges = [
            f"{curve.label} from {short_number(points[0][1])} at step {points[0][0]:,} to "
            f"{short_number(points[-1][1])} at step {points[-1][0]:,}, "
            f"between {short_number(min(value for _, value in points))} and "
            f"{short_number(max(value for _, value in points))}"
            for curve in self.curves
            if (points := curve.finite)
        ]
        return f"{self.title} by step: {'; '.join(ranges) or 'nothing measured'}."


def panels_of(history: RunHistory) -> list[CurvePanel]:
    """Make a report's panels: loss, perplexity, BLEU, learning rate, gradient norm, speed."""
    best_step = None if history.best is None else int(history.best["step"])

    def curve(label: str, kind: str, name: str, color: str = "") -> Curve:
        lines = history.train if kind == "train" else history.validation
        points = tuple((int(line["step"]), line[name]) for line in lines)
        has_dots = kind == "validation"
        return Curve(label, points, color or ("second" if has_dots else "first"), has_dots)

    def panel(name: str, title: str, *curves: Curve, is_wide: bool = False) -> CurvePanel:
        return CurvePanel(name, title, curves, best_step, may_be_logarithmic=is_wide)

    losses = curve("training", "train", "loss"), curve("validation", "validation", "loss")
    perplexities = [
        replace(loss, points=tuple((step, _exp(value)) for step, value in loss.points))
        for loss in losses
    ]
    chrf = curve("chrF", "validation", "chrf", color="first")
    bleu = curve("BLEU", "validation", "bleu")
    rate = curve("training", "train", "learning_rate")
    gradient = curve("training", "train", "gradient_norm")
    speed = Curve("training", tuple(speeds(history)), "first")
    return [
        panel("loss", "Loss per token (nats)", *losses),
        panel("perplexity", "Perplexity", *perplexities, is_wide=True),
        panel("bleu", "BLEU and chrF on the validation text", chrf, bleu),
        panel("rate", "Learning rate", rate),
        panel("gradient", "Gradient norm", gradient, is_wide=True),
        panel("speed", "Speed (target tokens/s)", speed),
    ]


def render_svg(panel: CurvePanel) -> str:
    """Draw one panel for a page: SVG with text as text, whose colors are the page's variables."""
    with _settings():
        figure = Figure(figsize=(5.0, 3.1), facecolor="none", layout="constrained")
        _draw(figure.add_subplot(), panel, _PLACEHOLDERS)
        stream = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(stream, format="svg", metadata=nothing)
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>\s*", "", svg, count=1, flags=re.DOTALL)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{panel.name}-", svg)
    for name, color in _PLACEHOLDERS.items():
        svg = svg.replace(color, f"var(--{name})")
    box = re.search(r'viewBox="[^"]*"', svg)
    head = f'<svg {box.group() if box else ""} role="img" aria-label="{escape(panel.describe())}">'
    return re.sub(r"<svg[^>]*>", lambda _: head, svg, count=1)


def render_png(panels: Sequence[CurvePanel], title: str) -> bytes:
    """Draw all panels under a title, as PNG on white."""
    with _settings():
        figure = Figure(figsize=(15, 9), facecolor="white", layout="constrained")
        figure.get_layout_engine().set(w_pad=0.15, h_pad=0.12)  # type: ignore[union-attr, call-arg]
        figure.suptitle(title, fontsize=15, x=0.012, ha="left", parse_math=False)
        all_axes = figure.subplots(2, math.ceil(len(panels) / 2), squeeze=False)
        for axes, panel in zip(all_axes.flat, panels, strict=False):
            axes.set_title(panel.title, loc="left", fontsize=12, pad=26, weight="bold")
            _draw(axes, panel, PALETTES["light"])
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
    return stream.getvalue()


def short_number(value: float) -> str:
    """Write a number in few characters: ``12,345``, ``61.83``, ``0.00035``, ``1.2e+09``."""
    if not math.isfinite(value):
        return "–"
    if 1000 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    return f"{value:.4g}"


@contextmanager
def _settings() -> Iterator[None]:
    """Draw with Matplotlib's defaults, independent of the user's settings."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)  # type: ignore[arg-type]
        yield


def _draw(axes: Axes, panel: CurvePanel, palette: Mapping[str, str]) -> None:
    _style(axes, palette)
    if panel.is_empty:
        axes.set_xticks([])
        axes.set_yticks([])
        axes.text(
            0.5,
            0.5,
            "nothing measured yet",
            transform=axes.transAxes,
            ha="center",
            va="center",
            color=palette["faint"],
        )
        return
    is_logarithmic = panel.may_be_logarithmic and _spans_decades(panel)
    for curve in panel.curves:
        points = [
            (step, value if abs(value) <= LARGEST_VALUE else math.nan)
            for step, value in _thinned(curve.points)
            if not (is_logarithmic and value <= 0)
        ]
        if not points:
            continue
        steps, values = zip(*points, strict=True)
        has_dots = len(points) <= 40 and (curve.has_dots or len(points) <= 3)
        color = palette[curve.color]
        axes.plot(
            steps,
            values,
            color=color,
            linewidth=1.5,
            marker="o" if has_dots else "",
            markersize=4,
            label=curve.label,
        )
    if panel.best_step is not None:
        axes.axvline(panel.best_step, color=palette["faint"], linewidth=1, dashes=(4, 3), zorder=1)
        _mark_best(axes, panel, palette)
    _scale(axes, panel, is_logarithmic=is_logarithmic)
    if len(panel.curves) > 1:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(-0.02, 0.98),
            ncols=3,
            frameon=False,
            labelcolor=palette["ink"],
            borderpad=0,
            handlelength=1.4,
        )


def _style(axes: Axes, palette: Mapping[str, str]) -> None:
    axes.set_facecolor("none")
    axes.grid(axis="y", color=palette["line"], linewidth=0.8)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(palette["faint"])
    axes.tick_params(colors=palette["faint"], labelcolor=palette["ink"], length=3)
    axes.tick_params(axis="y", which="both", length=0)
    axes.set_xlabel("step", color=palette["faint"], loc="right", labelpad=1)


def _mark_best(axes: Axes, panel: CurvePanel, palette: Mapping[str, str]) -> None:
    """Write the best BLEU next to its point."""
    values = [
        value
        for curve in panel.curves
        if curve.label == "BLEU"
        for step, value in curve.finite
        if step == panel.best_step
    ]
    if not values or panel.best_step is None:
        return
    _, last = axes.dataLim.intervalx
    _, highest = axes.dataLim.intervaly
    # On the side of the point that has room.
    is_right = panel.best_step > 0.6 * last
    is_low = values[0] < 0.2 * highest
    axes.annotate(
        f"best {values[0]:.1f}",
        (panel.best_step, values[0]),
        xytext=(-7 if is_right else 7, 9 if is_low else -9),
        textcoords="offset points",
        ha="right" if is_right else "left",
        va="bottom" if is_low else "top",
        color=palette["ink"],
        weight="bold",
    )


def _scale(axes: Axes, panel: CurvePanel, *, is_logarithmic: bool) -> None:
    """Give both axes few ticks with short labels."""
    if is_logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(numticks=6))
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.tick_params(axis="y", which="minor", length=0)
    else:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
        if panel.name in ("bleu", "speed", "rate"):
            low, high = axes.dataLim.intervaly
            axes.set_ylim(min(0.0, low), 1.08 * high if high > 0 else None)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))
    axes.set_xlim(left=0)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_number(value)))


def _spans_decades(panel: CurvePanel) -> bool:
    """True if the largest value is more than twenty times the smallest."""
    positive = [value for curve in panel.curves for _, value in curve.finite if value > 0]
    return bool(positive) and max(positive) > 20 * min(positive)


def _thinned(points: tuple[tuple[int, float], ...]) -> Iterable[tuple[int, float]]:
    """Keep about `MOST_POINTS` points with the same outline: low and high of each bucket."""
    if len(points) <= MOST_POINTS:
        return points
    values = np.array([value for _, value in points])
    chosen: set[int] = {0, len(points) - 1}
    for bucket in np.array_split(np.arange(len(points)), MOST_BUCKETS):
        finite = bucket[np.isfinite(values[bucket])]
        if len(finite):
            chosen |= {int(finite[values[finite].argmin()]), int(finite[values[finite].argmax()])}
        else:
            chosen.add(int(bucket[0]))
    return [points[index] for index in sorted(chosen)]


def _exp(value: float) -> float:
    return math.exp(value) if value < 700 else math.nan


STYLE = """
:root { --first: %(light first)s; --second: %(light second)s }
@media (prefers-color-scheme: dark) {
  :root { --first: %(dark first)s; --second: %(dark second)s }
}
.tiles { display: grid; grid-template-columns: repeat(4, 1fr); gap: .75rem; margin: 1rem 0 }
.tiles div { background: var(--panel); border-radius: .4rem; padding: .6rem .8rem }
.tiles dt { color: var(--faint); font-size: .9375rem } .tiles dd { margin: 0; font-size: 1.35rem }
.curves { display: grid; gap: 1.5rem;
          grid-template-columns: repeat(auto-fit, minmax(min(100%%, 21rem), 1fr)) }
figure { margin: 0; min-width: 0 } svg { width: 100%%; stroke-linejoin: round }
svg text { font-family: inherit !important }
.facts { columns: 26rem 2; column-gap: 2.5rem }
.facts table { width: 100%%; table-layout: fixed; break-inside: avoid; margin: 0 0 1.25rem }
.facts th { font-weight: 400; width: 40%%; color: var(--faint) }
.sample { border-left: 3px solid var(--line); padding-left: 1rem; margin: 1.25rem 0 }
.sample dl { display: grid; grid-template-columns: 9.5rem 1fr; gap: .2rem .75rem; margin: 0 }
.sample dt { color: var(--faint) } .sample dd { margin: 0 }
@media (max-width: 36rem) {
  .tiles { grid-template-columns: repeat(2, 1fr) }
  .sample dl { grid-template-columns: 1fr } .sample dd { margin-bottom: .4rem }
}
summary { cursor: pointer; padding: .4rem 0; font-weight: 600 }
""" % {
    f"{ground} {name}": palette[name]
    for ground, palette in PALETTES.items()
    for name in ("first", "second")
}
"""Rules that the report's page has besides those of plain pages."""
