"""The result of a measurement as data: numbers, verdicts and a plot.

Terminal, JSON, picture and pages are all made from this. Nothing here computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from pellucid.config.parsing import finite_values

LECTURE = "a lecture on self-attention"
SLIDES = 'slides "Self-Attention"'
NOTES = 'notes "Transformers"'
OBJECTIVES = '"Self-attention mechanism: objectives"'
STUDY_NOTES = 'notes "Self-Attention for Transformer Neural Networks"'

Outcome = Literal["holds", "holds only if", "fails", "open"]
Cell = str | int | float | None


@dataclass(frozen=True)
class ClaimText:
    """A claim of a text.

    Attributes:
        text: the title of the text.
        place: the section or equation, if the text numbers them.
        says: the claim in a line.
    """

    text: str
    place: str
    says: str


@dataclass(frozen=True)
class Verdict:
    """The judgment of a claim, which follows from numbers by a rule.

    Attributes:
        outcome: the judgment; ``open`` if the seeds disagree.
        condition: completes "holds only if"; of an open one what the seeds say; empty otherwise.
        rule: the rule, with its limits.
        numbers: the numbers that the rule was applied to.
        reason: the number that decided, with its limit, in sentences for a newcomer.
    """

    outcome: Outcome
    condition: str
    rule: str
    numbers: str
    reason: str = ""

    def doubted(self) -> Verdict:
        """Return the verdict of one seed as an open one: others are known to disagree."""
        condition = f"this seed says “{self.sentence}”, but the seeds of --full disagree"
        return replace(self, outcome="open", condition=condition)

    @property
    def sentence(self) -> str:
        """The outcome with its condition."""
        return f"{self.outcome}{':' if self.outcome == 'open' else ''} {self.condition}".strip()

    @property
    def answer(self) -> str:
        """The outcome as the beginning of an answer."""
        only_if = f"Only if {self.condition}"
        return {
            "holds": "Yes",
            "fails": "No",
            "open": "Open, since runs with other random numbers (seeds) disagree",
        }.get(self.outcome, only_if)


@dataclass(frozen=True)
class MeasuredClaim:
    """A claim and what was measured about it."""

    statement: ClaimText
    verdict: Verdict


@dataclass(frozen=True)
class ResultTable:
    """A table of numbers.

    Attributes:
        title: its caption.
        columns: the names, with units.
        forms: a format of Python for the numbers of each column; empty for words.
        rows: the cells, None for a number that does not exist.
        is_of_this_machine: True if it has times or speeds, which another machine would change.
    """

    title: str
    columns: tuple[str, ...]
    forms: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_of_this_machine: bool = False


@dataclass(frozen=True)
class Series:
    """One line or one set of bars of a plot.

    Attributes:
        name: for the legend.
        x: the places; bars count them from 0.
        y: the heights.
        role: ``accent`` is the one to look at, ``plain`` what it is compared with, ``faint`` a
            reference such as chance.
        dots: the heights of the single seeds at each place; empty with one seed.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    role: Literal["accent", "plain", "faint"] = "plain"
    dots: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    Attributes:
        title: what is shown.
        x_label: of the horizontal axis, with the unit.
        y_label: of the vertical axis, with the unit.
        series: what to draw.
        kind: lines through points, or bars side by side.
        x_log: True for a logarithmic horizontal axis.
        y_log: True for a logarithmic vertical axis.
        names: of the places on the horizontal axis, for bars.
        y_range: the ends of the vertical axis; None takes them from the numbers.
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    kind: Literal["lines", "bars"] = "lines"
    x_log: bool = False
    y_log: bool = False
    names: tuple[str, ...] = ()
    y_range: tuple[float, float] | None = None


@dataclass(frozen=True)
class Found:
    """What the module of a claim found.

    Attributes:
        number: completes the answer, without its full stop: the most telling numbers.
        method: what was measured, and how.
        verdicts: the judgment of each statement, by its short name; the first answers the question.
        tables: the numbers.
        panels: of the picture.
        notes: what else a reader should know.
    """

    number: str
    method: str
    verdicts: dict[str, Verdict]
    tables: tuple[ResultTable, ...]
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()

    def plus(
        self,
        number: str = "",
        method: str = "",
        *,
        verdicts: Mapping[str, Verdict] | None = None,
        tables: Sequence[ResultTable] = (),
        panels: Sequence[Panel] = (),
        notes: Sequence[str] = (),
    ) -> Found:
        """Add what the long form measures besides; a new verdict takes the place of an old one."""
        return Found(
            self.number + number,
            self.method + method,
            {**self.verdicts, **(verdicts or {})},
            (*self.tables, *tables),
            (*self.panels, *panels),
            (*self.notes, *notes),
        )


@dataclass(frozen=True)
class Plot:
    """The data of a picture: one to three panels from left to right."""

    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Measurement:
    """Everything that a measurement found.

    Attributes:
        claim: its name, as in `pellucid.lessons.why.CLAIMS`.
        question: the question that it answers.
        number: the answer in one sentence, with the most telling numbers.
        method: what was measured, and how.
        findings: a verdict for each statement.
        tables: the numbers.
        plot: the data of the picture.
        notes: what else a reader should know.
        to_try: commands that continue from here.
        seed: of everything drawn.
        size: ``quick``, ``full``, or ``toy`` for a test of the measurement itself.
        machine: what times were measured on; empty if nothing was timed.
    """

    claim: str
    question: str
    number: str
    method: str
    findings: tuple[MeasuredClaim, ...]
    tables: tuple[ResultTable, ...]
    plot: Plot
    notes: tuple[str, ...]
    to_try: tuple[str, ...]
    seed: int
    size: str
    machine: str = ""


def to_record(measurement: Measurement) -> dict[str, Any]:
    """Turn a measurement into lists and dictionaries; a number that is not finite becomes null."""
    record = finite_values(asdict(measurement))
    for finding, found in zip(record["findings"], measurement.findings, strict=True):
        finding["verdict"]["sentence"] = found.verdict.sentence
    return dict(record)
