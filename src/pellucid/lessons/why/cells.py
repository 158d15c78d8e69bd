"""Measured cells: what was varied, a seed, and numbers. Tables and plots are read off them."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pellucid.lessons.why.result import Cell, Outcome, Series, Table, Verdict
from pellucid.lessons.why.setting import Setting

_T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t at 97.5 % for 1, 2, … degrees of freedom."""

Interval = tuple[float, float, float]
"""A mean over seeds, and the ends of its 95 % confidence interval."""
Row = Mapping[str, Any]


def interval(values: Sequence[float], *, in_logarithms: bool = False) -> Interval:
    """Average over seeds; without a width for one seed, not a number if a value is missing."""
    if not values or not all(math.isfinite(value) for value in values):
        return (math.nan,) * 3
    mean = statistics.fmean(values)
    if len(values) == 1:
        return mean, mean, mean
    if in_logarithms and min(values) > 0:
        low, mean, high = map(math.exp, sorted(interval([math.log(value) for value in values])))
        return mean, low, high
    freedom = len(values) - 1
    t = _T_975[freedom - 1] if freedom <= len(_T_975) else 1.96
    half = t * statistics.stdev(values) / math.sqrt(len(values))
    return mean, mean - half, mean + half


def write(values: Sequence[float], form: str = "") -> str:
    """Write a mean, with half of its interval if that has a width; a dash if it is missing."""
    mean, _, high = interval(values)
    if mean != mean:
        return "–"
    if form and len(values) > 1:
        return f"{mean:{form}} ± {high - mean:{form}}".replace("-", "−")
    half = f" ± {high - mean:.2g}" if high > mean else ""
    return f"{mean:.3g}{half}".replace("-", "−")


@dataclass(frozen=True)
class Column:
    """One column of a table: its heading, the number, a format, and which cells have it.

    Attributes:
        over_seeds: how several seeds are written: a format for their mean ± half of its interval,
            three digits unless given; ``mean`` or ``first`` is one number in the column's format;
            ``count`` is how many of the seeds have the number, also for one.
    """

    head: str
    name: str
    form: str = ".3g"
    scale: float = 1
    where: Row | None = None
    over_seeds: str = ""


@dataclass(frozen=True)
class Cells:
    """One row for each combination of what was varied and each seed."""

    rows: tuple[Row, ...]

    def where(self, **chosen: Any) -> Cells:
        """Keep the rows with these values."""
        return Cells(tuple(r for r in self.rows if all(r[k] == v for k, v in chosen.items())))

    def all(self, name: str, **chosen: Any) -> list[Any]:
        """List one value a seed, those that are missing left out."""
        return [row[name] for row in self.where(**chosen).rows if row[name] is not None]

    def mean(self, name: str, **chosen: Any) -> float:
        """Average over seeds."""
        return interval(self.all(name, **chosen))[0]

    def values(self, axis: str) -> list[Any]:
        """List the values of what was varied, in their order."""
        return list(dict.fromkeys(row[axis] for row in self.rows))

    def add(self, **made: Callable[[Row], Any]) -> Cells:
        """Compute more numbers of each row."""
        return Cells(tuple({**row, **{k: make(row) for k, make in made.items()}}
                           for row in self.rows))  # fmt: skip

    def table(
        self, title: str, axis: str | Sequence[str], columns: Iterable[Column], *,
        head: str | Sequence[str] = "", form: str = "d", names: Mapping[Any, str] | None = None,
        more: Sequence[tuple[Cell, ...]] = (), **rest: Any,
    ) -> Table:  # fmt: skip
        """Make a table with one row for each value of an axis, or each combination of several."""
        columns, axes = tuple(columns), (axis,) if isinstance(axis, str) else tuple(axis)
        heads = (head,) * len(axes) if isinstance(head, str) else tuple(head)
        has_seeds = len(self.values("seed")) > 1

        def cell(one: Column, here: Cells) -> Cell:
            here = here.where(**one.where or {})
            found = [one.scale * value for value in here.all(one.name)]
            if one.over_seeds == "count":
                return f"{len(found)} of {len(here.rows)}"
            if has_seeds and one.over_seeds not in ("first", "mean"):
                return write(found, one.over_seeds)
            if not found:
                return None
            first: Cell = found[0]
            is_one = one.over_seeds == "first" or len(found) == 1
            return first if is_one else interval(found)[0]

        places = dict.fromkeys(tuple(row[one] for one in axes) for row in self.rows)
        rows = [
            (*((names or {}).get(one, one) for one in place),
             *(cell(one, self.where(**dict(zip(axes, place, strict=True)))) for one in columns))
            for place in places
        ]  # fmt: skip
        labels = ["" if isinstance(label, str) else form for label in rows[0][: len(axes)]]
        is_text = [has_seeds and one.over_seeds not in ("mean", "first") for one in columns]
        forms = ["" if text else one.form for one, text in zip(columns, is_text, strict=True)]
        titles = (*heads, *(one.head for one in columns))
        return Table(title, titles, (*labels, *forms), (*rows, *more), **rest)

    def line(
        self, name: str, axis: str | Sequence[float], what: str, role: Any = "plain", *,
        scale: float = 1, is_log: bool = False, ends: tuple[float, float] | None = None,
        **chosen: Any,
    ) -> Series:  # fmt: skip
        """Make a line along an axis, or of a course whose places are given, with its band."""
        here = self.where(**chosen)
        if isinstance(axis, str):
            places = here.values(axis)
            numbers = [here.all(what, **{axis: place}) for place in places]
        else:
            places, numbers = list(axis), [list(one) for one in zip(*here.all(what), strict=True)]
        return _series(name, places, numbers, role, scale, is_log, ends)

    def course(
        self, name: str, what: str, every: int, role: Any = "plain", *, is_log: bool = False,
        **chosen: Any,
    ) -> Series:  # fmt: skip
        """Make the line of a training whose losses are means over each few updates."""
        length = len(self.where(**chosen).rows[0][what])
        updates = [every * place + max(1, every / 2) for place in range(length)]
        return self.line(name, updates, what, role, is_log=is_log, **chosen)

    def bars(
        self, name: str, axis: str, what: str, role: Any = "plain", *, scale: float = 1,
        **chosen: Any,
    ) -> Series:  # fmt: skip
        """Make a bar for each value of an axis, none where the chosen rows have no number."""
        here, places = self.where(**chosen), self.values(axis)
        numbers = [here.all(what, **{axis: place}) for place in places]
        return _series(name, range(len(places)), numbers, role, scale, False, None)


