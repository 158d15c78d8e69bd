"""Measured cells: what was varied, a seed, and numbers. Tables and plots are read off them."""

from __future__ import annotations

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any

from pellucid.lessons.why.result import Cell, Outcome, Panel, ResultTable, Series, Verdict
from pellucid.lessons.why.setting import MeasurementSetting

Row = Mapping[str, Any]
PERCENT = (0, 105)
"""The ends of an axis of percent, with room for the marks at 100."""
_LISTED = 3
"""Seeds up to which a table lists every number; of more it has the middle and both ends."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth")


def average(values: Sequence[float], *, in_logarithms: bool = False) -> float:
    """Average over seeds, as factors if asked; not a number if a value is missing."""
    if not values or not all(math.isfinite(value) for value in values):
        return math.nan
    # A gradient that is 0 has no logarithm: then the mean is the plain one.
    if in_logarithms and min(values) > 0:
        return statistics.geometric_mean(values)
    return statistics.fmean(values)


def write(values: Sequence[float], form: str = ".3g") -> str:
    """Write a number for each seed, or the middle and the ends of many; a dash if none is there."""
    # Not a number is the only value that differs from itself.
    known = [value for value in values if value == value]
    if len(known) > _LISTED:
        # Ends rather than a deviation: of five seeds, each is worth seeing.
        known = [statistics.median(known), min(known), max(known)]
    # A minus sign, as texts print it.
    found = [f"{value:{form}}".replace("-", "−") for value in known]
    if len(values) > _LISTED:
        return f"{found[0]} ({found[1]} to {found[2]})"
    # A dash, as for every number that does not exist.
    return " · ".join(found) or "–"


def say_seeds(values: Sequence[float], form: str = "", limit: float = math.inf) -> str:
    """Write a number for each seed in a sentence, ``2, 4 and 1``; once if all are the same.

    Args:
        values: one of each seed.
        form: of a number.
        limit: from here on a number is *never*.
    """
    said = [f"{one:{form}}".replace("-", "−") if one < limit else "never" for one in values]
    return _join(said if len({*said}) > 1 else said[:1])


def each_seed(said: str) -> str:
    """Begin a sentence with numbers that `say_seeds` wrote."""
    return "Seed by seed" if " and " in said else "With every seed"


def _join(words: Sequence[str]) -> str:
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def write_small(value: float) -> str:
    """Write a small number as a power of ten: ``4 · 10⁻⁹``; two decimals from a hundredth on."""
    # From here on two decimals show one digit that counts.
    if value >= 0.0095:
        return f"{value:.2f}"
    if not value:
        return "0"
    # A mean of numbers that are too large for float32.
    if not math.isfinite(value):
        return "infinitely many"
    digit, _, power = f"{value:.0e}".partition("e")
    return f"{digit} · 10{str(int(power)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


@dataclass(frozen=True)
class Column:
    """One column of a table: its heading, the number, a format, and which cells have it.

    Attributes:
        over_seeds: how several seeds are written: a format for each number, three digits unless
            given; ``mean`` or ``first`` is one number in the column's format; ``count`` is how many
            of the seeds have the number, also for one.
    """

    head: str
    name: str
    form: str = ".3g"
    scale: float = 1
    where: Row | None = None
    over_seeds: str = ""

    @property
    def is_number(self) -> bool:
        """Whether several seeds are written as one number too."""
        return self.over_seeds in ("first", "mean")

    def read(self, cells: Cells, is_single: bool) -> Cell:
        """Read the number of a row off its cells, of a single seed or of several."""
        here = cells.where(**self.where or {})
        found = [self.scale * value for value in here.all(self.name)]
        # None stands for a training that never learned.
        if self.over_seeds == "count":
            return f"{len(found)} of {len(here.rows)}"
        if not is_single and not self.is_number:
            return write(found, self.over_seeds or ".3g")
        if not found:
            return None
        first: Cell = found[0]
        return first if self.over_seeds == "first" or len(found) == 1 else average(found)


@dataclass(frozen=True)
class Cells:
    """One row for each combination of what was varied and each seed."""

    rows: tuple[Row, ...]

    def where(self, **chosen: Any) -> Cells:
        """Keep the rows with these values."""
        # A missing key is a mistake in a claim, so it raises.
        return Cells(tuple(r for r in self.rows if all(r[k] == v for k, v in chosen.items())))

    def all(self, name: str, **chosen: Any) -> list[Any]:
        """List one value a seed, those that are missing left out."""
        return [row[name] for row in self.where(**chosen).rows if row[name] is not None]

    def mean(self, name: str, **chosen: Any) -> float:
        """Average over seeds."""
        return average(self.all(name, **chosen))

    def values(self, axis: str) -> list[Any]:
        """List the values of what was varied, in their order."""
        return list(dict.fromkeys(row[axis] for row in self.rows))

    def add(self, **made: Callable[[Row], Any]) -> Cells:
        """Compute more numbers of each row."""
        return Cells(
            tuple({**row, **{k: make(row) for k, make in made.items()}} for row in self.rows)
        )

    def each(self, axis: str) -> dict[str, Row]:
        """Name each value of what was varied, to draw or to write one after another."""
        return {str(value): {axis: value} for value in self.values(axis)}

    def columns(self, axis: str, name: str, form: str = ".3g", **rest: Any) -> list[Column]:
        """Make a column of a number for each value of what was varied."""
        return [
            Column(head, name, form, where=one, **rest) for head, one in self.each(axis).items()
        ]

    def table(
        self,
        title: str,
        axis: str | Sequence[str],
        columns: Iterable[Column],
        *,
        head: str | Sequence[str] = "",
        form: str = "d",
        names: Mapping[Any, str] | None = None,
        more: Sequence[tuple[Cell, ...]] = (),
        **rest: Any,
    ) -> ResultTable:
        """Make a table with one row for each value of an axis, or each combination of several."""
        columns = tuple(columns)
        axes = (axis,) if isinstance(axis, str) else tuple(axis)
        heads = (head,) * len(axes) if isinstance(head, str) else tuple(head)
        is_single = len(self.values("seed")) < 2
        rows: list[tuple[Cell, ...]] = []
        # In the order of the rows, which is the order of measuring.
        for place in dict.fromkeys(tuple(row[one] for one in axes) for row in self.rows):
            here = self.where(**dict(zip(axes, place, strict=True)))
            labels = [(names or {}).get(one, one) for one in place]
            rows.append((*labels, *(column.read(here, is_single) for column in columns)))
        forms = ["" if isinstance(label, str) else form for label in rows[0][: len(axes)]]
        forms += [one.form if is_single or one.is_number else "" for one in columns]
        for row in more:
            # Where seeds are listed, cells are text: a number that has no seeds is written too.
            rows.append(
                tuple(
                    write([cell]) if isinstance(cell, float) and not form else cell
                    for cell, form in zip(row, forms, strict=True)
                )
            )
        titles = (*heads, *(one.head for one in columns))
        return ResultTable(title, titles, tuple(forms), tuple(rows), **rest)

    def line(
        self,
        name: str,
        axis: str | Sequence[float],
        what: str,
        role: Any = "plain",
        *,
        scale: float = 1,
        is_log: bool = False,
        **chosen: Any,
    ) -> Series:
        """Make a line along an axis, or of a course whose places are given, and its seeds."""
        here = self.where(**chosen)
        # A course has its numbers as one list a row, and no axis to look them up by.
        if isinstance(axis, str):
            places = here.values(axis)
            numbers = [here.all(what, **{axis: place}) for place in places]
        else:
            places = list(axis)
            numbers = [list(one) for one in zip(*here.all(what), strict=True)]
        return _series(name, places, numbers, role, scale, is_log)

    def bars(
        self,
        name: str,
        axis: str,
        what: str,
        role: Any = "plain",
        *,
        scale: float = 1,
        is_log: bool = False,
        **chosen: Any,
    ) -> Series:
        """Make a bar for each value of an axis, none where the chosen rows have no number."""
        here = self.where(**chosen)
        # Of all rows, not only the chosen ones, so that bars of several series share their places.
        places = self.values(axis)
        numbers = [here.all(what, **{axis: place}) for place in places]
        return _series(name, range(len(places)), numbers, role, scale, is_log)

    def panel(
        self,
        title: str,
        labels: tuple[str, str],
        shown: Mapping[str, str | Row],
        axis: str | Sequence[float],
        what: str = "",
        *,
        scale: float = 1,
        more: Sequence[Series] = (),
        **rest: Any,
    ) -> Panel:
        """Draw a line, or bars, for each name; the first is the one to look at.

        Args:
            title: of the panel.
            labels: of its axes.
            shown: the rows of each name, or the number of each name.
            axis: what was varied, or the places of numbers that each row has as a list.
            what: the number.
            scale: its factor.
            more: what else to draw, such as a reference.
            rest: fields of `Panel`; names, or bars, stand at counted places.
        """
        is_counted = isinstance(axis, str) and (rest.get("kind") == "bars" or "names" in rest)
        draw: Callable[..., Series] = self.bars if is_counted else self.line
        # Where an axis is logarithmic, factors are averaged.
        is_log = rest.get("y_log", False)
        series: list[Series] = []
        for name, chosen in shown.items():
            given = {"what": chosen} if isinstance(chosen, str) else {"what": what, **chosen}
            role = "plain" if series else "accent"
            series.append(draw(name, axis, role=role, scale=scale, is_log=is_log, **given))
        if is_counted:
            rest.setdefault("names", tuple(self.each(str(axis))))
        return Panel(title, *labels, (*series, *more), **rest)

    def updates(self, what: str, every: int) -> list[float]:
        """List the places of a training's losses, which are means over each few updates."""
        return [every * place + max(1, every / 2) for place in range(len(self.rows[0][what]))]