def _series(
    name: str, places: Sequence[float], numbers: Sequence[Sequence[float]], role: Any,
    scale: float, is_log: bool, ends: tuple[float, float] | None,
) -> Series:  # fmt: skip
    found = [interval([scale * n for n in one], in_logarithms=is_log) for one in numbers]
    means, lows, highs = zip(*found, strict=True)
    if ends:
        lows, highs = (tuple(min(max(n, ends[0]), ends[1]) for n in side) for side in (lows, highs))
    bands = (lows, highs) if any(len(one) > 1 for one in numbers) else ((), ())
    return Series(name, tuple(map(float, places)), means, role, *bands)


def join(parts: Iterable[Cells]) -> Cells:
    """Put the rows of several measurements one after another."""
    return Cells(tuple(row for part in parts for row in part.rows))


def measure_cells(
    setting: Setting, key: str, make: Callable[..., Any], *, is_timed: bool = False,
    read: Callable[[Any], Any] = lambda found: found, **axes: Iterable[Any],
) -> Cells:  # fmt: skip
    """Measure every combination with every seed, or take it from the kept ones.

    Args:
        setting: its seeds, and where cells are kept.
        key: names a cell, with the axes in braces; the seed follows unless it has a place.
        make: computes the numbers of one cell.
        is_timed: True if the numbers have times: those of other machines are not taken.
        read: makes the row of a cell, or several rows, from what `make` computed.
        axes: what is varied.
    """
    rows: list[Row] = []
    key += "" if "{seed}" in key else ", seed {seed}"
    for combination in itertools.product(*axes.values()):
        for seed in setting.seeds:
            chosen = {**dict(zip(axes, combination, strict=True)), "seed": seed}
            found = read(
                setting.cell(key.format(**chosen), partial(make, **chosen), is_timed=is_timed)
            )
            rows += [chosen | dict(one) for one in (found if isinstance(found, list) else [found])]
    return Cells(tuple(rows))


def decide(rule: str, numbers: str, *, fails: bool, unless: Mapping[str, bool]) -> Verdict:
    """Judge: fails, holds only under each condition that is true, or holds."""
    conditions = [] if fails else [condition for condition, is_so in unless.items() if is_so]
    outcome: Outcome = "fails" if fails else "holds only if" if conditions else "holds"
    return Verdict(outcome, " and ".join(conditions), rule, numbers)