def _series(
    name: str,
    places: Sequence[float],
    numbers: Sequence[Sequence[float]],
    role: Any,
    scale: float,
    is_log: bool,
) -> Series:
    seeds = tuple(tuple(scale * number for number in one) for one in numbers)
    means = tuple(average(one, in_logarithms=is_log) for one in seeds)
    # A single seed is the line itself.
    dots = seeds if any(len(one) > 1 for one in seeds) else ()
    return Series(name, tuple(map(float, places)), means, role, dots)


def join_rows(parts: Iterable[Cells]) -> Cells:
    """Put the rows of several measurements one after another."""
    return Cells(tuple(row for part in parts for row in part.rows))


def measure_cells(
    setting: MeasurementSetting,
    key: str,
    make: Callable[..., Any],
    *,
    is_timed: bool = False,
    is_quick: bool = False,
    read: Callable[[Any], Any] = lambda found: found,
    **axes: Iterable[Any],
) -> Cells:
    """Measure every combination with every seed, or take it from the kept ones.

    Args:
        setting: its seeds, and where cells are kept.
        key: names a cell, with the axes in braces; the seed follows unless it has a place.
        make: computes the numbers of one cell.
        is_timed: True if the numbers have times: those of other machines are not taken.
        is_quick: True if a cell takes seconds, so that the long form has five seeds.
        read: makes the row of a cell, or several rows, from what `make` computed.
        axes: what is varied.
    """
    rows: list[Row] = []
    # Kept results are found by these words only: changing one measures it again.
    key += "" if "{seed}" in key else ", seed {seed}"
    for combination in itertools.product(*axes.values()):
        for seed in setting.seeds_of(5 if is_quick else 3):
            chosen = {**dict(zip(axes, combination, strict=True)), "seed": seed}
            # Kept is what was measured; what is read off it may change without measuring again.
            found = read(
                setting.cell(key.format(**chosen), partial(make, **chosen), is_timed=is_timed)
            )
            rows += [chosen | dict(one) for one in (found if isinstance(found, list) else [found])]
    return Cells(tuple(rows))


def decide(
    rule: str,
    numbers: str,
    reason: str,
    *,
    fails: bool,
    unless: Mapping[str, bool] = MappingProxyType({}),
) -> Verdict:
    """Judge: fails, holds only under each condition that is true, or holds.

    Args:
        rule: with its limits.
        numbers: what it is applied to.
        reason: what decided, in sentences that are true whatever the outcome.
        fails: the first question of the rule.
        unless: the conditions under which alone it holds, each with whether it is needed.
    """
    # What fails holds under no condition.
    conditions = [] if fails else [condition for condition, is_so in unless.items() if is_so]
    outcome: Outcome = "fails" if fails else "holds only if" if conditions else "holds"
    return Verdict(outcome, " and ".join(conditions), rule, numbers, reason)


def judge_seeds(judge: Callable[..., Verdict], *cells: Cells) -> Verdict:
    """Judge all seeds together; open if one of them, or all but one, would be judged otherwise.

    So a verdict is open whenever a limit lies within what the seeds span, and no verdict changes
    when any one seed is left out.

    Args:
        judge: a rule for cells.
        cells: what it is applied to, all with the same seeds.
    """
    whole = judge(*cells)
    seeds = cells[0].values("seed")
    # One seed cannot disagree with itself.
    if len(seeds) < 2:
        return whole

    def judged(keep: Callable[[Any], bool]) -> str:
        return judge(
            *(Cells(tuple(row for row in one.rows if keep(row["seed"]))) for one in cells)
        ).sentence

    # The default binds this seed; the loop's variable would be the last one.
    alone = [judged(lambda seed, one=one: seed == one) for one in seeds]  # type: ignore[misc]
    without = [judged(lambda seed, one=one: seed != one) for one in seeds]  # type: ignore[misc]
    # The whole sentence, since a condition may change while the outcome stays.
    if {whole.sentence, *alone, *without} == {whole.sentence}:
        return whole
    # If single seeds agree, it is leaving one out that changes the verdict.
    found = Counter(alone if len({*alone}) > 1 else [whole.sentence, *without])
    said = " and ".join(f"{count} “{sentence}”" for sentence, count in found.most_common())
    return replace(
        whole,
        outcome="open",
        condition=f"by themselves, the seeds say {said}",
        reason=f"{whole.reason} {_say_verdicts(alone)}".strip(),
    )


def _say_verdicts(alone: Sequence[str]) -> str:
    """Say why a verdict is open: what each seed says by itself."""
    if len({*alone}) == 1:
        return f"With each seed alone it {alone[0]}, but not with some together, so it is open."
    seeds: dict[str, list[str]] = {}
    for ordinal, sentence in zip(_ORDINALS, alone, strict=False):
        seeds.setdefault(sentence, []).append(ordinal)
    said = [f"the {_join(ordinals)} it {sentence}" for sentence, ordinals in seeds.items()]
    noun = "seed" if len(seeds[alone[0]]) == 1 else "seeds"
    return f"With {', with '.join(said).replace(' it ', f' {noun} it ', 1)}, so it is open."
